import Database from 'better-sqlite3';
import Fastify from 'fastify';

const [port, token, path, synchronous] = process.argv.slice(2);

const database = new Database(path);
database.pragma('journal_mode = WAL');
database.pragma(`synchronous = ${synchronous}`);
database.exec('CREATE TABLE IF NOT EXISTS plant (id INTEGER PRIMARY KEY, name TEXT NOT NULL, tag TEXT)');
const insert = database.prepare('INSERT INTO plant (id, name, tag) VALUES (?, ?, ?)');

const name = { type: 'string' };
const tag = { type: 'string' };
const server = Fastify();
server.addHook('onRequest', async (request, reply) => {
  if (request.headers.authorization !== `Bearer ${token}`) {
    return reply.code(401).send({ error: 401, message: 'the credential is missing or wrong' });
  }
});
server.post(
  '/plants',
  {
    schema: {
      body: {
        type: 'object',
        required: ['id', 'name'],
        properties: { id: { type: 'integer' }, name, tag },
      },
      response: { 200: { type: 'object', required: ['name'], properties: { name, tag } } },
    },
  },
  async request => {
    const plant = request.body;
    insert.run(plant.id, plant.name, plant.tag ?? null);
    return { name: plant.name, tag: plant.tag };
  },
);
await server.listen({ port: Number(port), host: '127.0.0.1' });

process.on('SIGTERM', async () => {
  await server.close();
  database.close();
  process.exit();
});
