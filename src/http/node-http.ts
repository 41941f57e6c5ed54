/**
 * Node's HTTP module, for the service. An `import` of its values would look at every one of them, `WebSocket` too, and that
 * loads Node's HTTP client: a tenth of a start.
 */
export const { createServer, Server, STATUS_CODES } = process.getBuiltinModule('node:http');
