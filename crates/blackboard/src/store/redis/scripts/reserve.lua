#!lua
-- Lets a commit that has lost often be the next one: until the reservation ends, others wait.
local rows = KEYS[1]
local token, limit = ARGV[1], tonumber(ARGV[2])
if not redis.call('HGET', rows, '!') then
  return 'gone'
end
local clock = redis.call('TIME')
local now = tonumber(clock[1]) * 1000 + math.floor(tonumber(clock[2]) / 1000)
local reserved = redis.call('HGET', rows, '?')
if reserved then
  local other, ends = string.match(reserved, '^(%S+) (%d+)$')
  if other ~= token and tonumber(ends) > now and tonumber(ends) < now + 60000 then
    return 'taken'
  end
end
redis.call('HSET', rows, '?', string.format('%s %.0f', token, now + limit))
return 'reserved'
