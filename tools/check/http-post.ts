import http, { type Agent, type ClientRequest, type IncomingMessage } from 'node:http';
import https from 'node:https';

export interface PostOptions {
  headers: Record<string, string>;
  /** Each part becomes a chunk if the headers say `Transfer-Encoding: chunked`. */
  bodyParts: readonly Buffer[];
  /** A longer body of the response is cut. */
  responseBytesMax: number;
  signal: AbortSignal;
  agent: Agent;
}

export interface PostResponse {
  httpVersion: string;
  status: number;
  statusText: string;
  headers: Headers;
  body: Buffer;
  /** Whether the request was sent on a connection that an earlier request had opened. */
  isOnUsedConnection: boolean;
  /**
   * Whether the response says that the connection ends with it, by a header field, or because nothing
   * else ends its body (RFC 9112 section 9.3).
   */
  endsConnection: boolean;
}

/**
 * Makes an agent with one connection at a time. Each request has a new one, unless it stays open.
 * The agent takes the settings of Node's own one, such as the proxy of `NODE_USE_ENV_PROXY`.
 */
export function agentOf({ protocol }: URL, keepAlive: boolean): Agent {
  const { Agent, globalAgent } = protocol === 'https:' ? https : http;
  // Only the types of https name the options, which both have.
  const { options } = globalAgent as https.Agent;
  return new Agent({ ...options, keepAlive, maxSockets: 1 });
}

/**
 * Sends a POST request, and resolves when the response is complete. It follows no redirect.
 *
 * `fetch` would show neither the connection of a request nor the HTTP version of a response.
 */
export function post(
  url: URL,
  { bodyParts, responseBytesMax, ...options }: PostOptions,
): Promise<PostResponse> {
  const { request: open } = url.protocol === 'https:' ? https : http;
  return new Promise((resolve, reject) => {
    const request = open(url, { ...options, method: 'POST' });
    request.on('error', reject);
    // Without this listener, a status 101 would end the connection without an event.
    request.on('upgrade', (_, socket) => {
      socket.destroy();
      reject(new Error('101 Switching Protocols'));
    });
    // From here on, errors only count if the response is incomplete.
    request.on('response', response => resolve(readResponse(request, response, responseBytesMax)));
    for (const part of bodyParts) request.write(part);
    request.end();
  });
}

async function readResponse(
  { reusedSocket }: ClientRequest,
  response: IncomingMessage,
  bytesMax: number,
): Promise<PostResponse> {
  const { statusCode = 0, statusMessage = '', httpVersion, rawHeaders } = response;
  const headers = new Headers();
  for (let index = 0; index < rawHeaders.length; index += 2)
    headers.append(rawHeaders[index]!, rawHeaders[index + 1]!);
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of response) {
    chunks.push(chunk);
    bytes += chunk.length;
    if (bytes > bytesMax) break;
  }
  const hasLength = headers.has('content-length') || headers.has('transfer-encoding');
  return {
    httpVersion,
    status: statusCode,
    statusText: statusMessage,
    headers,
    body: Buffer.concat(chunks),
    isOnUsedConnection: reusedSocket,
    endsConnection: httpVersion === '1.0' || !hasLength || /\bclose\b/i.test(headers.get('connection') ?? ''),
  };
}
