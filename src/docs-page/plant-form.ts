import { BEARER_TOKEN } from '../contract/bearer-token.ts';
import { ID_RULE } from '../contract/errors.ts';
import { type Html, html } from './html.ts';

/** A browser compiles a pattern with the flag `v`, which wants a `/` within brackets to be escaped. */
const TOKEN = BEARER_TOKEN.source.replace('/', String.raw`\/`);
/** A JSON number without fraction or exponent. Whether it fits 64 bits, the service says. */
const DIGITS = '-?(?:0|[1-9][0-9]*)';

/**
 * The form that sends a plant. The browser checks only what could not be sent as it was typed; all else is sent, and the
 * service says what is wrong with it.
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
<span class="note" id="token-note">Stays on this page, and is gone when you leave it.</span>
</p>
<p>
<label for="plant-id">id</label>
<input id="plant-id" value="9007199254740993" required pattern="${DIGITS}" title="Decimal digits alone, without zeros in front."
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
<span class="note" id="plant-tag-note">May be empty; without the tick it is left out.</span>
</p>
<p><button id="send-button" disabled>Send</button></p>
<noscript><p>The form needs JavaScript. All else on this page does not.</p></noscript>
</form>
<div class="exchange">
<p id="verdict" role="status">Nothing sent yet. Here you will see the request and the response, digit for digit.</p>
<div id="wire" hidden>
<h3>Request</h3>
<pre id="sent"></pre>
<h3>Response</h3>
<pre id="received"></pre>
<p class="note">The browser adds headers of its own to the request, and lists those of the response in lower case and in
alphabetical order. The token is not shown.</p>
</div>
</div>
</div>
</section>`;
}
