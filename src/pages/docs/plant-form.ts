import { BEARER_TOKEN } from '../../core/contract/bearer-token.ts';
import { ID_RULE } from '../../core/contract/errors.ts';
import { type Html, html } from './html.ts';

/** A browser compiles a pattern with the flag `v`, which requires `\/` within brackets. */
const TOKEN = BEARER_TOKEN.source.replace('/', String.raw`\/`);
/** A JSON number without fraction or exponent. The service checks whether it fits 64 bits. */
const DIGITS = '-?(?:0|[1-9][0-9]*)';

/**
 * A form that sends a plant, and the samples with the same plant. For a link of the console, only
 * the form is shown, and corrects a plant. The browser rejects only values that it could not send as
 * typed. The service checks all others, so that its message is shown.
 */
export function plantForm(samples: Record<string, Html>): Html {
  return html`<section id="send">
<div id="correction" hidden>
<h1 id="correction-title"></h1>
<p class="note">Id <span id="correction-id" class="id"></span></p>
</div>
<h2>Send a plant</h2>
<div class="form">
<form id="plant-form" autocomplete="off">
<p id="token-part"><label for="token">Token</label>
<input id="token" type="password" required pattern="${TOKEN}" title="A token has no spaces and no quotation marks."
 autocomplete="off" spellcheck="false" autocapitalize="none" aria-describedby="token-note">
<span class="note" id="token-note">This page sends the token only to this service. Once it is accepted, this tab keeps it until you close the tab or forget the token here.</span>
<button type="button" id="forget-token" hidden>Forget the token</button></p>
<p id="kept-token" hidden>You save with the token of this tab.
<button type="button" id="other-token">Use another token</button></p>
<p id="id-part"><label for="plant-id">id</label>
<input id="plant-id" class="id" value="9007199254740993" required pattern="${DIGITS}" title="An optional minus sign and decimal digits, without leading zeros."
 autocomplete="off" spellcheck="false" aria-describedby="plant-id-note">
<span class="note" id="plant-id-note">${ID_RULE}, in decimal digits</span></p>
<p><label for="plant-name">name</label>
<input id="plant-name" value="Monstera deliciosa" autocomplete="off"></p>
<p><label for="plant-tag">tag</label>
<label><input id="has-tag" type="checkbox" checked> with a tag</label>
<input id="plant-tag" value="houseplant" autocomplete="off" aria-describedby="plant-tag-note">
<span class="note" id="plant-tag-note">It may be empty. Clear the box to send no tag.</span></p>
<p id="send-part"><button id="send-button" class="main" disabled>Send</button>
<button type="button" id="back-button" hidden>Cancel</button></p>
<noscript><p>The form needs JavaScript. The rest of this page works without it.</p></noscript>
</form>
<div class="response">
<h3>Response</h3>
<p id="verdict" class="verdict" role="status">Not sent yet.</p>
<div id="wire" hidden>
${COPY_BUTTON}<pre id="received"></pre>
<p class="note">A browser lists the headers in lower case and in alphabetical order.</p>
</div>
</div>
<div class="exchange">
<h3 id="code">Request</h3>
${Object.entries(samples).map(sample)}
<details><summary class="note">About these programs</summary>
<p class="note">A browser sends more headers than shown. The programs read the token from the environment variable
<code>PLANT_STORE_TOKEN</code>. Every digit of the id counts: in TypeScript the suffix n makes it an exact bigint, and curl and Python are exact
anyway. In Go use <code>int64</code> and in Java <code>long</code>: a float or double is not exact.
To get <code>plant-store-client</code>, run <code>npm ci && npm pack --workspace plant-store-client</code> in a checkout of the
service. Then run <code>npm install</code> in your program with the path of the file that this makes.</p></details>
</div>
</div>
</section>`;
}

const COPY_BUTTON = html`<button type="button" class="copy" hidden>Copy</button>`;

/** Opening one sample closes the others. */
function sample([title, code]: [string, Html], index: number): Html {
  return html`<details name="sample"${index === 0 ? ' open' : ''}><summary>${title}</summary>
${COPY_BUTTON}<pre id="${title.toLowerCase()}">${code}</pre></details>
`;
}
