#!lua flags=allow-oom
-- Writes something that changes nothing, so that the caller can wait until replicas have everything before it.
local rows, board = KEYS[1], ARGV[1]
local meta = redis.call('HGET', rows, '!')
if not meta or string.match(meta, '^%S+ (%S+)') ~= board then
  return 'gone'
end
redis.call('HSET', rows, 'dw', '')
return 'ok'
