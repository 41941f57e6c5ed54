import { ID_RULE } from '../../../core/contract/errors.ts';
import { int64FromNumberText } from '../../../core/contract/int64.ts';
import { readJson, readToEnd, stringOf } from '../../../core/contract/json-reader.ts';
import { type NewPlant, type NewPlantReading, readNewPlantText } from '../../../core/contract/plant.ts';
import { readTypedId } from '../../id-text.ts';
import { SHOWN_LENGTH_MAX, visible } from '../../output/visible-text.ts';
import type { MadeId, MadeIds } from '../rows/made-ids.ts';
import {
  LINE_BREAK,
  type LineBreak,
  OLD_REASON_NAMES,
  type PlantRow,
  REASON_NAMES,
} from '../rows/plant-row.ts';
import { encodingFault, isStillNotUtf8 } from '../text/row-encoding.ts';

/** Where a value stands in its file. */
export interface Place {
  /** Line number, or number of the array element. */
  number: number;
  line: number;
  /** Where a person finds the value, such as `line 4 (element 3)`. */
  name: string;
}

/** The members of a value that a rejects file has in place of a row that is no object. */
const TEXT_MEMBERS = [REASON_NAMES, OLD_REASON_NAMES].map(names => ['text', ...names].join());

/**
 * @param text a value. In a rejects file, the member `text` of an object contains a value that
 *   could not get the reason as members: no object, or an object of this form
 * @param ids makes the ids; undefined if the file has them
 * @param known the fault of the text, if a rejects file names one that the text still has
 */
export function jsonRow(
  place: Place,
  text: string,
  ids: MadeIds | undefined,
  known?: NewPlantReading,
): PlantRow {
  const reading = readNewPlantText(text);
  const isJson = reading.kind === 'plant' || reading.error !== 'notJson';
  const isObject = isJson && text.startsWith('{');
  const encoding = known ?? encodingReading(text, isObject);
  const isRead = (encoding ?? reading).kind === 'plant' && ids === undefined;
  const members = isObject && !isRead ? ownMembers(text) : undefined;
  const hasText = members?.[0]?.text.startsWith('"text":"');
  const object = hasText ? JSON.parse(text) : {};
  const isOfRejectsFile = TEXT_MEMBERS.includes(Object.keys(object).join());
  if (isOfRejectsFile && typeof object.text === 'string') return jsonRow(place, object.text, ids, encoding);
  const madeId = ids && madeIdOf(ids, encoding === undefined ? members : undefined);
  const ownReading = encoding ?? (members === undefined ? reading : readMembers(members, madeId));
  return {
    number: place.number,
    place: () => place.name,
    lineBreak: ownReading.kind === 'plant' ? lineBreakOf(ownReading.plant) : undefined,
    reading: ownReading,
    madeId,
    rejectsFormat: () => ({ kind: 'jsonl' }),
    rejectsLine: ({ error, message }) => {
      const hasMembers = isObject && !hasText;
      const own = hasMembers ? textsOf(ownMembers(text)) : [`"text":${JSON.stringify(text)}`];
      const number = ids?.rule.kind === 'numbers' && madeId?.kind === 'id' ? madeId.id : undefined;
      const note = number !== undefined && !hasMembers ? `; its id is ${number}` : '';
      const rejected = number !== undefined && hasMembers ? withNumber(own, number) : own;
      const reason = `"line":${place.line},"row":${place.number},"error":${error},"message":${JSON.stringify(message + note)}`;
      return `{${[...rejected, reason].join()}}\n`.toWellFormed();
    },
  };
}

/** The members of a numbered row. Its number is its id, and an id that is ignored has another name. */
function withNumber(members: string[], id: bigint): string[] {
  return [`"id":${id}`, ...members.map(each => each.replace(/^"id":/, '"ignored id":'))];
}

