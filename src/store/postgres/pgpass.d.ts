declare module 'pgpass' {
  import type { Writable } from 'node:stream';

  /** Looks a password up in the file that PGPASSFILE names, or in ~/.pgpass; undefined when it is not there. */
  function pgpass(
    connection: { host: string; port: number; database: string; user: string },
    found: (password: string | undefined) => void,
  ): void;

  namespace pgpass {
    /** Where it says why it passes a file over; stderr if not told otherwise. */
    function warnTo(stream: Writable): void;
  }

  export default pgpass;
}
