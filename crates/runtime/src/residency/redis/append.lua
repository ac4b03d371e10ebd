-- Changes of one batch, in one atomic step.
-- KEYS: the fence of each block, then document and index of each change.
-- ARGV: number of fences, owner version, generation; then for each change:
--   kind (r, u, d), expected revision or '', revision, layout, deadline or '', number, sections, removed sections,
--   then field and value of each section, then the field of each removed one.
-- Returns {0, numbers of conflicts..., names of indexes that are to be restored...}, or {number of the fence, its owner version},
-- and then nothing is changed. The version is '' if the fence is another program's value.
local fences, owner, generation = tonumber(ARGV[1]), ARGV[2], ARGV[3]

for fence = 1, fences do
  local current = redis.pcall('GET', KEYS[fence])
  if current and not is_version(current) then
    return {fence, ''}
  end
  if current and is_below(owner, current) then
    return {fence, current}
  end
end
-- At 'maxmemory' Redis refuses a script's first write, if that may need memory, and none of the later ones. So a batch that may need memory
-- begins with SET: it is refused as a whole, before anything is changed. DEL, with which a document is replaced, would not be refused.
local next_change, needs_memory = 4, false
while next_change <= #ARGV and not needs_memory do
  needs_memory = ARGV[next_change] ~= 'd'
  next_change = next_change + 8 + 2 * tonumber(ARGV[next_change + 6]) + tonumber(ARGV[next_change + 7])
end
for fence = 1, fences do
  if (fence == 1 and needs_memory) or redis.call('GET', KEYS[fence]) ~= owner then
    redis.call('SET', KEYS[fence], owner)
  end
end

local result, key, at = {0}, fences, 4
local foreign, is_foreign = {}, {}

-- An index is to be restored if it is another program's value, or lacks a document that exists: it was deleted.
local function change_index(command, index, number, is_known)
  local changed = redis.pcall(command, index, number)
  if (type(changed) == 'table' or (is_known and changed == 1)) and not is_foreign[index] then
    is_foreign[index] = true
    foreign[#foreign + 1] = index
  end
end

local change = 0
while at <= #ARGV do
  change = change + 1
  local document, index = KEYS[key + 1], KEYS[key + 2]
  key = key + 2
  local kind, expected, revision, layout, deadline, number = unpack(ARGV, at, at + 5)
  local sections, removed = tonumber(ARGV[at + 6]), tonumber(ARGV[at + 7])
  local first = at + 8
  local first_removed = first + 2 * sections
  at = first_removed + removed
  local found = redis.pcall('HGET', document, 'r')
  if type(found) == 'table' then
    -- Not a document, but another program's value: it must not stop the other changes.
    redis.call('DEL', document)
    found = false
  end
  -- If the connection broke before the reply, the request is repeated, and a conditional change conflicts with itself: the
  -- caller then writes the whole document.
  if (expected ~= '' and expected ~= (found or '0')) or (kind == 'u' and not found) then
    result[#result + 1] = change
  elseif kind == 'd' then
    redis.call('DEL', document)
    change_index('SREM', index, number)
  else
    if kind == 'r' then
      redis.call('DEL', document)
    end
    redis.call('HSET', document, 'r', revision, 'o', owner, 'l', layout, 'g', generation)
    if deadline ~= '' then
      redis.call('HSET', document, 'd', deadline)
    elseif kind == 'u' then
      redis.call('HDEL', document, 'd')
    end
    if sections > 0 then
      redis.call('HSET', document, unpack(ARGV, first, first_removed - 1))
    end
    if removed > 0 then
      redis.call('HDEL', document, unpack(ARGV, first_removed, at - 1))
    end
    change_index('SADD', index, number, found)
  end
end
for _, index in ipairs(foreign) do
  result[#result + 1] = index
end
return result
