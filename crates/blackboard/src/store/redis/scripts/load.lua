#!lua
-- Stores parts of a board that is being loaded, as `load.rs` wrote them. It may run again with the same parts.
local rows, index, log = KEYS[1], KEYS[2], KEYS[3]
local call, min = redis.call, math.min
local CHUNK = 4000

local position = 0
local function take()
  position = position + 1
  return ARGV[position]
end

local version, board, run, stamp = take(), take(), take(), take()
local revision, time, ordinal, floor = tonumber(take()), tonumber(take()), tonumber(take()), tonumber(take())

local meta = call('HGET', rows, '!')
if not meta then
  return { 'gone' }
end
local of_version, of_board = string.match(meta, '^(%S+) (%S+) ')
if of_board ~= board then
  return { 'gone' }
end
if of_version ~= version then
  return { 'version', of_version }
end

-- 1. Events. Those that an earlier attempt has added are skipped.
local last = call('XREVRANGE', log, '+', '-', 'COUNT', 1)[1]
local last_id = last and tonumber(string.match(last[1], '^%d+')) or 0
for _ = 1, tonumber(take()) do
  local id, text = take(), take()
  if tonumber(id) > last_id then
    call('XADD', log, id .. '-0', 'e', text)
  end
end

-- 2. Rows and versions, and the members of rows.
local function in_chunks(command, key)
  local count = tonumber(take())
  for from = position + 1, position + count, CHUNK do
    call(command, key, unpack(ARGV, from, min(from + CHUNK - 1, position + count)))
  end
  position = position + count
end
in_chunks('HSET', rows)
in_chunks('ZADD', index)

-- 3. The state. After a restart ids are derived from the age of the board, so it is as old as its revision requires.
local clock = call('TIME')
local now = tonumber(clock[1]) * 1000 + math.floor(tonumber(clock[2]) / 1000)
local born = math.max(0, now - 60000 - math.floor(revision / 1024))
local form = '%s %s %.0f %.0f %.0f %.0f %s %.0f '
local state = string.format(form, version, board, revision, time, ordinal, born, run, floor)
call('HSET', rows, '!', state .. stamp)
return { 'ok' }
