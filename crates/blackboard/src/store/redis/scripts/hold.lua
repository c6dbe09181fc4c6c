#!lua flags=allow-oom
-- Changes whether a board can be used: seals it, opens a sealed one, or opens one that was loaded. Answers with the
-- state that the board had. A full server allows it: a board that is moved away makes room.
local rows = KEYS[1]
local board, from, to, moved_to = ARGV[1], ARGV[2], ARGV[3], ARGV[4]
local meta = redis.call('HGET', rows, '!')
if not meta then
  return { 'gone' }
end
local version, of_board = string.match(meta, '^(%S+) (%S+) ')
if of_board ~= board then
  return { 'gone' }
end
if version ~= from and version ~= to then
  return { 'version', version }
end
redis.call('HSET', rows, '!', to .. string.sub(meta, #version + 1))
if moved_to == '' then
  redis.call('HDEL', rows, '>')
else
  redis.call('HSET', rows, '>', moved_to)
end
return { 'ok', version }
