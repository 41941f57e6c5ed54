import type { HeaderFields } from './header-fields.ts';

/** Received bytes as a text with one character for each byte (latin1). */
export type ByteText = string;

/** How the bytes of a body are delimited (RFC 9112 section 6.3). */
export type BodyFraming = { kind: 'length'; bytes: number } | { kind: 'chunked' };

/** The request line and the header section of a valid request. */
export interface RequestHeaders {
  readonly method: string;
  readonly target: string;
  /** The path of the target, decoded except for delimiters, if it can be decoded. */
  readonly path: string;
  readonly fields: HeaderFields;
  readonly framing: BodyFraming;
  /** Whether the client waits for 100 (Continue) before it sends the body. */
  readonly expectsContinue: boolean;
  /** Whether this is the last request of its connection. */
  readonly isLast: boolean;
  readonly contentType: string | undefined;
  readonly forwardedFor: string | undefined;
  readonly host: string | undefined;
  readonly userAgent: string | undefined;
}

/** What is known of a request when its response is written. */
export interface ReceivedRequest {
  /** When the whole request arrived, or its headers if no body was read; ms, monotonic clock. */
  arrivedAt: number;
  /** Length of the body that was read. */
  bodyBytes: number;
  /** The body, if it was read. */
  body?: Uint8Array | ByteText | undefined;
  /** The id of its token, if the store has it. A rejected token may be expired or revoked. */
  tokenId?: number | undefined;
  readonly headers: RequestHeaders;
}

/** The result of receiving a body. */
export type BodyReading =
  | { kind: 'whole'; bytes: Uint8Array }
  | { kind: 'tooLarge' }
  /** Too many long bodies are in memory. */
  | { kind: 'noRoom' }
  /** Nobody waits for the response any more. */
  | { kind: 'abandoned' };

/** A request whose body was not read, and whose response was not decided. */
export interface OpenRequest {
  readonly request: ReceivedRequest;
  /** Whether the client still waits for the response. */
  readonly isAwaited: boolean;
  /** Receives the body, once. */
  readBody(bytesMax: number): Promise<BodyReading>;
}
