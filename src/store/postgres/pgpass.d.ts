declare module 'pgpass' {
  import type { Writable } from 'node:stream';

  type Connection = { host: string; port: number; database: string; user: string };
  const pgpass: {
    (connection: Connection, found: (password: string | undefined) => void): void;
    warnTo(stream: Writable): void;
  };
  export default pgpass;
}
