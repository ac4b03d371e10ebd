-- The instances of a set, and their owner map.
-- KEYS: instances (hash: instance -> end of its lease in ms, incarnation, description), owners (hash: revision, map).
-- ARGV: what; then
--   poll:    instance or '', incarnation, milliseconds of the lease, description, '1' to take the place of another process
--            returns {revision, instance, incarnation, milliseconds left, description, ...}; 0: it is gone
--   leave:   instance, incarnation
--   read:    returns {revision, map}
--   replace: revision, map; returns {1}, or {0} if the store has another revision
if redis.replicate_commands then
  redis.replicate_commands()
end
-- Another program's value says nothing: the instances that live write theirs again.
for _, key in ipairs(KEYS) do
  local found = redis.pcall('HGET', key, 'revision')
  if type(found) == 'table' and found.err and string.find(found.err, 'WRONGTYPE', 1, true) then
    redis.call('DEL', key)
  end
end
local what = ARGV[1]
local revision = redis.call('HGET', KEYS[2], 'revision') or '0'
if not string.match(revision, '^%d+$') or #revision > 15 then
  -- Not written by Pith: as if there were no map.
  revision = '0'
end

local function entry(instance)
  local text = redis.call('HGET', KEYS[1], instance)
  if not text then
    return nil
  end
  local ends, incarnation, description = string.match(text, '^(%d+) (%d+) (.*)$')
  return ends and {tonumber(ends), incarnation, description}
end

if what == 'poll' then
  local time = redis.call('TIME')
  local now = tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)
  if ARGV[2] ~= '' then
    local held = entry(ARGV[2])
    if not held or held[1] <= now or held[2] == ARGV[3] or ARGV[6] == '1' then
      local ends = string.format('%.0f', now + tonumber(ARGV[4]))
      redis.call('HSET', KEYS[1], ARGV[2], ends .. ' ' .. ARGV[3] .. ' ' .. ARGV[5])
    end
  end
  local result = {revision}
  for _, instance in ipairs(redis.call('HKEYS', KEYS[1])) do
    local held = entry(instance)
    if held then
      result[#result + 1] = instance
      result[#result + 1] = held[2]
      result[#result + 1] = string.format('%.0f', math.max(held[1] - now, 0))
      result[#result + 1] = held[3]
    end
  end
  return result
elseif what == 'leave' then
  local held = entry(ARGV[2])
  if held and held[2] == ARGV[3] then
    redis.call('HSET', KEYS[1], ARGV[2], '0 ' .. held[2] .. ' ' .. held[3])
  end
  return {}
elseif what == 'read' then
  return {revision, redis.call('HGET', KEYS[2], 'map') or ''}
elseif revision ~= ARGV[2] then
  return {'0'}
end
redis.call('HSET', KEYS[2], 'revision', string.format('%.0f', tonumber(revision) + 1), 'map', ARGV[3])
return {'1'}
