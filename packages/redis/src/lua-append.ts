import { LUA_TOPIC } from './lua-topic.ts';

/**
 * Commits of which readers are told no more than that they are there: copies of the largest would fill the buffers that
 * Redis keeps for subscribers.
 */
const ANNOUNCED_BYTES = 64 * 1024;

/** An approximate trim by age comes with one in so many commits. */
const AGE_TRIM_EVERY = 16;

/**
 * What the scripts that append begin with. `stream` is what `open` answers; `first` and `last` are the arguments that hold
 * the fields of the commit.
 *
 * - `add` writes the commit, and answers its id and its ordinal as text.
 * - `trimByAge` removes what is too old, once the commit is there.
 * - `tell` publishes a notice of it. The channel has the name of the topic's key, so that a cluster has both in one place. A user who may
 *   not publish there has written the commit all the same.
 */
export const LUA_APPEND: string = `${LUA_TOPIC}
local function add(key, stream, trim, keep, first, last)
  local ordinal = string.format('%.0f', stream['entries-added'] + 1)
  local tip, epoch = stream['last-generated-id'], stream.epoch
  if keep == '0' then
    return redis.call('XADD', key, '*', 'o', ordinal, 'p', tip, 'e', epoch, unpack(ARGV, first, last)), ordinal
  end
  return redis.call('XADD', key, 'MAXLEN', trim, keep, '*', 'o', ordinal, 'p', tip, 'e', epoch, unpack(ARGV, first, last)), ordinal
end

local function trimByAge(key, stream, id, trim, age)
  if age == '0' or (trim ~= '=' and stream['entries-added'] % ${AGE_TRIM_EVERY} ~= 0) then return end
  local now = redis.call('TIME')
  local oldest = string.format('%.0f', math.max(0, now[1] * 1000 + math.floor(now[2] / 1000) - age)) .. '-0'
  -- The newest commit stays, whatever the clock says.
  if before(id, oldest) then oldest = id end
  redis.call('XTRIM', key, 'MINID', trim, oldest)
end

local function tell(key, stream, id, ordinal, first, last)
  local mark = id .. ' ' .. ordinal .. ' ' .. stream['last-generated-id'] .. ' ' .. stream.epoch
  local value = ARGV[first + 1]
  if last == first + 1 and ARGV[first] == 'v' and #value <= ${ANNOUNCED_BYTES} then
    redis.pcall('SPUBLISH', key, 'v ' .. mark .. '\\n' .. value)
    return
  end
  local size = 0
  for i = first, last do size = size + #ARGV[i] end
  if size <= ${ANNOUNCED_BYTES} then
    redis.pcall('SPUBLISH', key, 'f ' .. mark .. '\\n' .. cjson.encode({ unpack(ARGV, first, last) }))
  else
    redis.pcall('SPUBLISH', key, 'n ' .. mark)
  end
end
`;
