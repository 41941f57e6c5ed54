import assert from 'node:assert/strict';
import { after, before, mock, test } from 'node:test';
import type { ReceivedRequest } from '../../../src/core/request.ts';
import { RejectedRequests } from '../../../src/operate/console/rejected-requests.ts';

const HOUR_MS = 3_600_000;

before(() => mock.timers.enable({ apis: ['setTimeout', 'Date'] }));
after(() => mock.reset());

test('recorded bodies are forgotten after an hour, and a second start of the recording begins a new hour', () => {
  using rejected = new RejectedRequests();
  const received = {
    body: '{',
    headers: { fields: [], framing: { kind: 'none' } },
  } as unknown as ReceivedRequest;
  const bodies = () => {
    const { groups, bodiesUntil } = rejected.list(String, () => false);
    const examples = groups.flatMap(({ key }) => rejected.examples(key, String, () => false).examples);
    return { isOn: bodiesUntil !== null, bodies: examples.map(({ body }) => body) };
  };
  rejected.recordBodies(true);
  rejected.responded({ result: 'notJson', message: '' } as never, received, 1, () => undefined);
  mock.timers.tick(HOUR_MS - 1);
  rejected.recordBodies(true);
  mock.timers.tick(HOUR_MS - 1);
  assert.deepEqual(bodies(), { isOn: true, bodies: ['{'] });
  mock.timers.tick(1);
  assert.deepEqual(bodies(), { isOn: false, bodies: [null] });
});
