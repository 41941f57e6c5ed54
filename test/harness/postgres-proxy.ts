import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Server, type Socket } from 'node:net';
import { until } from './until.ts';

/** SSLRequest, https://www.postgresql.org/docs/current/protocol-message-formats.html */
const SSL_REQUEST = 80_877_103;

/** The message ReadyForQuery without its last byte, which is the state of the transaction. */
const READY_FOR_QUERY = Buffer.from([0x5a, 0, 0, 0, 5]);

/** CommandComplete, and ReadyForQuery outside a transaction. */
const NO_ROWS = Buffer.concat([
  Buffer.from('C\0\0\0\x0dSELECT 0\0', 'latin1'),
  READY_FOR_QUERY,
  Buffer.from('I'),
]);

/** Statements that write or look up plants. */
export const PLANT_INSERT = /^(?:INSERT INTO|COPY) plant_revision\b/;
export const PLANT_LOOKUP = /^SELECT\b.*\bplant_revision\b/s;

/** A statement that the proxy has not passed to the server. Its client waits. */
export interface HeldStatement {
  /** Passes the statement to the server. Settles when the response is here, in the proxy. */
  deliver(): Promise<void>;
  /** Passes the response to the client. After it the connection works as before. */
  respond(): void;
  /** Responds to a simple Query as the server does to one that selects no rows. */
  respondWithoutRows(): void;
  /** Disconnects the client only, so that the statement can still be delivered to the server. */
  cut(): void;
}

interface Expected {
  pattern: RegExp;
  arrived?: HeldStatement;
}

/** A proxy for PostgreSQL that can cut or stall connections, and hold statements and responses. */
export class PostgresProxy implements AsyncDisposable {
  readonly #server: Server;
  readonly #targetPort: number;
  readonly #passages = new Set<Passage>();
  readonly #expected: Expected[] = [];
  #stalled = false;
  openedConnections = 0;
  /** The texts of all statements that came, in their order. */
  readonly statements: string[] = [];

