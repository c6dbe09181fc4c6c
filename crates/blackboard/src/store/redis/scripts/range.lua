#!lua flags=no-writes,allow-oom
-- The rows of a range: each member, its row, and the version of an entry if `values` is set.
local rows, index = KEYS[1], KEYS[2]
local from, before, limit, backwards, values = ARGV[1], ARGV[2], ARGV[3], ARGV[4] == '1', ARGV[5] == '1'
local CHUNK = 4000

local members
if backwards then
  members = redis.call('ZREVRANGEBYLEX', index, before, from, 'LIMIT', 0, limit)
else
  members = redis.call('ZRANGEBYLEX', index, from, before, 'LIMIT', 0, limit)
end

local function get_all(fields)
  local found = {}
  for start = 1, #fields, CHUNK do
    local part = redis.call('HMGET', rows, unpack(fields, start, math.min(start + CHUNK - 1, #fields)))
    for i = 1, #part do
      found[start + i - 1] = part[i]
    end
  end
  return found
end

-- A member ends with the key of its row and the length of that key.
local fields = {}
for i, member in ipairs(members) do
  local high, low = string.byte(member, -2, -1)
  fields[i] = string.sub(member, -2 - high * 256 - low, -3)
end
local stored = get_all(fields)
local versions = {}
if values then
  for i = 1, #fields do
    local revision = stored[i] and string.match(stored[i], '^e(%d+)', 9)
    versions[i] = 'v' .. (revision or '')
  end
  versions = get_all(versions)
end
local answer = {}
for i, member in ipairs(members) do
  answer[#answer + 1] = member
  answer[#answer + 1] = stored[i]
  answer[#answer + 1] = versions[i] or false
end
return answer
