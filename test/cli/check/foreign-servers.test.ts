/** What `check` says about the servers of other authors, broken and right. */
import assert from 'node:assert/strict';
import type { ServerResponse } from 'node:http';
import { suite, test } from 'node:test';
import { checkRules } from '../../../src/cli/check/check-run.ts';
import { RULES_FOR_EVERY_STORE } from '../../../src/cli/check/http-rules.ts';
import { drawIds } from '../../../src/cli/check/ids.ts';
import { isBroken } from '../../../src/cli/check/report.ts';
import { plantsUrl } from '../../../src/client/transport.ts';
import { type Plant, startForeignStore, type Ways } from './foreign-plant-store.ts';

const TOKEN = 'plant_token-of-the-tests';
const JSON_TYPE = 'application/json';

/** @returns the MUST rules that make `check` exit with 1: `id  title: finding` */
async function brokenRules(ways: Ways): Promise<string[]> {
  await using store = await startForeignStore(TOKEN, ways);
  const stop = new AbortController().signal;
  const server = { plantsUrl: plantsUrl(new URL(store.url)), token: TOKEN, stop };
  const ids = drawIds(RULES_FOR_EVERY_STORE);
  const results = await checkRules(RULES_FOR_EVERY_STORE, server, ids, () => {});
  return results.filter(isBroken).map(({ rule: { id, title }, message }) => `${id}  ${title}: ${message}`);
}

type Change = (text: string) => unknown;

const names = (change: Change): Ways => ({ plant: plant => ({ ...plant, name: change(plant.name) }) });
const tags = (change: Change): Ways => ({
  plant: ({ name, tag }) => (tag === undefined ? { name } : { name, tag: change(tag) }),
});
const texts = (change: Change): Ways => ({
  plant: ({ name, tag }) => ({ name: change(name), ...(tag !== undefined && { tag: change(tag) }) }),
});
const plants = (change: (json: string) => string | Buffer): Ways => ({
  write: (json, status) => (status === 200 ? change(json) : json),
});
const errors = (change: (json: string) => string): Ways => ({
  write: (json, status) => (status === 400 ? change(json) : json),
});
const contentType = (type: (status: number, sent: string) => string): Ways => ({
  headers: (status, sent) => ({ 'content-type': type(status, sent) }),
});
/** @param status for the plants that meet the condition */
const withStatus = (status: number, condition: (plant: Plant, again: boolean) => boolean): Ways => ({
  status: (plant, again) => (condition(plant, again) ? status : undefined),
});

const replace = (what: RegExp, by: string) => (text: string) => text.replace(what, by);
const cutAt = (length: number) => (text: string) => text.slice(0, length);
const lower = (text: string): string => text.toLowerCase();
const title = (text: string): string => text.replace(/\b[a-z]/g, letter => letter.toUpperCase());
const normal = (form: string) => (text: string) => text.normalize(form);
const numeric = (text: string): unknown => (/^-?[0-9]+$/.test(text) ? Number(text) : text);
const dots = (text: string): string => (text.length > 50 ? `${text.slice(0, 47)}...` : text);
const BEYOND_ASCII = /[^\0-\u007f]/gu;
const ASTRAL = /[^\0-\uffff]/gu;
const isOver5kB = ({ name, tag = '' }: Plant): boolean => name.length + tag.length > 5000;
const isAgain = (_plant: Plant, again: boolean): boolean => again;

