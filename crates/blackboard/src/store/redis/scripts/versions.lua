#!lua flags=no-writes,allow-oom
-- The versions of the events of a part of the log: each id and its version.
local rows, log = KEYS[1], KEYS[3]
local from, until_ = ARGV[1], ARGV[2]
local answer = {}
if from == until_ then
  -- A version may outlive its event.
  local value = redis.call('HGET', rows, 'v' .. from)
  return value and { from, value } or {}
end
local start = from .. '-0'
repeat
  local entries = redis.call('XRANGE', log, start, until_ .. '-0', 'COUNT', 1000)
  for _, entry in ipairs(entries) do
    if string.find(entry[2][2], '^%d+ %d+ %d+ v') then
      local id = string.match(entry[1], '^%d+')
      local value = redis.call('HGET', rows, 'v' .. id)
      if value then
        answer[#answer + 1] = id
        answer[#answer + 1] = value
      end
    end
    start = '(' .. entry[1]
  end
until #entries < 1000
return answer
