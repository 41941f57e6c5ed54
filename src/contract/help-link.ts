import { ERRORS, type ErrorName } from './errors.ts';

/** The anchor of an error on the documentation page. Links to it are kept by people, so it never changes. */
export function errorAnchor(name: ErrorName): string {
  return `error-${ERRORS[name].number}`;
}

/**
 * The Link field of an error answer (RFC 8288): it leads to what the documentation page says of this error.
 *
 * The reference is relative, so that it also holds where a proxy puts a path in front of `/plants`. At a path that is
 * not there a relative one could lead anywhere.
 */
export function helpLink(name: ErrorName): string {
  const page = name === 'noSuchPath' ? '/docs' : 'docs';
  return `<${page}#${errorAnchor(name)}>; rel="help"`;
}
