import { isIPv4, isIPv6 } from 'node:net';

/** RFC 9110 section 7.2: an IPv6 address in brackets or another host, then an optional port. */
const HOST_FIELD = /^(?:\[(.*)\]|([^:]*))(?::[0-9]*)?$/;

/**
 * Whether the operations listener accepts a request with this Host field. The listener needs no
 * credential, so a web page must not reach it. A page can point its own name to this machine (DNS
 * rebinding), but the Host field then contains that name. Only addresses, localhost names (RFC 6761
 * section 6.3) and configured names are allowed.
 *
 * @param names the configured names
 */
export function isAllowedHost(field: string, names: readonly string[]): boolean {
  const [, bracketed, host] = HOST_FIELD.exec(field) ?? [];
  // The host is in brackets, or the field is malformed.
  if (host === undefined) return isIPv6(bracketed ?? '');
  const name = comparable(host);
  return isIPv4(name) || /(?:^|\.)localhost$/.test(name) || names.some(each => comparable(each) === name);
}

/** RFC 1034 section 3.1: a final dot and the case of letters make no difference. */
function comparable(name: string): string {
  return name.toLowerCase().replace(/\.$/, '');
}
