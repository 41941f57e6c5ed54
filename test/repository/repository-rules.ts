/**
 * Rules for the repository. Each takes the files as values and returns its findings, one line each:
 * `path:line: what is wrong; what to do instead`. repository.test.ts runs the rules on this
 * repository and on broken samples.
 */

import { programsNamed } from '../../packaging/named-files.ts';

export interface RepositoryFile {
  /** Relative to the root of the repository, with `/`. */
  path: string;
  text: string;
}

export type Rule = (files: readonly RepositoryFile[]) => string[];

interface Ban {
  /** The paths that the ban applies to, and exceptions. */
  where: RegExp;
  except?: RegExp;
  what: RegExp;
  instead: string;
}

const CODE = /\.[cm]?[jt]s$/;
export const SOURCE = /^(?:src|bin)\/.*\.(?:[cm]?[jt]s|css|sql)$/;

const PROSE = /^(?:src|bin|test|faults|docs|examples|packages)\/|^[^/]+\.md$/;

/** Private words, with the standard terms that readers know. */
const PRIVATE_WORDS: [what: RegExp, term: string][] = [
  [/\banswer\w*/i, 'response, respond (HTTP); reply, result, return'],
  [/\bordinar\w*/i, 'fast path; plain, usual, common'],
  [/\bkeepers?\b/i, 'writer'],
  [/\bholders?\b/i, 'token id'],
  [/\bunder way\b|\bon (?:its|their|the) way\b/i, 'in flight, in progress'],
  [/(?<!\bconnection )\brefus\w*/i, 'reject, rejected, rejection'],
  [/\bjudg\w*/i, 'check, validate, authenticate'],
  [/\bmend(?:s|ed|ing)?\b/i, 'fix, repair'],
  [/\bordeals?\b|\btortur\w*/i, 'fault scenario'],
  [/\bweakness\w*|\bweaken\w*/i, 'mutant'],
  [/\bsecond opinion\b/i, 'test oracle'],
  [/\bfigures?\b/i, 'metrics, statistics, numbers, measurements'],
  [/\bpace[sd]?\b/i, 'rate'],
  [/\btold\b|\bwatchers?\b/i, 'is called with, is notified; callback, listener, observer'],
  [/(?<!<\/?)\bheads?\b/, 'header section, headers'],
  [/\bturns?\b/i, 'event-loop iteration, tick; in order, alternately'],
  [/\bpieces?\b/i, 'chunk, part'],
  [/\blook(?:s|ed|ing)?\b(?![\s*/-]+up\b)/i, 'look up, lookup; check, search'],
  [/_WAIT_MS|[a-z]WaitMs/, 'timeout, delay, interval'],
  [/\bclock that is never set\b/i, 'monotonic clock'],
];

