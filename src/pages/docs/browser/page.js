// The script of the documentation page. It has no build step, so it uses widely supported syntax.

/**
 * Finds an element of the page.
 *
 * @template {Element} Kind
 * @param {string} id
 * @param {new () => Kind} kind
 */
function element(id, kind) {
  const found = document.getElementById(id);
  if (!(found instanceof kind)) throw new Error(`the page has no ${id}`);
  return found;
}

/** Relative to the page, since a proxy may put a path in front of both `/docs` and `/plants`. */
const plantsUrl = new URL('plants', location.href);

const form = element('plant-form', HTMLFormElement);
const token = element('token', HTMLInputElement);
const id = element('plant-id', HTMLInputElement);
const name = element('plant-name', HTMLInputElement);
const hasTag = element('has-tag', HTMLInputElement);
const tag = element('plant-tag', HTMLInputElement);
const forgetButton = element('forget-token', HTMLButtonElement);
const sendButton = element('send-button', HTMLButtonElement);
const backButton = element('back-button', HTMLButtonElement);
const tokenPart = element('token-part', HTMLElement);
const keptToken = element('kept-token', HTMLElement);
const otherButton = element('other-token', HTMLButtonElement);
const verdict = element('verdict', HTMLElement);
const wire = element('wire', HTMLElement);

const RESPONSE_TIMEOUT_MS = 20_000;

/**
 * A plant that the console links here to be corrected, in the fragment of the address, which the
 * browser does not send to the service.
 *
 * - `seen`: the latest revision that the console showed, and the name in it. `isEarlier`: the content is
 *   that of an earlier revision.
 * - `console`: the address of the console.
 *
 * @typedef {{ id: string, name: string, tag?: string, console: string,
 *   seen: { revision: number, name: string, isEarlier: boolean } }} Correction
 */

/** @returns {Correction | undefined} undefined: no valid link of the console, so the whole page is shown */
function readCorrection() {
  const linked = /^#plant=(.*)$/.exec(location.hash)?.[1];
  if (linked === undefined) return undefined;
  try {
    const plant = JSON.parse(decodeURIComponent(linked));
    // The id is sent as it is, and the user cannot change it.
    const isValid = /^-?[0-9]+$/.test(plant.id) && plant.seen.revision > 0 && URL.canParse(plant.console);
    return isValid ? plant : undefined;
  } catch {
    return undefined;
  }
}

const correction = readCorrection();

/** Replaces parts of the samples. @param {Record<string, string>} parts new texts by name */
function showParts(parts) {
  for (const [part, text] of Object.entries(parts))
    for (const place of document.querySelectorAll(`[data-part=${part}]`)) place.textContent = text;
}

/** Shows the plant of the form in the samples, unless its id is invalid. @returns its JSON */
function showPlant() {
  tag.disabled = !hasTag.checked;
  const nameText = JSON.stringify(name.value);
  const tagText = JSON.stringify(tag.value);
  // The id is inserted as typed: a JavaScript number would round it.
  const body = `{"id": ${id.value}, "name": ${nameText}${hasTag.checked ? `, "tag": ${tagText}` : ''}}`;
  const typescript = `{ id: ${id.value}n, name: ${nameText}${hasTag.checked ? `, tag: ${tagText}` : ''} }`;
  const shell = `'${body.replaceAll("'", String.raw`'\''`)}'`;
  if (id.validity.valid) showParts({ body, shell, typescript });
  return body;
}

const { href, host, pathname: path } = plantsUrl;
showParts({ address: href.slice(0, -'/plants'.length), host, path });
// A browser may restore the fields when the user returns to the page.
showPlant();

/** The key of the token in `sessionStorage`, which belongs to this tab. A path is a service. */
const TOKEN_KEY = `plant_store_token ${plantsUrl.pathname}`;

/** Fills in the token that the tab keeps. A browser without site data keeps none. */
function restoreToken() {
  try {
    const stored = sessionStorage.getItem(TOKEN_KEY);
    token.value = stored ?? '';
    forgetButton.hidden = stored === null;
    showTokenField(correction === undefined || stored === null);
  } catch {
    forgetButton.hidden = true;
  }
}

/** Shows the field of the token, or, to correct a plant, that the tab has one. @param {boolean} isShown */
function showTokenField(isShown) {
  tokenPart.hidden = !isShown;
  keptToken.hidden = isShown;
}

/** @param {string} value an accepted token */
function keepToken(value) {
  try {
    sessionStorage.setItem(TOKEN_KEY, value);
    forgetButton.hidden = false;
  } catch {
    forgetButton.hidden = true;
  }
}

forgetButton.addEventListener('click', () => {
  sessionStorage.removeItem(TOKEN_KEY);
  restoreToken();
  token.focus();
});

