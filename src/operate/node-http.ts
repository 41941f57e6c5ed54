/**
 * Node's HTTP module. An `import` of its values would read all of them. Reading `WebSocket` loads
 * Node's HTTP client, which delays the start.
 */
export const { createServer } = process.getBuiltinModule('node:http');
