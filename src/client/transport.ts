/** An HTTP answer that has arrived whole. */
export interface HttpAnswer {
  status: number;
  /** By their names in lower case; the values of a repeated one are joined by commas. */
  headers: Readonly<Record<string, string | undefined>>;
  body: string;
}

/** Carries requests of one client to one service. */
export interface Transport {
  /**
   * Sends one POST of JSON, once, and waits for its answer. Redirects are not followed.
   *
   * @throws {NoAnswer} when none arrives whole
   * @throws the reason of the signal when it is aborted
   */
  post(body: string, signal: AbortSignal | undefined): Promise<HttpAnswer>;
}

/** What a transport needs to know. */
export interface TransportSettings {
  /** Of the operation. */
  url: URL;
  token: string;
  /** How long to wait for one answer, from when it is the next one to come. */
  answerWaitMs: number;
}

/** No whole answer came; whether the request was taken is not known. */
export class NoAnswer extends Error {
  /**
   * Of the network's error, such as `ECONNREFUSED`; `ETIMEDOUT` when it took too long, `EPROTO` for what is no HTTP;
   * undefined where the runtime tells none, as a browser.
   */
  readonly code: string | undefined;

  constructor(code: string | undefined, cause?: unknown) {
    super('no answer', { cause });
    this.code = code;
  }
}
