import assert from 'node:assert/strict';

export interface Scrape {
  text: string;
  types: Map<string, string>;
  /** The values by name and labels, for example `up{job="a"}`. */
  values: Map<string, number>;
}

export async function scrape(opsUrl: string): Promise<Scrape> {
  const response = await fetch(`${opsUrl}/metrics`);
  assert.equal(response.status, 200);
  assert.equal(response.headers.get('content-type'), 'text/plain; version=0.0.4; charset=utf-8');
  const text = await response.text();
  const types = new Map<string, string>();
  const values = new Map<string, number>();
  for (const line of text.split('\n').filter(each => each !== '')) {
    const [, declared, type] = /^# TYPE (\w+) (counter|gauge|histogram)$/.exec(line) ?? [];
    if (declared !== undefined) {
      assert.ok(!types.has(declared), `declared twice: ${line}`);
      types.set(declared, type!);
    } else if (!line.startsWith('# HELP ')) {
      const [, series = '', value] = /^(\w+(?:\{.*\})?) (\S+)$/.exec(line) ?? [];
      assert.ok(series !== '' && !values.has(series), `not a series, or a repeated one: ${line}`);
      // prom-client writes `Nan` while a mean is unknown.
      assert.ok(!Number.isNaN(Number(value)) || value === 'Nan', `not a number: ${line}`);
      values.set(series, Number(value));
    }
  }
  return { text, types, values };
}

/** @returns the number of responses by result, without zeros */
export function responsesIn({ values }: Scrape): Record<string, number> {
  const given = [...values].flatMap(([series, count]) => {
    const result = /^plant_store_requests_total\{.*result="(\w+)"\}$/.exec(series)?.[1];
    return result === undefined || count === 0 ? [] : [[result, count] as const];
  });
  return Object.fromEntries(given);
}
