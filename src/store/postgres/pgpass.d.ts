declare module 'pgpass' {
  import type { Writable } from 'node:stream';

  function pgpass(
    connection: { host: string; port: number; database: string; user: string },
    found: (password: string | undefined) => void,
  ): void;

  namespace pgpass {
    function warnTo(stream: Writable): void;
  }

  export default pgpass;
}
