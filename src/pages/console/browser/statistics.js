// The statistics at the top of the screen Now, each with a line that explains it.
import { ageText, bytesText, COUNT, numberText, time, totalText } from './display.js';
import { html } from './preact.js';

const OUTCOMES = ['created', 'revised', 'unchanged'];
/** A rate is the mean of these seconds. */
const RATE_SECONDS = 10;
const RECENT_SECONDS = 900;

/**
 * @typedef {import('./plot.js').Sample} Sample
 * @typedef {{ end: number, interval: number, sample: Sample }[]} Recent with times in seconds
 * @typedef {{ title: string, statistic: string, unit?: string | undefined, note: unknown,
 *   state?: State | undefined }} Statistic
 * @typedef {'well' | 'warning' | 'damaged'} State
 * @typedef {{ kind: 'external' } | { kind: 'unknown' } | { kind: 'known', bytes: number, freeBytes: number,
 *   state: State, trend: { kind: 'unknown' } | { kind: 'stable' } | { kind: 'fills', days: number } }} Disk
 * @typedef {{ kind: 'external' } | { kind: 'none', state: State } | { kind: 'run', state: State,
 *   endedAt: number, text: string }} Backup
 */

/**
 * @param {{ seconds: Map<number, Sample>, tens: Map<number, Sample>, newest: number,
 *   errors: ReadonlySet<string>, total: import('./display.js').Total | null, disk: Disk,
 *   backup: Backup }} props samples of one second and of ten seconds; the names of errors
 */
export function Statistics({ seconds, tens, newest, errors, total, disk, backup }) {
  const recent = recentSamples(seconds, tens, newest);
  const statistics = [
    totalStatistic(total),
    plantsStatistic(recent, newest),
    timeStatistic(tens, newest),
    errorsStatistic(recent, newest, errors),
    diskStatistic(disk),
    backupStatistic(backup),
  ];
  return html`<dl class="statistics">
    ${statistics.map(
      each =>
        each &&
        html`<div key=${each.title} data-state=${each.state}>
          <dt>${each.title}</dt>
          <dd class="statistic">${each.statistic}${each.unit && html` <small>${each.unit}</small>`}</dd>
          <dd class="note">${each.note}</dd>
        </div>`,
    )}
  </dl>`;
}

/**
 * The samples of the last 15 minutes, the oldest first. After a restart, samples of ten seconds of
 * the earlier start come before those of one second.
 *
 * @param {Map<number, Sample>} seconds
 * @param {Map<number, Sample>} tens
 * @param {number} newest
 * @returns {Recent}
 */
function recentSamples(seconds, tens, newest) {
  const [firstSecond = Infinity] = seconds.keys();
  const samplesOf = (
    /** @type {Map<number, Sample>} */ ring,
    /** @type {number} */ interval,
    /** @type {number} */ before,
  ) =>
    [...ring]
      .filter(([end]) => end > newest - RECENT_SECONDS && end < before)
      .map(([end, sample]) => ({ end, interval, sample }));
  return [...samplesOf(tens, 10, firstSecond), ...samplesOf(seconds, 1, Infinity)];
}

/** The sum of some rates of a sample. @param {Sample} sample @param {readonly string[]} names */
function rateOf(sample, names) {
  return names.reduce((sum, name) => sum + (sample(name) ?? 0), 0);
}

/**
 * How many requests with some results the samples have.
 *
 * @param {Recent} samples
 * @param {readonly string[]} names
 */
function countOf(samples, names) {
  return samples.reduce((sum, { interval, sample }) => sum + rateOf(sample, names) * interval, 0);
}

/** @param {import('./display.js').Total | null} total @returns {Statistic} */
function totalStatistic(total) {
  const note = total === null ? 'being counted' : html`in the store, counted ${time(total.at)}`;
  return { title: 'Plants', statistic: totalText(total), note };
}

