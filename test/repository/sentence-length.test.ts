import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { suite, test } from 'node:test';
import { COMMANDS } from '../../src/cli/main.ts';
import { runCommandLines } from '../harness/command-lines.ts';
import { testFolder } from '../harness/test-folder.ts';

const WORDS_MAX = 30;

/**
 * The sentences of Markdown text: of paragraphs, list items, headings and table cells. Code blocks
 * do not count.
 */
function sentencesOfMarkdown(markdown: string): string[] {
  const parts = markdown
    .replace(/^```.*?^```$/gms, '')
    .replace(/\]\([^)]*\)/g, ']')
    .split(/\n{2,}|\n(?=\s*(?:[-*]|\d+\.) )|\n(?=[|#])|\|/);
  return sentencesOf(parts);
}

/** The sentences of a `--help` text: of its paragraphs, and of the entries of its lists. */
function sentencesOfHelp(help: string): string[] {
  return sentencesOf(help.split(/\n{2,}|\n(?= {2}\S)/));
}

function sentencesOf(parts: readonly string[]): string[] {
  return parts.flatMap(part => part.replaceAll(/\s+/g, ' ').split(/(?<=[.!?]) /));
}

/** A word has a letter or a digit. */
function countWords(sentence: string): number {
  return sentence.split(' ').filter(word => /[\p{L}\p{N}]/u.test(word)).length;
}

function assertShort(sentences: readonly string[]): void {
  assert.ok(sentences.length > 3);
  assert.deepEqual(
    sentences.filter(sentence => countWords(sentence) > WORDS_MAX),
    [],
    `more than ${WORDS_MAX} words; divide the sentence`,
  );
}

suite(`sentences have at most ${WORDS_MAX} words`, () => {
  for (const path of ['README.md', 'docs/reference.md']) {
    test(path, () => {
      assertShort(sentencesOfMarkdown(readFileSync(new URL(`../../${path}`, import.meta.url), 'utf8')));
    });
  }

  test('--help of every command', async () => {
    const commands = await Promise.all(Object.values(COMMANDS).map(load => load()));
    const paths = commands.flatMap(command => [
      [command.name()],
      ...command.commands.map(each => [command.name(), each.name()]),
    ]);
    const helps = await runCommandLines(
      [[], ...paths].map(path => ({ args: [...path, '--help'] })),
      testFolder(),
    );
    assertShort(helps.flatMap(({ stdout }) => sentencesOfHelp(stdout)));
  });

  test('a long sentence is found in each place', () => {
    const long = `${'word '.repeat(WORDS_MAX)}word.`;
    const markdown = ['One.\nTwo. Three.', `- One.\n- ${long}`, `| One | ${long} |`, `## ${long}`, long];
    for (const [index, text] of markdown.entries())
      assert.equal(
        sentencesOfMarkdown(text).filter(each => countWords(each) > WORDS_MAX).length,
        Math.min(index, 1),
      );
    const help = `Usage: x\n\n  --flag  ${long.replace(' word', '\n          word')}\n  --other  One.\n\n${long}`;
    assert.equal(sentencesOfHelp(help).filter(each => countWords(each) > WORDS_MAX).length, 2);
  });
});