// The tab keeps its token until another one is accepted.
otherButton.addEventListener('click', () => {
  token.value = '';
  showTokenField(true);
  token.focus();
});

// A browser may cache the page with its fields. The token must not stay in that cache.
addEventListener('pagehide', () => {
  token.value = '';
});
// It also fires when the page comes from the cache.
addEventListener('pageshow', restoreToken);

form.addEventListener('submit', event => {
  event.preventDefault();
  void send();
});
form.addEventListener('input', () => {
  showPlant();
  clearVerdict();
});
// The result of the previous plant must not be shown beside the error of a field.
form.addEventListener('invalid', clearVerdict, true);
sendButton.disabled = false;

let isSending = false;

function clearVerdict() {
  if (isSending) return;
  delete verdict.dataset.result;
  verdict.textContent = correction ? '' : 'Not sent yet.';
  wire.hidden = true;
}

async function send() {
  if (isSending) return;
  const body = showPlant();
  clearVerdict();
  isSending = true;
  verdict.textContent = correction ? 'Saving …' : 'Sending …';
  const bearer = token.value;
  const sentName = name.value;
  const response = await post(body, bearer).catch(() => undefined);
  isSending = false;
  if (response?.status === 200) keepToken(bearer);
  // The user may have changed the form during the request.
  showParts({ body });
  element('received', HTMLElement).textContent = response?.received ?? 'none';
  wire.hidden = false;
  verdict.replaceChildren(
    ...(correction ? [correctionVerdict(correction, response, sentName)] : verdictOf(response)),
  );
  verdict.dataset.result = response?.status === 200 ? 'stored' : 'rejected';
  // On a small screen, the result may be outside the visible area.
  verdict.scrollIntoView({ block: 'nearest', behavior: 'instant' });
}

/**
 * @typedef {{ status: number, headers: Headers, text: string, received: string }} ShownResponse
 *   `text` is the body. `received` also has the status and the headers.
 */

/**
 * Sends a plant.
 *
 * @param {string} body
 * @param {string} bearer the token
 * @returns {Promise<ShownResponse>}
 */
async function post(body, bearer) {
  const response = await fetch(plantsUrl, {
    method: 'POST',
    headers: {
      Authorization: `Bearer ${bearer}`,
      'Content-Type': 'application/json',
      ...(correction && { 'If-Plant-Revision': String(correction.seen.revision) }),
    },
    body,
    cache: 'no-store',
    credentials: 'omit',
    redirect: 'error',
    signal: AbortSignal.timeout(RESPONSE_TIMEOUT_MS),
  });
  const { status, statusText, headers } = response;
  const text = await response.text();
  const fields = [...headers].map(([field, value]) => `${field}: ${value}`);
  const received = [`${status} ${statusText}`.trimEnd(), ...fields, '', text].join('\n');
  // A gateway may repeat the token in its response.
  const masked = (/** @type {string} */ shown) => shown.replaceAll(bearer, '<ACCESS_TOKEN>');
  return { status, headers, text: masked(text), received: masked(received) };
}

/** @param {ShownResponse | undefined} response undefined if no whole response arrived */
function verdictOf(response) {
  if (response === undefined)
    return [
      'No response. Is the service running? The plant may or may not be stored. Sending it again is safe.',
    ];
  const { status, headers, text } = response;
  if (status === 200) return [storedText(headers)];
  const { error, message } = errorIn(text);
  if (typeof error !== 'number')
    return [`Rejected with ${status}, but not by a plant store. Is there a gateway in front of it?`];
  const link = document.createElement('a');
  link.href = `#error-${error}`;
  link.textContent = `what error ${error} means`;
  return [`Rejected with ${status}: ${message} (`, link, ')'];
}

/** Reads the body of an error. @param {string} text may be any text of a gateway */
function errorIn(text) {
  try {
    return JSON.parse(text) ?? {};
  } catch {
    return {};
  }
}

/** What happened to a stored plant. @param {Headers} headers */
function storedText(headers) {
  const plant = `plant ${headers.get('Plant-Id')}`;
  const revision = `revision ${headers.get('Plant-Revision')}`;
  switch (headers.get('Plant-Outcome')) {
    case 'created':
      return `Created: ${plant} is on disk (${revision}).`;
    case 'revised':
      return `Revised: ${plant} had different content. The new content is on disk (${revision}).`;
    case 'unchanged':
      return `Unchanged: ${plant} already has this content (${revision}). Nothing was stored.`;
    default:
      return 'The status is 200, but the headers of a plant store are missing. Does a gateway remove them?';
  }
}

