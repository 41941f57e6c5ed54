import { readTypedId } from '../../cli/id-text.ts';
import { SHOWN_LENGTH_MAX, visible } from '../../cli/output/visible-text.ts';
import { ID_RULE } from '../../core/contract/errors.ts';
import { int64FromNumberText } from '../../core/contract/int64.ts';
import { readJson, readToEnd, stringOf } from '../../core/contract/json-reader.ts';
import { type NewPlant, type NewPlantReading, readNewPlantText } from '../../core/contract/plant.ts';
import { encodingFault, type FormFault, isFormCode, isStillNotUtf8 } from '../rows/form-fault.ts';
import type { IdMaker, MadeId } from '../rows/id-maker.ts';
import {
  type ColumnNames,
  LINE_BREAK,
  type LineBreak,
  MEMBERS,
  type PlantRow,
  REASON_NAMES,
} from '../rows/plant-row.ts';
import type { SeenMembers } from './seen-members.ts';

/** Where a value stands in its file. */
export interface Place {
  /** Line number, or number of the array element. */
  number: number;
  line: number;
  /** Where a person finds the value, such as `line 4 (element 3)`. */
  name: string;
}

/** Makes the row of a JSON value. */
export type RowMaker = (place: Place, text: string) => PlantRow;

export interface JsonOptions {
  /** Names of the members that have the id, name and tag. */
  columns?: ColumnNames | undefined;
  /** Makes the ids; undefined if the file has them. */
  ids?: IdMaker | undefined;
  /** Undefined: UTF-8. */
  encoding?: string | undefined;
  /** Gets the members of the first row, and of each further row that is read member by member. */
  seen?: SeenMembers;
}

/** The members of a value that a rejects file has in place of a row that is no object. */
const TEXT_MEMBERS = ['text', ...REASON_NAMES].join();

/**
 * @param text a value. In a rejects file, the member `text` of an object contains a value that
 *   could not get the reason as members: no object, or an object of this form
 * @param known the fault of the text, if it has one that `text` alone does not show
 */
export function jsonRow(place: Place, text: string, options: JsonOptions, known?: FormFault): PlantRow {
  const { ids, columns, seen } = options;
  const reading = readNewPlantText(text);
  const isJson = reading.kind === 'plant' || reading.error !== 'notJson';
  const isObject = isJson && text.startsWith('{');
  const fault = known ?? encodingFaultOf(text, isObject, options);
  const hasOptions = ids !== undefined || columns !== undefined;
  const isRead = fault === undefined && reading.kind === 'plant' && !hasOptions && !seen?.isEmpty;
  const members = isObject && !isRead ? ownMembers(text, columns) : undefined;
  const hasText = members?.[0]?.column === 'text' && members[0].value.startsWith('"');
  const object = hasText ? JSON.parse(text) : {};
  const isOfRejectsFile = Object.keys(object).join() === TEXT_MEMBERS;
  if (isOfRejectsFile && typeof object.text === 'string') return jsonRow(place, object.text, options, fault);
  for (const { column } of members ?? []) seen?.add(column);
  const madeId = ids && madeIdOf(ids, fault === undefined ? members : undefined);
  const ownReading = readingOf(fault, members, madeId) ?? reading;
  return {
    number: place.number,
    place: () => place.name,
    lineBreak: ownReading.kind === 'plant' ? lineBreakOf(ownReading.plant) : undefined,
    reading: ownReading,
    madeId,
    rejectsFormat: () => ({ kind: 'jsonl' }),
    rejectsLine: ({ error, message }) => {
      const hasMembers = isObject && !hasText;
      // The texts that make an id can be in any member, so such a rejects file needs the same options.
      const nameIn = ids?.rule.kind === 'texts' ? 'column' : 'name';
      // As JSON, an invalid byte would be an escape, which hides that it is to be replaced.
      const written = text.toWellFormed();
      const own = hasMembers
        ? ownMembers(written, columns).map(member => `${JSON.stringify(member[nameIn])}:${member.value}`)
        : [`"text":${JSON.stringify(written)}`];
      const number = ids?.rule.kind === 'numbers' && madeId?.kind === 'id' ? madeId.id : undefined;
      const note = number !== undefined && !hasMembers ? `; its id is ${number}` : '';
      const rejected = number !== undefined && hasMembers ? [`"id":${number}`, ...own] : own;
      const code = JSON.stringify(fault?.code ?? error);
      const reason = `"line":${place.line},"row":${place.number},"error":${code},"message":${JSON.stringify(message + note)}`;
      return `{${[...rejected, reason].join()}}\n`;
    },
  };
}

