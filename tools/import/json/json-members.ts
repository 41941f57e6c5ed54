import { readTypedId } from '../../../src/cli/shared/id-text.ts';
import { readJson, readToEnd, stringOf } from '../../../src/core/contract/json-reader.ts';
import { IGNORED_ID, ignoredName } from '../rows/confusing-name.ts';
import type { IdRule } from '../rows/id-maker.ts';
import { type ColumnNames, MEMBERS, REASON_NAMES } from '../rows/plant-row.ts';

/** A member of an object. */
export interface Member {
  /** Its name in the file that was first imported. */
  column: string;
  /** The name that `--columns` gives it, which is its name in a rejects file. */
  name: string;
  /** The value as JSON, on one line. */
  value: string;
}

/**
 * The members of an object, each on one line, without an earlier reason. Many files have an id as a
 * string, which is accepted.
 *
 * @param idRule undefined if the file has the ids
 */
export function ownMembers(text: string, columns: ColumnNames = {}, idRule?: IdRule): Member[] {
  const own: Member[] = [];
  const onMember = (found: string, valueText: string): void => {
    if (REASON_NAMES.includes(found)) return;
    const column = idRule?.kind === 'texts' && found === IGNORED_ID ? 'id' : found;
    const name = nameOf(column, columns);
    const isIdText = name === 'id' && valueText.startsWith('"');
    const reading = isIdText ? readTypedId(stringOf(valueText)) : undefined;
    const value = reading?.kind === 'id' ? String(reading.id) : valueText;
    // JSON strings contain no line breaks, so each line break can become a space.
    own.push({ column, name, value: value.replace(/[\r\n]+/g, ' ') });
  };
  readToEnd(readJson(text, onMember));
  return own;
}

/** A member that is not read, but has the name of one that is, gets another name. */
function nameOf(column: string, columns: ColumnNames): string {
  const member = MEMBERS.find(each => column !== '' && (columns[each] ?? each) === column);
  return member ?? ignoredName(column);
}
