import Fastify from 'fastify';

const name = { type: 'string' };
const tag = { type: 'string' };

/** A route with schemas for request and response, which Fastify compiles. It stores nothing. */
const server = Fastify();
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
    return { name: plant.name, tag: plant.tag };
  },
);
await server.listen({ port: Number(process.argv[2]), host: '127.0.0.1' });
