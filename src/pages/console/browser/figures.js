// The figures at the top of the screen Now, each with a line that explains it.
import { ageText, bytesText, numberText } from './display.js';
import { html } from './preact.js';

const OUTCOMES = ['created', 'revised', 'unchanged'];
/** A rate is the mean of these seconds. */
const RATE_SECONDS = 10;
const ERROR_SECONDS = 900;
/** A disk that is full in fewer days needs attention. */
const DISK_DAYS_MIN = 14;
const BACKUP_AGE_DAYS_MAX = 7;

/**
 * @typedef {import('./plot.js').Sample} Sample
 * @typedef {{ title: string, figure: string, unit?: string | undefined, note: unknown,
 *   state?: string | undefined }} Figure
 * @typedef {{ kind: 'external' } | { kind: 'unknown' } | { kind: 'known', bytes: number, freeBytes: number,
 *   trend: { kind: 'unknown' } | { kind: 'stable' } | { kind: 'fills', days: number } }} Disk
 * @typedef {{ kind: 'external' } | { kind: 'none' } | { kind: 'run', endedAt: number, hasSucceeded: boolean,
 *   text: string }} Backup
 */

/**
 * @param {{ seconds: Map<number, Sample>, tens: Map<number, Sample>, newest: number,
 *   errors: ReadonlySet<string>, disk: Disk, backup: Backup }} props samples of one second and of
 *   ten seconds; the names of errors
 */
export function Figures({ seconds, tens, newest, errors, disk, backup }) {
  const figures = [
    plantsFigure(seconds, newest),
    timeFigure(tens, newest),
    errorsFigure(seconds, newest, errors),
    diskFigure(disk),
    backupFigure(backup),
  ];
  return html`<dl class="figures">
    ${figures.map(
      each =>
        each &&
        html`<div key=${each.title} data-state=${each.state}>
          <dt>${each.title}</dt>
          <dd class="figure">${each.figure}${each.unit && html` <small>${each.unit}</small>`}</dd>
          <dd class="note">${each.note}</dd>
        </div>`,
    )}
  </dl>`;
}

/**
 * The sums of some values in each of the last seconds, the newest first.
 *
 * @param {Map<number, Sample>} seconds
 * @param {number} newest
 * @param {number} count
 * @param {readonly string[]} names
 */
function lastSums(seconds, newest, count, names) {
  return Array.from({ length: count }, (_, index) => {
    const sample = seconds.get(newest - index);
    return names.reduce((sum, name) => sum + (sample?.(name) ?? 0), 0);
  });
}

/**
 * @param {Map<number, Sample>} seconds
 * @param {number} newest
 * @returns {Figure}
 */
function plantsFigure(seconds, newest) {
  const sums = lastSums(seconds, newest, ERROR_SECONDS, OUTCOMES);
  const rate = sums.slice(0, RATE_SECONDS).reduce((sum, value) => sum + value, 0) / RATE_SECONDS;
  const most = Math.max(...sums);
  const note =
    most === 0
      ? html`none in 15 min; <a href="#plants">how to send one</a>`
      : `mean of 10 s; at most ${numberText(most)} in 15 min`;
  return { title: 'Plants a second', figure: numberText(rate), note };
}

/**
 * @param {Map<number, Sample>} tens
 * @param {number} newest
 * @returns {Figure}
 */
function timeFigure(tens, newest) {
  const sample = tens.get(newest - (newest % RATE_SECONDS));
  const p99 = sample?.('p99') ?? null;
  const note =
    p99 === null
      ? 'no plant in the last 10 s'
      : `99 % are faster; half within ${numberText(sample?.('p50'))} ms`;
  return {
    title: 'Response time, p99',
    figure: numberText(p99),
    unit: p99 === null ? undefined : 'ms',
    note,
  };
}

/**
 * @param {Map<number, Sample>} seconds
 * @param {number} newest
 * @param {ReadonlySet<string>} errors
 * @returns {Figure}
 */
function errorsFigure(seconds, newest, errors) {
  const counts = [...errors].map(name => {
    const count = lastSums(seconds, newest, ERROR_SECONDS, [name]).reduce((sum, value) => sum + value, 0);
    return { name, count };
  });
  const total = Math.round(counts.reduce((sum, { count }) => sum + count, 0));
  const [most] = counts.toSorted((a, b) => b.count - a.count);
  const note =
    total === 0 ? 'none in the last 15 min' : html`in 15 min, most <a href="#rejected">${most?.name}</a>`;
  return { title: 'Errors', figure: numberText(total), note };
}

/** @param {Disk} disk @returns {Figure | undefined} */
function diskFigure(disk) {
  const title = 'Free disk';
  if (disk.kind === 'external') return undefined;
  if (disk.kind === 'unknown') return { title, figure: '–', note: 'not known' };
  const { freeBytes, bytes, trend } = disk;
  const [figure, unit] = bytesText(freeBytes);
  const size = `of ${bytesText(bytes).join(' ')}`;
  if (trend.kind !== 'fills')
    return {
      title,
      figure,
      unit,
      note: `${size}; ${trend.kind === 'stable' ? 'does not fill' : 'trend known after 6 h'}`,
    };
  const { days } = trend;
  const state = days < DISK_DAYS_MIN ? 'warning' : undefined;
  return {
    title,
    figure,
    unit,
    note: `${size}; full in ${days < 2 ? 'less than 2 days' : `${numberText(days)} days`}`,
    state,
  };
}

/** @param {Backup} backup @returns {Figure | undefined} */
function backupFigure(backup) {
  const title = 'Last backup';
  if (backup.kind === 'external') return undefined;
  if (backup.kind !== 'run')
    return {
      title,
      figure: 'none',
      note: html`make one: <code>npx plant-store backup FILE</code>`,
      state: 'warning',
    };
  const { endedAt, hasSucceeded, text } = backup;
  const [figure = '', ...unit] = ageText(endedAt).split(' ');
  const isOld = Date.now() - endedAt > BACKUP_AGE_DAYS_MAX * 86_400_000;
  const state = hasSucceeded ? (isOld ? 'warning' : undefined) : 'damaged';
  return { title, figure, unit: unit.join(' '), note: text, state };
}
