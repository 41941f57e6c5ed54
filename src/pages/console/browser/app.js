// The operator's console. It has no build step: the service sends these files as they are.
import { Banner } from './banner.js';
import { Command, readForm } from './display.js';
import { Now } from './now.js';
import { Plants } from './plants.js';
import { html, render, useEffect, useRef, useState } from './preact.js';
import { RejectedRequests } from './rejected.js';
import { request, session, signIn, signOut, useAction, useLoad } from './requests.js';
import { Store } from './store.js';
import { Tags } from './tags.js';
import { Tokens } from './tokens.js';

/** By title, which is in lower case in the address. @type {Record<string, unknown>} */
const SCREENS = { Now, Plants, Tags, Rejected: RejectedRequests, Tokens, Store };
const LEAF = html`<svg viewBox="0 0 32 32" width="18" height="18" aria-hidden="true">
  <path fill="currentColor" d="M27 4C13 4 5 10 5 20c0 3 1 5 2 7 2-7 7-12 14-15-6 5-10 10-11 16 11 2 17-7 17-24z" />
</svg>`;
const CODE = /^[A-Za-z0-9_-]{43}$/;
const CODE_IN_FRAGMENT = /^#([A-Za-z0-9_-]{43})$/;

const NO_LINK =
  'this is no link of the console; copy the whole line that the command prints, which begins with http and has a # followed by 43 characters';

/** The screen that the fragment of the address names, such as `#plants/7` or `#plants?tag=tree`. */
function readRoute() {
  const [path = '', query = ''] = location.hash.slice(1).split('?', 2);
  const [name, id] = path.split('/', 2);
  const title = Object.keys(SCREENS).find(each => each.toLowerCase() === name) ?? 'Now';
  return { title, id, query };
}

/** @param {{ problem: Error | undefined }} props why the code of the address was rejected */
function App({ problem }) {
  const [state, setState] = useState(/** @type {import('./requests.js').SessionState} */ ('signed in'));
  const [route, setRoute] = useState(readRoute());
  const heading = useRef(/** @type {HTMLElement | null} */ (null));
  useEffect(() => {
    // A request that was in flight when the user signed out is rejected later.
    session.onChange = next =>
      setState(previous => (previous === 'signed out' && next === 'ended' ? previous : next));
    const onHash = () => {
      // If the page is already open, a link with a code changes only the fragment.
      if (CODE_IN_FRAGMENT.test(location.hash)) location.reload();
      setRoute(readRoute());
      scrollTo(0, 0);
    };
    addEventListener('hashchange', onHash);
    return () => removeEventListener('hashchange', onHash);
  }, []);
  const { title, id, query } = route;
  const isFirst = useRef(true);
  useEffect(() => {
    document.title = `${title} - Plant store console`;
    // If the link or the form that had the focus has disappeared, the heading gets the focus.
    // A screen may have restored its place, so that the focus must not scroll.
    if (!isFirst.current && document.activeElement === document.body)
      heading.current?.focus({ preventScroll: true });
    isFirst.current = false;
  }, [route, state]);
  if (state !== 'signed in')
    return html`<${SignIn} problem=${problem} isSignedOut=${state === 'signed out'} />`;
  return html`
    <button type="button" class="skip" onClick=${() => heading.current?.focus()}>Skip to the content</button>
    <${Header} current=${title} />
    <main><h1 tabindex="-1" ref=${heading}>${title}</h1><${SCREENS[title]} key=${title} id=${id} query=${query} /></main>`;
}

/** @param {{ current: string }} props */
function Header({ current }) {
  const { problem, run } = useAction();
  return html`<header>
    <strong>${LEAF}Plant store</strong>
    <nav aria-label="Screens">
      ${Object.keys(SCREENS).map(
        title => html`<a
          href=${`#${title.toLowerCase()}`}
          aria-current=${title === current ? 'page' : undefined}
        >${title}</a>`,
      )}
    </nav>
    <button type="button" onClick=${() => run(signOut)}>Sign out</button>
    ${problem}
  </header>`;
}

/** @param {{ problem: Error | undefined, isSignedOut: boolean }} props */
function SignIn({ problem: initial, isSignedOut }) {
  const { problem, run } = useAction(initial);
  const { content } = useLoad(() => request('session'));
  const submit = (/** @type {SubmitEvent} */ event) => {
    const { code = '' } = readForm(event).texts;
    const link = code.trim();
    void run(async () => {
      const found = link.slice(link.lastIndexOf('#') + 1);
      if (!CODE.test(found)) throw new Error(NO_LINK);
      await signIn(found);
    });
  };
  return html`<main class="sign-in">
    <h1>${LEAF} Sign in to the console</h1>
    <p>${isSignedOut ? 'You are signed out. To sign in again, go to' : 'You are not signed in, or your session ended. Go to'} the machine of the service, run this command, and open the link that it prints:</p>
    <${Command} text=${content?.command ?? 'npx plant-store console'} />
    ${content?.hasDatabase === false && html`<p class="note">Add the <code>--database</code> of the service, which is not shown here.</p>`}
    <p>Or paste the link here. It is valid for 5 minutes and only once.</p>
    <form class="fields" onSubmit=${submit}>
      <div><label for="code">Link or code</label><input id="code" name="code" required autocomplete="off" spellcheck=${false} /></div>
      <button class="main">Sign in</button>
    </form>
    ${problem}
  </main>`;
}

// On the way back from another page, a browser may show this one as it was.
addEventListener('pageshow', event => {
  if (event.persisted) location.reload();
});
// Only users of the keyboard need to see which heading has the focus.
addEventListener('keydown', () => document.documentElement.setAttribute('data-keyboard', ''));
addEventListener('pointerdown', () => document.documentElement.removeAttribute('data-keyboard'));
// The banner starts before the session, which cannot start while the store does not respond.
render(html`<${Banner} />`, /** @type {HTMLElement} */ (document.getElementById('banner')));
const code = CODE_IN_FRAGMENT.exec(location.hash)?.[1];
// The code must not remain in the history or in the address.
if (code !== undefined) history.replaceState(null, '', '#now');
// The app starts even after a failed sign-in, since an older session may be valid.
const problem = code === undefined ? undefined : await signIn(code).catch(error => error);
render(html`<${App} problem=${problem} />`, /** @type {HTMLElement} */ (document.getElementById('app')));