/** @param members of the row; undefined if they are not known */
function madeIdOf(ids: IdMaker, members: Member[] | undefined): MadeId {
  if (!ids.rule.ignoresIds && members?.some(({ column }) => column === 'id')) return { kind: 'own id' };
  const textOf = (wanted: string): string | undefined => {
    const value = members!.find(({ column }) => column === wanted)?.value;
    if (value?.startsWith('"')) return stringOf(value);
    // A number has the text that it has in the file, as it would have in CSV.
    return value !== undefined && /^[-0-9]/.test(value) ? value : undefined;
  };
  return ids.make(members && ids.columns.map(textOf));
}

/**
 * Makes the row of an element of GeoJSON (RFC 7946 section 3.2). The plant is in the properties of
 * the feature. If they have no id, and no option says where it is, it has that of the feature.
 *
 * @param text an element of the list of features
 */
export function featureRow(place: Place, text: string, options: JsonOptions): PlantRow {
  const members = membersOf(text);
  // Read as a plant, such a value has a fault, also if it is a feature that repeats a member.
  if (members?.get('type') !== '"Feature"') return jsonRow(place, text, options);
  const properties = members.get('properties');
  const own = properties?.startsWith('{') ? properties : '{}';
  const id = members.get('id');
  if (id === undefined || options.columns?.id !== undefined || membersOf(own)?.has('id'))
    return jsonRow(place, own, options);
  const others = own.slice(1).trimStart();
  return jsonRow(place, `{"id":${id}${others === '}' ? '' : ','}${others}`, options);
}

/** @returns the members of an object as JSON texts; undefined if one is repeated, or the text is no JSON */
function membersOf(text: string): Map<string, string> | undefined {
  const members = new Map<string, string>();
  let isRepeated = false;
  const onMember = (name: string, valueText: string): void => {
    isRepeated ||= members.has(name);
    members.set(name, valueText);
  };
  const fault = readToEnd(readJson(text, onMember));
  return fault === undefined && !isRepeated ? members : undefined;
}

/** The fault of a value with invalid bytes, also in a rejects file; undefined if it has none. */
function encodingFaultOf(text: string, isObject: boolean, { encoding }: JsonOptions): FormFault | undefined {
  if (!text.isWellFormed()) return encodingFault(text, encoding);
  if (!isObject || !text.includes('\ufffd')) return undefined;
  const { error, message, ...own } = JSON.parse(text);
  if (typeof message !== 'string' || !isFormCode(error)) return undefined;
  return isStillNotUtf8(error, [JSON.stringify(own)]) ? { code: error, message } : undefined;
}

/** @returns undefined if the value is no object */
function readingOf(
  fault: FormFault | undefined,
  members: Member[] | undefined,
  madeId: MadeId | undefined,
): NewPlantReading | undefined {
  if (fault !== undefined) return { kind: 'invalid', error: 'notNewPlant', message: fault.message };
  return members && readMembers(members, madeId);
}

function lineBreakOf(plant: NewPlant): LineBreak | undefined {
  const column = (['name', 'tag'] as const).find(member => LINE_BREAK.test(plant[member] ?? ''));
  return column && { column, text: plant[column]! };
}

/** A member of an object. */
interface Member {
  /** Its name in the file. */
  column: string;
  /** The name that `--columns` gives it, which is its name in a rejects file. */
  name: string;
  /** The value as JSON, on one line. */
  value: string;
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

/**
 * The members of an object, each on one line, without an earlier reason. Many files have an id as a
 * string, which is accepted.
 */
function ownMembers(text: string, columns: ColumnNames = {}): Member[] {
  const own: Member[] = [];
  const onMember = (column: string, valueText: string): void => {
    if (REASON_NAMES.includes(column)) return;
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
  const isConfusing = (MEMBERS as readonly string[]).includes(column);
  return member ?? (isConfusing ? `ignored ${column}` : column);
}
