// Requests to the service, and what the page does when they fail.
import { useEffect, useState } from './preact.js';

const RESPONSE_TIMEOUT_MS = 20_000;
const RETRY_INTERVAL_MS = 2_000;

/**
 * The app sets this listener. Only `useLoad` reports a lost connection, because it tries again.
 *
 * @typedef {'connected' | 'lost' | 'signed out'} Connection
 * @type {{ onChange: (connection: Connection) => void }}
 */
export const connection = { onChange: () => {} };

/** Of the half of the secret that is in no cookie. A proxy may serve several consoles, by path. */
const SECRET_KEY = `plant_store_console ${location.pathname}`;

/** @param {string} code */
export async function signIn(code) {
  const { secret } = await request('session', 'POST', { code });
  localStorage.setItem(SECRET_KEY, secret);
}

export async function signOut() {
  await request('session', 'DELETE');
  localStorage.removeItem(SECRET_KEY);
}

/** A response with an error, or no response (status 0). The message is for the user. */
export class RequestError extends Error {
  /**
   * @param {number} status
   * @param {string} message
   */
  constructor(status, message) {
    super(message);
    this.status = status;
  }
}

/** Reads it each time, as another tab may have signed in or out. */
function storedSecret() {
  try {
    return localStorage.getItem(SECRET_KEY) ?? '';
  } catch {
    throw new RequestError(403, 'this browser lets the page store nothing; allow its cookies and site data');
  }
}

/**
 * Sends a request. Its address is relative to the page, because a proxy may add a path before it.
 *
 * @param {string} path below `api/`
 * @param {string} [method]
 * @param {unknown} [body] is sent as JSON
 * @param {number} [timeoutMs]
 * @returns {Promise<any>} the body of the response, if it has one: a Blob, or the value of JSON
 * @throws {RequestError}
 */
export async function request(path, method = 'GET', body = undefined, timeoutMs = RESPONSE_TIMEOUT_MS) {
  const secret = storedSecret();
  let response;
  let content;
  try {
    response = await fetch(`api/${path}`, {
      method,
      headers: { 'Content-Type': 'application/json', 'Plant-Store-Console': secret },
      body: JSON.stringify(body),
      redirect: 'error',
      signal: AbortSignal.timeout(timeoutMs),
    });
    if (response.headers.has('Content-Disposition')) content = await response.blob();
    else if (response.status !== 204) content = await response.json();
  } catch {
    // A proxy without a running service may send a page of its own, which is not JSON.
    throw new RequestError(0, 'no response from the service; try again');
  }
  if (response.status === 401) connection.onChange('signed out');
  if (!response.ok) throw new RequestError(response.status, content.message);
  return content;
}

/**
 * Loads content, once or repeatedly while the page is visible. Tries again while there is no
 * response.
 *
 * @param {() => Promise<any>} load to load something else, give the component another key
 * @param {number} [intervalMs]
 * @returns {{ content: any, error: RequestError | undefined, repeat: () => void }} the content of
 *   the last success, and the error of the last load
 */
export function useLoad(load, intervalMs) {
  const [loaded, setLoaded] = useState({ content: undefined, error: undefined });
  const [count, setCount] = useState(0);
  useEffect(() => {
    let isCurrent = true;
    const run = async () => {
      while (isCurrent) {
        const result = await load().then(
          content => ({ content, error: undefined }),
          error => ({ error }),
        );
        if (!isCurrent) return;
        const status = result.error?.status;
        // The app shows a lost connection and the end of a session.
        if (status === 0 || status === 401) result.error = undefined;
        setLoaded(previous => ({ ...previous, ...result }));
        if (status !== 401) connection.onChange(status === 0 ? 'lost' : 'connected');
        const delay = status === 0 ? RETRY_INTERVAL_MS : intervalMs;
        if (delay === undefined) return;
        do await new Promise(resolve => setTimeout(resolve, delay));
        while (document.hidden && isCurrent);
      }
    };
    void run();
    return () => {
      isCurrent = false;
    };
  }, [count]);
  return { ...loaded, repeat: () => setCount(previous => previous + 1) };
}

/**
 * The state of an action that the user starts.
 *
 * @param {RequestError} [initialError]
 * @returns {{ error: RequestError | undefined, isRunning: boolean,
 *   run: (action: () => Promise<void>) => Promise<void> }} the error of the last action
 */
export function useAction(initialError) {
  const [state, setState] = useState({ error: initialError, isRunning: false });
  const run = async (/** @type {() => Promise<void>} */ action) => {
    setState(({ error }) => ({ error, isRunning: true }));
    const error = await action().catch(cause => cause);
    setState({ error, isRunning: false });
  };
  return { ...state, run };
}
