import { BEARER_TOKEN } from '../contract/bearer-token.ts';
import { ID_RULE } from '../contract/errors.ts';
import { type Html, html } from './html.ts';

/** A browser compiles a pattern with the flag `v`, which requires `\/` within brackets. */
const TOKEN = BEARER_TOKEN.source.replace('/', String.raw`\/`);
/** A JSON number without fraction or exponent. The service checks whether it fits 64 bits. */
const DIGITS = '-?(?:0|[1-9][0-9]*)';

/**
 * The form that sends a plant. The browser rejects only values that it could not send as typed. The
 * service checks all others, so that its message is shown.
 */
export function plantForm(): Html {
  return html`<section id="send">
<h2>Send a plant</h2>
<div class="columns">
<form id="plant-form" autocomplete="off">
<p>
<label for="token">Token</label>
<input id="token" type="password" required pattern="${TOKEN}" title="A token has no spaces and no quotation marks."
 autocomplete="off" spellcheck="false" autocapitalize="none" aria-describedby="token-note">
<span class="note" id="token-note">This page sends the token only to this service, and clears it when you leave.</span>
</p>
<p>
<label for="plant-id">id</label>
<input id="plant-id" value="9007199254740993" required pattern="${DIGITS}" title="An optional minus sign and decimal digits, without leading zeros."
 autocomplete="off" spellcheck="false" aria-describedby="plant-id-note">
<span class="note" id="plant-id-note">${ID_RULE}, in decimal digits</span>
</p>
<p>
<label for="plant-name">name</label>
<input id="plant-name" value="Monstera deliciosa" autocomplete="off">
</p>
<p>
<label for="plant-tag">tag</label>
<label><input id="has-tag" type="checkbox" checked> with a tag</label>
<input id="plant-tag" value="houseplant" autocomplete="off" aria-describedby="plant-tag-note">
<span class="note" id="plant-tag-note">The tag may be empty. Clear the check box to send no tag.</span>
</p>
<p><button id="send-button" disabled>Send</button></p>
<noscript><p>The form needs JavaScript. The rest of this page works without it.</p></noscript>
</form>
<div class="exchange">
<p id="verdict" role="status">No plant was sent yet. The exact request and response will appear here.</p>
<div id="wire" hidden>
<h3>Request</h3>
<pre id="sent"></pre>
<h3>Response</h3>
<pre id="received"></pre>
<p class="note">The browser sends more headers than shown. It lists the response headers in lower case and in
alphabetical order. The token is not shown.</p>
</div>
</div>
</div>
</section>`;
}
