import { createServer } from 'node:http';

/** A bare server that parses a plant, responds with it, and stores nothing. */
const server = createServer((request, response) => {
  const chunks: Buffer[] = [];
  request.on('data', chunk => chunks.push(chunk));
  request.on('end', () => {
    const { name, tag } = JSON.parse(Buffer.concat(chunks).toString());
    const body = JSON.stringify({ name, tag });
    response.writeHead(200, {
      'Content-Type': 'application/json',
      'Content-Length': Buffer.byteLength(body),
    });
    response.end(body);
  });
});
server.listen(Number(process.argv[2]), '127.0.0.1');
