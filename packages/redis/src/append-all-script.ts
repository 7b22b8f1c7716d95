import { type CheckedAppend, newEpoch } from '@brokerfeed/core';
import type { AppendPolicy } from './append-script.ts';
import { commitFields } from './commit-codec.ts';
import { LUA_APPEND } from './lua-append.ts';

/** Answers the arguments of the script that appends to several topics. */
export function appendAllArgs(
  { trim, maxEntries, maxAgeMs, once }: AppendPolicy,
  writes: readonly CheckedAppend[],
): (string | number)[] {
  const known = once === undefined ? [] : [once.digest, once.windowMs];
  const parts = writes.flatMap((write): (string | number)[] => {
    const { retention } = write;
    const keep = [retention?.maxEntries ?? maxEntries, retention?.maxAgeMs ?? maxAgeMs];
    const fields = commitFields(write);
    // Each its own: two topics are never of one epoch.
    return [newEpoch(), ...keep, fields.length, ...fields];
  });
  return [trim, writes.length, ...known, ...parts];
}

/**
 * Appends one commit to each of several topics and announces them, or finds those that an earlier call with the same
 * idempotency key wrote, if any of the topics still holds its own. Redis takes nothing back of what a script has done
 * when it fails: so whatever may refuse a topic is asked of all before the first is written to.
 *
 * Keys: the topics; and, with an idempotency key, what remembers it. Arguments: the trim operator, the count of topics; with
 * an idempotency key the digest of all topics and values, and the window in milliseconds; and for each topic the epoch to
 * give it if it has none, the newest commits to keep and their age in milliseconds (0 for no bound), the count of the
 * commit's fields, and the fields.
 *
 * Answers epoch, id and ordinal of each, in turn, or the one word `conflict`.
 */
export const APPEND_ALL_SCRIPT: string = `${LUA_APPEND}
local trim, count = ARGV[1], tonumber(ARGV[2])
local once = KEYS[count + 1]

local known
if once then
  local remembered = redis.call('GET', once)
  if remembered then
    local digest, places = string.match(remembered, '^(%S+) (.+)$')
    if digest ~= ARGV[3] then return { 'conflict' } end
    known = places
  end
end

local parts = {}
local at = once and 5 or 3
for i = 1, count do
  local stream, failed = open(KEYS[i], ARGV[at])
  if not stream then return failed end
  local first = at + 4
  local last = at + 3 + ARGV[at + 3]
  parts[i] = { key = KEYS[i], stream = stream, keep = ARGV[at + 1], age = ARGV[at + 2], first = first, last = last }
  at = last + 1
end

if known then
  local reply, held, nth = {}, false, 0
  for epoch, id, ordinal in string.gmatch(known, '(%S+) (%S+) (%d+)') do
    nth = nth + 1
    local stream = parts[nth].stream
    held = held or (epoch == stream.epoch and tonumber(ordinal) <= stream['entries-added'])
    reply[#reply + 1] = epoch
    reply[#reply + 1] = id
    reply[#reply + 1] = tonumber(ordinal)
  end
  -- Where all topics were made anew, none holds it.
  if held then return reply end
end

local reply, places = {}, {}
for _, part in ipairs(parts) do
  local epoch = part.stream.epoch
  part.id, part.ordinal = add(part.key, part.stream, trim, part.keep, part.first, part.last)
  reply[#reply + 1] = epoch
  reply[#reply + 1] = part.id
  reply[#reply + 1] = tonumber(part.ordinal)
  places[#places + 1] = epoch .. ' ' .. part.id .. ' ' .. part.ordinal
end
if once then redis.call('SET', once, ARGV[3] .. ' ' .. table.concat(places, ' '), 'PX', ARGV[4]) end
for _, part in ipairs(parts) do trimByAge(part.key, part.stream, part.id, trim, part.age) end
for _, part in ipairs(parts) do tell(part.key, part.stream, part.id, part.ordinal, part.first, part.last) end
return reply
`;