/** @param {Recent} recent @param {number} newest */
function present(recent, newest) {
  return recent.filter(({ end }) => end > newest - RATE_SECONDS);
}

/**
 * @param {Recent} recent
 * @param {number} newest
 * @returns {Statistic}
 */
function plantsStatistic(recent, newest) {
  const most = Math.max(0, ...recent.map(({ sample }) => rateOf(sample, OUTCOMES)));
  const note =
    most === 0
      ? html`none in 15 min; <a href="#plants">how to send one</a>`
      : `mean of 10 s; at most ${numberText(most)} in 15 min`;
  const rate = countOf(present(recent, newest), OUTCOMES) / RATE_SECONDS;
  return { title: 'Plants a second', statistic: numberText(rate), note };
}

/**
 * @param {Map<number, Sample>} tens
 * @param {number} newest
 * @returns {Statistic}
 */
function timeStatistic(tens, newest) {
  const sample = tens.get(newest - (newest % RATE_SECONDS));
  const p99 = sample?.('p99') ?? null;
  const note =
    p99 === null
      ? 'no plant in the last 10 s'
      : `99 % are faster; half within ${numberText(sample?.('p50'))} ms`;
  return {
    title: 'Response time, p99',
    statistic: numberText(p99),
    unit: p99 === null ? undefined : 'ms',
    note,
  };
}

/**
 * The errors of the present. Those of 15 minutes are in the note. An error of the service, with
 * status 5xx, has a color.
 *
 * @param {Recent} recent
 * @param {number} newest
 * @param {ReadonlySet<string>} errors
 * @returns {Statistic}
 */
function errorsStatistic(recent, newest, errors) {
  const names = [...errors];
  const ofService = names.filter(name => name.startsWith('5'));
  const now = present(recent, newest);
  const total = Math.round(countOf(recent, names));
  const failed = Math.round(countOf(recent, ofService));
  const counts = names.map(name => ({ name, count: countOf(recent, [name]) }));
  const [most] = counts.toSorted((a, b) => b.count - a.count);
  const note =
    total === 0
      ? 'none in 15 min'
      : html`${COUNT.format(total)} in 15 min${failed > 0 && `, ${COUNT.format(failed)} of them 5xx`};${' '}
          most: <a href="#rejected">${most?.name}</a>`;
  const statistic = numberText(countOf(now, names) / RATE_SECONDS);
  const state = countOf(now, ofService) > 0 ? 'damaged' : failed > 0 ? 'warning' : undefined;
  return { title: 'Errors a second', statistic, note, state };
}

/** @param {Disk} disk @returns {Statistic | undefined} */
function diskStatistic(disk) {
  const title = 'Free disk';
  if (disk.kind === 'external') return undefined;
  if (disk.kind === 'unknown') return { title, statistic: '–', note: 'not known' };
  const [statistic, unit] = bytesText(disk.freeBytes);
  const note = `of ${bytesText(disk.bytes).join(' ')}; ${trendText(disk.trend)}`;
  return { title, statistic, unit, note, state: disk.state };
}

/** @param {{ kind: 'unknown' } | { kind: 'stable' } | { kind: 'fills', days: number }} trend */
function trendText(trend) {
  if (trend.kind === 'unknown') return 'trend known after 6 h';
  if (trend.kind === 'stable') return 'does not fill';
  return `full in ${trend.days < 2 ? 'less than 2 days' : `${numberText(trend.days)} days`}`;
}

/** @param {Backup} backup @returns {Statistic | undefined} */
function backupStatistic(backup) {
  const title = 'Last backup';
  if (backup.kind === 'external') return undefined;
  const { state } = backup;
  if (backup.kind === 'none')
    return { title, statistic: 'none', note: html`<a href="#store">how to make one</a>`, state };
  const [statistic = '', ...unit] = ageText(backup.endedAt).split(' ');
  return { title, statistic, unit: unit.join(' '), note: backup.text, state };
}
