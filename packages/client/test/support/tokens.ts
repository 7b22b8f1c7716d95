import { packToken, printToken, type TokenFields, type TokenKind } from '@brokerfeed/core/wire';

export const EPOCH = 'AAECAwQFBgcI';

/** Prints an unsigned token. */
export function token(kind: TokenKind, fields: Partial<TokenFields> = {}): string {
  const { ordinal = 0 } = fields;
  const all = { kind, epoch: EPOCH, id: String(ordinal), ordinal, index: 0, ...fields };
  return printToken(packToken(all, undefined), undefined);
}

/** The token of entry `index` of the commit `generation`, which has `size` entries. */
export function entryToken(
  generation: number,
  index = 0,
  size = index + 1,
  more: Partial<TokenFields> = {},
): string {
  return index === size - 1
    ? token('entry', { ordinal: generation, index, ...more })
    : token('inside', { ordinal: generation - 1, index, ...more });
}
