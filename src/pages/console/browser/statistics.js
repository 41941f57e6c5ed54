// The statistics of the screen Now, each with a line that explains it.
import { ageText, bytesText, COUNT, dayOf, numberText, time, totalText } from './display.js';
import { ERROR_WORDS } from './error-words.js';
import { html } from './preact.js';

const OUTCOMES = ['created', 'revised', 'unchanged'];
/** A rate is the mean of these seconds. */
const RATE_SECONDS = 10;
const RECENT_SECONDS = 900;
/** A count of the plants that is older than this shows its age. */
const COUNT_AGE_MAX_MS = 5 * 60_000;

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
 * What the keeper of the plants wants to know first.
 *
 * @param {{ seconds: Map<number, Sample>, tens: Map<number, Sample>, newest: number,
 *   errors: ReadonlySet<string>, total: import('./display.js').Total | null, disk: Disk,
 *   backup: Backup }} props samples of one second and of ten seconds; the names of errors
 */
export function Statistics({ seconds, tens, newest, errors, total, disk, backup }) {
  const recent = samplesSince(seconds, tens, newest, newest - RECENT_SECONDS);
  const today = samplesSince(seconds, tens, newest, midnightBefore(newest));
  return html`<${Cards} statistics=${[
    totalStatistic(total),
    outcomeStatistic('New today', 'created', today, recent),
    outcomeStatistic('Changed today', 'revised', today, recent),
    rejectedStatistic(recent, newest, errors),
    backupStatistic(backup),
    diskStatistic(disk),
  ]} />`;
}

/**
 * How fast the service works.
 *
 * @param {{ seconds: Map<number, Sample>, tens: Map<number, Sample>, newest: number }} props
 */
export function SpeedStatistics({ seconds, tens, newest }) {
  const recent = samplesSince(seconds, tens, newest, newest - RECENT_SECONDS);
  return html`<${Cards} statistics=${[plantsStatistic(recent, newest), timeStatistic(tens, newest)]} />`;
}

/** @param {{ statistics: (Statistic | undefined)[] }} props */
function Cards({ statistics }) {
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

/** The beginning of the day of a second, in the zone of the reader. @param {number} second */
export function midnightBefore(second) {
  return new Date(second * 1000).setHours(0, 0, 0, 0) / 1000;
}

/**
 * The samples after a second, the oldest first. Those of ten seconds reach further back than those of
 * one second, which come after them. No time is in two samples.
 *
 * @param {Map<number, Sample>} seconds
 * @param {Map<number, Sample>} tens
 * @param {number} newest
 * @param {number} since
 * @returns {Recent}
 */
export function samplesSince(seconds, tens, newest, since) {
  const [firstSecond = Infinity] = seconds.keys();
  const border = Math.min(Math.ceil((firstSecond - 1) / 10) * 10, newest - (newest % 10));
  const samplesOf = (
    /** @type {Map<number, Sample>} */ ring,
    /** @type {number} */ interval,
    /** @type {number} */ after,
    /** @type {number} */ last,
  ) =>
    [...ring]
      .filter(([end]) => end > after && end <= last)
      .map(([end, sample]) => ({ end, interval, sample }));
  return [...samplesOf(tens, 10, since, border), ...samplesOf(seconds, 1, Math.max(since, border), Infinity)];
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
  const title = 'Plants';
  if (total === null) return { title, statistic: '–', note: 'being counted' };
  const isOld = Date.now() - total.at > COUNT_AGE_MAX_MS;
  // Only an old count shows its age, since an age that changes all the time is restless.
  return {
    title,
    statistic: totalText(total),
    note: isOld ? html`in the store, counted ${time(total.at)}` : 'in the store',
  };
}

/**
 * How many plants got an outcome since midnight.
 *
 * @param {string} title
 * @param {string} outcome
 * @param {Recent} today
 * @param {Recent} recent
 * @returns {Statistic}
 */
function outcomeStatistic(title, outcome, today, recent) {
  const count = COUNT.format(Math.round(countOf(today, [outcome])));
  const recently = Math.round(countOf(recent, [outcome]));
  const day = dayOf(Date.now());
  const note = html`${recently === 0 ? 'none' : COUNT.format(recently)} in 15 min; <a href=${`#plants?since=${day}&outcome=${outcome}`}>show</a>`;
  return { title, statistic: count, note };
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
      : `99 of 100 are faster, half within ${numberText(sample?.('p50'))} ms`;
  return {
    title: 'Slowest responses',
    statistic: numberText(p99),
    unit: p99 === null ? undefined : 'ms',
    note,
  };
}

/**
 * The rejected requests of 15 minutes. An error of the service, with status 5xx, has a color.
 *
 * @param {Recent} recent
 * @param {number} newest
 * @param {ReadonlySet<string>} errors
 * @returns {Statistic}
 */
function rejectedStatistic(recent, newest, errors) {
  const names = [...errors];
  const ofService = names.filter(name => name.startsWith('5'));
  const failed = Math.round(countOf(recent, ofService));
  const counts = names.map(name => ({ number: name.slice(0, 5), count: countOf(recent, [name]) }));
  const [most] = counts.toSorted((a, b) => b.count - a.count);
  const total = Math.round(counts.reduce((sum, { count }) => sum + count, 0));
  const note =
    total === 0 || most === undefined
      ? 'nothing was wrong'
      : html`${failed > 0 && `${COUNT.format(failed)} by a fault of the service; `}mostly:${' '}
          <a href=${`#rejected?filter=${most.number}`}>${ERROR_WORDS[most.number]?.words ?? most.number}</a>`;
  const isFailing = countOf(present(recent, newest), ofService) > 0;
  const state = isFailing ? 'damaged' : failed > 0 ? 'warning' : undefined;
  return { title: 'Rejected', statistic: COUNT.format(total), unit: 'in 15 min', note, state };
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
