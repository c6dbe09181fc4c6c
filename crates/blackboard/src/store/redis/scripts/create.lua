#!lua
-- Creates a board, unless it exists. Answers with its state. `replaces` is the version of a board that is replaced.
local rows, index, log = KEYS[1], KEYS[2], KEYS[3]
local version, board, run, fixed_time, replaces = ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5]
local meta = redis.call('HGET', rows, '!')
if meta and string.match(meta, '^%S+') == replaces then
  redis.call('UNLINK', rows, index, log)
elseif meta then
  return { 'exists', meta }
end
if redis.call('EXISTS', rows) > 0 then
  return { 'foreign' }
end
if redis.call('EXISTS', index, log) > 0 then
  return { 'leftover' }
end
local now = tonumber(fixed_time)
if not now then
  local clock = redis.call('TIME')
  now = tonumber(clock[1]) * 1000 + math.floor(tonumber(clock[2]) / 1000)
end
-- A minute old, so that the age is more than any revision from the start. See docs/decisions/0021.
local born = math.max(now - 60000, 0)
meta = string.format('%s %s 0 0 0 %.0f %s 0 %s', version, board, born, run, '00000000')
-- A member that no row has, so that an index that is gone is not taken for one without rows.
redis.call('HSET', rows, '!', meta, 'i', '1')
redis.call('ZADD', index, '0', '\0')
return { 'created', meta }
