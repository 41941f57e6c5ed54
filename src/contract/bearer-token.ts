/** RFC 6750 section 2.1: b64token = 1*( ALPHA / DIGIT / "-" / "." / "_" / "~" / "+" / "/" ) *"=". */
export const BEARER_TOKEN = /^[0-9A-Za-z\-._~+/]+=*$/;
