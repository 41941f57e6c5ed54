import { Database } from 'bun:sqlite';
import { Elysia, t } from 'elysia';

const [port, token, path, synchronous] = process.argv.slice(2);

const database = new Database(path);
database.run('PRAGMA journal_mode = WAL');
database.run(`PRAGMA synchronous = ${synchronous}`);
database.run('CREATE TABLE IF NOT EXISTS plant (id INTEGER PRIMARY KEY, name TEXT NOT NULL, tag TEXT)');
const insert = database.prepare('INSERT INTO plant (id, name, tag) VALUES (?, ?, ?)');

new Elysia()
  .onBeforeHandle(({ headers, status }) => {
    if (headers.authorization !== `Bearer ${token}`) {
      return status(401, { error: 401, message: 'the credential is missing or wrong' });
    }
  })
  .post(
    '/plants',
    ({ body }) => {
      insert.run(body.id, body.name, body.tag ?? null);
      return { name: body.name, tag: body.tag };
    },
    { body: t.Object({ id: t.Integer(), name: t.String(), tag: t.Optional(t.String()) }) },
  )
  .listen({ port: Number(port), hostname: '127.0.0.1' });

process.on('SIGTERM', () => {
  database.close();
  process.exit();
});
