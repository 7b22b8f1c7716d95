/** What is used of a Node response: of HTTP/1 or HTTP/2, bare or with a middleware's `write` in front. */
export interface NodeResponse {
  /** Answers false once it holds so much that a writer should wait for `drain`. */
  write(chunk: Uint8Array): boolean;
  end(): unknown;
  destroy(): unknown;
  on(event: 'drain' | 'close' | 'finish', listener: () => void): unknown;
  /** Sends what a compressing middleware holds back. */
  readonly flush?: () => void;
  readonly headersSent: boolean;
  readonly writableEnded: boolean;
  /** Of HTTP/1: whether it is gone, with its connection. */
  readonly destroyed?: boolean;
  /** Of HTTP/1: the connection, as long as the response has it. */
  readonly socket?: { end(): unknown } | null;
  /** Of HTTP/2: the response's stream in its connection. */
  readonly stream?: {
    readonly destroyed: boolean;
    readonly session?: { close(): void } | undefined;
  };
}

/** Whether a response is gone: then it says so no more. */
export function isGone({ destroyed, stream }: NodeResponse): boolean {
  return destroyed === true || stream?.destroyed === true;
}

/** Answers the Node response that an adapter has, or undefined where it has none. */
export function nodeResponse(res: unknown): NodeResponse | undefined {
  // Fastify's has it in `raw`.
  const response = ((res as { raw?: unknown } | undefined)?.raw ?? res) as
    | Partial<NodeResponse>
    | undefined;
  const isNode = typeof response?.write === 'function' && typeof response.on === 'function';
  return isNode ? (response as NodeResponse) : undefined;
}
