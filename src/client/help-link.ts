import { ERRORS, type ErrorName } from '../core/contract/errors.ts';

/** The anchor of an error on the documentation page. It never changes, since people save links. */
export function errorAnchor(name: ErrorName): string {
  return `error-${ERRORS[name].number}`;
}

/**
 * The Link field of an error response (RFC 8288): it leads to this error on the documentation page.
 *
 * The reference is relative, so that it also works if a proxy puts a path in front of `/plants`. On
 * a path that does not exist it is absolute, since a relative reference could lead anywhere.
 */
export function helpLink(name: ErrorName): string {
  const page = name === 'noSuchPath' ? '/docs' : 'docs';
  return `<${page}#${errorAnchor(name)}>; rel="help"`;
}
