/**
 * b64token of RFC 6750 section 2.1: 1*( ALPHA / DIGIT / "-" / "." / "_" / "~" / "+" / "/" ) *"=".
 */
export const BEARER_TOKEN = /^[0-9A-Za-z\-._~+/]+=*$/;
