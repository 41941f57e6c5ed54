import { visible } from '../../formats/visible-text.ts';

/** Levels of pino that a person must notice. The level of other lines is not shown. */
const LEVELS: Partial<Record<number, string>> = { 40: 'WARNING: ', 50: 'ERROR: ', 60: 'ERROR: ' };
const TIME = new Intl.DateTimeFormat('en-GB', { timeStyle: 'medium' });

/** Writes a line of the log, which is a JSON object, as a text for a person at a terminal. */
export function readableLine(line: string): string {
  const { level, time, msg = '', err, ...others } = JSON.parse(line);
  const members = Object.entries(others).map(([name, value]) => ` ${name}=${valueText(value)}`);
  const text = `${TIME.format(new Date(time))} ${LEVELS[level] ?? ''}${msg}${members.join('')}`;
  const cause = String(err?.stack ?? err?.message ?? '').split('\n');
  const lines = [text, ...cause.filter(each => each !== '').map(each => `  ${each.trim()}`)];
  return lines.map(each => `${visible(each)}\n`).join('');
}

function valueText(value: unknown): string {
  if (typeof value !== 'object' || value === null) return String(value);
  // An address of Node.
  if ('address' in value && 'port' in value) return `${value.address}:${value.port}`;
  return JSON.stringify(value);
}
