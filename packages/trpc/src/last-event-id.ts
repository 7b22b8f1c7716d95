import { FeedError } from './feed-error.ts';

/** The part of a resolver's options that says where the client wants to resume. */
export interface ResumeOptions {
  readonly input: unknown;
  /** Given by tRPC at run time, though its types keep it to middlewares. */
  readonly getRawInput?: () => Promise<unknown>;
}

const parked = new WeakMap<object, unknown>();

/** Keeps an id for {@link lastEventId}, under the function that hides it: that is the call's own, as a signal need not be. */
export function parkLastEventId(getRawInput: () => Promise<unknown>, id: unknown): void {
  parked.set(getRawInput, id);
}

/**
 * Reads the id that the client resumes from, unchecked; undefined where it sent none.
 *
 * tRPC merges it into the input. A parser that does not name it takes it out again, and so the raw input is asked first.
 * Into an input that is no object it cannot be merged, and the client would be started afresh without a word on every
 * reconnect: such an input is refused from the start.
 */
export async function lastEventId(options: ResumeOptions): Promise<unknown> {
  const { getRawInput } = options;
  const raw = getRawInput === undefined ? options.input : await getRawInput();
  checkInput(raw);
  if (getRawInput !== undefined && parked.has(getRawInput)) return parked.get(getRawInput);
  return idOf(raw) ?? idOf(options.input);
}

function checkInput(input: unknown): void {
  if (input === undefined || input === null) return;
  if (typeof input !== 'object' || Array.isArray(input)) {
    const kind = Array.isArray(input) ? 'an array' : `a ${typeof input}`;
    throw new FeedError(
      'topic',
      `a feed's input is an object or absent, not ${kind}: it could not resume`,
    );
  }
}

function idOf(input: unknown): unknown {
  if (typeof input !== 'object' || input === null || !Object.hasOwn(input, 'lastEventId'))
    return undefined;
  return (input as { readonly lastEventId: unknown }).lastEventId;
}
