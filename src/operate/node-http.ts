/**
 * `createServer` of Node's HTTP module. An `import` would read all values of that module, also
 * `WebSocket`, which loads Node's HTTP client and delays the start.
 */
export const { createServer } = process.getBuiltinModule('node:http');
