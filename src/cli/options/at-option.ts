import { InvalidArgumentError, Option } from 'commander';

/** @returns an option whose value is in milliseconds since 1970 UTC */
export function atOption(): Option {
  return new Option(
    '--at <time>',
    'ignore revisions recorded after this time: ISO 8601 with zone, such as 2026-05-01T00:00Z',
  ).argParser(parseTime);
}

function parseTime(text: string): number {
  try {
    return Temporal.Instant.from(text).epochMilliseconds;
  } catch {
    throw new InvalidArgumentError(
      'It must be a date, a time and a zone in ISO 8601, such as 2026-05-01T00:00Z or 2026-05-01T02:00+02:00.',
    );
  }
}
