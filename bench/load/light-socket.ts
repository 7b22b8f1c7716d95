/*
 * Clients for load: they keep up with a thousand sockets on one core, and understand as much of their protocol as a
 * server of these benches speaks.
 */

export interface LightSocketOptions {
  readonly url: string;
  readonly protocol?: string | undefined;
  onOpen(): void;
  /** Called for each frame, which is a piece of a buffer that is used again after the call. */
  onFrame(buffer: Buffer, start: number, end: number): void;
  onClose(): void;
}

export interface LightSocket {
  send(text: string): void;
  destroy(): void;
}

/** Where all sockets of the process read into, one after another. */
export const READ_BUFFER: Buffer = Buffer.allocUnsafeSlow(256 * 1024);

export const HEAD_END = '\r\n\r\n';
