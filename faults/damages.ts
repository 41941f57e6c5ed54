/** Damages of the files of a store. */
type Random = (below: number) => number;

/** A damage of a file that was read into memory. @returns the exact place, for people */
export type Damage = (file: Buffer, random: Random) => string;

const SQLITE_PAGE = 4096;
/** https://sqlite.org/fileformat.html: headers of the file, of its log, and of a frame of the log. */
const FILE_HEADER = 100;
const LOG_HEADER = 32;
const FRAME_HEADER = 24;
/** The header of a page of a tree, and the first offsets of its cells. */
const PAGE_HEADER = 48;

function flip(file: Buffer, offset: number, random: Random): string {
  const bit = random(8);
  file[offset]! ^= 1 << bit;
  return `offset ${offset} bit ${bit}`;
}

const page = (file: Buffer, number: number): Buffer =>
  file.subarray(number * SQLITE_PAGE, (number + 1) * SQLITE_PAGE);
const randomPage = (file: Buffer, random: Random): number => random(file.length / SQLITE_PAGE);

/** @param range the first byte and the length of the part to damage */
function flipIn(range: (file: Buffer, random: Random) => readonly [number, number]): Damage {
  return (file, random) => {
    const [begin, length] = range(file, random);
    return flip(file, begin + random(length), random);
  };
}

export const anywhere = flipIn(file => [0, file.length]);
export const inFileHeader = flipIn(() => [0, FILE_HEADER]);
/** The first page contains the first rows of the schema. */
export const inSchema = flipIn(() => [FILE_HEADER, SQLITE_PAGE - FILE_HEADER]);
export const inPageHeader = flipIn((file, random) => [randomPage(file, random) * SQLITE_PAGE, PAGE_HEADER]);
export const inFrameHeader = flipIn((file, random) => {
  const frames = Math.floor((file.length - LOG_HEADER) / (FRAME_HEADER + SQLITE_PAGE));
  const frame = random(frames + 1);
  if (frame === frames) return [0, LOG_HEADER];
  return [LOG_HEADER + frame * (FRAME_HEADER + SQLITE_PAGE), FRAME_HEADER];
});

/** A flip in the cells of small tables. @param roots the numbers of their pages, from 1 */
export function inCellsOf(roots: readonly number[]): Damage {
  return flipIn((file, random) => {
    const begin = (roots[random(roots.length)]! - 1) * SQLITE_PAGE;
    // In the header of a page: https://sqlite.org/fileformat.html#b_tree_pages
    const cells = file.readUInt16BE(begin + 5);
    return [begin + cells, SQLITE_PAGE - cells];
  });
}

/** Only half of the last write of a page reached the disk. @param older the file before it */
export function tornPage(older: Buffer): Damage {
  return (file, random) => {
    for (;;) {
      const number = randomPage(older, random);
      const begin = number * SQLITE_PAGE + random(2) * (SQLITE_PAGE / 2);
      const half = older.subarray(begin, begin + SQLITE_PAGE / 2);
      if (half.equals(file.subarray(begin, begin + half.length))) continue;
      half.copy(file, begin);
      return `older bytes from offset ${begin} to ${begin + half.length}`;
    }
  };
}

export const swappedPages: Damage = (file, random) => {
  const first = randomPage(file, random);
  const second = (first + 1 + random(file.length / SQLITE_PAGE - 1)) % (file.length / SQLITE_PAGE);
  const before = Buffer.from(page(file, first));
  page(file, second).copy(file, first * SQLITE_PAGE);
  before.copy(file, second * SQLITE_PAGE);
  return `pages ${first + 1} and ${second + 1}`;
};
