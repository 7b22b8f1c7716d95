/** Answers the token that an input brings with it; undefined for none. */
export function ownToken(input: unknown): string | undefined {
  if (!isRecord(input)) return undefined;
  const { lastEventId } = input;
  return typeof lastEventId === 'string' && lastEventId !== '' ? lastEventId : undefined;
}

/** Answers the input with this token in it, or with none. An input that cannot carry one stays as it is, as in tRPC. */
export function withToken(input: unknown, token: string | undefined): unknown {
  if (input !== undefined && input !== null && !isRecord(input)) return input;
  const { lastEventId: _, ...rest } = input ?? {};
  return token === undefined ? input && rest : { ...rest, lastEventId: token };
}

/**
 * Writes an input as text, the same for inputs that say the same: keys in order, no token. Throws for a circle.
 * What JSON has no word for gets one, so that two inputs never share a text because they were left out of it.
 */
export function inputText(input: unknown): string {
  return JSON.stringify(withToken(input, undefined) ?? null, sortKeys);
}

function sortKeys(_key: string, value: unknown): unknown {
  if (typeof value === 'bigint') return { bigint: String(value) };
  if (value instanceof Map) return { map: [...value] };
  if (value instanceof Set) return { set: [...value] };
  if (!isRecord(value)) return value;
  return Object.fromEntries(Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1)));
}

function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
