#!lua flags=allow-oom
-- Writes something that changes nothing, so that the caller can wait until replicas have everything before it. The
-- board may be sealed or being loaded, but its layout is the one of the caller.
local rows, board, layout = KEYS[1], ARGV[1], ARGV[2]
local meta = redis.call('HGET', rows, '!')
if not meta then
  return { 'gone' }
end
local of_version, of_board = string.match(meta, '^(%S+) (%S+) ')
if string.match(of_version or '', '^%d+') ~= layout then
  return { 'version', of_version or '' }
end
if of_board ~= board then
  return { 'gone' }
end
redis.call('HSET', rows, 'dw', '')
return { 'ok' }
