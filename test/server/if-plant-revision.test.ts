import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import type { RepeatedIdRule } from '../../src/core/commit/plant-commits.ts';
import { REVISION_MAX } from '../../src/core/contract/limits.ts';
import {
  ask,
  chunked,
  RawConnection,
  type RawResponse,
  type RequestParts,
  requestBytes,
} from '../harness/raw-connection.ts';
import { assertErrorResponse } from '../harness/response-assertions.ts';
import { type RunningService, startTestService } from '../harness/running-service.ts';
import { enginesUnderTest } from '../harness/store-under-test.ts';
import { changeRows, storedRevisions } from '../harness/stored-revisions.ts';

const engines = await enginesUnderTest();

type Condition = number | string | string[] | undefined;

function plant(id: number, name: string, condition?: Condition) {
  const value = typeof condition === 'number' ? String(condition) : (condition ?? null);
  return { body: JSON.stringify({ id, name }), headers: { 'If-Plant-Revision': value } };
}

/** Such as `created 1` or `41201 2`: the outcome or the error, and Plant-Revision. */
function shown({ status, headers, body }: RawResponse): string {
  const outcome = status === 200 ? headers.get('plant-outcome') : JSON.parse(body).error;
  return [outcome, headers.get('plant-revision') ?? []].flat().join(' ');
}

/** A plain create; one in a single chunk; and two forms that are no plain creates. */
const FORMS: Record<string, (parts: Required<Pick<RequestParts, 'body' | 'headers'>>) => RequestParts> = {
  'with a length': parts => parts,
  'in one chunk': ({ body, headers }) => {
    const other = chunked(String(body));
    return { ...other, headers: { ...headers, ...other.headers } };
  },
  'in two chunks': ({ body, headers }) => ({
    headers: { ...headers, ...chunked('').headers },
    body: `1\r\n{\r\n${(String(body).length - 1).toString(16)}\r\n${String(body).slice(1)}\r\n0\r\n\r\n`,
  }),
  'with a long body': ({ body, headers }) => ({ headers, body: `${body}${' '.repeat(20_000)}` }),
};

/** The response to `oak` under this condition: for a new id, after `elm`, `oak`, and after `oak`, `elm`. */
const RULES: [condition: Condition, ofNew: string, ofSame: string, ofOther: string][] = [
  [undefined, 'created 1', 'unchanged 2', 'revised 3'],
  [0, 'created 1', 'unchanged 2', '41201 2'],
  [' \t0 ', 'created 1', 'unchanged 2', '41201 2'],
  [1, '41201 0', 'unchanged 2', '41201 2'],
  [2, '41201 0', 'unchanged 2', 'revised 3'],
  [3, '41201 0', 'unchanged 2', '41201 2'],
  [REVISION_MAX, '41201 0', 'unchanged 2', '41201 2'],
];

const INVALID: Condition[] = [
  ...['', '-1', '+1', '-0', '00', '01', '1.0', '1e3', '0x1', '١', '"1"', '*', 'one', '1 2', '1,2', '0, 0'],
  ...[String(REVISION_MAX + 1), '99999999999999999999', '9'.repeat(9_000)],
  ['0', '0'],
  ['1', ''],
];

async function start(database: string, repeatedIdRule: RepeatedIdRule = 'revise'): Promise<RunningService> {
  return await startTestService({ database, repeatedIdRule });
}

