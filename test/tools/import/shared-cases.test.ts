import { existsSync, readFileSync } from 'node:fs';
import { test } from 'node:test';
import { type FileCase, REJECTS_HEADER, testImports } from '../../harness/file-cases.ts';

/** Files on which an earlier version was wrong. Their README says what is right. */
const FOLDER = new URL('../../../../shared/cases/', import.meta.url);
/** They are beside the repository, but not beside each copy of it. */
const HAS_FILES = existsSync(FOLDER);

function sharedCase(name: string): Buffer {
  return HAS_FILES ? readFileSync(new URL(name, FOLDER)) : Buffer.alloc(0);
}

const CASES: FileCase[] = [
  {
    what: 'case 01: quotes are text in a file of tabs',
    content: sharedCase('01-tab-separated-without-quoting.tsv'),
    stored: ['1,Acer,', '2,Rosa,', '3,Poa,', '4,Fagus,'],
    note: /: line 2 has a quote that its line does not close, so quotes are text in this file; /,
  },
  {
    what: 'case 03: rows without text are skipped',
    content: sharedCase('03-blank-rows.csv'),
    stored: ['1,Acer,x'],
  },
  {
    what: 'case 04: the encoding is a question',
    content: sharedCase('04-windows-1250.csv'),
    failure:
      /: line 2 has the bytes F8 .*"Bøíza bìlokorá" in WINDOWS-1252, "Bříza bělokorá" in WINDOWS-1250, .*\? /,
  },
  {
    what: 'case 04: the question has an answer',
    content: sharedCase('04-windows-1250.csv'),
    args: ['--encoding', 'windows-1250'],
    stored: ['1,Bříza bělokorá,'],
  },
  {
    what: 'case 06: ids are shown with their faults',
    content: sharedCase('06-ids-in-range.csv'),
    rejects: [
      REJECTS_HEADER,
      /^0012,zeros,2,1,40002,"id ""0012"" has a leading zero; /,
      /^20 ,blank,3,2,40002,"id ""20 "" has a blank /,
      /^\+22,plus,4,3,40002,"id ""\+22"" has another sign than -; /,
      /^"1,016",thousands,5,4,40002,"id ""1,016"" has a separator; /,
    ],
  },
  {
    what: 'case 07: names of columns are compared after NFC',
    content: sharedCase('07-header-nfd.csv'),
    args: ['--columns', 'name=Localização'],
    stored: ['1,Acer,'],
  },
];

if (HAS_FILES) testImports('shared cases', CASES);
else test('shared cases', { skip: 'the folder ../shared/cases is missing' });
