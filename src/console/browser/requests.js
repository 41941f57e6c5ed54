// Requests to the service, and what the page does when they fail.
import { useEffect, useRef, useState } from './preact.js';

const RESPONSE_TIMEOUT_MS = 20_000;
const RETRY_INTERVAL_MS = 2_000;

/** @typedef {'connected' | 'lost' | 'signed out'} Connection */

/**
 * The app replaces this listener. Only requests that the page repeats report a lost connection, so
 * that the report also ends without the user.
 *
 * @type {{ onChange: (connection: Connection) => void }}
 */
export const connection = { onChange: () => {} };

/** A response with an error, or status 0: no response. The message is for the user. */
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

/**
 * The address is relative to the page, since a proxy may put a path in front of it.
 *
 * @param {string} path below `api/`
 * @param {string} [method]
 * @param {unknown} [body] is sent as JSON
 * @returns {Promise<any>} the body of the response, or undefined if it is empty
 * @throws {RequestError}
 */
export async function request(path, method = 'GET', body = undefined) {
  const { status, ok, text } = await exchange(path, method, body);
  if (status === 401) connection.onChange('signed out');
  if (ok && text === '') return undefined;
  const content = parse(text);
  // A gateway, whose server is not running, responds in its own words.
  if (content === undefined) throw new RequestError(0, `status ${status}, but not from the console`);
  if (!ok) throw new RequestError(status, content.message ?? `status ${status}`);
  return content;
}

/**
 * @param {string} path
 * @param {string} method
 * @param {unknown} body
 */
async function exchange(path, method, body) {
  try {
    const response = await fetch(`api/${path}`, {
      method,
      ...(body !== undefined && {
        headers: { 'Content-Type': 'application/json' },
        body: JSON.stringify(body),
      }),
      cache: 'no-store',
      redirect: 'error',
      signal: AbortSignal.timeout(RESPONSE_TIMEOUT_MS),
    });
    return { status: response.status, ok: response.ok, text: await response.text() };
  } catch {
    throw new RequestError(0, 'no response from the service; try again');
  }
}

/** @param {string} text */
function parse(text) {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/**
 * Calls an action now and then repeatedly while the page is visible. After a lost connection, it
 * also repeats an action without an interval until there is a response.
 *
 * @param {() => Promise<void>} action
 * @param {number | undefined} intervalMs
 * @param {readonly unknown[]} dependencies a change starts again
 * @returns {{ error: RequestError | undefined, repeat: () => void }}
 */
export function useRepeated(action, intervalMs, dependencies) {
  /** @type {[RequestError | undefined, (error: RequestError | undefined) => void]} */
  const [error, setError] = useState(/** @type {RequestError | undefined} */ (undefined));
  const [count, setCount] = useState(0);
  useEffect(() => {
    let isCurrent = true;
    /** @type {ReturnType<typeof setTimeout> | undefined} */
    let timer;
    const run = async () => {
      clearTimeout(timer);
      const failure = await action().then(() => undefined, asRequestError);
      if (!isCurrent) return;
      // The app itself shows a lost connection and the end of a session.
      setError(failure?.status === 0 || failure?.status === 401 ? undefined : failure);
      if (failure?.status !== 401) connection.onChange(failure?.status === 0 ? 'lost' : 'connected');
      const delay = failure?.status === 0 ? RETRY_INTERVAL_MS : intervalMs;
      // In case the page became visible during the request.
      clearTimeout(timer);
      if (delay !== undefined && !document.hidden) timer = setTimeout(run, delay);
    };
    const onVisibility = () => {
      clearTimeout(timer);
      if (!document.hidden) void run();
    };
    void run();
    document.addEventListener('visibilitychange', onVisibility);
    return () => {
      isCurrent = false;
      clearTimeout(timer);
      document.removeEventListener('visibilitychange', onVisibility);
    };
  }, [...dependencies, count]);
  return { error, repeat: () => setCount(previous => previous + 1) };
}

/** @param {unknown} error */
function asRequestError(error) {
  if (error instanceof RequestError) return error;
  throw error;
}

/**
 * For an action that the user starts.
 *
 * @returns {{ error: RequestError | undefined, isRunning: boolean,
 *   run: (action: () => Promise<void>) => Promise<void> }} the error of the last action
 */
export function useAction() {
  const [state, setState] = useState({
    error: /** @type {RequestError | undefined} */ (undefined),
    isRunning: false,
  });
  const run = async (/** @type {() => Promise<void>} */ action) => {
    setState(({ error }) => ({ error, isRunning: true }));
    setState({ error: await action().then(() => undefined, asRequestError), isRunning: false });
  };
  return { ...state, run };
}

/**
 * Loads JSON. While another path is loaded, the previous content is not returned.
 *
 * @param {string} path below `api/`
 * @param {number} [intervalMs] for a repeated load
 * @returns {{ content: any, error: RequestError | undefined, repeat: () => void }}
 */
export function useLoad(path, intervalMs) {
  const latest = useRef(path);
  latest.current = path;
  const [loaded, setLoaded] = useState({ path: '', content: /** @type {unknown} */ (undefined) });
  const { error, repeat } = useRepeated(
    async () => {
      const content = await request(path);
      // A slow response must not replace the content of a newer path.
      if (latest.current === path) setLoaded({ path, content });
    },
    intervalMs,
    [path, intervalMs],
  );
  return { content: loaded.path === path ? loaded.content : undefined, error, repeat };
}