// A browser allows access to the clipboard only over TLS or from localhost.
for (const button of navigator.clipboard === undefined ? [] : document.querySelectorAll('button.copy')) {
  if (!(button instanceof HTMLButtonElement)) continue;
  button.hidden = false;
  button.addEventListener('click', async () => {
    const text = button.parentElement?.querySelector('pre')?.textContent ?? '';
    const copied = navigator.clipboard.writeText(text).then(
      () => 'Copied',
      () => 'Not allowed',
    );
    button.textContent = await copied;
  });
  button.addEventListener('blur', () => {
    button.textContent = 'Copy';
  });
}

if (correction) showCorrection(correction);
else delete document.documentElement.dataset.correction;

/**
 * Shows only the form, with the plant of the console.
 *
 * @param {Correction} plant
 */
function showCorrection(plant) {
  const { seen, console } = plant;
  document.documentElement.dataset.correction = '';
  const shownName = nameElement(seen.name, plant.id);
  const title = seen.isEarlier ? ['Set ', shownName, ' back to this content?'] : ['Correct ', shownName];
  element('correction-title', HTMLElement).replaceChildren(...title);
  element('correction-id', HTMLElement).textContent = plant.id;
  element('correction', HTMLElement).hidden = false;
  document.title = `${seen.isEarlier ? 'Set back' : 'Correct'} a plant - Plant store`;
  for (const [field, text] of Object.entries({
    token: 'Your token',
    'plant-name': 'Name',
    'plant-tag': 'Tag',
  })) {
    const label = document.querySelector(`label[for=${field}]`);
    if (label !== null) label.textContent = text;
  }
  id.value = plant.id;
  name.value = plant.name;
  tag.value = plant.tag ?? '';
  hasTag.checked = plant.tag !== undefined;
  showPlant();
  // To set a plant back, its content must be the earlier one.
  name.readOnly = seen.isEarlier;
  tag.readOnly = seen.isEarlier;
  hasTag.disabled = seen.isEarlier;
  sendButton.textContent = seen.isEarlier ? 'Set back' : 'Save';
  element('send-part', HTMLElement).before(tokenPart, keptToken, verdict);
  element('token-note', HTMLElement).replaceChildren(
    'The history then shows who changed the plant. This tab keeps the token until you close it. You have none? Create one on ',
    tokensLink(console),
    '.',
  );
  const isComplete = name.value === plant.name && tag.value === (plant.tag ?? '');
  verdict.textContent = isComplete
    ? ''
    : 'A field cannot hold the line ends of this plant, so they are missing.';
  // The console opened this page in its own tab, so it is the previous entry of the history.
  backButton.hidden = history.length === 1;
  backButton.addEventListener('click', () => history.back());
}

/** @param {string} plantName may be empty @param {string} plantId */
function nameElement(plantName, plantId) {
  const shown = document.createElement('bdi');
  shown.textContent = plantName || `plant ${plantId}`;
  return shown;
}

/**
 * A link to the screen Tokens in another tab. An address on another host may be that of an attacker.
 *
 * @param {string} console
 */
function tokensLink(console) {
  const { protocol, hostname } = new URL(console);
  if (!/^https?:$/.test(protocol) || hostname !== location.hostname)
    return 'the screen Tokens of the console';
  const link = document.createElement('a');
  link.href = `${console}#tokens`;
  link.target = '_blank';
  link.textContent = 'the screen Tokens';
  return link;
}

/**
 * The result in the words of a user who knows no HTTP. When nothing is left to do here, only the
 * result and the way back stay.
 *
 * @param {Correction} plant
 * @param {ShownResponse | undefined} response
 * @param {string} sentName the new name of the plant, if it is saved
 */
function correctionVerdict({ id: plantId, seen }, response, sentName) {
  if (response === undefined)
    return 'The service did not respond, so the plant may or may not be saved. Save it again: nothing is saved twice.';
  const { status, headers, text } = response;
  const revision = headers.get('Plant-Revision');
  if (revision !== null) {
    document.documentElement.dataset.correction = 'ended';
    backButton.textContent = 'Back to the plant';
    backButton.focus();
  }
  switch (status) {
    case 200:
      element('correction-title', HTMLElement).replaceChildren(nameElement(sentName, plantId));
      return headers.get('Plant-Outcome') === 'unchanged'
        ? `Nothing to save: the plant already has this name and tag, in revision ${revision}.`
        : `Saved as revision ${revision}.`;
    case 412:
      return `Not saved, because the plant was changed meanwhile: it has revision ${revision} now, and you saw revision ${seen.revision}. Look at the change, and then correct the plant again.`;
    case 401:
      showTokenField(true);
      token.select();
      return 'Not saved, because the service does not accept this token. It may be incomplete, expired or revoked.';
    case 429:
    case 503:
      return 'Not saved, because the service is busy or its store does not respond. Try again in a minute.';
    default:
      return `Not saved: ${errorIn(text).message ?? `the response had status ${status}, and is not of a plant store`}.`;
  }
}
