import { LUA_TOPIC } from './lua-topic.ts';

/**
 * Appends one commit, or finds the one that an earlier append with the same idempotency key wrote.
 *
 * Keys: the topic; and, with an idempotency key, what remembers it. Arguments: the epoch to give a topic without one, the
 * trim operator, the newest commits to keep and their age in milliseconds (0 for no bound), the digest of the values and
 * the window of the idempotency key in milliseconds, the headers as JSON or nothing, and the fields of the values.
 *
 * Answers epoch, id and ordinal, or the one word `conflict`.
 */
export const APPEND_SCRIPT: string = `${LUA_TOPIC}
local key, once = KEYS[1], KEYS[2]
local candidate, trim, keep, age, digest, window, headers = unpack(ARGV, 1, 7)
local stream, failed = open(key, candidate)
if not stream then return failed end
local added = stream['entries-added']

if once then
  local known = redis.call('GET', once)
  if known then
    local epoch, id, ordinal, was = string.match(known, '^(%S+) (%S+) (%d+) (%S+)$')
    -- A topic made anew, or rolled back to before that commit, does not hold it.
    if epoch == stream.epoch and tonumber(ordinal) <= added then
      if was ~= digest then return { 'conflict' } end
      return { epoch, id, tonumber(ordinal) }
    end
  end
end

local ordinal = string.format('%.0f', added + 1)
local command = { 'XADD', key }
if keep ~= '0' then
  command[3], command[4], command[5] = 'MAXLEN', trim, keep
end
for _, argument in ipairs({ '*', 'o', ordinal, 'p', stream['last-generated-id'], 'e', stream.epoch }) do
  command[#command + 1] = argument
end
if headers ~= '' then
  command[#command + 1] = 'h'
  command[#command + 1] = headers
end
for i = 8, #ARGV do command[#command + 1] = ARGV[i] end
local id = redis.call(unpack(command))

if once then
  redis.call('SET', once, table.concat({ stream.epoch, id, ordinal, digest }, ' '), 'PX', window)
end
if age ~= '0' then
  local now = redis.call('TIME')
  local oldest = string.format('%.0f', math.max(0, now[1] * 1000 + math.floor(now[2] / 1000) - age))
  -- The newest commit stays, whatever the clock says.
  if before(id, oldest .. '-0') then oldest = id end
  redis.call('XTRIM', key, 'MINID', trim, oldest)
end
return { stream.epoch, id, added + 1 }
`;
