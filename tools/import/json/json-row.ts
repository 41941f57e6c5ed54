import { readJson, readToEnd, stringOf } from '../../../src/core/contract/json-reader.ts';
import { type NewPlantReading, readNewPlantText } from '../../../src/core/contract/plant.ts';
import { beginsWithText, rejectedFaultIn, rejectedTextIn, rejectsLineOf } from '../rejects/json-rejects.ts';
import { encodingFault, type FormFault } from '../rejects/rejects-format.ts';
import type { IdMaker, MadeId } from '../rows/id-maker.ts';
import { lineBreakIn, type PlantRow, type RowOptions } from '../rows/plant-row.ts';
import { type Member, ownMembers, readMembers } from './json-members.ts';
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

export interface JsonOptions extends RowOptions {
  /** Gets the members of the first row, and of each further row that is read member by member. */
  seen?: SeenMembers;
}

/**
 * @param text a value. In a rejects file, the member `text` of an object contains a value that
 *   could not get the reason as members: no object, or an object of this form
 * @param known the fault of the text, if it has one that `text` alone does not show
 */
export function jsonRow(place: Place, text: string, options: JsonOptions, known?: FormFault): PlantRow {
  const { ids, seen } = options;
  const { columns, encoding } = options.form;
  const reading = readNewPlantText(text);
  const isJson = reading.kind === 'plant' || reading.error !== 'notJson';
  const isObject = isJson && text.startsWith('{');
  const fault = known ?? encodingFaultOf(text, isObject, encoding);
  const hasOptions = ids !== undefined || columns !== undefined;
  const isRead = fault === undefined && reading.kind === 'plant' && !hasOptions && !seen?.isEmpty;
  const members = isObject && !isRead ? ownMembers(text, options) : undefined;
  const hasText = beginsWithText(members);
  const rejectedText = hasText ? rejectedTextIn(text) : undefined;
  if (rejectedText !== undefined) return jsonRow(place, rejectedText, options, fault);
  for (const { column } of members ?? []) seen?.add(column);
  const madeId = ids && madeIdOf(ids, fault === undefined ? members : undefined);
  const ownReading = readingOf(fault, members, madeId) ?? reading;
  const plant = ownReading.kind === 'plant' ? ownReading.plant : undefined;
  const { number, line, name } = place;
  const hasMembers = isObject && !hasText;
  return {
    number,
    place: () => name,
    lineBreak: plant && lineBreakIn(['name', 'tag'], [plant.name, plant.tag]),
    reading: ownReading,
    madeId,
    rejectsFormat: { extension: 'jsonl', header: '' },
    rejectsLine: error => rejectsLineOf({ number, line, text, hasMembers, fault, madeId }, error, options),
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

/** @returns undefined if the value is no object */
function readingOf(
  fault: FormFault | undefined,
  members: Member[] | undefined,
  madeId: MadeId | undefined,
): NewPlantReading | undefined {
  if (fault !== undefined) return { kind: 'invalid', error: 'notNewPlant', message: fault.message };
  return members && readMembers(members, madeId);
}

/** The fault of a value with invalid bytes, also in a rejects file; undefined if it has none. */
function encodingFaultOf(
  text: string,
  isObject: boolean,
  encoding: string | undefined,
): FormFault | undefined {
  if (!text.isWellFormed()) return encodingFault(text, encoding);
  return isObject && text.includes('\ufffd') ? rejectedFaultIn(text) : undefined;
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
  if (id === undefined || options.form.columns?.id !== undefined || membersOf(own)?.has('id'))
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
