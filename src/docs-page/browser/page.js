// The script of the documentation page. It runs as it stands, in any browser of the last years.

/**
 * @template {Element} Kind
 * @param {string} id
 * @param {new () => Kind} kind
 */
function element(id, kind) {
  const found = document.getElementById(id);
  if (!(found instanceof kind)) throw new Error(`the page has no ${id}`);
  return found;
}

/** Where the service is: the page stands beside `/plants`, also where a proxy puts a path in front of both. */
const plantsUrl = new URL('plants', location.href);
const baseAddress = plantsUrl.href.slice(0, -'/plants'.length);
for (const place of document.querySelectorAll('[data-address]')) place.textContent = baseAddress;

const form = element('plant-form', HTMLFormElement);
const token = element('token', HTMLInputElement);
const id = element('plant-id', HTMLInputElement);
const name = element('plant-name', HTMLInputElement);
const hasTag = element('has-tag', HTMLInputElement);
const tag = element('plant-tag', HTMLInputElement);
const sendButton = /** @type {HTMLButtonElement} */ (form.querySelector('button'));
const verdict = element('verdict', HTMLElement);
const wire = element('wire', HTMLElement);

const RESPONSE_TIMEOUT_MS = 20_000;

/**
 * What is wrong with each field, in the contract's words; empty for nothing.
 *
 * @type {Map<HTMLInputElement, () => string>}
 */
const faults = new Map([
  [token, tokenFault],
  [id, idFault],
  [name, () => textFault(name)],
  [tag, () => (hasTag.checked ? textFault(tag) : '')],
]);

function tokenFault() {
  if (token.value === '') return 'a token is needed; the operator of the service makes one';
  if (new RegExp(token.dataset.pattern ?? '').test(token.value)) return '';
  return 'this is not a token: it holds other characters, perhaps a space or a quotation mark around it';
}

function idFault() {
  const { min = '', max = '', missing = '', wrong = '' } = id.dataset;
  if (id.value === '') return missing;
  // The digits are what is sent, so they must be those of a JSON number, which has no zeros in front.
  if (!/^-?(?:0|[1-9][0-9]*)$/.test(id.value)) {
    const isInteger = id.value.trim() !== '' && Number.isInteger(Number(id.value));
    return isInteger ? 'write the id in decimal digits alone, without spaces or zeros in front' : wrong;
  }
  const value = BigInt(id.value);
  return value < BigInt(min) || value > BigInt(max) ? wrong : '';
}

/** @param {HTMLInputElement} field */
function textFault({ value, dataset: { nul = '', halfPair = '' } }) {
  if (value.includes('\0')) return nul;
  // Encoded as UTF-8, half a pair would silently become U+FFFD.
  return value.isWellFormed() ? '' : halfPair;
}

/** @param {HTMLInputElement} field */
function validate(field) {
  const fault = faults.get(field)?.() ?? '';
  element(`${field.id}-fault`, HTMLElement).textContent = fault;
  if (fault === '') field.removeAttribute('aria-invalid');
  else field.setAttribute('aria-invalid', 'true');
  return fault === '';
}

// A fault is first shown when the form is to be sent: shown when a field is left, it would move the button away from under
// the pointer that is about to press it. From then on it is shown until it is gone.
for (const field of faults.keys()) {
  field.addEventListener('input', () => field.hasAttribute('aria-invalid') && validate(field));
}
hasTag.addEventListener('change', () => {
  tag.disabled = !hasTag.checked;
  if (tag.disabled) validate(tag);
});
// A browser that comes back to the page may have ticked it otherwise.
tag.disabled = !hasTag.checked;

// A browser may keep the page as it is to come back to it, and the token must not wait there.
addEventListener('pagehide', () => {
  token.value = '';
});

form.addEventListener('submit', event => {
  event.preventDefault();
  const faulty = [...faults.keys()].filter(field => !validate(field));
  if (faulty[0] === undefined) void send();
  else faulty[0].focus();
});
sendButton.disabled = false;

let isSending = false;

