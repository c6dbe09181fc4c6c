#!lua flags=no-writes,allow-oom
-- Entries by their keys: each row and its version.
local rows = KEYS[1]
local CHUNK = 4000
local answer = {}
for start = 1, #ARGV, CHUNK do
  local stored = redis.call('HMGET', rows, unpack(ARGV, start, math.min(start + CHUNK - 1, #ARGV)))
  local versions = {}
  for i = 1, #stored do
    local revision = stored[i] and string.match(stored[i], '^e(%d+)', 9)
    versions[i] = 'v' .. (revision or '')
  end
  versions = redis.call('HMGET', rows, unpack(versions))
  for i = 1, #stored do
    answer[#answer + 1] = stored[i]
    answer[#answer + 1] = versions[i]
  end
end
return answer
