#!lua flags=allow-oom
-- Lets a commit that has lost often be the next one: until the reservation ends, others wait. A full server allows it,
-- for commits that only end something.
local rows = KEYS[1]
local board, version, token, limit = ARGV[1], ARGV[2], ARGV[3], tonumber(ARGV[4])
local meta = redis.call('HGET', rows, '!')
if not meta then
  return { 'gone' }
end
local of_version, of_board = string.match(meta, '^(%S+) (%S+) ')
if of_version ~= version then
  return { 'version', of_version or '' }
end
if of_board ~= board then
  return { 'gone' }
end
local clock = redis.call('TIME')
local now = tonumber(clock[1]) * 1000 + math.floor(tonumber(clock[2]) / 1000)
local reserved = redis.call('HGET', rows, '?')
if reserved then
  local other, ends = string.match(reserved, '^(%S+) (%d+)$')
  if other and other ~= token and tonumber(ends) > now and tonumber(ends) < now + 60000 then
    return { 'taken' }
  end
end
redis.call('HSET', rows, '?', string.format('%s %.0f', token, now + limit))
return { 'reserved' }
