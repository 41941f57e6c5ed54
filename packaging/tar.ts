/** A file or, if the path ends in a slash, a folder. */
export interface TarEntry {
  /** Without a slash at the start. */
  path: string;
  content?: Uint8Array | string;
  mode?: number;
  /** The number of its user and group. */
  owner?: number;
}

const BLOCK_BYTES = 512;

/**
 * Makes a tar archive (POSIX.1-1988, ustar). Its bytes depend only on the arguments. Missing parent
 * folders belong to root.
 *
 * @param seconds the modification time of all entries, since 1970
 */
export function tar(entries: readonly TarEntry[], seconds: number): Buffer {
  const byPath = new Map<string, TarEntry>();
  for (const { path } of entries)
    for (const { index } of path.matchAll(/\//g)) {
      const parent = path.slice(0, index + 1);
      byPath.set(parent, { path: parent });
    }
  for (const entry of entries) byPath.set(entry.path, entry);
  const sorted = [...byPath.keys()].sort().map(path => byPath.get(path)!);
  const parts = sorted.flatMap(entry => {
    const content = Buffer.from(entry.content ?? '');
    return [header(entry, content.length, seconds), content, padding(content.length)];
  });
  return Buffer.concat([...parts, Buffer.alloc(2 * BLOCK_BYTES)]);
}

function header({ path, mode, owner = 0 }: TarEntry, bytes: number, seconds: number): Buffer {
  const isFolder = path.endsWith('/');
  const block = Buffer.alloc(BLOCK_BYTES);
  if (Buffer.byteLength(path) > 100) throw new Error(`the path is too long for ustar: ${path}`);
  block.write(path, 0);
  const numbers: [value: number, offset: number, digits: number][] = [
    [mode ?? (isFolder ? 0o755 : 0o644), 100, 7],
    [owner, 108, 7],
    [owner, 116, 7],
    [bytes, 124, 11],
    [seconds, 136, 11],
  ];
  for (const [value, offset, digits] of numbers) block.write(value.toString(8).padStart(digits, '0'), offset);
  block.write(isFolder ? '5' : '0', 156);
  block.write('ustar\x0000', 257);
  // The checksum counts its own field as blanks.
  block.fill(' ', 148, 156);
  const sum = block.reduce((total, byte) => total + byte, 0);
  block.write(`${sum.toString(8).padStart(6, '0')}\0 `, 148);
  return block;
}

function padding(bytes: number): Buffer {
  return Buffer.alloc((BLOCK_BYTES - (bytes % BLOCK_BYTES)) % BLOCK_BYTES);
}
