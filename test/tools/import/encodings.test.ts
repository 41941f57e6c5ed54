import { gzipSync } from 'node:zlib';
import { type FileCase, REJECTS_HEADER, testImports } from '../../harness/file-cases.ts';

function bytes(...parts: (string | number[])[]): Buffer {
  return Buffer.concat(parts.map(part => Buffer.from(part as string)));
}

function latin1(text: string): Buffer {
  return Buffer.from(text, 'latin1');
}

function utf16be(text: string): Buffer {
  return Buffer.from(text, 'utf16le').swap16();
}

const CAFE = 'the row is not UTF-8: it has the byte E9: "Café" in WINDOWS-1252 or WINDOWS-1250, ';

const CASES: FileCase[] = [
  {
    what: 'a named encoding',
    content: latin1('id;name\n1;B\xf8\xedza b\xeclokor\xe1\n'),
    args: ['--encoding', 'Windows-1250'],
    stored: ['1,Bříza bělokorá,'],
  },
  {
    what: 'an encoding of several bytes, one of which is a backslash, and a quote beside it',
    content: latin1('id,name\n1,"\x95\x5c"\n'),
    args: ['--encoding', 'shift_jis'],
    stored: ['1,表,'],
  },
  {
    what: 'a common spelling of an encoding',
    content: latin1('id,name\n1,Caf\xe9\n'),
    args: ['--encoding', 'Latin-1'],
    stored: ['1,Café,'],
  },
  {
    what: 'a file that is not in the named encoding',
    content: latin1('id,name\n1,a\n2,Caf\xe9,\n'),
    args: ['--encoding', 'shift_jis'],
    failure: / is not shift_jis: line 3 has bytes .* --encoding; nothing was sent$/,
  },
  {
    what: 'a file of UTF-8 with another named encoding, which would store CafÃ©',
    content: 'id,name\n1,Café\n',
    args: ['--encoding', 'windows-1252'],
    failure: / is valid UTF-8, .*; import it without --encoding, .*; nothing was sent$/,
  },
  {
    what: 'the Unicode text of Excel',
    content: Buffer.from('\ufeffid\tname\r\n1\tAcer × 😀\r\n', 'utf16le'),
    stored: ['1,Acer × 😀,'],
    note: / has the byte order mark of UTF-16LE, and is read so$/,
  },
  {
    what: 'a mark that names the other byte order',
    content: gzipSync(utf16be('\ufeff[{"id":1,"name":"é"}]')),
    args: ['--encoding', 'utf-16'],
    stored: ['1,é,'],
  },
  {
    what: 'a mark that contradicts the named encoding',
    content: bytes('\ufeffid,name\n1,é\n'),
    args: ['--encoding', 'windows-1252'],
    failure: / has the byte order mark of UTF-8, so it is not windows-1252; import it without --encoding; /,
  },
  {
    what: 'UTF-16 without a mark',
    content: utf16be('id,name\n1,é\n'),
    args: ['--encoding', 'utf-16be'],
    stored: ['1,é,'],
  },
  {
    what: 'one row of Latin-1 in a file of UTF-8, and a real U+FFFD',
    content: bytes('id,name\n1,Caf', [0xe9], '\n2,Café\n3,\ufffd\n'),
    stored: ['2,Café,', '3,\ufffd,'],
    rejects: [REJECTS_HEADER, new RegExp(`^1,Caf\ufffd,2,1,encoding,"${CAFE.replaceAll('"', '""')}.*"$`)],
  },
  {
    what: 'one row of Latin-1 in JSON Lines of UTF-8',
    content: bytes('{"id":1,"name":"Café"}\n{"id":2,"name":"Caf', [0xe9], '"}\n'),
    stored: ['1,Café,'],
    rejects: [
      new RegExp(
        `^\\{"id":2,"name":"Caf\ufffd","line":2,"row":2,"error":"encoding","message":"${CAFE.replaceAll('"', '\\\\"')}.*"\\}$`,
      ),
    ],
  },
  {
    what: 'an invalid byte in the name of a member',
    content: bytes('{"id":1,"name":"é"}\n{"id":2,"name":"é","x', [0xdf], '":"a"}\n'),
    stored: ['1,é,'],
    rejects: [/^\{"id":2,"name":"é","x\ufffd":"a","line":2,"row":2,"error":"encoding",/],
  },
  {
    what: 'an invalid byte in a line that is no JSON',
    content: bytes('{"id":1,"name":"é"}\n{"id":2,"name":"', [0xdf], '"\n'),
    stored: ['1,é,'],
    rejects: [/^\{"text":"\{\\"id\\":2,\\"name\\":\\"\ufffd\\"","line":2,"row":2,"error":"encoding",/],
  },
  {
    what: 'an invalid byte and an unclosed quote in one row',
    content: bytes('id,name\n1,é\n2,"Caf', [0xe9], '\n3,a\n'),
    stored: ['1,é,'],
    rejects: [
      REJECTS_HEADER,
      '"2,""Caf\ufffd',
      /^3,a",,3,2,quotes encoding,"the row has a quote .* line 3, and takes 2 lines; .* UTF-8: /,
    ],
  },
  {
    what: 'an invalid byte in a row with too many fields',
    content: bytes('id,name\n1,é\n2,Caf', [0xe9], ',more\n'),
    stored: ['1,é,'],
    rejects: [REJECTS_HEADER, /^2,Caf\ufffd,3,2,encoding,"the row is not UTF-8: .*",more$/],
  },
  {
    what: 'a byte order mark, ASCII and one invalid byte',
    content: bytes('\ufeffid,name\n1,a\n2,', [0xe2, 0x82], '\n'),
    stored: ['1,a,'],
    rejects: [REJECTS_HEADER, /^2,\ufffd+,3,2,encoding,"the row is not UTF-8: /],
  },
  {
    what: 'more lines with invalid bytes than with other valid characters',
    content: bytes('id,name\n1,é\n2,', [0xe9], '\n3,x', [0xe9], '\n'),
    failure: / is not UTF-8: line 3 has the byte E9: "é" in WINDOWS-1252 .*; nothing was sent$/,
  },
  {
    what: 'the same file, if a person says that it is UTF-8',
    content: bytes('id,name\n1,é\n2,', [0xe9], '\n3,x', [0xe9], '\n'),
    args: ['--encoding', 'UTF-8'],
    stored: ['1,é,'],
    rejects: [REJECTS_HEADER, /^2,\ufffd,3,2,/, /^3,x\ufffd,4,3,/],
  },
  {
    what: 'a stream in another encoding, whose first text beyond ASCII comes late',
    content: gzipSync(latin1(`id,name\n1,a\n${'\n'.repeat(200_000)}2,Caf\xe9\n`)),
    isStream: true,
    stored: ['1,a,'],
    failure: / is not UTF-8: line 200003 has the byte E9: .* rows before it, if any, were sent, /,
  },
];

/** Bytes that are nothing in an encoding, for which decoders give control or private-use characters. */
const UNDEFINED: [encoding: string, bytes: number[]][] = [
  ['windows-1252', [0x81]],
  ['windows-1250', [0x98]],
  ['iso-8859-2', [0x85]],
  ['macintosh', [0xf0]],
  ['euc-kr', [0xfe, 0xa1]],
  ['big5-hkscs', [0xfa, 0x40]],
  ['gb18030', [0xa1, 0x40]],
  ['shift_jis', [0xf0, 0x40]],
];

testImports('encodings', [
  ...CASES,
  ...UNDEFINED.flatMap(([encoding, undefinedBytes]): FileCase[] => {
    const { encoding: name } = new TextDecoder(encoding);
    const message = `the row is not ${name}: it has bytes that ${name} does not define; write the right text in place of each \ufffd`;
    return [
      {
        what: `a row with bytes that are nothing in ${encoding}`,
        content: bytes('id,name\n1,a\n2,b', undefinedBytes, '\n'),
        args: ['--encoding', encoding],
        stored: ['1,a,'],
        rejects: [REJECTS_HEADER, `2,b\ufffd,3,2,encoding,${message}`],
      },
      {
        what: `a line of JSON with bytes that are nothing in ${encoding}`,
        content: bytes('{"id":1,"name":"b', undefinedBytes, '"}\n'),
        args: ['--encoding', encoding],
        rejects: [`{"id":1,"name":"b\ufffd","line":1,"row":1,"error":"encoding","message":"${message}"}`],
      },
    ];
  }),
  {
    what: 'private-use and control characters of Unicode',
    content: Buffer.from('\ufeffid,name\n1,\ue000\u0085\n', 'utf16le'),
    stored: ['1,\ue000\u0085,'],
  },
]);
