import { once } from 'node:events';
import { createServer, request as httpRequest, type IncomingMessage, type ServerResponse } from 'node:http';
import { buffer } from 'node:stream/consumers';
import { type LoopbackServer, listen } from '../../harness/loopback-server.ts';

/** A request or a response on its way through the proxy. */
export interface Message {
  /** Names and values in turn. */
  rawHeaders: string[];
  body: Buffer;
}

/** @param status of a response; 0 for a request */
export type Alteration = (message: Message, status: number) => Message;

/** What a tampering proxy does to the messages it passes on. */
export interface Alterations {
  /** Changes the request target. */
  target?(target: string): string;
  request?: Alteration;
  response?: Alteration;
}

/** Bodies that say they are longer are passed on without one: the service rejects them by their header section. */
const BUFFERED_BODY_BYTES_MAX = 1024 * 1024;

/**
 * A server in front of a real service that breaks one thing, as proxies and frameworks in the field do.
 *
 * @param serviceUrl base address of the service behind it
 */
export async function startTamperingProxy(
  serviceUrl: string,
  alterations: Alterations,
): Promise<LoopbackServer> {
  const server = createServer({ requireHostHeader: false, maxHeaderSize: 64 * 1024 }, (request, response) => {
    passOn(request, response, serviceUrl, alterations).catch(() => response.destroy());
  });
  return await listen(server);
}

async function passOn(
  request: IncomingMessage,
  response: ServerResponse,
  serviceUrl: string,
  {
    target = each => each,
    request: alterRequest = each => each,
    response: tamperWithResponse = each => each,
  }: Alterations,
): Promise<void> {
  const isLong = Number(request.headers['content-length'] ?? 0) > BUFFERED_BODY_BYTES_MAX;
  const sent = isLong
    ? { rawHeaders: request.rawHeaders, body: Buffer.alloc(0) }
    : withLength(alterRequest({ rawHeaders: request.rawHeaders, body: await buffer(request) }, 0));
  const behind = httpRequest(serviceUrl, {
    method: request.method!,
    path: target(request.url!),
    headers: sent.rawHeaders,
    agent: false,
  });
  behind.end(sent.body);
  const [received] = (await once(behind, 'response')) as [IncomingMessage];
  const status = received.statusCode!;
  const original = { rawHeaders: received.rawHeaders, body: await buffer(received) };
  received.socket.destroy();
  const { rawHeaders, body } = withLength(tamperWithResponse(original, status));
  response.writeHead(status, rawHeaders);
  response.end(request.method === 'HEAD' ? undefined : body);
}

/** Content-Length as the body now is, where there was one. */
function withLength(message: Message): Message {
  return setField('content-length', String(message.body.length))(message, 0);
}

/** Replaces the value of every field of a name; undefined takes the field out. */
export function setField(name: string, value: string | undefined): Alteration {
  return message => {
    const rawHeaders: string[] = [];
    for (let index = 0; index < message.rawHeaders.length; index += 2) {
      const [field, old] = message.rawHeaders.slice(index, index + 2) as [string, string];
      const stored = field.toLowerCase() === name ? value : old;
      if (stored !== undefined) rawHeaders.push(field, stored);
    }
    return { ...message, rawHeaders };
  };
}

/** Changes the responses of one status alone. */
export function onStatus(wanted: number, alter: Alteration): Alteration {
  return (message, status) => (status === wanted ? alter(message, status) : message);
}

/** Reads a body as a JSON object and writes what is made of it; any other body stays as it is. */
export function mapJson(change: (value: Record<string, unknown>) => object): Alteration {
  return message => {
    try {
      // What is not UTF-8 must stay so on its way.
      const text = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(message.body);
      const value: unknown = JSON.parse(text);
      const isObject = typeof value === 'object' && value !== null && !Array.isArray(value);
      if (!isObject) return message;
      return { ...message, body: Buffer.from(JSON.stringify(change(value as Record<string, unknown>))) };
    } catch {
      return message;
    }
  };
}