async function send() {
  if (isSending) return;
  isSending = true;
  delete verdict.dataset.result;
  verdict.textContent = 'Sending …';
  // What is there belongs to the plant before.
  wire.hidden = true;
  const tokenSent = token.value;
  // The id goes into the body as the digits that were typed: a number of JavaScript would round it.
  const tagMember = hasTag.checked ? `,"tag":${JSON.stringify(tag.value)}` : '';
  const body = `{"id":${id.value},"name":${JSON.stringify(name.value)}${tagMember}}`;
  const exchange = await post(body);
  element('sent', HTMLElement).textContent = requestText(body);
  element('received', HTMLElement).textContent =
    exchange === undefined ? 'none' : responseText(exchange, tokenSent);
  wire.hidden = false;
  verdict.replaceChildren(...(exchange === undefined ? [NO_RESPONSE] : verdictOf(exchange)));
  verdict.dataset.result = exchange?.response.status === 200 ? 'stored' : 'rejected';
  // On a small screen it is out of sight.
  verdict.scrollIntoView({ block: 'nearest', behavior: 'instant' });
  isSending = false;
}

const NO_RESPONSE =
  'No response came. Is the service running? The plant may be stored or not; sending it again settles that.';

/**
 * @typedef {{ response: Response, text: string }} Exchange
 * @param {string} body
 * @returns {Promise<Exchange | undefined>} undefined when no whole response came
 */
async function post(body) {
  try {
    const response = await fetch(plantsUrl, {
      method: 'POST',
      headers: { Authorization: `Bearer ${token.value}`, 'Content-Type': 'application/json' },
      body,
      cache: 'no-store',
      credentials: 'omit',
      redirect: 'error',
      signal: AbortSignal.timeout(RESPONSE_TIMEOUT_MS),
    });
    return { response, text: await response.text() };
  } catch {
    return undefined;
  }
}

/** @param {string} body */
function requestText(body) {
  return [
    `POST ${plantsUrl.pathname}`,
    `Host: ${plantsUrl.host}`,
    'Authorization: Bearer <ACCESS_TOKEN>',
    'Content-Type: application/json',
    `Content-Length: ${new TextEncoder().encode(body).length}`,
    '',
    body,
  ].join('\n');
}

/**
 * @param {Exchange} exchange
 * @param {string} tokenSent
 */
function responseText({ response: { status, statusText, headers }, text }, tokenSent) {
  const fields = [...headers].map(([field, value]) => `${field}: ${value}`);
  const lines = [`${status} ${statusText}`.trimEnd(), ...fields, '', text];
  // A gateway in between may repeat what it was sent.
  return lines.join('\n').replaceAll(tokenSent, '<ACCESS_TOKEN>');
}

/** @param {Exchange} exchange */
function verdictOf({ response: { status, headers }, text }) {
  if (status === 200) return [storedText(headers)];
  const number = errorNumber(text);
  const anchor = `error-${number}`;
  if (document.getElementById(anchor) === null)
    return [`Rejected with ${status}, and not in the words of a plant store. Is there a gateway in between?`];
  const link = document.createElement('a');
  link.href = `#${anchor}`;
  link.textContent = `what error ${number} means`;
  return [`Rejected with ${status}: `, link, '.'];
}

/** @param {Headers} headers */
function storedText(headers) {
  const plant = `plant ${headers.get('Plant-Id')}`;
  const revision = `revision ${headers.get('Plant-Revision')}`;
  switch (headers.get('Plant-Outcome')) {
    case 'created':
      return `Created: ${plant} is on disk, as its ${revision}.`;
    case 'revised':
      return `Revised: ${plant} had other content; this is on disk as its ${revision}.`;
    case 'unchanged':
      return `Unchanged: ${plant} has this content already, as its ${revision}. Nothing was stored.`;
    default:
      return 'The response is 200, without the headers that say what was done. Does a gateway in between remove them?';
  }
}

/** @param {string} body of an error, which is small and holds no id */
function errorNumber(body) {
  try {
    return Object(JSON.parse(body)).error;
  } catch {
    return undefined;
  }
}

// Only where the page came over TLS, or from this machine, a browser lets it write to the clipboard.
for (const button of navigator.clipboard === undefined ? [] : document.querySelectorAll('button.copy')) {
  if (!(button instanceof HTMLButtonElement)) continue;
  button.hidden = false;
  button.addEventListener('click', async () => {
    const code = button.parentElement?.querySelector('pre')?.textContent ?? '';
    const copied = navigator.clipboard.writeText(code).then(
      () => 'Copied',
      () => 'Not allowed',
    );
    button.textContent = await copied;
  });
}
