// Requests to the service, and what the page does when they fail.
import { html, useEffect, useState } from './preact.js';

const RESPONSE_TIMEOUT_MS = 20_000;
const RETRY_INTERVAL_MS = 2_000;

/** @typedef {'signed in' | 'signed out' | 'ended'} SessionState signed out: by the user */

/** The app sets this listener, which is called when a session begins or ends. */
export const session = { onChange: (/** @type {SessionState} */ _state) => {} };

/**
 * The key in `localStorage` of the half of the secret that is in no cookie. It contains the path,
 * because a proxy may serve several consoles.
 */
const SECRET_KEY = `plant_store_console ${location.pathname}`;

/** Exchanges a code for a session. @param {string} code */
export async function signIn(code) {
  const { secret } = await request('session', 'POST', { code });
  localStorage.setItem(SECRET_KEY, secret);
  session.onChange('signed in');
}

export async function signOut() {
  await request('session', 'DELETE');
  localStorage.removeItem(SECRET_KEY);
  session.onChange('signed out');
}

/** A request failed. The message tells the user why. */
export class RequestError extends Error {}

/** No response arrived, so it is unknown whether the service did what was requested. */
export class NoResponse extends RequestError {}

/** The request needs a session. */
class NotSignedIn extends RequestError {}

/**
 * Sends a request. Its address is relative to the page, because a proxy may add a path before it.
 *
 * @param {string} path below `api/`
 * @param {string} [method]
 * @param {unknown} [body] is sent as JSON
 * @param {number} [timeoutMs]
 * @returns {Promise<any>} the body of the response, if it has one: a Blob, or the value of JSON
 * @throws {RequestError} also `NoResponse` and `NotSignedIn`
 */
export async function request(path, method = 'GET', body = undefined, timeoutMs = RESPONSE_TIMEOUT_MS) {
  let response;
  let content;
  try {
    // Another tab may have signed in or out.
    const secret = localStorage.getItem(SECRET_KEY) ?? '';
    response = await fetch(`api/${path}`, {
      method,
      headers: { 'Content-Type': 'application/json', 'Plant-Store-Console': secret },
      body: JSON.stringify(body),
      redirect: 'error',
      signal: AbortSignal.timeout(timeoutMs),
    });
    if (response.headers.has('Content-Disposition')) content = await response.blob();
    else if (response.status !== 204) content = await response.json();
  } catch (error) {
    if (error instanceof DOMException && error.name === 'SecurityError')
      throw new RequestError('this browser lets the page store nothing; allow its cookies and site data');
    // A proxy without a running service may send a page of its own, which is not JSON.
    const advice = method === 'GET' ? 'try again' : 'it may or may not have done this';
    throw new NoResponse(`no response from the service; ${advice}`);
  }
  if (response.status === 401) {
    session.onChange('ended');
    throw new NotSignedIn(content.message);
  }
  if (!response.ok) throw new RequestError(content.message);
  return content;
}

/**
 * A paragraph with an error.
 *
 * @param {string} what failed
 * @param {Error | undefined} error
 */
function problemOf(what, error) {
  return (
    error && html`<p class="verdict" data-state="not ready" role="alert">${`${what}: ${error.message}.`}</p>`
  );
}

/**
 * Loads content, once or repeatedly while the page is visible. Tries again while there is no
 * response. For other content, give the component another key.
 *
 * The result is the content of the last success, the problem of the last load as a paragraph,
 * whether the last load got no response, and a function that loads again.
 *
 * @param {() => Promise<any>} load
 * @param {number} [intervalMs]
 */
export function useLoad(load, intervalMs) {
  const [{ content, error, isLost = false }, setLoaded] = useState(
    /** @type {{ content?: any, error?: Error | undefined, isLost?: boolean }} */ ({}),
  );
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
        const { error } = result;
        // The banner shows a lost connection, and the app shows the end of a session.
        const isShownElsewhere = error instanceof NoResponse || error instanceof NotSignedIn;
        setLoaded(previous => ({
          ...previous,
          ...result,
          error: isShownElsewhere ? undefined : error,
          isLost: error instanceof NoResponse,
        }));
        const delayMs = error instanceof NoResponse ? RETRY_INTERVAL_MS : intervalMs;
        if (delayMs === undefined) return;
        // While the page is hidden, nothing is loaded.
        do await new Promise(resolve => setTimeout(resolve, delayMs));
        while (document.hidden && isCurrent);
      }
    };
    void run();
    return () => {
      isCurrent = false;
    };
  }, [count]);
  const waiting =
    isLost &&
    content === undefined &&
    html`<p class="note">This appears as soon as the service responds.</p>`;
  const problem = problemOf(content === undefined ? 'Not loaded' : 'Not updated', error) || waiting;
  return { content, problem, isLost, repeat: () => setCount(previous => previous + 1) };
}

/**
 * An action that the user starts: its last error, also as a paragraph, and whether it runs.
 *
 * @param {Error} [initialError]
 */
export function useAction(initialError) {
  const [{ error, isRunning }, setState] = useState({ error: initialError, isRunning: false });
  const run = async (/** @type {() => Promise<void>} */ action) => {
    setState({ error, isRunning: true });
    setState({ error: await action().catch(cause => cause), isRunning: false });
  };
  return { error, problem: problemOf('Failed', error), isRunning, run };
}
