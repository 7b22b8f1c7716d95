import { type CheckedAppend, newEpoch } from '@brokerfeed/core';
import { commitFields } from './commit-codec.ts';
import { LUA_APPEND } from './lua-append.ts';

/** What an append leaves of its topic, where it does not say so itself, and how it knows itself again. */
export interface AppendPolicy {
  readonly trim: '~' | '=';
  /** The newest commits to keep; 0 for all. */
  readonly maxEntries: number;
  /** In milliseconds; 0 for any. */
  readonly maxAgeMs: number;
  /** With an idempotency key: the digest of the values, and how long the key is remembered. */
  readonly once?: { readonly digest: string; readonly windowMs: number } | undefined;
}

/** Answers the arguments of the append script. */
export function appendArgs(policy: AppendPolicy, write: CheckedAppend): (string | number)[] {
  const { trim, once } = policy;
  const { retention } = write;
  const maxEntries = retention?.maxEntries ?? policy.maxEntries;
  const maxAgeMs = retention?.maxAgeMs ?? policy.maxAgeMs;
  const known = once === undefined ? [] : [once.digest, once.windowMs];
  return [newEpoch(), trim, maxEntries, maxAgeMs, ...known, ...commitFields(write)];
}

/**
 * Appends one commit and announces it, or finds the one that an earlier append with the same idempotency key wrote.
 *
 * Keys: the topic; and, with an idempotency key, what remembers it. Arguments: the epoch to give a topic without one, the
 * trim operator, the newest commits to keep and their age in milliseconds (0 for no bound); with an idempotency key the
 * digest of the values and the window in milliseconds; and the fields of the commit.
 *
 * Answers epoch, id and ordinal, or the one word `conflict`.
 */
export const APPEND_SCRIPT: string = `${LUA_APPEND}
local key, once = KEYS[1], KEYS[2]
local trim, keep, age = ARGV[2], ARGV[3], ARGV[4]
local first = once and 7 or 5
local stream, failed = open(key, ARGV[1])
if not stream then return failed end

if once then
  local known = redis.call('GET', once)
  if known then
    local epoch, id, ordinal, digest = string.match(known, '^(%S+) (%S+) (%d+) (%S+)$')
    -- A topic made anew, or rolled back to before that commit, does not hold it.
    if epoch == stream.epoch and tonumber(ordinal) <= stream['entries-added'] then
      if digest ~= ARGV[5] then return { 'conflict' } end
      return { epoch, id, tonumber(ordinal) }
    end
  end
end

local id, ordinal = add(key, stream, trim, keep, first, #ARGV)
if once then
  redis.call('SET', once, stream.epoch .. ' ' .. id .. ' ' .. ordinal .. ' ' .. ARGV[5], 'PX', ARGV[6])
end
trimByAge(key, stream, id, trim, age)
tell(key, stream, id, ordinal, first, #ARGV)
return { stream.epoch, id, tonumber(ordinal) }
`;
