import { readFileSync } from 'node:fs';

/**
 * What the system holds of the connections between clients and a server, both on this machine, by the ports of the clients:
 * bytes that either has sent and the other has not taken, and bytes that either has not read. Where it is the same as
 * before, nothing has moved, though a client sees that of its own side alone.
 *
 * Linux, IPv4 ({@link https://docs.kernel.org/networking/proc_net_tcp.html}).
 */
export function socketQueues(serverPort: number): Map<number, string> {
  const queues = new Map<number, string>();
  const [, ...lines] = readFileSync('/proc/net/tcp', 'latin1').trimEnd().split('\n');
  for (const line of lines) {
    const [, local, remote, , sizes] = line.trim().split(/ +/);
    const ports = [local!, remote!].map(address => Number.parseInt(address.split(':')[1]!, 16));
    if (!ports.includes(serverPort)) continue;
    const clientPort = ports.find(port => port !== serverPort)!;
    queues.set(
      clientPort,
      `${queues.get(clientPort) ?? ''} ${ports[0] === clientPort ? 'client' : 'server'} ${sizes}`,
    );
  }
  return queues;
}
