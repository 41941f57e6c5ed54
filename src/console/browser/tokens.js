// The screen Tokens.
import { CopyButton, Day, Problem, readForm, Table, Text, Time } from './display.js';
import { html, useEffect, useRef, useState } from './preact.js';
import { request, useAction, useLoad } from './requests.js';

const INTERVAL_MS = 10_000;

/**
 * @typedef {{ label: string, createdAt: number, expiresAt: number | null, revokedAt: number | null,
 *   lastUsedDay: string | null, lastUsedAt: number | null }} Token `lastUsedAt` is since the start
 */

export function Tokens() {
  const { content, error, repeat } = useLoad(() => request('tokens'), INTERVAL_MS);
  const [revoking, setRevoking] = useState(/** @type {string | undefined} */ (undefined));
  /** @type {Token[] | undefined} */
  const tokens = content?.tokens;
  return html`
    <${CreateToken} tokens=${tokens ?? []} onCreated=${repeat} />
    <h2 id="all-tokens" tabindex="-1">All tokens</h2>
    <${Problem} what="Not loaded" error=${error} />
    ${tokens?.length === 0 ? html`<p>There is no token yet. Without one, no client can send plants.</p>` : null}
    ${!tokens?.length ? null : html`<${Table} caption="Tokens" columns=${['Label', 'State', 'Created', 'Expires', 'Last used', 'Action']} rows=${tokens.map(token => tokenRow(token, setRevoking))} />`}
    ${revoking === undefined ? null : html`<${RevokeDialog} label=${revoking} onRevoked=${repeat} onClose=${() => setRevoking(undefined)} />`}`;
}

/**
 * @param {Token} token
 * @param {(label: string) => void} revoke
 */
function tokenRow({ label, createdAt, expiresAt, revokedAt, lastUsedDay, lastUsedAt }, revoke) {
  const day = lastUsedDay === null ? 'never' : html`<${Day} day=${lastUsedDay} />`;
  const isExpired = expiresAt !== null && expiresAt <= Date.now();
  return {
    key: label,
    cells: [
      html`<${Text} text=${label} />`,
      revokedAt !== null ? html`revoked <${Time} at=${revokedAt} />` : isExpired ? 'expired' : 'valid',
      html`<${Time} at=${createdAt} />`,
      expiresAt === null ? 'never' : html`<${Time} at=${expiresAt} />`,
      lastUsedAt === null ? day : html`<${Time} at=${lastUsedAt} />`,
      revokedAt === null && !isExpired
        ? html`<button type="button" aria-label=${`Revoke ${label}`} onClick=${() => revoke(label)}>Revoke</button>`
        : html`<span class="note">none</span>`,
    ],
  };
}

/** @param {{ tokens: readonly Token[], onCreated: () => void }} props */
function CreateToken({ tokens, onCreated }) {
  const [created, setCreated] = useState(/** @type {{ label: string, token: string }[]} */ ([]));
  const { error, isRunning, run } = useAction();
  // A browser may cache the page when the user leaves it. The cache must not contain the token.
  useEffect(() => {
    const clear = () => setCreated([]);
    addEventListener('pagehide', clear);
    return () => removeEventListener('pagehide', clear);
  }, []);
  const create = (/** @type {SubmitEvent} */ event) => {
    const { form, texts } = readForm(event);
    const { label = '', expires } = texts;
    void run(async () => {
      const expiresAt = expires ? new Date(expires).getTime() : null;
      const { token } = await request('tokens', 'POST', { label, expiresAt });
      setCreated(earlier => [...earlier, { label, token }]);
      form.reset();
      onCreated();
    });
  };
  const hide = (/** @type {string} */ token) => setCreated(all => all.filter(each => each.token !== token));
  const revoked = new Set(tokens.filter(({ revokedAt }) => revokedAt !== null).map(({ label }) => label));
  return html`<h2>Create a token</h2>
    <form class="fields" onSubmit=${create}>
      <div><label for="label">Label, such as the name of the client</label><input id="label" name="label" required autocomplete="off" /></div>
      <div><label for="expires">Expires (optional)</label><input id="expires" name="expires" type="datetime-local" /></div>
      <button class="main" disabled=${isRunning}>Create</button>
    </form>
    <${Problem} what=${error?.status === 0 ? 'The token may or may not exist. If the list below shows it later, revoke it and create another one' : 'Not created'} error=${error} />
    ${created.map(({ label, token }) => (revoked.has(label) ? null : html`<${NewToken} key=${token} label=${label} token=${token} onDone=${() => hide(token)} />`))}`;
}

/** @param {{ label: string, token: string, onDone: () => void }} props */
function NewToken({ label, token, onDone }) {
  const place = useRef(/** @type {HTMLElement | null} */ (null));
  useEffect(() => place.current?.focus(), []);
  return html`<section ref=${place} class="verdict" data-state="warning" tabindex="-1" aria-labelledby=${token}>
    <h3 id=${token}>Copy the token of <q><${Text} text=${label} /></q> now</h3>
    <p>It is shown only this once: the store contains only its hash. Whoever has it can store plants.</p>
    <pre>${token}</pre>
    <p class="links"><${CopyButton} text=${token} label="Copy the token" /><button type="button" onClick=${onDone}>Hide it</button></p>
  </section>`;
}

/** @param {{ label: string, onRevoked: () => void, onClose: () => void }} props */
function RevokeDialog({ label, onRevoked, onClose }) {
  const dialog = useRef(/** @type {HTMLDialogElement | null} */ (null));
  const { error, run } = useAction();
  useEffect(() => dialog.current?.showModal(), []);
  const revoke = () =>
    run(async () => {
      await request('tokens/revoke', 'POST', { label });
      onRevoked();
      dialog.current?.close();
      // The button that opened the dialog disappears.
      document.getElementById('all-tokens')?.focus();
    });
  return html`<dialog ref=${dialog} onClose=${onClose} aria-labelledby="revoke-title">
    <h2 id="revoke-title">Revoke the token <q><${Text} text=${label} /></q>?</h2>
    <p>Within 5 seconds, clients that use it get status 401. A revoked token cannot be made valid again.</p>
    <${Problem} what="Not revoked" error=${error} />
    <p class="links"><button type="button" class="main danger" onClick=${revoke}>Revoke it</button><button type="button" autofocus onClick=${() => dialog.current?.close()}>Cancel</button></p>
  </dialog>`;
}
