import type { Duplex } from 'node:stream';
import pg from 'pg';

/** The members of pg's own connection that its types lack. */
interface MessageWriter {
  stream: Duplex;
  sendCopyFromChunk(chunk: Buffer): void;
  endCopyFrom(): void;
}

/**
 * Runs a simple query that begins with COPY FROM STDIN, and sends its rows at once. A library that
 * waits for the server to ask for them would need a second round trip. If the COPY fails early, the
 * server ignores the other rows
 * (https://www.postgresql.org/docs/current/protocol-flow.html#PROTOCOL-COPY).
 *
 * @returns the rows of the last statement in the text
 */
export function copyIn<Row extends unknown[]>(
  client: pg.Client,
  options: pg.QueryArrayConfig,
  rows: string,
): Promise<Row[]> {
  const { promise, resolve, reject } = Promise.withResolvers<Row[]>();
  const query = new pg.Query<Row>(options, undefined, (error, results) => {
    if (error) reject(error);
    // Several statements in one text have a list of results.
    else resolve((results as unknown as pg.QueryArrayResult<Row>[]).at(-1)!.rows);
  });
  const submit = query.submit.bind(query);
  client.query(
    Object.assign(query, {
      submit: (connection: pg.Connection) => {
        const writer = connection as unknown as MessageWriter;
        writer.stream.cork();
        submit(connection);
        writer.sendCopyFromChunk(Buffer.from(rows));
        writer.endCopyFrom();
        writer.stream.uncork();
      },
      // By default, pg ends a COPY here.
      handleCopyInResponse: () => {},
    }),
  );
  return promise;
}
