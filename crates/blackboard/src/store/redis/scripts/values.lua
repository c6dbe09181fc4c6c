#!lua flags=no-writes,allow-oom
-- The values of these fields, as many as fit into this number of bytes, and at least one. The state of the board comes
-- first.
local rows = KEYS[1]
local most, bytes = tonumber(ARGV[1]), 0
local answer = { redis.call('HGET', rows, '!') }
for i = 2, #ARGV do
  local value = redis.call('HGET', rows, ARGV[i])
  bytes = bytes + (value and #value or 0)
  if bytes > most and i > 2 then
    break
  end
  answer[#answer + 1] = value
end
return answer
