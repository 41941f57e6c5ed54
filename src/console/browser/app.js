// The console of the operator. It has no build step: the service sends these files as they are.
import { Now } from './now.js';
import { Plants } from './plants.js';
import { html, render, useEffect, useRef, useState } from './preact.js';
import { RejectedRequests } from './rejected.js';
import { connection, RequestError, request } from './requests.js';
import { Store } from './store.js';
import { Tokens } from './tokens.js';

/** @type {Record<string, { title: string, screen: unknown }>} */
const SCREENS = {
  now: { title: 'Now', screen: Now },
  plants: { title: 'Plants', screen: Plants },
  rejected: { title: 'Rejected', screen: RejectedRequests },
  tokens: { title: 'Tokens', screen: Tokens },
  store: { title: 'Store', screen: Store },
};

const CODE = /([A-Za-z0-9_-]{43})\s*$/;
const BAD_CODE = 'This code is not valid. A code is valid for 5 minutes and only once.';

/** The screen that the fragment of the address names, such as `#plants/7` or `#plants?tag=tree`. */
function readRoute() {
  const [path = '', query = ''] = location.hash.slice(1).split('?', 2);
  const [name = '', id] = path.split('/', 2);
  return { name: Object.hasOwn(SCREENS, name) ? name : 'now', id: id || undefined, query };
}

/**
 * Takes the code out of the address, so that it is neither in the history nor in a copied address.
 *
 * @returns {string | undefined}
 */
function takeCode() {
  const code = /^#([A-Za-z0-9_-]{43})$/.exec(location.hash)?.[1];
  if (code !== undefined) history.replaceState(null, '', '#now');
  return code;
}

/**
 * @param {string} code
 * @returns {Promise<string>} what went wrong, for the user; empty after success
 */
function signIn(code) {
  return request('session', 'POST', { code }).then(
    () => '',
    failure => {
      if (!(failure instanceof RequestError)) throw failure;
      return failure.status === 403 ? BAD_CODE : `Not signed in: ${failure.message}.`;
    },
  );
}

function App() {
  const [state, setState] = useState(
    /** @type {import('./requests.js').Connection | 'starting'} */ ('starting'),
  );
  const [route, setRoute] = useState(readRoute());
  const [problem, setProblem] = useState('');
  const main = useRef(/** @type {HTMLElement | null} */ (null));
  useEffect(() => {
    connection.onChange = setState;
    const start = async () => {
      const code = takeCode();
      if (code !== undefined) setProblem(await signIn(code));
      setRoute(readRoute());
      // Also with a bad code, since an older session may be valid.
      setState('connected');
    };
    const onHash = () => {
      // A link with a code changes only the fragment, if the page is open already.
      void start();
      scrollTo(0, 0);
    };
    void start();
    addEventListener('hashchange', onHash);
    return () => removeEventListener('hashchange', onHash);
  }, []);
  // Another tab may have signed in. The cookie is the same, so the screen may load again.
  useEffect(() => {
    if (state !== 'signed out') return;
    const retry = () =>
      request('now?after=9999999999').then(
        () => setState('connected'),
        () => {},
      );
    addEventListener('focus', retry);
    return () => removeEventListener('focus', retry);
  }, [state]);
  const { title, screen } = SCREENS[route.name] ?? { title: '', screen: Now };
  useEffect(() => {
    document.title = `${title} - Plant store console`;
  }, [title]);
  // The link that the user followed may be gone. Without focus, the keyboard starts at the top.
  useEffect(() => {
    if (document.activeElement === document.body) main.current?.focus();
  }, [route]);
  if (state === 'starting') return null;
  if (state === 'signed out')
    return html`<${SignIn} problem=${problem} onSignedIn=${() => setState('connected')} />`;
  const focusMain = (/** @type {Event} */ event) => {
    event.preventDefault();
    main.current?.focus();
  };
  return html`
    <a class="skip" href="#content" onClick=${focusMain}>Skip to the content</a>
    <${Header} current=${route.name} onSignedOut=${() => setState('signed out')} />
    <div role="status">${state === 'lost' ? html`<p class="verdict" data-state="fault"><strong>The connection to the service is lost.</strong> What you see may be old. The page tries again every 2 seconds.</p>` : null}</div>
    <main id="content" tabindex="-1" ref=${main}><h1>${title}</h1><${screen} key=${route.name} id=${route.id} query=${route.query} isLost=${state === 'lost'} /></main>`;
}

/** @param {{ current: string, onSignedOut: () => void }} props */
function Header({ current, onSignedOut }) {
  const [problem, setProblem] = useState('');
  const signOut = () =>
    request('session', 'DELETE').then(onSignedOut, () => setProblem('Not signed out: try again.'));
  return html`<header>
    <strong>Plant store</strong>
    <nav aria-label="Screens">${Object.entries(SCREENS).map(
      ([name, { title }]) =>
        html`<a key=${name} href=${`#${name}`} aria-current=${name === current ? 'page' : undefined}>${title}</a>`,
    )}</nav>
    <span role="alert">${problem}</span>
    <button type="button" onClick=${signOut}>Sign out</button>
  </header>`;
}

/** @param {{ problem: string, onSignedIn: () => void }} props */
function SignIn({ problem, onSignedIn }) {
  const [failure, setFailure] = useState(problem);
  const submit = async (/** @type {SubmitEvent} */ event) => {
    event.preventDefault();
    const form = /** @type {HTMLFormElement} */ (event.currentTarget);
    const code = CODE.exec(String(new FormData(form).get('code')))?.[1];
    const result = code === undefined ? 'Paste the whole link, or the code after its #.' : await signIn(code);
    setFailure(result);
    if (result === '') onSignedIn();
  };
  return html`<main id="content" class="sign-in">
    <h1>Sign in to the console</h1>
    <p>You are not signed in, or your session ended. On the machine of the service, run this command and open the link that it prints:</p>
    <pre>npx plant-store console</pre>
    <p>Or paste the link here. It is valid for 5 minutes and only once.</p>
    <form class="fields" onSubmit=${submit}>
      <div><label for="code">Link or code</label><input id="code" name="code" required autocomplete="off" spellcheck=${false} /></div>
      <button class="main">Sign in</button>
    </form>
    <div role="alert">${failure === '' ? null : html`<p class="verdict" data-state="fault">${failure}</p>`}</div>
  </main>`;
}

render(html`<${App} />`, document.body);
