/**
 * The syntax of a bearer token, `b64token` in RFC 6750 section 2.1. It is part of the contract, since
 * the client library imports nothing else of core.
 */
export const BEARER_TOKEN = /^[0-9A-Za-z\-._~+/]+=*$/;
