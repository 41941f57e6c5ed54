import { readTypedId } from '../../../src/cli/shared/id-text.ts';
import { ID_RULE } from '../../../src/core/contract/errors.ts';
import { int64FromNumberText } from '../../../src/core/contract/int64.ts';
import { readJson, readToEnd, stringOf } from '../../../src/core/contract/json-reader.ts';
import { type NewPlantReading, readNewPlantText } from '../../../src/core/contract/plant.ts';
import { SHOWN_LENGTH_MAX, visible } from '../../../src/formats/visible-text.ts';
import { IGNORED_ID, ignoredName, REASON_NAMES } from '../rejects/rejects-format.ts';
import type { MadeId } from '../rows/id-maker.ts';
import { type ColumnNames, MEMBERS, type RowOptions } from '../rows/plant-row.ts';

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
 */
export function ownMembers(text: string, { form: { columns = {} }, ids }: RowOptions): Member[] {
  const own: Member[] = [];
  const onMember = (found: string, valueText: string): void => {
    if (REASON_NAMES.includes(found)) return;
    const column = ids?.rule.kind === 'texts' && found === IGNORED_ID ? 'id' : found;
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

/** A valid value in place of one with a fault. */
const VALID_VALUES: Record<string, string> = { id: '0', name: '""', tag: '""' };

/** Reads a plant. The message begins with the faults of single values. */
export function readMembers(members: Member[], madeId: MadeId | undefined): NewPlantReading {
  const isMade = madeId?.kind === 'id' || madeId?.kind === 'fault';
  const faults: string[] = madeId?.kind === 'fault' ? [madeId.fault] : [];
  // The plant is read with valid values, so that the message lists the other faults.
  const texts = members.flatMap(member => {
    if (isMade && member.name === 'id') return [];
    // Many files have a null tag, which means no tag.
    if (member.name === 'tag' && member.value === 'null') return [];
    const fault = faultOf(member);
    if (fault === undefined) return `${JSON.stringify(member.name)}:${member.value}`;
    if (member.name === 'id') faults.unshift(fault);
    else faults.push(fault);
    return `"${member.name}":${VALID_VALUES[member.name]}`;
  });
  if (isMade) texts.unshift(`"id":${madeId.kind === 'id' ? madeId.id : VALID_VALUES.id}`);
  const others = readNewPlantText(`{${texts}}`);
  if (faults.length === 0) return others;
  const message = [...faults, ...(others.kind === 'invalid' ? [others.message] : [])].join('; ');
  return { kind: 'invalid', error: 'notNewPlant', message };
}

/** What is wrong with the value of a member. In contrast to the service, it shows the value. */
function faultOf({ name, value }: Member): string | undefined {
  const isText = value.startsWith('"');
  const shown = `${name} ${visible(value.slice(0, SHOWN_LENGTH_MAX))}${value.length > SHOWN_LENGTH_MAX ? '…' : ''}`;
  if (name === 'name' || name === 'tag')
    return isText ? undefined : `${shown} is not a text; write a text in quotes`;
  if (name !== 'id') return undefined;
  // A valid id that is a string is a number here, since `ownMembers` has replaced it.
  const reading = isText ? readTypedId(stringOf(value)) : undefined;
  if (reading?.kind === 'fault') return reading.fault;
  return int64FromNumberText(value) === undefined ? `${shown} must be ${ID_RULE}` : undefined;
}
