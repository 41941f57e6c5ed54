import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  isLoopback,
  type ListenAddress,
  listenAddressOf,
  listenAddressText,
  listenerUrl,
} from '../../src/server/listen-address.ts';

type Case = [text: string, address: ListenAddress, url: string, urlOfOther: string, isLoopback: boolean];

const LOCAL = 'http://127.0.0.1:8080';
const OTHER = 'http://garden:8080';

const CASES: Case[] = [
  ['127.0.0.1:8080', { host: '127.0.0.1', port: 8080 }, LOCAL, LOCAL, true],
  ['0.0.0.0:8080', { host: '0.0.0.0', port: 8080 }, LOCAL, OTHER, false],
  ['[::]:8080', { host: '::', port: 8080 }, 'http://[::1]:8080', OTHER, false],
  ['[::1]:0', { host: '::1', port: 0 }, 'http://[::1]:0', 'http://[::1]:0', true],
  [
    'localhost:65535',
    { host: 'localhost', port: 65_535 },
    'http://localhost:65535',
    'http://localhost:65535',
    true,
  ],
];

test('an address has one text, one URL for this machine, and one for others', () => {
  for (const [text, address, url, urlOfOther, isLocal] of CASES) {
    assert.deepEqual(listenAddressOf(text), address);
    assert.equal(listenAddressText(address), text);
    assert.equal(listenerUrl(address), url);
    assert.equal(listenerUrl(address, 'garden'), urlOfOther);
    assert.equal(isLoopback(address), isLocal);
  }
});

test('a port alone is on loopback, and a malformed text is no address', () => {
  for (const text of ['8080', ':8080'])
    assert.deepEqual(listenAddressOf(text), { host: '127.0.0.1', port: 8080 });
  for (const text of ['', ':', '65536', '::1:8080', '[::1]', '[host]:1', 'host:', 'host:123456'])
    assert.equal(listenAddressOf(text), undefined, text);
});
