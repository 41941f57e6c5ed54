const SAVE_AS_CSV = 'save it as CSV UTF-8, and import that';

/** What the first bytes of a file show, if it is not plain UTF-8. */
export type StartReading =
  /** A byte order mark. It says with certainty which encoding the file has. */
  | { kind: 'mark'; encoding: 'utf-8' | 'utf-16le' | 'utf-16be' }
  /** Zero bytes as in UTF-16. */
  | { kind: 'likely'; encoding: 'utf-16le' | 'utf-16be' }
  /** No text that can be decoded, and what to do with it. */
  | { kind: 'other'; what: string };

function other(what: string): StartReading {
  return { kind: 'other', what };
}

function utf32(encoding: string): StartReading {
  return other(`${encoding}; convert it (iconv -f ${encoding} -t UTF-8 FILE > NEW_FILE)`);
}

/** The first bytes of files, in hexadecimal, each with what they show. */
const STARTS: [start: RegExp, reading: StartReading][] = [
  // APPNOTE.TXT section 4.3.7: also .xlsx and .ods.
  [/^504b0304/, other(`a spreadsheet or ZIP file; ${SAVE_AS_CSV}`)],
  // [MS-CFB] section 2.2.
  [/^d0cf11e0a1b11ae1/, other(`an old Excel file (.xls) or another Office file; ${SAVE_AS_CSV}`)],
  // RFC 8878 section 3.1.1.
  [/^28b52ffd/, other('compressed with zstd; decompress it (zstd -d FILE), and import the result')],
  // "BZh", the level, and the start of a block or of the end.
  [
    /^425a683[1-9](?:314159265359|177245385090)/,
    other('compressed with bzip2; decompress it (bzip2 -dk FILE), and import the result'),
  ],
  // https://tukaani.org/xz/xz-file-format.txt section 2.1.1.1.
  [/^fd377a585a00/, other('compressed with xz; decompress it (xz -dk FILE), and import the result')],
  // Byte order marks, or ASCII characters without one. UTF-32LE must come before UTF-16LE.
  [/^(?:fffe0000|0000feff)/, utf32('UTF-32')],
  [/^(?!00)..000000/, utf32('UTF-32LE')],
  [/^000000(?!00)/, utf32('UTF-32BE')],
  [/^efbbbf/, { kind: 'mark', encoding: 'utf-8' }],
  [/^fffe/, { kind: 'mark', encoding: 'utf-16le' }],
  [/^feff/, { kind: 'mark', encoding: 'utf-16be' }],
  [/^(?!00)..00(?!00)..00/, { kind: 'likely', encoding: 'utf-16le' }],
  [/^00(?!00)..00(?!00)/, { kind: 'likely', encoding: 'utf-16be' }],
];

/** The longest start above. */
export const FORMAT_BYTES = 10;

/** @returns what the start of a file shows; undefined for any other text */
export function startReadingOf(start: Buffer): StartReading | undefined {
  const digits = start.toString('hex', 0, FORMAT_BYTES);
  return STARTS.find(([pattern]) => pattern.test(digits))?.[1];
}