  private constructor(server: Server, targetPort: number) {
    this.#server = server;
    this.#targetPort = targetPort;
    server.on('connection', client => this.#open(client));
  }

  static async start(targetPort: number): Promise<PostgresProxy> {
    const server = createServer().listen(0, '127.0.0.1');
    await once(server, 'listening');
    return new PostgresProxy(server, targetPort);
  }

  url(database: string): string {
    const url = new URL(database);
    url.port = String((this.#server.address() as AddressInfo).port);
    return url.href;
  }

  /** Cuts all open connections. New ones pass. */
  cutAll(): void {
    for (const passage of this.#passages) passage.close();
  }

  /** From now on connections are accepted and stay open, but no data passes. */
  stall(): void {
    this.#stalled = true;
    for (const passage of this.#passages) passage.pause();
  }

  /**
   * Ends the stall. Data sent during the stall arrives, also from clients that have disconnected.
   */
  passAgain(): void {
    this.#stalled = false;
    for (const passage of this.#passages) passage.resume();
  }

  /** Holds the next statement that matches. With several calls, the first one gets it. */
  async holdNext(pattern: RegExp): Promise<HeldStatement> {
    const expected: Expected = { pattern };
    this.#expected.push(expected);
    await until(`a statement came: ${pattern}`, () => expected.arrived !== undefined);
    return expected.arrived!;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#server.close();
    this.cutAll();
    await once(this.#server, 'close');
  }

  #open(client: Socket): void {
    this.openedConnections++;
    const server = connect(this.#targetPort, '127.0.0.1');
    const passage = new Passage(client, server, this.#expected, this.statements);
    this.#passages.add(passage);
    server.on('close', () => this.#passages.delete(passage));
    if (this.#stalled) passage.pause();
  }
}

/** A connection of a client, with its connection to the server. */
class Passage {
  readonly #client: Socket;
  readonly #server: Socket;
  readonly #expected: Expected[];
  readonly #statements: string[];
  readonly #texts = new Map<string, string>();
  #fromClient = Buffer.alloc(0);
  #isStarted = false;
  /** The messages of the arriving statement, up to its Sync. */
  #arriving: Buffer[] = [];
  #text = '';
  /** The response to the held statement; undefined if none is held. */
  #withheld: Buffer[] | undefined;
  #ready: (() => void) | undefined;

  constructor(client: Socket, server: Socket, expected: Expected[], statements: string[]) {
    this.#client = client;
    this.#server = server;
    this.#expected = expected;
    this.#statements = statements;
    client.on('data', (data: Buffer) => this.#readClient(data));
    server.on('data', (data: Buffer) => this.#readServer(data));
    // The connection to the server closes with the client, unless a statement is held.
    client.on('close', () => this.#withheld ?? server.end());
    server.on('close', () => client.destroy());
    for (const socket of [client, server]) socket.setNoDelay().on('error', () => {});
  }

  pause(): void {
    this.#client.pause();
    this.#server.pause();
  }

  resume(): void {
    this.#client.resume();
    this.#server.resume();
  }

  close(): void {
    this.#client.destroy();
    this.#server.destroy();
  }

  #readClient(data: Buffer): void {
    this.#fromClient = Buffer.concat([this.#fromClient, data]);
    for (;;) {
      const typeLength = this.#isStarted ? 1 : 0;
      if (this.#fromClient.length < typeLength + 4) return;
      const length = typeLength + this.#fromClient.readUInt32BE(typeLength);
      if (this.#fromClient.length < length) return;
      const message = this.#fromClient.subarray(0, length);
      this.#fromClient = this.#fromClient.subarray(length);
      if (!this.#isStarted) {
        // The test servers reject TLS, and the client continues in plain text.
        this.#isStarted = message.readUInt32BE(4) !== SSL_REQUEST;
        this.#server.write(message);
        continue;
      }
      this.#noteText(message);
      this.#arriving.push(message);
      // Everything that pg sends ends with Sync, a simple Query, a password, Terminate, or CopyDone.
      const ends = this.#text.startsWith('COPY') ? 'c' : 'SQpX';
      if (ends.includes(String.fromCharCode(message[0]!))) this.#passOrHold();
    }
  }

  /**
   * Parse has the name and the text of a statement. Bind has the names of a portal and of the
   * statement. Query has only the text.
   */
  #noteText(message: Buffer): void {
    const type = String.fromCharCode(message[0]!);
    const [first = '', second = ''] = message.toString('latin1', 5).split('\0', 2);
    if (type === 'P') this.#texts.set(first, second);
    else if (type === 'B') this.#text = this.#texts.get(second) ?? '';
    else if (type === 'Q') this.#text = first;
  }

  #passOrHold(): void {
    const bytes = Buffer.concat(this.#arriving.splice(0));
    this.#statements.push(this.#text);
    const index = this.#expected.findIndex(({ pattern }) => pattern.test(this.#text));
    this.#text = '';
    if (index < 0) {
      this.#server.write(bytes);
      return;
    }
    this.#withheld = [];
    const [expected] = this.#expected.splice(index, 1);
    expected!.arrived = {
      deliver: async () => {
        const { promise, resolve } = Promise.withResolvers<void>();
        this.#ready = resolve;
        this.#server.write(bytes);
        await promise;
        if (this.#client.destroyed) this.#server.end();
      },
      respond: () => {
        for (const data of this.#withheld ?? []) this.#client.write(data);
        this.#withheld = undefined;
      },
      respondWithoutRows: () => {
        this.#withheld = undefined;
        this.#client.write(NO_ROWS);
      },
      cut: () => this.#client.destroy(),
    };
  }

  #readServer(data: Buffer): void {
    if (this.#withheld === undefined) {
      this.#client.write(data);
      return;
    }
    this.#withheld.push(data);
    // This message ends the response. After it nothing is in flight.
    const end = Buffer.concat(this.#withheld).subarray(-READY_FOR_QUERY.length - 1, -1);
    if (end.equals(READY_FOR_QUERY)) this.#ready?.();
  }
}
