import assert from 'node:assert/strict';
import { sendBody } from './program.ts';
import type { RunningService } from './running-service.ts';

export interface Operator {
  service: Pick<RunningService, 'opsUrl'>;
  cookie?: string | undefined;
  /** The half of the session's secret that is not in the cookie. */
  secret?: string | undefined;
}

export function urlOf({ service }: Operator, path: string): string {
  return `${service.opsUrl}/console/api/${path}`;
}

/** The header fields of the page. */
export function headersOf({ service, cookie = '', secret = '' }: Operator): Record<string, string> {
  return { Origin: service.opsUrl, Cookie: cookie, 'Plant-Store-Console': secret };
}

/** Sends a request to the console, as its page does. */
export function call(
  operator: Operator,
  method: string,
  path: string,
  body?: object,
  headers: Record<string, string> = {},
): Promise<Response> {
  return fetch(urlOf(operator, path), {
    method,
    headers: { ...headersOf(operator), ...headers },
    ...(body !== undefined && { body: JSON.stringify(body) }),
  });
}

/** Sends a body. @param token by default that of the service @returns the status */
export async function sendText(
  service: RunningService,
  body: string | Uint8Array<ArrayBuffer>,
  token = service.token,
): Promise<number> {
  return (await sendBody(service.url, token, body)).status;
}

/** Exchanges a code for a session. @param code without it, a new one of the service */
export async function signIn(
  service: Pick<RunningService, 'opsUrl'> & Partial<RunningService>,
  code?: string,
): Promise<Operator> {
  const response = await call({ service }, 'POST', 'session', {
    code: code ?? (await service.makeConsoleCode!()),
  });
  assert.equal(response.status, 200);
  const [cookie = ''] = response.headers.get('Set-Cookie')!.split(';');
  return { service, cookie, ...((await response.json()) as { secret: string }) };
}

/** A value of JSON. Tests check what it contains. */
export type Json = ReturnType<typeof JSON.parse>;

/** Reads what a screen of the console shows. */
export async function json(operator: Operator, path: string): Promise<Json> {
  const response = await call(operator, 'GET', path);
  assert.equal(response.status, 200, await response.clone().text());
  return await response.json();
}
