declare module 'pgpass' {
  /** Looks a password up in the file that PGPASSFILE names, or in ~/.pgpass; undefined when it is not there. */
  export default function pgpass(
    connection: { host: string; port: number; database: string; user: string },
    found: (password: string | undefined) => void,
  ): void;
}