/** @param members of the row; undefined if they are not known */
function madeIdOf(ids: MadeIds, members: Member[] | undefined): MadeId {
  if (!ids.rule.ignoresIds && members?.some(({ name }) => name === 'id')) return { kind: 'own id' };
  const textOf = (column: string): string | undefined => {
    const value = members!.find(({ name }) => name === column)?.value;
    if (value?.startsWith('"')) return stringOf(value);
    // A number has the text that it has in the file, as it would have in CSV.
    return value !== undefined && /^[-0-9]/.test(value) ? value : undefined;
  };
  return ids.make(members && ids.columns.map(textOf));
}

/**
 * Makes the row of an element of GeoJSON (RFC 7946 section 3.2). The plant is in the properties of
 * the feature. If they have no id, it has that of the feature.
 *
 * @param text an element of the list of features
 */
export function featureRow(place: Place, text: string, ids: MadeIds | undefined): PlantRow {
  const members = membersOf(text);
  if (members?.get('type') !== '"Feature"') return jsonRow(place, text, ids);
  const properties = members.get('properties');
  const own = properties?.startsWith('{') ? properties : '{}';
  const id = members.get('id');
  if (id === undefined || membersOf(own)?.has('id')) return jsonRow(place, own, ids);
  const others = own.slice(1).trimStart();
  return jsonRow(place, `{"id":${id}${others === '}' ? '' : ','}${others}`, ids);
}

/** @returns the members of an object as JSON texts; undefined if the text is no JSON */
function membersOf(text: string): Map<string, string> | undefined {
  const members = new Map<string, string>();
  const fault = readToEnd(readJson(text, (name, valueText) => members.set(name, valueText)));
  return fault === undefined ? members : undefined;
}

/** The fault of a value with invalid bytes, also in a rejects file; undefined if it has none. */
function encodingReading(text: string, isObject: boolean): NewPlantReading | undefined {
  if (!text.isWellFormed()) return { kind: 'invalid', error: 'notNewPlant', message: encodingFault(text) };
  if (!isObject || !text.includes('\ufffd')) return undefined;
  const { message, ...own } = JSON.parse(text);
  if (typeof message !== 'string' || !isStillNotUtf8(message, [JSON.stringify(own)])) return undefined;
  return { kind: 'invalid', error: 'notNewPlant', message };
}

function lineBreakOf(plant: NewPlant): LineBreak | undefined {
  const column = (['name', 'tag'] as const).find(member => LINE_BREAK.test(plant[member] ?? ''));
  return column && { column, text: plant[column]! };
}

/** A member of an object. */
interface Member {
  name: string;
  /** The value as JSON, on one line. */
  value: string;
  /** The member as JSON. */
  text: string;
}

function textsOf(members: Member[]): string[] {
  return members.map(({ text }) => text);
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

/** A valid value in place of one with a fault. */
const VALID_VALUES: Record<string, string> = { id: '0', name: '""', tag: '""' };

/** Reads a plant. The message begins with the faults of single values. */
function readMembers(members: Member[], madeId: MadeId | undefined): NewPlantReading {
  const isMade = madeId?.kind === 'id' || madeId?.kind === 'fault';
  const faults: string[] = madeId?.kind === 'fault' ? [madeId.fault] : [];
  // The plant is read with valid values, so that the message lists the other faults.
  const texts = members.flatMap(member => {
    if (isMade && member.name === 'id') return [];
    const fault = faultOf(member);
    if (fault === undefined) return member.text;
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

/**
 * The exact text of an object's members, each on one line, without an earlier reason. Many files
 * have a null tag, which means no tag, or an id as a string. Both are accepted.
 */
function ownMembers(text: string): Member[] {
  const own: Member[] = [];
  const onMember = (name: string, valueText: string): void => {
    if (REASON_NAMES.includes(name) || (name === 'tag' && valueText === 'null')) return;
    const isIdText = name === 'id' && valueText.startsWith('"');
    const reading = isIdText ? readTypedId(stringOf(valueText)) : undefined;
    const value = reading?.kind === 'id' ? String(reading.id) : valueText;
    // JSON strings contain no line breaks, so each line break can become a space.
    const oneLine = value.replace(/[\r\n]+/g, ' ');
    own.push({ name, value: oneLine, text: `${JSON.stringify(name)}:${oneLine}` });
  };
  readToEnd(readJson(text, onMember));
  return own;
}
