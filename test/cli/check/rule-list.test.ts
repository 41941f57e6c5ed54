/**
 * Compares the rule list of docs/check.md with the rules in src/cli/check. To rewrite the list:
 *
 *   npx node test/cli/check/rule-list.test.ts --write
 */
import assert from 'node:assert/strict';
import { readFileSync, writeFileSync } from 'node:fs';
import { test } from 'node:test';
import { RULES_FOR_EVERY_STORE } from '../../../src/cli/check/http-rules.ts';
import { OWN_RULES } from '../../../src/cli/check/own-rules.ts';
import type { Rule } from '../../../src/cli/check/rule.ts';

const DOCUMENT = new URL('../../../docs/check.md', import.meta.url);
/** The text between the two marker comments of the document. */
const LIST = /(?<=^<!-- rules.*-->\n).*(?=^<!-- end of rules -->)/ms;
/** A family has this many rules, and its template as many words. */
const FAMILY_RULES_MIN = 3;
const ITEM_WORDS_MIN = 2;

interface Item {
  name: string;
  text: string;
}

/** Items by name and text, with the family that explains them: each item is explained once. */
const explainedIn = new Map<string, string>();
const listedIds: string[] = [];

const everyLevel = Object.entries(Object.groupBy(RULES_FOR_EVERY_STORE, ({ level }) => level));
const list = [...everyLevel, ['With `--ours`, all MUST', OWN_RULES] as const]
  .map(([title, rules]) => `\n### ${title}\n\n\`\`\`text\n${linesOf(rules).join('\n')}\n\`\`\`\n`)
  .join('')
  .concat('\n');

const document = readFileSync(DOCUMENT, 'utf8');
if (process.argv.includes('--write'))
  writeFileSync(
    DOCUMENT,
    document.replace(LIST, () => list),
  );

test('docs/check.md lists the rules as generated from the code', () => {
  const [written] = LIST.exec(readFileSync(DOCUMENT, 'utf8')) ?? [];
  assert.equal(written, list, 'run: npx node test/cli/check/rule-list.test.ts --write');
});

test('the generated list has every rule once', () => {
  const ids = [...RULES_FOR_EVERY_STORE, ...OWN_RULES].map(({ id }) => id);
  assert.deepEqual(listedIds.toSorted(), ids.toSorted());
});

/** One line for each rule; rules with the same parent and similar titles share a template. */
function linesOf(rules: readonly Rule[]): string[] {
  const families = Map.groupBy(rules, ({ id, title }) => `${parentOf(id)} ${title.split(' ').at(-1)}`);
  return [...families.values()].flatMap(family => {
    const byFirstWord = Map.groupBy(family, ({ title }) => title.split(' ', 1)[0]);
    const parts = () => [...byFirstWord.values()].flatMap(part => familyLines(part) ?? part.map(ruleLine));
    return familyLines(family) ?? parts();
  });
}

function ruleLine({ id, title }: Rule): string {
  listedIds.push(id);
  return `${id}  ${title}`;
}

/** @returns undefined if the rules are too few or too different for a template */
function familyLines(family: readonly Rule[]): string[] | undefined {
  const titles = family.map(({ title }) => title.split(' '));
  const shared = sharedLength(titles);
  // One shared word is an article, which reads better with the text of each rule.
  const start = shared > 1 ? shared : 0;
  const shortest = Math.min(...titles.map(words => words.length)) - start;
  const end = Math.min(sharedLength(titles.map(words => words.toReversed())), shortest - ITEM_WORDS_MIN);
  if (family.length < FAMILY_RULES_MIN || start + end < FAMILY_RULES_MIN) return undefined;
  const parent = parentOf(family[0]!.id);
  const template = [...titles[0]!.slice(0, start), '…', ...titles[0]!.slice(titles[0]!.length - end)];
  const items = family.map(({ id }, index) => ({
    name: id.slice(parent.length + 1),
    text: titles[index]!.slice(start, titles[index]!.length - end).join(' '),
  }));
  listedIds.push(...items.map(({ name }) => `${parent}.${name}`));
  return [`${parent}.*  ${template.join(' ')}`, ...itemLines(items, parent)];
}

function itemLines(items: Item[], parent: string): string[] {
  const origins = Map.groupBy(items, ({ name, text }) => explainedIn.get(`${name} ${text}`));
  for (const { name, text } of origins.get(undefined) ?? []) explainedIn.set(`${name} ${text}`, parent);
  return [...origins].flatMap(([origin, group]) =>
    origin === undefined
      ? group.map(({ name, text }) => `  ${name}  ${text}`)
      : [`  as in ${origin}: ${group.map(({ name }) => name).join(', ')}`],
  );
}

/** The number of words with which all titles start. */
function sharedLength(titles: readonly string[][]): number {
  const first = titles[0]!;
  const different = first.findIndex((word, index) => titles.some(words => words[index] !== word));
  return different === -1 ? first.length : different;
}

function parentOf(id: string): string {
  return id.slice(0, id.lastIndexOf('.'));
}
