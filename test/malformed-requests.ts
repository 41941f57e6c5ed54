import { type RequestParts, requestBytes } from './harness/raw-connection.ts';

/** Bytes that are not a request of HTTP/1.1, though a lenient parser may find one in them. */
export interface MalformedRequest {
  what: string;
  /** What it is answered with; 400 if not given. */
  status?: number;
  /** @param body the NewPlant that must not be stored */
  bytes(token: string, body: string): Uint8Array;
}

/** A request that is well-formed but for what is given. */
function request(what: string, parts: (body: string) => RequestParts): MalformedRequest {
  return { what, bytes: (token, body) => requestBytes(token, { body, ...parts(body) }) };
}

/** A request whose bytes are changed as text. */
function changed(what: string, change: (text: string) => string): MalformedRequest {
  return { what, bytes: (token, body) => Buffer.from(change(requestBytes(token, { body }).toString())) };
}

const CHUNKED = { 'Content-Length': null, 'Transfer-Encoding': 'chunked' };

/** One chunk with the whole body, and the last chunk. */
function chunks(body: string, size = body.length.toString(16), end = '\r\n'): string {
  return `${size}\r\n${body}${end}0\r\n\r\n`;
}

/** Each is wrong by RFC 9112; the first two groups are how requests are smuggled past a proxy (section 11.2). */
export const NOT_HTTP: MalformedRequest[] = [
  request('Content-Length with Transfer-Encoding', body => ({
    headers: { 'Transfer-Encoding': 'chunked' },
    body: chunks(body),
  })),
  request('Content-Length twice with different values', body => ({
    headers: { 'Content-Length': [String(body.length), '5'] },
  })),
  request('Content-Length twice in one field', body => ({
    headers: { 'Content-Length': `${body.length}, 5` },
  })),
  request('Content-Length twice with the same value', body => ({
    headers: { 'Content-Length': [String(body.length), String(body.length)] },
  })),
  request('a Content-Length with a space in it', body => ({
    headers: { 'Content-Length': `${String(body.length).slice(0, 1)} ${String(body.length).slice(1)}` },
  })),
  request('a negative Content-Length', () => ({ headers: { 'Content-Length': '-1' } })),
  request('a Content-Length with a sign', body => ({ headers: { 'Content-Length': `+${body.length}` } })),
  request('a Content-Length in hexadecimal', body => ({
    headers: { 'Content-Length': `0x${body.length.toString(16)}` },
  })),
  request('an empty Content-Length', () => ({ headers: { 'Content-Length': '' } })),
  request('a Content-Length beyond 64 bits', () => ({
    headers: { 'Content-Length': '18446744073709551617' },
  })),
  request('an unknown Transfer-Encoding', body => ({
    headers: { 'Content-Length': null, 'Transfer-Encoding': 'flowers' },
    body,
  })),
  request('chunked that is not the last Transfer-Encoding', body => ({
    headers: { 'Content-Length': null, 'Transfer-Encoding': 'chunked, gzip' },
    body: chunks(body),
  })),
  request('chunked twice', body => ({
    headers: { 'Content-Length': null, 'Transfer-Encoding': ['chunked', 'chunked'] },
    body: chunks(body),
  })),

  request('chunked in one list with identity', body => ({
    headers: { 'Content-Length': null, 'Transfer-Encoding': 'chunked, identity' },
    body: chunks(body),
  })),
  request('identity in front of chunked, with a Content-Length', body => ({
    headers: { 'Transfer-Encoding': 'identity, chunked' },
    body: chunks(body),
  })),
  request('a Transfer-Encoding that ends like chunked', body => ({
    headers: { 'Content-Length': null, 'Transfer-Encoding': 'xchunked' },
    body: chunks(body),
  })),
  request('chunked in quotes', body => ({
    headers: { 'Content-Length': null, 'Transfer-Encoding': '"chunked"' },
    body: chunks(body),
  })),
  request('a vertical tab before chunked', body => ({
    headers: { 'Content-Length': null, 'Transfer-Encoding': '\vchunked' },
    body: chunks(body),
  })),
  request('chunked on the next line', body => ({
    headers: { 'Content-Length': null, 'Transfer-Encoding': '\r\n chunked' },
    body: chunks(body),
  })),
  request('a Transfer-Encoding in HTTP/1.0, which has none', body => ({
    version: '1.0',
    headers: { ...CHUNKED, Connection: 'keep-alive' },
    body: chunks(body),
  })),
  request('an empty Transfer-Encoding', () => ({
    headers: { 'Content-Length': null, 'Transfer-Encoding': '' },
  })),

  request('a chunk size with 0x', body => ({
    headers: CHUNKED,
    body: chunks(body, `0x${body.length.toString(16)}`),
  })),
  request('a chunk size with a plus', body => ({
    headers: CHUNKED,
    body: chunks(body, `+${body.length.toString(16)}`),
  })),
  request('a chunk size with a space before it', body => ({
    headers: CHUNKED,
    body: chunks(body, ` ${body.length.toString(16)}`),
  })),
  request('a chunk size with a space behind it', body => ({
    headers: CHUNKED,
    body: chunks(body, `${body.length.toString(16)} `),
  })),
  request('no chunk size', body => ({ headers: CHUNKED, body: chunks(body, '') })),
  request('a chunk extension that ends with a line feed alone', body => ({
    headers: CHUNKED,
    body: `${body.length.toString(16)};a\n${body}\r\n0\r\n\r\n`,
  })),
  request('a chunk extension with a carriage return in it', body => ({
    headers: CHUNKED,
    body: chunks(body, `${body.length.toString(16)};a=\rb`),
  })),
  request('a trailer that ends with a line feed alone', body => ({
    headers: CHUNKED,
    body: `${body.length.toString(16)}\r\n${body}\r\n0\r\nA: b\n\r\n`,
  })),
  request('a chunk size that is no number', body => ({ headers: CHUNKED, body: chunks(body, 'size') })),
  request('a chunk size with a sign', body => ({
    headers: CHUNKED,
    body: chunks(body, `-${body.length.toString(16)}`),
  })),
  request('a chunk size beyond 64 bits', body => ({
    headers: CHUNKED,
    body: chunks(body, '10000000000000001'),
  })),
  request('a chunk that is longer than its size', body => ({ headers: CHUNKED, body: chunks(body, '3') })),
  request('a chunk without its line end', body => ({
    headers: CHUNKED,
    body: chunks(body, undefined, ''),
  })),
  request('a chunk that ends with a line feed alone', body => ({
    headers: CHUNKED,
    body: chunks(body, undefined, '\n'),
  })),
  request('a chunk size that ends with a line feed alone', body => ({
    headers: CHUNKED,
    body: `${body.length.toString(16)}\n${body}\r\n0\r\n\r\n`,
  })),
  {
    ...request('chunk extensions over 16 KiB', body => ({
      headers: CHUNKED,
      body: chunks(body, `${body.length.toString(16)};a=${'b'.repeat(20_000)}`),
    })),
    status: 431,
  },
  {
    ...request('trailers over 16 KiB', body => ({
      headers: CHUNKED,
      body: `${body.length.toString(16)}\r\n${body}\r\n0\r\nA: ${'b'.repeat(20_000)}\r\n\r\n`,
    })),
    status: 431,
  },

  changed('a field on two lines', text => text.replace('Bearer ', 'Bearer\r\n ')),
  changed('a space before the colon', text => text.replace('Content-Length:', 'Content-Length :')),
  changed('a tab before the colon', text => text.replace('Content-Length:', 'Content-Length\t:')),
  changed('lines that end with a carriage return alone', text => text.replaceAll('\r\n', '\r')),
  changed('one line that ends with a line feed alone', text => text.replace('example\r\n', 'example\n')),
  changed('U+0000 in the name of a field', text => text.replace('Content-Length', 'Content\0Length')),
  changed('a tab between method and target', text => text.replace('POST ', 'POST\t')),
  changed('a carriage return before the version', text => text.replace(' HTTP', '\r HTTP')),
  changed('a space before the first field', text => text.replace('\r\nHost', '\r\n Host')),
  changed('a field without a colon', text => text.replace('\r\nHost:', '\r\nflowers\r\nHost:')),
  changed('a field without a name', text => text.replace('\r\nHost:', '\r\n: flowers\r\nHost:')),
  changed('lines that end with a line feed alone', text => text.replaceAll('\r\n', '\n')),
  changed('a carriage return in a field', text => text.replace('plants.example', 'plants\rexample')),
  changed('U+0000 in a field', text => text.replace('plants.example', 'plants\0example')),
  changed('a method in small letters', text => text.replace('POST', 'post')),
  changed('a method that nobody knows', text => text.replace('POST', 'PLANT')),
  changed('a space in the request target', text => text.replace('/plants ', '/plants a ')),
  changed('no version, as in HTTP/0.9', text => text.replace(' HTTP/1.1', '')),
  changed('a version of two digits', text => text.replace('HTTP/1.1', 'HTTP/1.10')),
  changed('HTTP/0.9', text => text.replace('HTTP/1.1', 'HTTP/0.9')),
  changed('HTTP/2.0', text => text.replace('HTTP/1.1', 'HTTP/2.0')),
  changed('HTTP/3.0', text => text.replace('HTTP/1.1', 'HTTP/3.0')),
  changed('another protocol', text => text.replace('HTTP/1.1', 'ICY/1.1')),
  { what: 'the preface of HTTP/2', bytes: () => Buffer.from('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n') },
  { what: 'the hello of TLS', bytes: () => Buffer.from('160301020001000001fc0303', 'hex') },
];
