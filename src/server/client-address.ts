import { BlockList, isIP, isIPv6 } from 'node:net';

/**
 * @param proxies IP addresses and networks, such as `10.0.0.0/8`
 * @throws on any other text
 */
export function trustedProxiesOf(proxies: readonly string[]): BlockList {
  const list = new BlockList();
  for (const proxy of proxies) {
    const [, address = '', bits] = /^([^/]+)(?:\/([0-9]{1,3}))?$/.exec(proxy) ?? [];
    if (isIPv6(address)) list.addSubnet(address, Number(bits ?? 128), 'ipv6');
    else list.addSubnet(address, Number(bits ?? 32), 'ipv4');
  }
  return list;
}

/**
 * The address of the client behind trusted proxies. It is the last one in X-Forwarded-For that is
 * no trusted proxy, because each proxy appends the address of its own client. Earlier addresses may
 * be forged.
 *
 * @param forwardedFor the field's value; several fields are joined by commas
 */
export function clientAddress(
  remoteAddress: string | undefined,
  forwardedFor: string | undefined,
  trustedProxies: BlockList | undefined,
): string | undefined {
  if (trustedProxies === undefined || forwardedFor === undefined) return remoteAddress;
  const isTrusted = (each: string) => trustedProxies.check(each, isIPv6(each) ? 'ipv6' : 'ipv4');
  let address = remoteAddress;
  const forwarded = forwardedFor.split(',');
  while (address !== undefined && isTrusted(address)) {
    const before = forwarded.pop()?.trim() ?? '';
    // The zone of an IPv6 address may be any text.
    if (isIP(before) === 0 || before.includes('%')) break;
    address = before;
  }
  return address;
}
