import { writeFileSync } from 'node:fs';
import jsonServer from 'json-server';

const [port, , path] = process.argv.slice(2);

writeFileSync(path, '{ "plants": [] }');
const server = jsonServer.create();
server.use(jsonServer.defaults({ logger: false }));
server.use(jsonServer.router(path));
server.listen(Number(port), '127.0.0.1');
