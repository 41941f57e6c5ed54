// The screen Tokens: creates, lists and revokes tokens.
import { CopyButton, clientText, exactTime, readForm, Table, time } from './display.js';
import { html, useEffect, useRef, useState } from './preact.js';
import { NoResponse, request, useAction, useLoad } from './requests.js';

const INTERVAL_MS = 10_000;

/**
 * @typedef {{ label: string, createdAt: number, expiresAt: number | null, revokedAt: number | null,
 *   lastUsedDay: string | null, lastUsedAt: number | null }} Token `lastUsedAt` is since the start
 */

/** @param {Token} token */
const isExpired = ({ expiresAt }) => expiresAt !== null && expiresAt <= Date.now();

/** @type {Record<string, (token: Token) => unknown>} */
const COLUMNS = {
  Label: ({ label }) => clientText(label),
  State: token =>
    token.revokedAt !== null
      ? html`revoked ${time(token.revokedAt)}`
      : isExpired(token)
        ? 'expired'
        : 'valid',
  Created: ({ createdAt }) => time(createdAt),
  Expires: ({ expiresAt }) => (expiresAt === null ? 'never' : exactTime(expiresAt)),
  'Last used': token => lastUse(token) ?? 'never',
};

/** When a token was last used; undefined: never. @param {Token} token */
function lastUse({ lastUsedAt, lastUsedDay }) {
  if (lastUsedAt) return time(lastUsedAt);
  return lastUsedDay ? `${lastUsedDay} UTC` : undefined;
}

export function Tokens() {
  const { content, problem, repeat } = useLoad(() => request('tokens'), INTERVAL_MS);
  const [revoking, setRevoking] = useState(/** @type {string | undefined} */ (undefined));
  /** @type {Token[] | undefined} */
  const tokens = content?.tokens;
  const isEnded = (/** @type {Token} */ token) => token.revokedAt !== null || isExpired(token);
  const valid = tokens?.filter(token => !isEnded(token)) ?? [];
  const ended = tokens?.filter(isEnded) ?? [];
  const revoked = tokens?.find(({ label }) => label === revoking);
  const startRevoking = (/** @type {string} */ label) => {
    setRevoking(label);
    // The token may have been used since the list was loaded.
    repeat();
  };
  const action = (/** @type {Token} */ { label }) =>
    html`<button type="button" aria-label=${`Revoke ${label}`} onClick=${() => startRevoking(label)}>Revoke</button>`;
  return html`
    <${CreateToken} tokens=${tokens ?? []} onCreated=${repeat} />
    <h2 id="all-tokens" tabindex="-1">All tokens</h2>
    ${problem}
    ${
      tokens?.length === 0 &&
      html`<div class="empty">
        <p><strong>There is no token yet.</strong></p>
        <p>Each program that sends plants needs one. Create it above, with the name of the program as its label, and copy it into the program.</p>
      </div>`
    }
    ${tokens && tokens.length > 0 && valid.length === 0 && html`<p>No token is valid now.</p>`}
    <div class="tokens">
      ${valid.length > 0 && html`<${Table} name="Tokens" columns=${{ ...COLUMNS, Action: action }} rows=${valid} />`}
    </div>
    ${
      ended.length > 0 &&
      html`<details class="fold">
        <summary>${ended.length} revoked or expired</summary>
        <${Table} name="Revoked and expired tokens" columns=${COLUMNS} rows=${ended} />
      </details>`
    }
    ${revoked && html`<${RevokeDialog} token=${revoked} onRevoked=${repeat} onClose=${() => setRevoking(undefined)} />`}`;
}

/** @param {{ tokens: readonly Token[], onCreated: () => void }} props */
function CreateToken({ tokens, onCreated }) {
  const [created, setCreated] = useState(/** @type {{ label: string, token: string }[]} */ ([]));
  const { error, problem, isRunning, run } = useAction();
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
  const hide = (/** @type {string} */ token) => {
    setCreated(all => all.filter(each => each.token !== token));
    // The focus moves, because its button disappears.
    document.getElementById('all-tokens')?.focus();
  };
  const isRevoked = (/** @type {string} */ label) =>
    tokens.some(each => each.label === label && each.revokedAt);
  return html`<h2>Create a token</h2>
    <form class="fields" onSubmit=${create}>
      <div><label for="label">Label, such as the name of the program</label><input id="label" name="label" required autocomplete="off" /></div>
      <div><label for="expires">Expires (optional)</label><input id="expires" name="expires" type="datetime-local" /></div>
      <button class="main" disabled=${isRunning}>Create</button>
    </form>
    ${problem}
    ${error instanceof NoResponse ? html`<p>If the list below shows this token later, revoke it and create another one.</p>` : null}
    ${created.map(({ label, token }) => !isRevoked(label) && html`<${NewToken} key=${token} label=${label} token=${token} onDone=${() => hide(token)} />`)}`;
}

/** @param {{ label: string, token: string, onDone: () => void }} props */
function NewToken({ label, token, onDone }) {
  const place = useRef(/** @type {HTMLElement | null} */ (null));
  useEffect(() => place.current?.focus(), []);
  return html`<section ref=${place} class="verdict" data-state="warning" tabindex="-1" aria-labelledby=${token}>
    <h3 id=${token}>Copy the token of <q>${clientText(label)}</q> now</h3>
    <p>It is shown only this once: the store contains only its hash. Whoever has it can store plants.</p>
    <pre>${token}</pre>
    <p class="links">
      <${CopyButton} text=${token} title="Copy the token" />
      <button type="button" onClick=${onDone}>Hide it</button>
    </p>
  </section>`;
}

/** @param {{ token: Token, onRevoked: () => void, onClose: () => void }} props */
function RevokeDialog({ token, onRevoked, onClose }) {
  const { label } = token;
  const used = lastUse(token);
  const dialog = useRef(/** @type {HTMLDialogElement | null} */ (null));
  const { problem, run } = useAction();
  useEffect(() => dialog.current?.showModal(), []);
  const revoke = async () => {
    await request('tokens/revoke', 'POST', { label });
    onRevoked();
    dialog.current?.close();
    document.getElementById('all-tokens')?.focus();
  };
  return html`<dialog ref=${dialog} onClose=${onClose} aria-labelledby="revoke-title">
    <h2 id="revoke-title">Revoke the token <q>${clientText(label)}</q>?</h2>
    <p>${used ? html`It was last used ${used}.` : 'It was never used.'} Within 5 seconds, programs that use it are rejected. A revoked token cannot be made valid again.</p>
    ${problem}
    <p class="links">
      <button type="button" class="main danger" onClick=${() => run(revoke)}>Revoke it</button>
      <button type="button" autofocus onClick=${() => dialog.current?.close()}>Cancel</button>
    </p>
  </dialog>`;
}
