// Each error in a few words, for people who do not know its number, and its color in the plot.
// The parts of its messages, too.

/**
 * By number. A color is a name of the style sheet. Faults of the service have that of faults.
 *
 * @type {Record<string, { words: string, color: string }>}
 */
export const ERROR_WORDS = {
  40000: { words: 'incomplete or invalid HTTP', color: 'muted' },
  40001: { words: 'body is not valid JSON', color: 'sky' },
  40002: { words: 'wrong id, name or tag', color: 'ochre' },
  40003: { words: 'id is already stored', color: 'leaf' },
  40101: { words: 'no token', color: 'muted' },
  40102: { words: 'wrong token', color: 'ink' },
  40401: { words: 'wrong path', color: 'muted' },
  40501: { words: 'wrong method', color: 'muted' },
  40801: { words: 'request came too slowly', color: 'sky' },
  41201: { words: 'plant is already stored or changed', color: 'leaf' },
  41301: { words: 'body is too large', color: 'ochre' },
  41501: { words: 'wrong Content-Type', color: 'sky' },
  41502: { words: 'body is compressed', color: 'sky' },
  42901: { words: 'too many requests', color: 'leaf' },
  43101: { words: 'headers are too large', color: 'ochre' },
  50001: { words: 'internal error', color: 'brick' },
  50301: { words: 'store is too busy', color: 'brick' },
  50302: { words: 'store did not confirm', color: 'brick' },
  50303: { words: 'service shuts down', color: 'brick' },
  50304: { words: 'stored plant is damaged', color: 'brick' },
};

/** What is wrong with a request, as a title. Other errors have that of their words. @type {Record<string, string>} */
const TITLES = {
  40001: 'Not readable: a quote or comma is wrong',
  40002: 'The id, name or tag is wrong',
  40003: 'This id has other content already',
  41201: 'The plant is stored already, or was changed meanwhile',
};

/**
 * The messages for programs in words of people who send plants, by how they begin.
 *
 * @type {[begin: string, words: string][]}
 */
const FAULTS = [
  ['id is required', 'id is missing'],
  ['name is required', 'name is missing'],
  ['id must be a JSON number without quotes', 'id is a text'],
  ['id must be', 'id is no whole number, or too large'],
  ['name must be a string', 'name is no text'],
  ['tag must be a string', 'tag is no text'],
  ['name must not contain', 'name has a damaged character'],
  ['tag must not contain', 'tag has a damaged character'],
  ['"id" is given more than once', 'id is given twice'],
  ['"name" is given more than once', 'name is given twice'],
  ['"tag" is given more than once', 'tag is given twice'],
  ['a member other than', 'something other than id, name and tag is given twice'],
  ['the body must be a JSON object', 'no plant: it needs an id and a name'],
  ['the body is empty', 'nothing was sent'],
  ['the body begins with a byte order mark', 'not readable: an invisible mark is at the beginning'],
  ['the body is not valid UTF-8', 'not readable: letters such as ö or é are in the wrong encoding'],
];

const NOT_JSON = 40001;
const NOT_NEW_PLANT = 40002;
const PLANT_CHANGED = 41201;

/**
 * The reason of an error in a few words, such as "name is missing".
 *
 * @param {number} error
 * @param {string} [reason] of the service
 */
export function reasonWords(error, reason) {
  if (reason === undefined) return titleWords(error);
  if (error === PLANT_CHANGED) return reason.split(/[;,]/, 1)[0] ?? reason;
  // The catalogue message of this error begins with an empty body, too.
  if (error === NOT_JSON && reason.startsWith('the body is empty or')) return titleWords(error);
  if (error !== NOT_JSON && error !== NOT_NEW_PLANT) return titleWords(error);
  const words = reason
    .split('; ')
    .flatMap(part => FAULTS.find(([begin]) => part.startsWith(begin))?.[1] ?? []);
  return words.length === 0 ? titleWords(error) : words.join(' and ');
}

/** @param {number} error */
function titleWords(error) {
  return TITLES[error] ?? ERROR_WORDS[error]?.words ?? `error ${error}`;
}

/** The only reason of a group, as its title: "The name is missing". @param {string} words */
export function titleText(words) {
  const sentence = words.replace(/(^| and )(?=(?:id|name|tag) (?:is|has) )/g, '$1the ');
  return capitalized(sentence);
}

/** @param {string} text */
export function capitalized(text) {
  return `${text.slice(0, 1).toUpperCase()}${text.slice(1)}`;
}
