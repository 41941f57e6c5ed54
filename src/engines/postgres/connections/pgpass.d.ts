declare module 'pgpass' {
  type Connection = { host: string; port: number; database: string; user: string };
  export default function pgpass(connection: Connection, found: (password: string | undefined) => void): void;
}
