function convert(encoding: string): string {
  return `${encoding}; convert it (iconv -f ${encoding} -t UTF-8 FILE > NEW_FILE)`;
}

const SAVE_AS_CSV = 'save it as CSV UTF-8, and import that';

/** The first bytes of files that are no text in UTF-8, in hexadecimal, each with its format. */
const FORMATS: [start: RegExp, what: string][] = [
  // APPNOTE.TXT section 4.3.7: also .xlsx and .ods.
  [/^504b0304/, `a spreadsheet or ZIP file; ${SAVE_AS_CSV}`],
  // [MS-CFB] section 2.2.
  [/^d0cf11e0a1b11ae1/, `an old Excel file (.xls) or another Office file; ${SAVE_AS_CSV}`],
  // RFC 8878 section 3.1.1.
  [/^28b52ffd/, 'compressed with zstd; decompress it (zstd -d FILE), and import the result'],
  // "BZh", the level, and the start of a block or of the end.
  [
    /^425a683[1-9](?:314159265359|177245385090)/,
    'compressed with bzip2; decompress it (bzip2 -dk FILE), and import the result',
  ],
  // https://tukaani.org/xz/xz-file-format.txt section 2.1.1.1.
  [/^fd377a585a00/, 'compressed with xz; decompress it (xz -dk FILE), and import the result'],
  // Byte order marks, or ASCII characters without one. UTF-32LE must come before UTF-16LE.
  [/^(?:fffe0000|0000feff)/, convert('UTF-32')],
  [/^(?!00)..000000/, convert('UTF-32LE')],
  [/^000000(?!00)/, convert('UTF-32BE')],
  [/^(?:fffe|feff)/, convert('UTF-16')],
  [/^(?!00)..00(?!00)..00/, convert('UTF-16LE')],
  [/^00(?!00)..00(?!00)/, convert('UTF-16BE')],
];

/** The longest start above. */
export const FORMAT_BYTES = 10;

/** @returns the format of a file that is no text in UTF-8, and what to do with the file */
export function otherFormatOf(start: Buffer): string | undefined {
  const digits = start.toString('hex', 0, FORMAT_BYTES);
  return FORMATS.find(([pattern]) => pattern.test(digits))?.[1];
}
