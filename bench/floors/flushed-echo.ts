import { fdatasync, openSync, write } from 'node:fs';
import { createServer, type ServerResponse } from 'node:http';

/**
 * A bare server as durable as the plant store: it appends plants to a file, and responds after a
 * shared `fdatasync`. It checks no ids and no credentials, and cannot read plants.
 */
const [port, , path] = process.argv.slice(2);

const file = openSync(path!, 'a');
let waiting: { plant: Buffer; response: ServerResponse }[] = [];
let isFlushing = false;

const server = createServer((request, response) => {
  const chunks: Buffer[] = [];
  request.on('data', chunk => chunks.push(chunk));
  request.on('end', () => {
    waiting.push({ plant: Buffer.concat(chunks), response });
    // After all requests of this event-loop iteration.
    if (!isFlushing) setImmediate(flush);
    isFlushing = true;
  });
});
server.listen(Number(port), '127.0.0.1');

function flush(): void {
  const flushed = waiting;
  waiting = [];
  write(file, Buffer.concat(flushed.map(({ plant }) => plant)), error => {
    if (error !== null) throw error;
    fdatasync(file, syncError => {
      if (syncError !== null) throw syncError;
      // First, so that the disk works during the responses.
      if (waiting.length > 0) flush();
      else isFlushing = false;
      for (const { plant, response } of flushed) respond(plant, response);
    });
  });
}

function respond(plant: Buffer, response: ServerResponse): void {
  const { name, tag } = JSON.parse(plant.toString());
  const body = JSON.stringify({ name, tag });
  response.writeHead(200, {
    'Content-Type': 'application/json',
    'Content-Length': Buffer.byteLength(body),
  });
  response.end(body);
}
