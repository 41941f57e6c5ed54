import { REVISION_MAX } from './contract/limits.ts';
import { fieldValues, type HeaderFields } from './header-fields.ts';

/**
 * What a request says of the latest revision of its plant. The field has the semantics of If-Match
 * (RFC 9110 section 13.1.1), but for a plant that the body names, not for the target of the request.
 */
export type RevisionCondition =
  /** `ifRevision`: undefined without the field. 0: there is no plant with this id. */
  | { kind: 'valid'; ifRevision: number | undefined }
  /** `isTest`: the value is {@link REVISION_TEST}, so nothing is wrong. */
  | { kind: 'invalid'; message: string; isTest: boolean };

/** A value that no service accepts. With it, a client tests whether a service gets the field. */
export const REVISION_TEST = 'test';

const REVISION_NUMBER = /^(?:0|[1-9][0-9]{0,9})$/;

/** @returns the number of a revision, or 0; undefined if the text is neither */
export function readRevisionNumber(text: string): number | undefined {
  const revision = Number(text);
  return REVISION_NUMBER.test(text) && revision <= REVISION_MAX ? revision : undefined;
}

const UNCONDITIONAL: RevisionCondition = { kind: 'valid', ifRevision: undefined };
const INVALID_MESSAGE = `send If-Plant-Revision at most once, with one number of a revision from 1 to ${REVISION_MAX}, or 0 for a new plant; decimal digits only, without leading zeros`;

/** Reads the field If-Plant-Revision. Blanks around its value are not part of it. */
export function revisionConditionOf(fields: HeaderFields): RevisionCondition {
  const values = fieldValues(fields, 'if-plant-revision');
  if (values.length === 0) return UNCONDITIONAL;
  const ifRevision = values.length === 1 ? readRevisionNumber(values[0]!) : undefined;
  if (ifRevision !== undefined) return { kind: 'valid', ifRevision };
  return { kind: 'invalid', message: INVALID_MESSAGE, isTest: values[0] === REVISION_TEST };
}
