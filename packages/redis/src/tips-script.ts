import { LUA_TOPIC } from './lua-topic.ts';
import { Script } from './script.ts';

/**
 * Asks after many quiet topics at once. Keys: the topics. Arguments: for each the epoch and the id that it was read to.
 *
 * Answers the places, from 1, of those that do not end there: something was added that was not read, or they are gone, or
 * rolled back. Makes nothing: a topic without a stream is one of them.
 */
export const TIPS: Script = new Script(`${LUA_TOPIC}
local moved = {}
for place, key in ipairs(KEYS) do
  local stream = facts(key)
  local epoch, id = ARGV[2 * place - 1], ARGV[2 * place]
  if not stream or stream['last-generated-id'] ~= id or epochOf(key, stream) ~= epoch then
    moved[#moved + 1] = place
  end
end
return moved
`);
