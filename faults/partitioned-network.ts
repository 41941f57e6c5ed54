import { execFileSync, spawnSync } from 'node:child_process';

/**
 * The links of the instances (`there`) to the store and to their clients. The addresses are
 * reserved for tests: https://www.rfc-editor.org/rfc/rfc2544#appendix-C
 */
export const STORE_LINK = { here: '198.18.0.1', there: '198.18.0.2' };
export const CLIENT_LINK = { here: '198.18.1.1', there: '198.18.1.2' };

/** How the link to the store fails. */
export const PARTITIONS = ['silence', 'unreachable', 'requests lost', 'responses lost'] as const;
export type Partition = (typeof PARTITIONS)[number];

/**
 * A network namespace of Linux for some instances. It has one link to the store and one to the
 * clients, so that only the link to the store can be cut.
 */
export class PartitionedNetwork implements Disposable {
  readonly #name = `plants-${process.pid}`;
  /** Ends of the links. The name of an interface has at most 15 characters. */
  readonly #store = `ps${process.pid}`;
  readonly #client = `pc${process.pid}`;

  constructor() {
    ip('netns', 'add', this.#name);
    try {
      this.#inside('link', 'set', 'lo', 'up');
      this.#addLink(this.#store, 'store', STORE_LINK);
      this.#addLink(this.#client, 'client', CLIENT_LINK);
    } catch (error) {
      this[Symbol.dispose]();
      throw error;
    }
  }

  /** The prefix of a command that runs in this network. */
  get prefix(): string[] {
    return ['ip', 'netns', 'exec', this.#name];
  }

  /**
   * - `silence`: no packet arrives on either side, and no side gets an error;
   * - `unreachable`: the instances get an error from the network;
   * - `requests lost`: packets of the instances do not arrive;
   * - `responses lost`: packets of the store do not arrive.
   */
  begin(partition: Partition): void {
    this.#set(partition, 'down', 'add');
  }

  end(partition: Partition): void {
    this.#set(partition, 'up', 'del');
  }

  #set(partition: Partition, link: 'down' | 'up', route: 'add' | 'del'): void {
    const { here, there } = STORE_LINK;
    if (partition === 'silence') ip('link', 'set', this.#store, link);
    else if (partition === 'unreachable') this.#inside('link', 'set', 'store', link);
    else if (partition === 'requests lost') this.#inside('route', route, 'blackhole', `${here}/32`);
    else ip('route', route, 'blackhole', `${there}/32`);
  }

  /** Deletes the namespace and the links, with their routes. A route of a partition may be left. */
  [Symbol.dispose](): void {
    spawnSync('ip', ['route', 'del', 'blackhole', `${STORE_LINK.there}/32`]);
    spawnSync('ip', ['link', 'del', this.#store]);
    spawnSync('ip', ['link', 'del', this.#client]);
    spawnSync('ip', ['netns', 'del', this.#name]);
  }

  #addLink(name: string, peer: string, { here, there }: { here: string; there: string }): void {
    ip('link', 'add', name, 'type', 'veth', 'peer', 'name', peer, 'netns', this.#name);
    ip('addr', 'add', `${here}/30`, 'dev', name);
    ip('link', 'set', name, 'up');
    this.#inside('addr', 'add', `${there}/30`, 'dev', peer);
    this.#inside('link', 'set', peer, 'up');
  }

  #inside(...args: string[]): void {
    ip('-n', this.#name, ...args);
  }
}

function ip(...args: string[]): void {
  execFileSync('ip', args);
}
