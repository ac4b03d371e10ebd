-- Replaces a fence that is another program's value.
-- KEYS: the fence. ARGV: owner version. Returns 1, or 0 if the fence is a version, or there is none.
local current = redis.pcall('GET', KEYS[1])
if not current or is_version(current) then
  return 0
end
redis.call('SET', KEYS[1], ARGV[1])
return 1
