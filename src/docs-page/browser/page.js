// The script of the documentation page. It has no build step, so it uses widely supported syntax.

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

/** Relative to the page, since a proxy may put a path in front of both `/docs` and `/plants`. */
const plantsUrl = new URL('plants', location.href);
const baseAddress = plantsUrl.href.slice(0, -'/plants'.length);
for (const place of document.querySelectorAll('.address, .sample pre'))
  place.textContent = (place.textContent ?? '').replaceAll('https://plants.example', baseAddress);

const form = element('plant-form', HTMLFormElement);
const token = element('token', HTMLInputElement);
const id = element('plant-id', HTMLInputElement);
const name = element('plant-name', HTMLInputElement);
const hasTag = element('has-tag', HTMLInputElement);
const tag = element('plant-tag', HTMLInputElement);
const sendButton = element('send-button', HTMLButtonElement);
const verdict = element('verdict', HTMLElement);
const wire = element('wire', HTMLElement);

const RESPONSE_TIMEOUT_MS = 20_000;

function enableTag() {
  tag.disabled = !hasTag.checked;
}
hasTag.addEventListener('change', enableTag);
// A browser may restore the check box when the user returns to the page.
enableTag();

// A browser may cache the page with its fields. The token must not stay in that cache.
addEventListener('pagehide', () => {
  token.value = '';
});

form.addEventListener('submit', event => {
  event.preventDefault();
  void send();
});
// The result of the previous plant must not be shown for this one.
form.addEventListener('input', clearVerdict);
sendButton.disabled = false;

let isSending = false;

function clearVerdict() {
  delete verdict.dataset.result;
  verdict.textContent = '';
  wire.hidden = true;
}

async function send() {
  if (isSending) return;
  isSending = true;
  clearVerdict();
  verdict.textContent = 'Sending …';
  const tokenSent = token.value;
  // The id is inserted as typed: a JavaScript number would round it.
  const tagMember = hasTag.checked ? `,"tag":${JSON.stringify(tag.value)}` : '';
  const body = `{"id":${id.value},"name":${JSON.stringify(name.value)}${tagMember}}`;
  const exchange = await post(body);
  element('sent', HTMLElement).textContent = requestText(body);
  // A gateway may repeat the token in its response.
  if (exchange !== undefined) exchange.text = exchange.text.replaceAll(tokenSent, '<ACCESS_TOKEN>');
  const received = exchange === undefined ? 'none' : responseText(exchange);
  element('received', HTMLElement).textContent = received.replaceAll(tokenSent, '<ACCESS_TOKEN>');
  wire.hidden = false;
  verdict.replaceChildren(...(exchange === undefined ? [NO_RESPONSE] : verdictOf(exchange)));
  verdict.dataset.result = exchange?.response.status === 200 ? 'stored' : 'rejected';
  // On a small screen, the result may be outside the visible area.
  verdict.scrollIntoView({ block: 'nearest', behavior: 'instant' });
  isSending = false;
}

const NO_RESPONSE =
  'No response. Is the service running? The plant may or may not be stored. Sending it again is safe.';

/**
 * @typedef {{ response: Response, text: string }} Exchange
 * @param {string} body
 * @returns {Promise<Exchange | undefined>} undefined if no complete response arrived
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

/** @param {Exchange} exchange */
function responseText({ response: { status, statusText, headers }, text }) {
  const fields = [...headers].map(([field, value]) => `${field}: ${value}`);
  return [`${status} ${statusText}`.trimEnd(), ...fields, '', text].join('\n');
}

/** @param {Exchange} exchange */
function verdictOf({ response: { status, headers }, text }) {
  if (status === 200) return [storedText(headers)];
  const [, number] = /#error-([0-9]+)>; rel="help"/.exec(headers.get('Link') ?? '') ?? [];
  if (number === undefined)
    return [`Rejected with ${status}, but not by a plant store. Is there a gateway in front of it?`];
  const link = document.createElement('a');
  link.href = `#error-${number}`;
  link.textContent = `what error ${number} means`;
  return [`Rejected with ${status}: ${messageIn(text)} (`, link, ')'];
}

/** @param {string} text body of an Error */
function messageIn(text) {
  try {
    return JSON.parse(text).message;
  } catch {
    return 'the response is not JSON';
  }
}

/** @param {Headers} headers */
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
    const code = button.parentElement?.querySelector('pre')?.textContent ?? '';
    const copied = navigator.clipboard.writeText(code).then(
      () => 'Copied',
      () => 'Not allowed',
    );
    button.textContent = await copied;
  });
}
