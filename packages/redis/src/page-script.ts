import { LUA_TOPIC } from './lua-topic.ts';

/**
 * Decides epoch, bounds, verdict and commits in one step.
 *
 * Key: the topic. Arguments: the epoch to give a topic without one, `at`, `earliest` or `latest`, the most commits, the
 * most bytes of them (one commit is always given), and for `at` the position's epoch, id and ordinal.
 *
 * Answers: verdict; epoch; ordinal and id of the first bound, the id empty where it is unknown, and then the id of the
 * first retained commit; ordinal and id of the last bound; ordinal and id read from; whether the end was reached; the commits
 * as one JSON text, which costs Redis less to make, and us a third to read, of what a nested reply does.
 *
 * The first bound. XTRIM removes from the left, so the last commit removed has the ordinal before that of the first one
 * retained: which that one has written in it, or which is `entries-added - length`. XDEL removes anywhere, and leaves its
 * largest id behind: a commit after every position before that id is gone, so the bound is then that id, retained
 * commits before it notwithstanding, and its ordinal comes from the commits after it.
 */
export const PAGE_SCRIPT: string = `${LUA_TOPIC}
local key = KEYS[1]
local candidate, start, limit, budget = ARGV[1], ARGV[2], tonumber(ARGV[3]), tonumber(ARGV[4])
local stream, failed = open(key, candidate)
if not stream then return failed end

local added, length = stream['entries-added'], stream['length']
local tip, deleted = stream['last-generated-id'], stream['max-deleted-entry-id']
local oldest, newest = stream['first-entry'], stream['last-entry']

-- The ordinal and id of the place before the first commit that can be read, and where XRANGE starts to read it.
local function floor()
  if length == 0 then return added, tip, '(' .. tip end
  if before(oldest[1], deleted) then
    local from, counted = '(' .. deleted, 0
    while true do
      local chunk = redis.call('XRANGE', key, from, '+', 'COUNT', 64)
      for _, entry in ipairs(chunk) do
        local ordinal = mark(entry)
        if ordinal then return ordinal - 1 - counted, deleted, '(' .. deleted end
        counted = counted + 1
      end
      if #chunk < 64 then return added - counted, deleted, '(' .. deleted end
      from = '(' .. chunk[#chunk][1]
    end
  end
  local ordinal, previous = mark(oldest)
  if ordinal then return ordinal - 1, previous, oldest[1] end
  if added == length then return 0, '0-0', oldest[1] end
  return added - length, '', oldest[1]
end

local firstOrdinal, firstId, firstFrom = floor()

local function verdict(epoch, id, ordinal)
  if epoch ~= stream.epoch then return 'epoch' end
  if ordinal > added then return 'ahead' end
  if ordinal < firstOrdinal then return 'trimmed' end
  if ordinal == added and id == tip then return 'ok' end
  if ordinal == firstOrdinal then
    if firstId == '' then return before(id, oldest[1]) and 'ok' or 'forked' end
    return id == firstId and 'ok' or 'forked'
  end
  if before(id, deleted) then return 'forked' end
  local entry = redis.call('XRANGE', key, id, id)[1]
  if not entry then return 'forked' end
  local written = mark(entry)
  if written and written ~= ordinal then return 'forked' end
  -- The end by count, but not the last one there.
  if ordinal == added and entry[1] ~= newest[1] then return 'forked' end
  return 'ok'
end

local answer, ordinal, id, from = 'ok', added, tip, '(' .. tip
if start == 'earliest' then
  ordinal, id, from = firstOrdinal, firstId, firstFrom
elseif start == 'at' then
  id, ordinal = ARGV[6], tonumber(ARGV[7])
  answer = verdict(ARGV[5], id, ordinal)
  from = '(' .. id
end

local commits, bytes, last, reached = {}, 0, id, ordinal
local chunk = math.min(limit, 16)
while answer == 'ok' and chunk > 0 do
  local entries = redis.call('XRANGE', key, from, '+', 'COUNT', chunk)
  for _, entry in ipairs(entries) do
    local size = 0
    for _, text in ipairs(entry[2]) do size = size + #text end
    local written = mark(entry)
    if written and written ~= reached + 1 then
      -- Nothing was deleted here, so this is not the log that was read: someone set its counters.
      if #commits == 0 then answer = 'forked' end
      chunk = 0
      break
    end
    if #commits > 0 and bytes + size > budget then
      chunk = 0
      break
    end
    commits[#commits + 1] = entry
    bytes, last, reached = bytes + size, entry[1], reached + 1
    from = '(' .. last
  end
  if chunk == 0 or #entries < chunk or bytes >= budget then break end
  chunk = math.min(limit - #commits, math.max(1, math.floor((budget - bytes) * #commits / math.max(bytes, 1))), 512)
end

local tipped = 1
if newest and (last == '' or before(last, newest[1])) then tipped = 0 end
return { answer, stream.epoch, firstOrdinal, firstId, oldest and oldest[1] or '', added, tip, ordinal, id, tipped, #commits > 0 and cjson.encode(commits) or '' }
`;
