import { BEARER_TOKEN } from '../contract/bearer-token.ts';
import { ID_RULE } from '../contract/errors.ts';
import { ID_MAX, ID_MIN } from '../contract/limits.ts';
import { checkNewPlant, type NewPlantCandidate } from '../contract/plant.ts';
import { type Html, html } from './html.ts';

/** What the contract says of a NewPlant with this fault, and no other. */
function faultOf(fault: Partial<NewPlantCandidate>): string {
  const { message } = checkNewPlant({ idText: '0', name: '', tag: undefined, ...fault });
  if (message === undefined) throw new Error('the contract takes what the form calls a fault');
  return message;
}

/** What the script says of a text that the contract refuses. */
function textFaults(member: 'name' | 'tag'): Html {
  const halfPair = faultOf({ [member]: '\ud800' });
  const nul = faultOf({ [member]: '\0' });
  return html`data-half-pair="${halfPair}" data-nul="${nul}"`;
}

/** The form that sends a plant, with the contract's rules and messages for its script. */
export function plantForm(): Html {
  return html`<section id="send">
<h2>Send a plant</h2>
<div class="bench">
<form id="plant-form" novalidate autocomplete="off">
<p class="field">
<label for="token">Token</label>
<input id="token" type="password" autocomplete="off" spellcheck="false" autocapitalize="none" aria-describedby="token-hint token-fault" data-pattern="${BEARER_TOKEN.source}">
<span class="hint" id="token-hint">Stays on this page, and is gone when you leave it.</span>
<span class="fault" id="token-fault"></span>
</p>
<p class="field">
<label for="plant-id">id</label>
<input id="plant-id" class="exact" value="9007199254740993" autocomplete="off" spellcheck="false" aria-describedby="plant-id-hint plant-id-fault"
 data-min="${ID_MIN.toString()}" data-max="${ID_MAX.toString()}" data-missing="${faultOf({ idText: undefined })}" data-wrong="${faultOf({ idText: '0.5' })}">
<span class="hint" id="plant-id-hint">${ID_RULE}, in decimal digits</span>
<span class="fault" id="plant-id-fault"></span>
</p>
<p class="field">
<label for="plant-name">name</label>
<input id="plant-name" value="Monstera deliciosa" autocomplete="off" aria-describedby="plant-name-fault" ${textFaults('name')}>
<span class="fault" id="plant-name-fault"></span>
</p>
<p class="field">
<span class="choice"><label for="plant-tag">tag</label> <label class="check"><input id="has-tag" type="checkbox" checked> with a tag</label></span>
<input id="plant-tag" value="houseplant" autocomplete="off" aria-describedby="plant-tag-hint plant-tag-fault" ${textFaults('tag')}>
<span class="hint" id="plant-tag-hint">May be empty; without the tick it is left out.</span>
<span class="fault" id="plant-tag-fault"></span>
</p>
<p><button type="submit" class="send" disabled>Send</button></p>
<noscript><p class="fault">The form needs JavaScript. All else on this page does not.</p></noscript>
</form>
<div class="exchange">
<p id="verdict" role="status">Nothing sent yet. Here you will see the request and the response, digit for digit.</p>
<div id="wire" hidden>
<h3 id="sent-title">Request</h3>
<pre id="sent" tabindex="0" role="group" aria-labelledby="sent-title"></pre>
<h3 id="received-title">Response</h3>
<pre id="received" tabindex="0" role="group" aria-labelledby="received-title"></pre>
<p class="hint">The browser adds headers of its own to the request, and lists those of the response in lower case and in
alphabetical order. The token is not shown.</p>
</div>
</div>
</div>
</section>`;
}
