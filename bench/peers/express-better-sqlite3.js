import Database from 'better-sqlite3';
import express from 'express';

const [port, token, path, synchronous] = process.argv.slice(2);

const database = new Database(path);
database.pragma('journal_mode = WAL');
database.pragma(`synchronous = ${synchronous}`);
database.exec('CREATE TABLE IF NOT EXISTS plant (id INTEGER PRIMARY KEY, name TEXT NOT NULL, tag TEXT)');
const insert = database.prepare('INSERT INTO plant (id, name, tag) VALUES (?, ?, ?)');

const app = express();
app.disable('x-powered-by');
app.disable('etag');
app.use((request, response, next) => {
  if (request.get('authorization') === `Bearer ${token}`) next();
  else response.status(401).json({ error: 401, message: 'the credential is missing or wrong' });
});
app.post('/plants', express.json(), (request, response) => {
  const { id, name, tag } = request.body;
  if (!Number.isInteger(id) || typeof name !== 'string' || (tag !== undefined && typeof tag !== 'string')) {
    response.status(400).json({ error: 400, message: 'not a plant' });
    return;
  }
  insert.run(id, name, tag ?? null);
  response.json({ name, tag });
});
const server = app.listen(Number(port), '127.0.0.1');

process.on('SIGTERM', () => {
  server.close();
  database.close();
  process.exit();
});
