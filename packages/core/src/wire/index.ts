export type { FeedControl, FeedStanding } from './control.ts';
export type { FeedLag } from './lag.ts';
export { FEED_STATUS, type FeedErrorData, type FeedReason, type FeedStatus } from './reason.ts';
export {
  entryAddress,
  MAC_BYTES,
  type ParsedToken,
  packToken,
  parseToken,
  printToken,
  TOKEN_VERSION,
  type TokenFields,
  type TokenKind,
} from './token.ts';
