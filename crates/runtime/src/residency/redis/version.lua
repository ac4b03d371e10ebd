-- Versions are decimal numbers of up to 64 bits, which a Lua number does not hold.
local function is_below(a, b)
  return #a < #b or (#a == #b and a < b)
end

-- Whether the reply to GET is a version. If not, it is another program's value; a type error is a table.
local function is_version(value)
  return type(value) == 'string' and string.match(value, '^%d+$') and not string.match(value, '^0%d')
    and not is_below('18446744073709551615', value)
end

