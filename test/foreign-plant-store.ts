import { once } from 'node:events';
import * as http from 'node:http';
import type { AddressInfo } from 'node:net';

/**
 * A plant store as somebody else might write it who has read the interface and nothing more: it keeps every sentence of
 * it, and answers 400 to all else. It shares no code with this one.
 */
export class ForeignPlantStore {
  /** The ids that arrived, as they were written, in bodies that are JSON objects. */
  readonly ids: string[] = [];
  requests = 0;
  private readonly plants = new Set<bigint>();
  private readonly server: http.Server;

  private readonly token: string;
  private readonly writeOnce: boolean;

  private constructor(token: string, writeOnce: boolean) {
    this.token = token;
    this.writeOnce = writeOnce;
    this.server = http.createServer((request, response) => void this.serve(request, response));
  }

  /** @param writeOnce whether an id is refused that is there already, be the plant the same or not */
  static async listen(token: string, { writeOnce = false } = {}): Promise<ForeignPlantStore> {
    const store = new ForeignPlantStore(token, writeOnce);
    await once(store.server.listen(0, '127.0.0.1'), 'listening');
    return store;
  }

  get url(): string {
    return `http://127.0.0.1:${(this.server.address() as AddressInfo).port}`;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.server.closeAllConnections();
    this.server.close();
    await once(this.server, 'close');
  }

  private async serve(request: http.IncomingMessage, response: http.ServerResponse): Promise<void> {
    this.requests++;
    let text = '';
    for await (const piece of request.setEncoding('utf8')) text += piece;
    const plant =
      request.method === 'POST' &&
      request.url === '/plants' &&
      request.headers.authorization === `Bearer ${this.token}` &&
      this.create(text);
    response.writeHead(plant ? 200 : 400, { 'content-type': 'application/json' });
    response.end(JSON.stringify(plant || { error: 1, message: 'No.' }));
  }

  private create(text: string): { name: string; tag?: string } | undefined {
    let plant: { id?: unknown; name?: unknown; tag?: unknown };
    try {
      plant = JSON.parse(text, this.keepDigits);
    } catch {
      return undefined;
    }
    const { id, name, tag } = plant;
    const sound =
      typeof id === 'bigint' &&
      id === BigInt.asIntN(64, id) &&
      typeof name === 'string' &&
      !(this.writeOnce && this.plants.has(id)) &&
      ['undefined', 'string'].includes(typeof tag);
    if (!sound) return undefined;
    this.plants.add(id);
    return { name, tag: tag as string };
  }

  private readonly keepDigits = (
    key: string,
    value: unknown,
    { source = '' }: { source?: string } = {},
  ): unknown => {
    if (key !== 'id' || typeof value !== 'number') return value;
    this.ids.push(source);
    return /^-?\d+$/.test(source) ? BigInt(source) : value;
  };
}
