import { execFileSync, spawnSync } from 'node:child_process';

/**
 * Between the instances (`there`) and the store, and between them and their clients. Addresses for trials, which no network
 * has: https://www.rfc-editor.org/rfc/rfc2544#appendix-C
 */
export const STORE_LINK = { here: '198.18.0.1', there: '198.18.0.2' };
export const CLIENT_LINK = { here: '198.18.1.1', there: '198.18.1.2' };

/** How the way to the store fails. */
export const PARTITIONS = ['silence', 'unreachable', 'requests lost', 'answers lost'] as const;
export type Partition = (typeof PARTITIONS)[number];

/**
 * A network of its own for some instances (a network namespace of Linux), with one link to the store and another one to the
 * clients, so that the way to the store can be cut and nothing else.
 */
export class PartitionedNetwork implements Disposable {
  readonly #name = `plants-${process.pid}`;
  /** Ends of the links: a name of an interface has 15 characters at most. */
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

  /** What stands before a command that is to run there. */
  get prefix(): string[] {
    return ['ip', 'netns', 'exec', this.#name];
  }

  /**
   * - `silence`: nothing arrives on either side, and nobody is told;
   * - `unreachable`: the instances are told that there is no way;
   * - `requests lost`: what the instances send does not arrive;
   * - `answers lost`: what the store sends does not arrive.
   */
  begin(partition: Partition): void {
    const { here, there } = STORE_LINK;
    if (partition === 'silence') ip('link', 'set', this.#store, 'down');
    else if (partition === 'unreachable') this.#inside('link', 'set', 'store', 'down');
    else if (partition === 'requests lost') this.#inside('route', 'add', 'blackhole', `${here}/32`);
    else ip('route', 'add', 'blackhole', `${there}/32`);
  }

  end(partition: Partition): void {
    const { here, there } = STORE_LINK;
    if (partition === 'silence') ip('link', 'set', this.#store, 'up');
    else if (partition === 'unreachable') this.#inside('link', 'set', 'store', 'up');
    else if (partition === 'requests lost') this.#inside('route', 'del', 'blackhole', `${here}/32`);
    else ip('route', 'del', 'blackhole', `${there}/32`);
  }

  /** The links go with the namespace, and routes to them with the links; a route of a partition may be left. */
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
