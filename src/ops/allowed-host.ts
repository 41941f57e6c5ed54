import { isIPv4, isIPv6 } from 'node:net';

/** A Host field: an IPv6 address in brackets or another host, and perhaps a port (RFC 9110 section 7.2). */
const HOST_FIELD = /^(?:\[(.*)\]|([^:]*))(?::[0-9]*)?$/;

/**
 * Whether the operations listener answers a request with this Host field. It has no credential, so a web page must not reach
 * it. A page can make its own name lead to this machine (DNS rebinding), but the Host field then has that name: only
 * addresses, names that always lead to this machine (RFC 6761 section 6.3) and configured names are allowed.
 *
 * @param names the configured ones
 */
export function isAllowedHost(field: string, names: readonly string[]): boolean {
  const [, bracketed, host] = HOST_FIELD.exec(field) ?? [];
  if (host === undefined) return isIPv6(bracketed ?? '');
  const name = comparable(host);
  return isIPv4(name) || /(?:^|\.)localhost$/.test(name) || names.some(each => comparable(each) === name);
}

/** A name with and without a final dot is the same, in capitals and in small letters too (RFC 1034 section 3.1). */
function comparable(name: string): string {
  return name.toLowerCase().replace(/\.$/, '');
}
