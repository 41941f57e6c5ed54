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
const sent = element('sent', HTMLElement);
const received = element('received', HTMLElement);

const ANSWER_WAIT_MS = 20_000;

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
function judge(field) {
  const fault = faults.get(field)?.() ?? '';
  element(`${field.id}-fault`, HTMLElement).textContent = fault;
  if (fault === '') field.removeAttribute('aria-invalid');
  else field.setAttribute('aria-invalid', 'true');
  return fault === '';
}

// A fault is first said when the form is to be sent: said when a field is left, it would move the button away from under
// the pointer that is about to press it. From then on it is said as long as it is there.
for (const field of faults.keys()) {
  field.addEventListener('input', () => field.hasAttribute('aria-invalid') && judge(field));
}
hasTag.addEventListener('change', () => {
  tag.disabled = !hasTag.checked;
  if (tag.disabled) judge(tag);
});
// A browser that comes back to the page may have ticked it otherwise.
tag.disabled = !hasTag.checked;

// A browser may keep the page as it is to come back to it, and the token is not to wait there.
addEventListener('pagehide', () => {
  token.value = '';
});

form.addEventListener('submit', event => {
  event.preventDefault();
  const faulty = [...faults.keys()].filter(field => !judge(field));
  if (faulty[0] === undefined) void send();
  else faulty[0].focus();
});
sendButton.disabled = false;

/** The id goes into the body as the digits that were typed: a number of JavaScript would round it. */
function bodyOfFields() {
  const tagMember = hasTag.checked ? `,"tag":${JSON.stringify(tag.value)}` : '';
  return `{"id":${id.value},"name":${JSON.stringify(name.value)}${tagMember}}`;
}

let isSending = false;

async function send() {
  if (isSending) return;
  isSending = true;
  delete verdict.dataset.result;
  verdict.textContent = 'Sending …';
  // What is there is of the plant before.
  wire.hidden = true;
  const body = bodyOfFields();
  const tokenSent = token.value;
  const exchange = await post(body);
  const version = httpVersion();
  sent.textContent = requestText(body, version);
  received.textContent = exchange === undefined ? 'none' : answerText(exchange, version, tokenSent);
  wire.hidden = false;
  verdict.replaceChildren(...(exchange === undefined ? [NO_ANSWER] : verdictOf(exchange)));
  verdict.dataset.result = exchange?.answer.status === 200 ? 'kept' : 'refused';
  // On a small screen it is out of sight.
  verdict.scrollIntoView({ block: 'nearest', behavior: 'instant' });
  isSending = false;
}

const NO_ANSWER =
  'No answer came. Is the service running? The plant may be kept or not; sending it again settles that.';

/**
 * @typedef {{ answer: Response, text: string }} Exchange
 * @param {string} body
 * @returns {Promise<Exchange | undefined>} undefined when no whole answer came
 */
async function post(body) {
  try {
    const answer = await fetch(plantsUrl, {
      method: 'POST',
      headers: { Authorization: `Bearer ${token.value}`, 'Content-Type': 'application/json' },
      body,
      cache: 'no-store',
      credentials: 'omit',
      redirect: 'error',
      signal: AbortSignal.timeout(ANSWER_WAIT_MS),
    });
    return { answer, text: await answer.text() };
  } catch {
    return undefined;
  }
}

/** Which one was spoken, as the browser has noted it; it keeps notes of a limited number of requests. */
function httpVersion() {
  const entry = performance.getEntriesByName(plantsUrl.href).at(-1);
  const spoken = entry instanceof PerformanceResourceTiming ? entry.nextHopProtocol : '';
  performance.clearResourceTimings();
  return { 'http/1.1': 'HTTP/1.1', h2: 'HTTP/2', h3: 'HTTP/3' }[spoken] ?? 'HTTP';
}

/**
 * @param {string} body
 * @param {string} version
 */
function requestText(body, version) {
  const length = new TextEncoder().encode(body).length;
  return [
    `POST ${plantsUrl.pathname} ${version}`,
    `Host: ${plantsUrl.host}`,
    'Authorization: Bearer <ACCESS_TOKEN>',
    'Content-Type: application/json',
    `Content-Length: ${length}`,
    '',
    body,
  ].join('\n');
}

/**
 * @param {Exchange} exchange
 * @param {string} version
 * @param {string} tokenSent
 */
function answerText({ answer: { status, statusText, headers }, text }, version, tokenSent) {
  const fields = [...headers].map(([field, value]) => `${field}: ${value}`);
  const lines = [`${version} ${status} ${statusText}`.trimEnd(), ...fields, '', text];
  // What stands between may repeat what it was sent.
  return lines.join('\n').replaceAll(tokenSent, '<ACCESS_TOKEN>');
}

/** @param {Exchange} exchange */
function verdictOf({ answer: { status, headers }, text }) {
  if (status === 200) return [keptText(headers)];
  const number = errorNumber(text);
  const anchor = `error-${number}`;
  if (document.getElementById(anchor) === null)
    return [`Refused with ${status}, and not in the words of a plant store. Is there a gateway in between?`];
  const link = document.createElement('a');
  link.href = `#${anchor}`;
  link.textContent = `what error ${number} means`;
  return [`Refused with ${status}: `, link, '.'];
}

/** @param {Headers} headers */
function keptText(headers) {
  const plant = `plant ${headers.get('Plant-Id')}`;
  const revision = `revision ${headers.get('Plant-Revision')}`;
  switch (headers.get('Plant-Outcome')) {
    case 'created':
      return `Created: ${plant} is on disk, as its ${revision}.`;
    case 'revised':
      return `Revised: ${plant} was there with other content; this is on disk as its ${revision}.`;
    case 'unchanged':
      return `Unchanged: ${plant} is there with this content, as its ${revision}. Nothing was stored.`;
    default:
      return 'Answered 200, without the headers that say what was done. Does a gateway in between take them away?';
  }
}

/** @param {string} body of an error answer, which is small and holds no id */
function errorNumber(body) {
  try {
    return Object(JSON.parse(body)).error;
  } catch {
    return undefined;
  }
}

const languages = document.querySelectorAll('input[name=language]');
const samples = document.querySelectorAll('.sample');
function showSample() {
  const chosen = document.querySelector('input[name=language]:checked');
  for (const sample of samples) {
    if (sample instanceof HTMLElement && chosen instanceof HTMLInputElement)
      sample.hidden = sample.dataset.language !== chosen.value;
  }
}
for (const language of languages) language.addEventListener('change', showSample);
showSample();

// Only where the page came over TLS, or from this machine, a browser lets it write to the clipboard.
if (navigator.clipboard !== undefined) {
  for (const button of document.querySelectorAll('button.copy')) {
    if (!(button instanceof HTMLButtonElement)) continue;
    button.hidden = false;
    button.addEventListener('click', () => {
      const code = button.closest('.sample')?.querySelector('pre')?.textContent ?? '';
      void navigator.clipboard.writeText(code).then(
        () => (button.textContent = 'Copied'),
        () => (button.textContent = 'Not allowed'),
      );
    });
  }
}