/** Broken servers by a rule that they break. Its title and its finding together name the fault. */
const BROKEN: Record<string, [names: RegExp, servers: Record<string, Ways>]> = {
  'create.text.space': [
    /outer and repeated white space/,
    {
      'trims names': names(text => text.trim()),
      'trims tags': tags(text => text.trim()),
      'cuts white space after tags': tags(text => text.trimEnd()),
      'cuts white space before names': names(text => text.trimStart()),
      'joins spaces': texts(replace(/ +/g, ' ')),
      'writes tabs as spaces': texts(replace(/\t/g, ' ')),
    },
  ],
  'create.text.case': [
    /mixed case/,
    {
      'lower-cases names': names(lower),
      'lower-cases tags': tags(lower),
      'upper-cases tags': tags(text => text.toUpperCase()),
      'title-cases names': names(title),
    },
  ],
  'create.text.non-ascii': [
    /beyond ASCII/,
    {
      'cuts names to ASCII': names(replace(BEYOND_ASCII, '')),
      'cuts tags to ASCII': tags(replace(BEYOND_ASCII, '')),
      'writes ? for other characters than ASCII in tags': tags(replace(BEYOND_ASCII, '?')),
      'stores texts in ISO 8859-1': texts(replace(/[^\0-\u00ff]/g, '?')),
      'decodes tags as ISO 8859-1': tags(text => Buffer.from(text).toString('latin1')),
      'ends a body after as many bytes as it has characters': plants(json =>
        Buffer.from(json).subarray(0, json.length),
      ),
    },
  ],
  'create.text.not-normalized': [
    /no Unicode normal form/,
    {
      'normalizes names to NFC': names(normal('NFC')),
      'normalizes tags to NFD': tags(normal('NFD')),
      'normalizes tags to NFKC': tags(normal('NFKC')),
      'removes accents': texts(text => text.normalize('NFD').replace(/\p{Mn}/gu, '')),
    },
  ],
  'create.text.emoji': [
    /emoji/,
    {
      'drops emoji in tags': tags(replace(ASTRAL, '')),
      'cuts names at an emoji, as utf8mb3 does': names(replace(/[^\0-\uffff].*$/u, '')),
      'writes ? for each half of an emoji': texts(replace(/[\ud800-\udfff]/g, '?')),
      'responds to an emoji with 500': withStatus(500, ({ name }) => name.search(ASTRAL) >= 0),
    },
  ],
  'create.text.invisible': [/invisible/, { 'drops zero-width characters': texts(replace(/\p{Cf}/gu, '')) }],
  'create.text.quotes': [
    /quotes and backslashes/,
    {
      'drops quotes in names': names(replace(/"/g, '')),
      'drops quotes in tags': tags(replace(/"/g, '')),
      'drops backslashes in names': names(replace(/\\/g, '')),
      'drops backslashes in tags': tags(replace(/\\/g, '')),
      'escapes apostrophes in tags for HTML': tags(replace(/'/g, '&#39;')),
      'doubles apostrophes': texts(replace(/'/g, "''")),
      'adds backslashes': texts(replace(/["'\\]/g, '\\$&')),
      'reads \\n as a line end': texts(replace(/\\n/g, '\n')),
    },
  ],
  'create.text.markup': [
    /HTML and percent-encoding/,
    {
      'escapes < in names': names(replace(/</g, '&lt;')),
      'escapes & in tags': tags(replace(/&/g, '&amp;')),
      'removes HTML elements': texts(replace(/<[^>]*>/g, '')),
      'decodes character references': texts(replace(/&#38;/g, '&')),
      'decodes percent-encoding': texts(decodeURIComponent),
      'reads + as a space in tags': tags(replace(/\+/g, ' ')),
    },
  ],
  'create.text.line-ends': [
    /CRLF and LF/,
    {
      'writes CRLF as LF in names': names(replace(/\r\n/g, '\n')),
      'writes CRLF as LF in tags': tags(replace(/\r\n/g, '\n')),
      'writes LF as CRLF': texts(replace(/\r?\n/g, '\r\n')),
      'writes line ends as spaces': texts(replace(/[\r\n]+/g, ' ')),
    },
  ],
  'create.text.digits': [
    /text of digits.* (?:name|tag) 42$/,
    {
      'writes names of digits as numbers': names(numeric),
      'writes tags of digits as numbers': tags(numeric),
    },
  ],
  'create.text.length-100': [
    /text of 100 characters/,
    {
      'cuts names at 20': names(cutAt(20)),
      'cuts tags at 20': tags(cutAt(20)),
      'cuts names at 64': names(cutAt(64)),
      'shortens tags with dots': tags(dots),
    },
  ],
  'create.text.length-1000': [
    /text of 1000 characters.*found (?:name|tag) of (?:100|191|255|256|500) characters|an Error|JSON/,
    {
      'cuts names at 100': names(cutAt(100)),
      'cuts tags at 191': tags(cutAt(191)),
      'cuts names at 255': names(cutAt(255)),
      'cuts tags at 255': tags(cutAt(255)),
      'cuts tags at 256': tags(cutAt(256)),
      'cuts names at 500': names(cutAt(500)),
      'rejects a long name with a text': {
        ...withStatus(400, ({ name }) => name.length > 255),
        error: () => 'The name is too long.',
      },
    },
  ],
  'create.text.length-10000': [
    /text of 10000 characters.*found (?:\w+ of (?:1024|4000) characters|500)/,
    {
      'cuts names at 1024': names(cutAt(1024)),
      'cuts tags at 4000': tags(cutAt(4000)),
      'responds to a body over 5 kB with 500': withStatus(500, isOver5kB),
    },
  ],
  'create.tag.empty': [
    /empty tag.*found tag (?:null|absent)/,
    {
      'writes empty tags as null': tags(text => text || null),
      'drops empty tags': { plant: ({ name, tag }) => (tag ? { name, tag } : { name }) },
    },
  ],
  'create.tag.absent': [/absent tag.*null/, { 'adds null': { plant: plant => ({ tag: null, ...plant }) } }],
  'create.name.empty': [
    /empty name.*found 400/,
    { 'rejects an empty name': withStatus(400, ({ name }) => name === '') },
  ],
  'create.name.as-sent': [
    /one before it|name twice|not JSON|name absent|null|array|a JSON object/,
    {
      'begins a Plant with a byte order mark': plants(json => `\ufeff${json}`),
      'writes name twice': plants(json => json.replace('{', '{"name":"A",')),
      'writes a warning before the JSON': plants(json => `<br />\n<b>Warning</b>${json}`),
      'writes a list of one Plant': plants(json => `[${json}]`),
      'wraps the Plant': { plant: plant => ({ data: plant }) },
      'capitalizes members': { plant: ({ name, tag }) => ({ Name: name, Tag: tag }) },
    },
  ],
  'create.tag.as-sent': [/tag twice/, { 'writes tag twice': plants(replace(/"tag":"[^"]*"/, '$&,$&')) }],
  'create.name.escaped': [
    /not UTF-8/,
    { 'writes a Plant in ISO 8859-1': plants(json => Buffer.from(json, 'latin1')) },
  ],
  'create.no-id': [/no id/, { 'writes the id of a plant': { plant: plant => ({ id: 1, ...plant }) } }],
  'create.status': [/status 200; found 20[14]/, { 'sends 201': withStatus(201, () => true) }],
  'create.media-type': [/application\/json/, { 'sends text/html': contentType(() => 'text/html') }],
  'create.stored-id': [
    /stored id.*found (?:500|\w+ absent|name "A"|tag "B")/,
    {
      'responds to a stored id with 500': withStatus(500, isAgain),
      'responds to a stored id without a Plant': { plant: (plant, again) => (again ? {} : plant) },
      'loses tags of a stored id': { plant: ({ name, tag }, again) => (again ? { name } : { name, tag }) },
      'adds an old tag to a stored id': {
        plant: ({ name, tag = 'B' }, again) => (again ? { name, tag } : { name, tag }),
      },
    },
  ],
  'error.media-type': [
    /application\/json; found text\/plain/,
    {
      'sends an Error as text/plain': contentType(status => (status === 400 ? 'text/plain' : JSON_TYPE)),
      'sends an Error as text/plain if the body is JSON': contentType((status, sent) =>
        status === 400 && sent.endsWith('}') ? 'text/plain' : JSON_TYPE,
      ),
    },
  ],
  'error.shape.name-missing': [
    /without name.*(?:one before it|message twice|error twice|int32|as a string)/,
    {
      'begins an Error with a byte order mark': errors(json => `\ufeff${json}`),
      'writes message twice': errors(json => json.replace('}', ',"message":"No."}')),
      'writes error twice, once escaped': errors(json => json.replace('}', ',"\\u0065rror":1}')),
      'writes an error as text': { error: ({ message }) => ({ error: 'Bad Request', message }) },
      'writes an error number as text': { error: error => ({ ...error, error: '400' }) },
      'writes an error number beyond int32': { error: error => ({ ...error, error: 2 ** 31 }) },
      'writes a list of messages': { error: ({ error }) => ({ error, message: ['No.'] }) },
      'writes an Error without a message': { error: ({ error }) => ({ error }) },
    },
  ],
};

suite('check finds a fault of a server that', { concurrency: 4 }, () => {
  for (const [rule, [names, servers]] of Object.entries(BROKEN)) {
    for (const [what, ways] of Object.entries(servers)) {
      test(what, async () => {
        const found = await brokenRules(ways);
        const finding = found.find(text => text.startsWith(`${rule}  `));
        assert.match(finding ?? '', names, `${rule} is not among:\n${found.join('\n')}`);
        const member = /\b(name|tag)s\b/.exec(what)?.[1] ?? '';
        assert.match(finding!, new RegExp(`; found ${member}`));
      });
    }
  }
});

/** Every character beyond ASCII as an escape, as PHP and Python write it. */
const escaped = (json: string): string =>
  json.replace(/[^\0-\u007f]/g, unit => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`);
const escapedMarkup = (json: string): string =>
  json.replace(/[<>&]/g, sign => `\\u00${sign.charCodeAt(0).toString(16)}`);
const indented = (json: string): string => `\n${JSON.stringify(JSON.parse(json), undefined, '\t')}\r\n `;

function writeChunks(response: ServerResponse, body: string | Buffer): void {
  for (const byte of Buffer.from(body)) response.write(Buffer.of(byte));
  response.end();
}

/** A response without a length: the end of the connection ends it. */
function writeHttp10({ socket, statusCode }: ServerResponse, body: string | Buffer): void {
  const header = `HTTP/1.0 ${statusCode} Whatever\r\ncontent-type: application/json\r\n\r\n`;
  socket!.end(Buffer.concat([Buffer.from(header), Buffer.from(body)]));
}

const putOff = (status: number, retryAfter: string): Ways => ({
  putOffEvery: 10,
  putOff: [status, { 'Retry-After': retryAfter }],
});

/** Servers that follow the interface. */
const RIGHT: Record<string, Ways> = {
  'follows the interface word by word': {},
  'accepts each id once': { writeOnce: true },
  'responds to a stored id with 409': withStatus(409, isAgain),
  'rejects names over 255 characters': withStatus(400, ({ name }) => name.length > 255),
  'rejects bodies over 5 kB with 413 and no body': {
    ...withStatus(413, isOver5kB),
    write: (json, status) => (status === 413 ? '' : json),
  },
  'writes the tag first': { plant: ({ name, tag }) => ({ tag, name }) },
  'writes further members': {
    plant: plant => ({ ...plant, createdAt: '2026-01-01', links: { name: {}, list: [1] } }),
    error: error => ({ ...error, details: [error, error] }),
  },
  'indents its JSON': { write: indented },
  'escapes characters beyond ASCII': { write: escaped },
  'escapes slashes, as PHP does': { write: replace(/\//g, '\\/') },
  'escapes <, > and & in JSON, as Go does': { write: escapedMarkup },
  'names the charset': contentType(() => 'application/json; charset=utf-8'),
  'writes header fields in capitals': { headers: () => ({ 'CONTENT-TYPE': 'Application/JSON' }) },
  'sends each byte as a chunk': { send: writeChunks },
  'ends each response by closing the connection, as HTTP/1.0': { send: writeHttp10 },
  'takes 100 ms': { send: (response, body) => setTimeout(() => response.end(body), 100) },
  'sends 429 now and then': putOff(429, '1'),
  'sends 503 with Retry-After now and then': putOff(503, '1'),
  'sends 503 with a date now and then': putOff(503, 'Sun, 06 Nov 1994 08:49:37 GMT'),
};

suite('check blames no MUST rule of a server that', { concurrency: 10 }, () => {
  for (const [what, ways] of Object.entries(RIGHT))
    test(what, async () => assert.deepEqual(await brokenRules(ways), []));
});
