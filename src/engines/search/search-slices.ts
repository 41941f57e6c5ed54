/** How a search reads a store: in slices of short statements, with pauses for creates. */
import { setTimeout as sleep } from 'node:timers/promises';
import { ID_MAX } from '../../core/contract/limits.ts';
import type { Query } from '../tables/table-access.ts';

/** A slice that takes longer than this is followed by a smaller one. */
const SLICE_MS = 20;
/**
 * Creates run in the pause after each slice. The pause is so many times as long as the slice: the
 * first number while this process has nothing else to do, the second while it is busy.
 */
const PAUSE_SHARES = [0.25, 40] as const;
const PAUSE_MAX_MS = 1_000;

/** Revisions of the smallest slice of a search, and of the largest. */
export interface SliceRows {
  min: number;
  max: number;
}

export interface SliceSettings {
  from: bigint;
  /** Revisions of the first slice, if the limits of the store allow it. By default the smallest. */
  firstRows?: number;
  /** A slice of several plants has at most so many bytes of names. By default, any number. */
  nameBytesMax?: number;
  timeLimitMs: number;
}

export interface SearchProgress {
  /** The id at which the search goes on; undefined only if everything was searched. */
  next: bigint | undefined;
  /** About how many revisions were searched; 0 for a search of one id. */
  searched: number;
}

/** Reads the plants of a slice. @returns the last read id if the search ends there, else undefined */
export type ReadSlice = (first: bigint, last: bigint) => Promise<bigint | undefined>;

/**
 * Reads slices until everything is read, a slice ends the search, or the time is over, but always at
 * least one. The first one is small: if the store does not fit into memory, each row may cost a disk
 * read.
 */
export async function readSlices(
  query: Query,
  { min, max }: SliceRows,
  { from, firstRows = min, nameBytesMax = Infinity, timeLimitMs }: SliceSettings,
  read: ReadSlice,
): Promise<SearchProgress> {
  const endsAt = performance.now() + timeLimitMs;
  let loop = performance.eventLoopUtilization();
  let rows = Math.min(Math.max(firstRows, min), max);
  for (let start = from, searched = 0; ; ) {
    const startedAt = performance.now();
    let end = await sliceEnd(query, start, rows);
    while (rows > 1 && end > start && !(await hasFewBytes(query, start, end, nameBytesMax))) {
      rows = Math.floor(rows / 2);
      end = await sliceEnd(query, start, rows);
    }
    const endedWith = await read(start, end);
    const workMs = performance.now() - startedAt;
    const { utilization } = performance.eventLoopUtilization(loop);
    loop = performance.eventLoopUtilization();
    await sleep(Math.min(pauseShare(utilization) * workMs, PAUSE_MAX_MS));
    searched += rows;
    // A damaged row may have a smaller id than `start`, but the search must advance.
    const last = endedWith === undefined || endedWith >= start ? (endedWith ?? end) : start;
    if (last === ID_MAX) return { next: undefined, searched };
    start = last + 1n;
    if (endedWith !== undefined || performance.now() >= endsAt) return { next: start, searched };
    if (workMs < SLICE_MS / 2) rows = Math.min(rows * 2, max);
    if (workMs > SLICE_MS) rows = Math.min(rows, Math.max(Math.floor(rows / 2), min));
  }
}

/** The last id of a slice with this many revisions; a slice of one plant may have more. */
async function sliceEnd(query: Query, from: bigint, rows: number): Promise<bigint> {
  const text = `SELECT id FROM plant_revision WHERE id >= $1 ORDER BY id LIMIT 1 OFFSET ${rows}`;
  const [beyond] = await query(text, [from]);
  if (beyond === undefined) return ID_MAX;
  const next = BigInt(beyond[0]!);
  // A damaged row may have a smaller id than `from`.
  return next <= from ? from : next - 1n;
}

async function hasFewBytes(query: Query, first: bigint, last: bigint, bytesMax: number): Promise<boolean> {
  if (bytesMax === Infinity) return true;
  const text = 'SELECT sum(octet_length(name)) FROM plant_revision WHERE id BETWEEN $1 AND $2';
  const [row] = await query(text, [first, last]);
  return Number(row![0]) <= bytesMax;
}

/** @param utilization the share of the time in which the event loop, which serves creates, worked */
function pauseShare(utilization: number): number {
  const [idle, busy] = PAUSE_SHARES;
  return idle + (busy - idle) * utilization;
}
