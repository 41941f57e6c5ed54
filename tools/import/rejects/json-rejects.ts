import type { ErrorBody } from '../../../src/core/contract/errors.ts';
import { type Member, ownMembers } from '../json/json-members.ts';
import type { MadeId } from '../rows/id-maker.ts';
import type { RowOptions } from '../rows/plant-row.ts';
import { type FormFault, IGNORED_ID, isFormCode, isStillNotUtf8, REASON_NAMES } from './rejects-format.ts';

/** The members of a value that a rejects file has in place of a row that is no object. */
const TEXT_MEMBERS = ['text', ...REASON_NAMES].join();

/** A value that a rejects file gets. */
export interface RejectedValue {
  /** Line number, or number of the array element. */
  number: number;
  line: number;
  text: string;
  /** Whether it gets the reason as further members. Otherwise its text is in the member `text`. */
  hasMembers: boolean;
  fault: FormFault | undefined;
  madeId: MadeId | undefined;
}

/** The line of a value in a rejects file. */
export function rejectsLineOf(
  { number, line, text, hasMembers, fault, madeId }: RejectedValue,
  { error, message }: ErrorBody,
  options: RowOptions,
): string {
  const rule = options.ids?.rule;
  // The texts that make an id can be in any member, so such a rejects file needs the same options.
  const nameOf = ({ column, name }: Member): string => {
    if (rule?.kind !== 'texts') return name;
    return column === 'id' ? IGNORED_ID : column;
  };
  // As JSON, an invalid byte would be an escape, which hides that it is to be replaced.
  const written = text.toWellFormed();
  const own = hasMembers
    ? ownMembers(written, options).map(member => `${JSON.stringify(nameOf(member))}:${member.value}`)
    : [`"text":${JSON.stringify(written)}`];
  const id = rule?.kind === 'numbers' && madeId?.kind === 'id' ? madeId.id : undefined;
  const note = id !== undefined && !hasMembers ? `; its id is ${id}` : '';
  const rejected = id !== undefined && hasMembers ? [`"id":${id}`, ...own] : own;
  const code = JSON.stringify(fault?.code ?? error);
  const reason = `"line":${line},"row":${number},"error":${code},"message":${JSON.stringify(message + note)}`;
  return `{${[...rejected, reason].join()}}\n`;
}

/** Whether the first member of an object may be the text of a rejected value. */
export function beginsWithText(members: Member[] | undefined): boolean {
  return members?.[0]?.column === 'text' && members[0].value.startsWith('"');
}

/** @returns the text of a rejected value; undefined if the object is none of a rejects file */
export function rejectedTextIn(object: string): string | undefined {
  const value = JSON.parse(object);
  const isOfRejectsFile = Object.keys(value).join() === TEXT_MEMBERS;
  return isOfRejectsFile && typeof value.text === 'string' ? value.text : undefined;
}

/** The fault of a row with invalid bytes in a rejects file, if it still has them. */
export function rejectedFaultIn(object: string): FormFault | undefined {
  const { error, message, ...own } = JSON.parse(object);
  if (typeof message !== 'string' || !isFormCode(error)) return undefined;
  return isStillNotUtf8(error, [JSON.stringify(own)]) ? { code: error, message } : undefined;
}
