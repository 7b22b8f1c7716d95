import { LUA_TOPIC } from './lua-topic.ts';

/** Commits read at once, at the most: where large ones follow small ones, all but a few of them are thrown away. */
const MAX_CHUNK = 64;

/**
 * Decides epoch, bounds, verdict and commits in one step.
 *
 * Key: the topic. Arguments: the epoch to give a topic without one, `at`, `earliest` or `latest`, the most commits, the
 * most bytes of them (one commit is always given), and for `at` the position's epoch, id and ordinal.
 *
 * Answers: verdict; epoch; ordinal and id of the first bound, the id empty where it is unknown, and then the id of the
 * first retained commit; ordinal and id of the last bound; ordinal and id read from; whether the end was reached; and the
 * commits in JSON texts, which cost Redis less to make, and us a sixth to read, of what a nested reply does. That each has
 * the ordinal which is written in it is left to the reader of the answer, since it is the same answer for whoever looks.
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

-- Commits are read and encoded in chunks. Redis can bound their number alone: it is chosen by the size of the commits at
-- the log's ends, then by that of those already read, and it grows with how many those are. The others may be of any size.
local function size(entry)
  local bytes = 1
  for _, text in ipairs(entry and entry[2] or {}) do bytes = bytes + #text end
  return bytes
end

local texts, read, bytes, last = {}, 0, 0, id
local fits = budget / math.max(size(oldest), size(newest))
while answer == 'ok' and read < limit and (fits >= 1 or read == 0) do
  local chunk = math.min(limit - read, math.max(1, math.floor(fits)), math.max(4, read), ${MAX_CHUNK})
  local entries = redis.call('XRANGE', key, from, '+', 'COUNT', chunk)
  local found = #entries
  if found == 0 then break end
  local text = cjson.encode(entries)
  if bytes + #text > budget then
    local kept, total = 0, bytes
    for _, entry in ipairs(entries) do
      total = total + #cjson.encode(entry)
      if total > budget and read + kept > 0 then break end
      kept = kept + 1
    end
    if kept == 0 then break end
    for place = found, kept + 1, -1 do entries[place] = nil end
    text = cjson.encode(entries)
  end
  texts[#texts + 1] = text
  read, bytes, last = read + #entries, bytes + #text, entries[#entries][1]
  if #entries < chunk then break end
  fits, from = (budget - bytes) * read / bytes, '(' .. last
end

local tipped = 1
if newest and (last == '' or before(last, newest[1])) then tipped = 0 end
return { answer, stream.epoch, firstOrdinal, firstId, oldest and oldest[1] or '', added, tip, ordinal, id, tipped, unpack(texts) }
`;
