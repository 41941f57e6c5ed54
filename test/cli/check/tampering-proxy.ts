import { once } from 'node:events';
import { createServer, request as httpRequest, type IncomingMessage, type ServerResponse } from 'node:http';
import { buffer } from 'node:stream/consumers';
import { type LoopbackServer, listen } from '../../harness/loopback-server.ts';

/** A request or a response that passes through the proxy. */
export interface Message {
  /** Alternating names and values. */
  rawHeaders: string[];
  body: Buffer;
}

/** @param status of a response; 0 for a request */
export type Alteration = (message: Message, status: number) => Message;

/** The changes that a tampering proxy makes to messages. */
export interface Alterations {
  /** Changes the request target. */
  target?(target: string): string;
  request?: Alteration;
  response?: Alteration;
}

/** A larger body is not forwarded: the service rejects it by its Content-Length. */
const BUFFERED_BODY_BYTES_MAX = 1024 * 1024;

/**
 * A proxy for a real service that breaks one thing, as real proxies and frameworks do.
 *
 * @param serviceUrl base address of the service
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

/** Sets an existing Content-Length to the length of the body. */
function withLength(message: Message): Message {
  return setField('content-length', String(message.body.length))(message, 0);
}

/** Replaces the value of every field with this name. @param value undefined removes the field */
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

/** Changes only the responses with this status. */
export function onStatus(wanted: number, alter: Alteration): Alteration {
  return (message, status) => (status === wanted ? alter(message, status) : message);
}

/** Changes a body that is a JSON object. Any other body stays unchanged. */
export function mapJson(change: (value: Record<string, unknown>) => object): Alteration {
  return message => {
    try {
      // Invalid UTF-8 must not be replaced, so it ends in the catch clause.
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
