/**
 * Node's HTTP module. An `import` of its values would read all of them. Reading `WebSocket` loads
 * Node's HTTP client, which takes a tenth of the start time.
 */
export const { createServer, Server, STATUS_CODES } = process.getBuiltinModule('node:http');
