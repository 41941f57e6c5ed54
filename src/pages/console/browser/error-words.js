// Each error in a few words, for people who do not know its number, and its color in the plot.

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