/** Banned text, with the replacement. */
const BANS: Ban[] = [
  ...PRIVATE_WORDS.map(([what, term]) => ({ where: PROSE, what, instead: `use the standard term: ${term}` })),
  {
    where: SOURCE,
    except: /^(?:src\/cli|bin)\//,
    what: /\bprocess\.(?:argv|env|exit|exitCode|kill|on|once)\b|'(?:node:)?process'/,
    instead: 'take a setting or a callback; src/cli alone reads the environment, signals and exit',
  },
  {
    where: SOURCE,
    what: /\bparse(?:Int|Float)\(/,
    instead: 'match the text first and use Number() or BigInt(): these read "12abc" as 12',
  },
  {
    where: SOURCE,
    what: /\b(?:err|error|cause|failure|reason)\.message(?:\s*[!=]==|\??\.(?:endsWith|includes|match|search|startsWith)\()/,
    instead: 'check the code of an error; its text changes',
  },
  {
    where: /^src\/auth\//,
    what: /\bMath\.random\b/,
    instead: 'use node:crypto: a token must not be guessed',
  },
  {
    where: /^test\/.*\.[cm]?[jt]s$/,
    what: /\.(?:only|skip|todo)\(|[{,]\s*(?:only|skip|todo):/,
    instead: 'run the test or remove it',
  },
  {
    where: CODE,
    what: /@ts-(?:ignore|nocheck)|biome-ignore/,
    instead: 'fix the finding, or change the rule for all files in biome.json or tsconfig.json',
  },
  {
    // A type test uses @ts-expect-error for code that must not compile.
    where: CODE,
    except: /^test\//,
    what: /@ts-expect-error/,
    instead: 'fix the type',
  },
  {
    where: CODE,
    what: /\b(?:TODO|FIXME|XXX)\b/,
    instead: 'do it now, or remove the comment',
  },
  {
    where: /^/,
    what: /(?<![\w.~-])\/(?:work|root|home|Users)\/[\w.]/,
    instead: 'use a path relative to the repository: this one exists on one machine only',
  },
  {
    where: /^/,
    what: /\bregistry\.(?:npmjs\.org|npmmirror\.com|yarnpkg\.com)\b|\bregistry\s*=\s*['"]?https?:|\bartifactory\b/i,
    instead: 'leave the choice of the package registry to the machine',
  },
  {
    where: /(?:^|\/)(?:package-lock|npm-shrinkwrap)\.json$/,
    what: /"resolved": "[a-z+]+:/,
    instead: 'run: npm install --omit-lockfile-registry-resolved',
  },
];

/** Finds banned text, also in comments. */
export function bannedText(files: readonly RepositoryFile[]): string[] {
  return files.flatMap(({ path, text }) =>
    BANS.filter(({ where, except }) => where.test(path) && !except?.test(path)).flatMap(({ what, instead }) =>
      [...text.matchAll(new RegExp(what, `${what.flags}g`))].map(
        match => `${path}:${lineOf(text, match.index)}: ${match[0].trim()}; ${instead}`,
      ),
    ),
  );
}

/** Prose in wider lines or longer sentences needs a second reading. */
const COMMENT_COLUMNS_MAX = 100;
const COMMENT_SENTENCE_WORDS_MAX = 25;
const COMMENT_LINE = /^\s*(?:\/\/|\/?\*\*?\/?)\s?(.*?)(?:\*\/)?$/;

/** Tables in comments may be wider than other comments. */
export function readableComments(files: readonly RepositoryFile[]): string[] {
  return files
    .filter(({ path }) => CODE.test(path))
    .flatMap(({ path, text }) => {
      const lines = text.split('\n').map(line => ({ line, prose: COMMENT_LINE.exec(line)?.[1] ?? '' }));
      const wide = lines.flatMap(({ line, prose }, index) =>
        line.length > COMMENT_COLUMNS_MAX && prose !== '' && !/^\||https?:/.test(prose)
          ? [`${path}:${index + 1}: ${line.length} columns; wrap comments at ${COMMENT_COLUMNS_MAX}`]
          : [],
      );
      return [
        ...wide,
        ...longSentences(
          path,
          lines.map(({ prose }) => (prose.startsWith('|') ? '' : prose)),
        ),
      ];
    });
}

/** @param prose of each line of a file; empty for lines of code, which end a comment */
function longSentences(path: string, prose: readonly string[]): string[] {
  const paragraphs = `${prose.join('\n')}\n`.matchAll(/(?:.+\n)+/g);
  const before = (index: number): string => prose.join('\n').slice(0, index);
  return [...paragraphs].flatMap(({ 0: paragraph, index }) =>
    paragraph
      .split(/(?<=[.!?:;])\s+(?=[A-Z`{])|\s(?=@\w+|- )/)
      .filter(
        sentence => sentence.split(/\s+/).filter(word => /\w/.test(word)).length > COMMENT_SENTENCE_WORDS_MAX,
      )
      .map(sentence => {
        const line = before(index).split('\n').length;
        return `${path}:${line}: "${sentence.trim().replaceAll(/\s+/g, ' ').slice(0, 40)}…"; split this sentence: over ${COMMENT_SENTENCE_WORDS_MAX} words`;
      }),
  );
}

const ARCHITECTURE_DOCUMENT = 'ARCHITECTURE.md';
/** Parts that import no packages, and only types of Node. */
const WITHOUT_PACKAGES = ['src/contract', 'src/client'];

/** A row of the folder table. `imports` is its last column. */
interface Part {
  folder: string;
  imports: string;
}

/** The folder table in ARCHITECTURE.md, without rows that refer to another row. */
function partsOf(files: readonly RepositoryFile[]): Part[] {
  const text = files.find(({ path }) => path === ARCHITECTURE_DOCUMENT)?.text ?? '';
  const table = text.slice(text.indexOf('| folder | what | may import |')).split('\n\n', 1)[0]!;
  return [...table.matchAll(/^\| `([^`]+)` \|.+\| ([^|]+) \|$/gm)]
    .map(([, folder, imports]) => ({ folder: folder!, imports: imports! }))
    .filter(({ imports }) => !imports.startsWith('as '));
}

function partOf(path: string, parts: readonly Part[]): Part | undefined {
  const above = parts.filter(({ folder }) => path === folder || path.startsWith(`${folder}/`));
  return above.toSorted((a, b) => b.folder.length - a.folder.length)[0];
}

/** Whether a row allows a part, or a file of it as a type. Parts of src omit `src/` and `.ts`. */
function mayImport({ imports }: Part, target: string, { folder }: Part, typeOnly: boolean): boolean {
  const words = imports.split(', ');
  const asType = typeOnly && words.includes(`\`${target.replace(/^src\//, '')}\` as a type`);
  const wholeSource = folder.startsWith('src/') && words.includes('src');
  return asType || wholeSource || words.includes(folder.replace(/^src\/|\.ts$/g, ''));
}

/** Imports must follow the folder table. The programs in bench/peers are independent. */
export function importDirections(files: readonly RepositoryFile[]): string[] {
  const parts = partsOf(files);
  const assessed = files.filter(({ path }) => CODE.test(path) && /^(?!bench\/peers\/)\w+\//.test(path));
  return assessed.flatMap(file => {
    const part = partOf(file.path, parts);
    if (part === undefined)
      return [
        `${file.path}:1: has no row in the table of ${ARCHITECTURE_DOCUMENT}; add it, or move the file`,
      ];
    const { folder, imports } = part;
    return importsOf(file)
      .filter(({ target, typeOnly, specifier }) => {
        if (target === undefined)
          return WITHOUT_PACKAGES.includes(folder) && !(typeOnly && specifier.startsWith('node:'));
        const other = partOf(target, parts);
        if (other === undefined) return folder.startsWith('src/');
        return other !== part && !mayImport(part, target, other, typeOnly);
      })
      .map(
        ({ line, specifier }) =>
          `${file.path}:${line}: imports ${specifier}; ${folder} may import ${imports}; use an argument instead`,
      );
  });
}

/** Relative links in Markdown files must lead to a file, folder or heading of the repository. */
export function markdownLinks(files: readonly RepositoryFile[]): string[] {
  return files
    .filter(({ path }) => path.endsWith('.md'))
    .flatMap(({ path, text }) => {
      const prose = blankCode(text);
      const links = prose.matchAll(
        /\]\(<?([^)>\s]+)>?(?:\s+"[^"]*")?\)|^\[[^\]]+\]:\s+(\S+)|\b(?:src|href)="([^"]+)"/gm,
      );
      return [...links]
        .map(match => ({ link: match[1] ?? match[2] ?? match[3]!, line: lineOf(text, match.index) }))
        .filter(({ link }) => !/^(?:[a-z][a-z0-9+.-]*:|\/\/)/i.test(link))
        .flatMap(({ link, line }) => {
          const fault = linkFault(link, path, files);
          return fault === undefined ? [] : [`${path}:${line}: ${link} ${fault}`];
        });
    });
}

function linkFault(link: string, from: string, files: readonly RepositoryFile[]): string | undefined {
  const [targetText = '', anchor] = link.split('#');
  const target = targetText === '' ? from : resolvePath(from, decodeURI(targetText));
  const file = files.find(({ path }) => path === target);
  if (file === undefined) {
    const folder =
      target === '' || files.some(({ path }) => path.startsWith(`${target.replace(/\/$/, '')}/`));
    return folder && anchor === undefined ? undefined : 'leads to no file; fix or remove the link';
  }
  if (anchor === undefined || anchorsOf(file.text).includes(anchor)) return undefined;
  return 'leads to no heading; fix or remove the link';
}

/** The anchors that GitHub creates for the headings of a Markdown file. */
function anchorsOf(text: string): string[] {
  const seen = new Map<string, number>();
  return [...blankFences(text).matchAll(/^#{1,6}\s+(.+?)\s*#*$/gm)].map(([, heading = '']) => {
    const plain = heading.replace(/\[([^\]]*)\]\([^)]*\)/g, '$1').toLowerCase();
    const slug = plain.replace(/[^\p{L}\p{M}\p{N}\p{Pc} -]/gu, '').replaceAll(' ', '-');
    const count = seen.get(slug) ?? 0;
    seen.set(slug, count + 1);
    return count === 0 ? slug : `${slug}-${count}`;
  });
}

interface Import {
  line: number;
  specifier: string;
  /** The path of the imported file; undefined for a package or a module of Node. */
  target: string | undefined;
  /**
   * True only for `import type`: `type` inside the braces loads the module (verbatimModuleSyntax).
   */
  typeOnly: boolean;
}

/** The modules that a file loads by `import`, `export from` or `import()`, or as a thread. */
export function importsOf({ path, text }: RepositoryFile): Import[] {
  const forms = [
    /^(?:import|export)\b(?<type>\s+type\b)?[^;'"]*?\bfrom\s*['"](?<specifier>[^'"]+)['"]/gm,
    /^import\s*['"](?<specifier>[^'"]+)['"]/gm,
    /\bimport\(\s*['"](?<specifier>[^'"]+)['"]/g,
  ];
  const imports = forms
    .flatMap(form => [...text.matchAll(form)])
    .map(({ index, groups }) => ({
      index,
      specifier: groups!.specifier!,
      typeOnly: groups!.type !== undefined,
    }));
  const threads = programsNamed(text)
    .map(name => `${name}.ts`)
    .map(specifier => ({ index: text.indexOf(`'${specifier}'`), specifier, typeOnly: false }));
  return [...imports, ...threads].map(({ index, specifier, typeOnly }) => ({
    line: lineOf(text, index),
    specifier,
    target: specifier.startsWith('.') ? resolvePath(path, specifier) : undefined,
    typeOnly,
  }));
}

/** The path that a relative link or specifier leads to; empty for the root. */
function resolvePath(from: string, relative: string): string {
  return decodeURI(new URL(relative, `file:///${encodeURI(from)}`).pathname).slice(1);
}

function lineOf(text: string, index: number): number {
  return text.slice(0, index).split('\n').length;
}

/** Replaces text by spaces, except line ends, so that positions stay the same. */
function blank(text: string): string {
  return text.replace(/[^\n]/g, ' ');
}

function blankFences(markdown: string): string {
  return markdown.replace(/^(```+|~~~+)[\s\S]*?^\1/gm, blank);
}

function blankCode(markdown: string): string {
  return blankFences(markdown).replace(/`[^`\n]*`/g, blank);
}