for (const under of engines)
  suite(`If-Plant-Revision on ${under.name}:`, () => {
    test('a plant is stored only under the right revision, and content that is stored is unchanged', async () => {
      await using service = await start(await under.newDatabase());
      const { token, address } = service;
      const rejected: [id: number, revisions: number, text: string][] = [];
      let id = 0;
      for (const [form, formed] of Object.entries(FORMS))
        for (const [condition, ...expected] of RULES) {
          const [unknown, same, other] = [++id, ++id, ++id];
          for (const [each, name] of [
            [same, 'elm'],
            [same, 'oak'],
            [other, 'oak'],
            [other, 'elm'],
          ] as const)
            await ask(address.port, token, plant(each, name));
          for (const [index, each] of [unknown, same, other].entries()) {
            const response = await ask(address.port, token, formed(plant(each, 'oak', condition)));
            assert.equal(shown(response), expected[index], `${form}, condition ${condition}`);
            assert.equal(response.headers.get('plant-id'), String(each));
            if (response.status !== 412) continue;
            assertErrorResponse(response, 41201);
            const { message } = JSON.parse(response.body);
            const text =
              each === unknown
                ? `there is no plant ${each}, so it has no revision ${condition}`
                : `plant ${each} has revision 2, not ${Number(condition)}`;
            assert.equal(message, `${text}; nothing was stored`);
            rejected.push([each, index && 2, `${form}, condition ${condition}`]);
          }
        }
      const stored = Map.groupBy(await storedRevisions(service.database), each => each.plant.id);
      assert.ok(rejected.length > 0);
      for (const [each, revisions, text] of rejected)
        assert.equal(stored.get(BigInt(each))?.length ?? 0, revisions, text);
    });

    test('the requests of a connection are decided in their order, also in one write', async () => {
      await using service = await start(await under.newDatabase());
      using connection = await RawConnection.open(service.address.port);
      const requests: [id: number, name: string, condition: Condition, expected: string][] = [
        [1, 'a', 0, 'created 1'],
        [1, 'b', 0, '41201 1'],
        [1, 'b', 1, 'revised 2'],
        [2, 'b', 1, '41201 0'],
        [2, 'b', undefined, 'created 1'],
        [1, 'c', 1, '41201 2'],
        [1, 'b', 5, 'unchanged 2'],
        [2, 'c', 'x', '40000'],
        [2, 'c', 1, 'revised 2'],
        [1, 'c', undefined, 'revised 3'],
        [1, 'c', 0, 'unchanged 3'],
        [3, 'c', 0, 'created 1'],
      ];
      connection.write(
        Buffer.concat(
          requests.map(([id, name, condition]) => requestBytes(service.token, plant(id, name, condition))),
        ),
      );
      for (const [index, [, , , expected]] of requests.entries())
        assert.equal(shown(await connection.response()), expected, `request ${index}`);
    });

    test('a plant whose latest revision is damaged gets 503 under any condition', async () => {
      const database = await under.newDatabase();
      await using service = await start(database);
      const send = async (condition: Condition) =>
        shown(await ask(service.address.port, service.token, plant(1, 'oak', condition)));
      assert.equal(await send(0), 'created 1');
      await changeRows(under, database, `UPDATE plant_revision SET name = 'oaks'`);
      for (const condition of [0, 1, 2]) assert.equal(await send(condition), '50304');
    });

    test('under the rule reject, a wrong revision is named first, and a right one does not replace', async () => {
      await using service = await start(await under.newDatabase(), 'reject');
      for (const [name, condition, expected] of [
        ['oak', 0, 'created 1'],
        ['elm', 0, '41201 1'],
        ['elm', 1, '40003'],
        ['elm', 2, '41201 1'],
        ['oak', 2, 'unchanged 1'],
      ] as const)
        assert.equal(
          shown(await ask(service.address.port, service.token, plant(1, name, condition))),
          expected,
        );
    });
  });

test('If-Plant-Revision with another value, or twice: 400, nothing is stored, and the connection stays open', async () => {
  await using service = await startTestService();
  using connection = await RawConnection.open(service.address.port);
  for (const [index, value] of INVALID.entries())
    for (const form of [FORMS['with a length']!, FORMS['in two chunks']!]) {
      connection.write(requestBytes(service.token, form(plant(index, 'elm', value))));
      const response = await connection.response();
      assertErrorResponse(response, 40000);
      assert.match(
        JSON.parse(response.body).message,
        /^send If-Plant-Revision at most once, .* from 1 to 2147483647, or 0/,
      );
      connection.write(requestBytes(service.token, plant(index, 'oak', 0)));
      const isStored = form === FORMS['in two chunks'];
      assert.equal(shown(await connection.response()), isStored ? 'unchanged 1' : 'created 1', String(value));
    }
});

test('of two instances that get different plants for one new id, exactly one stores its plant', async () => {
  const database = await engines[1].newDatabase();
  await using one = await start(database);
  await using two = await start(database);
  two.token = one.token;
  const connections = await Promise.all(
    [one, two, one, two].map(({ address }) => RawConnection.open(address.port)),
  );
  await ask(two.address.port, two.token);
  const winners = new Map<bigint, string>();
  for (let id = 100; id < 200; id++) {
    // The last one has the content of the first one.
    const names = ['oak', 'elm', 'ash', id % 2 === 0 ? 'oak' : 'fir'];
    const responses = await Promise.all(
      connections.map((connection, index) => {
        connection.write(requestBytes(one.token, plant(id, names[index]!, 0)));
        return connection.response();
      }),
    );
    const winner = responses.findIndex(({ headers }) => headers.get('plant-outcome') === 'created');
    for (const [index, response] of responses.entries()) {
      const loses = names[index] === names[winner] ? 'unchanged 1' : '41201 1';
      assert.equal(shown(response), index === winner ? 'created 1' : loses, `id ${id}`);
    }
    winners.set(BigInt(id), names[winner]!);
  }
  const stored = (await storedRevisions(database)).filter(({ plant }) => winners.has(plant.id));
  assert.deepEqual(
    stored.map(({ plant: { id, name } }) => [id, name]),
    [...winners],
  );
  for (const connection of connections) connection[Symbol.dispose]();
});
