#!lua
-- Validates what a run has read, and applies its changes with their events. `commit.rs` writes the arguments.
--
-- A script is not rolled back. So everything that can fail comes before the first write: the type of each key is
-- checked, and the server refuses a script without the flag `allow-oom` before it starts if its memory is full.
local rows, index, log, scratch = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local call, format, sub, match, min = redis.call, string.format, string.sub, string.match, math.min
local CHUNK = 4000

local position = 0
local function take()
  position = position + 1
  return ARGV[position]
end

local function take_list()
  local list = {}
  for i = 1, tonumber(take()) do
    list[i] = take()
  end
  return list
end

local function in_chunks(command, key, list)
  for from = 1, #list, CHUNK do
    call(command, key, unpack(list, from, min(from + CHUNK - 1, #list)))
  end
end

local function get_all(fields)
  local values = {}
  for from = 1, #fields, CHUNK do
    local part = call('HMGET', rows, unpack(fields, from, min(from + CHUNK - 1, #fields)))
    for i = 1, #part do
      values[from + i - 1] = part[i]
    end
  end
  return values
end

local commit, version, board, run, slot = take(), take(), take(), take(), take()
local latest, fixed_time, token = tonumber(take()), take(), take()
local stamp = sub(commit, 1, 8)

-- 1. What the run has read is unchanged.
local fields, stamps = { '!', slot, '?' }, {}
for i = 1, tonumber(take()) do
  fields[i + 3] = take()
  stamps[i] = take()
end
local values = get_all(fields)
local meta, outcome, reserved = values[1], values[2], values[3]
if not meta then
  return { 'gone' }
end
local of_version, of_board, revision, time, ordinal, born, last_run, floor =
  match(meta, '^(%S+) (%S+) (%d+) (%d+) (%d+) (%d+) (%S+) (%d+) ')
if of_version ~= version then
  return { 'version', of_version or '' }
end
if of_board ~= board then
  return { 'gone' }
end
if outcome and sub(outcome, 1, 16) == commit then
  -- The caller repeats a commit whose answer was lost. This write lets the caller wait for replicas.
  call('HSET', rows, slot, outcome)
  local first = match(outcome, '^%d+', 17)
  return { 'ok', first }
end
if outcome and sub(outcome, 9, 12) == sub(commit, 9, 12) then
  -- A copy of an earlier commit of this connection, which was delayed or is replayed.
  local a, b, c, d = string.byte(outcome, 13, 16)
  local e, f, g, h = string.byte(commit, 13, 16)
  if ((a * 256 + b) * 256 + c) * 256 + d > ((e * 256 + f) * 256 + g) * 256 + h then
    return { 'conflict', outcome }
  end
end
local function clock()
  local time = call('TIME')
  return tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)
end
if reserved then
  -- A commit that has lost often is the next one. A reservation that is too long is from before the clock was set.
  local other, ends = match(reserved, '^(%S+) (%d+)$')
  local now = clock()
  if other ~= token and tonumber(ends) > now and tonumber(ends) < now + 60000 then
    return { 'reserved', outcome or '' }
  end
end
for i = 1, #stamps do
  local value = values[i + 3]
  if (value and sub(value, 1, 8) or '') ~= stamps[i] then
    return { 'conflict', outcome or '' }
  end
end
local ranges = tonumber(take())
for _ = 1, ranges do
  local from, before, count = take(), take(), tonumber(take())
  if call('ZLEXCOUNT', index, from, before) ~= count then
    return { 'conflict', outcome or '' }
  end
end
if ranges == 0 then
  call('ZCARD', index)
end

-- 2. The ids and the time of its events.
local now
if fixed_time ~= '' then
  now = tonumber(fixed_time)
else
  now = clock()
  if now > latest then
    -- The run is based on a moment that has passed: the client was stopped, or the request was delayed.
    return { 'old', outcome or '' }
  end
end
revision, time, ordinal, born, floor =
  tonumber(revision), tonumber(time), tonumber(ordinal), tonumber(born), tonumber(floor)
local last = revision
if now - time >= 10 or now < time then
  -- This process may have been a replica meanwhile, and lost its last commits. That takes longer than 10 ms, and the
  -- client need not notice.
  local history = match(call('INFO', 'replication'), 'master_replid:(%w+)')
  if history then
    run = match(run, '^[^.]*') .. '.' .. sub(history, 1, 16)
  end
end
if run ~= last_run then
  -- Another process of the server may have assigned ids that were lost. See docs/decisions/0021.
  local age = math.min((now - born) * 1024, 4503599627370496)
  last = age > revision and age or revision + 32768
end
local first = last + 1
local first_text = format('%.0f', first)
local event_time = now
if time > now and time <= now + 86400000 then
  event_time = time
end

-- 3. Erased events: a stream cannot change an entry, so it is written again.
local erased, erases = {}, tonumber(take())
for _ = 1, erases do
  local id = take() .. '-0'
  erased[id] = take()
end
if erases > 0 then
  call('DEL', scratch)
  local from = '-'
  repeat
    local entries = call('XRANGE', log, from, '+', 'COUNT', 1000)
    for _, entry in ipairs(entries) do
      local id, text = entry[1], entry[2][2]
      if erased[id] then
        text = match(text, '^[^%z]*%z') .. erased[id]
      end
      call('XADD', scratch, id, 'e', text)
      from = '(' .. id
    end
  until #entries < 1000
  call('RENAME', scratch, log)
end

-- 4. Events and their versions. The first id that is too low would fail before any other write.
local set = {}
local function add(field, value)
  set[#set + 1] = field
  set[#set + 1] = value
end
local events = tonumber(take())
for k = 0, events - 1 do
  local payload, value = take(), take()
  local id = format('%.0f', first + k)
  local kind = value == '' and '-' or 'v'
  ordinal = ordinal + 1
  call('XADD', log, id .. '-0', 'e', format('%.0f %d %.0f ', event_time, k, ordinal) .. kind .. '\0' .. payload)
  if value ~= '' then
    add('v' .. id, first_text .. '\0' .. value)
  end
end

-- 5. Rows and places that go. A row of a table that is appended contains its places, because it may be replaced or
-- removed without being read.
local gone = take_list()
local left = take_list()
local appended = take_list()
for i, value in ipairs(get_all(appended)) do
  if value and sub(value, 9, 9) == 'h' then
    local at = string.find(value, '\0', 10, true) + 1
    local count = string.byte(value, at)
    at = at + 1
    for _ = 1, count do
      local high, low = string.byte(value, at, at + 1)
      local length = high * 256 + low
      left[#left + 1] = sub(value, at + 2, at + 1 + length)
      at = at + 2 + length
    end
  end
end
-- The places of an unreadable row are unknown, so all places of its table are searched.
for _ = 1, tonumber(take()) do
  local field, bounds = take(), take_list()
  for i = 1, #bounds, 2 do
    for _, place in ipairs(call('ZRANGEBYLEX', index, bounds[i], bounds[i + 1])) do
      if sub(place, -2 - #field, -3) == field then
        left[#left + 1] = place
      end
    end
  end
end
if reserved then
  gone[#gone + 1] = '?'
end
in_chunks('HDEL', rows, gone)
in_chunks('ZREM', index, left)

-- 6. Rows and places that come.
for _ = 1, tonumber(take()) do
  local field, kind, k, payload = take(), take(), take(), take()
  local number = first_text
  if kind == 'e' then
    number = format('%.0f', first + tonumber(k))
  end
  add(field, stamp .. kind .. number .. '\0' .. payload)
end
local entered = {}
for _ = 1, tonumber(take()) do
  local head, k, tail = take(), take(), take()
  entered[#entered + 1] = '0'
  if k == '' then
    entered[#entered + 1] = head
  else
    entered[#entered + 1] = head .. format('%020.0f', first + tonumber(k)) .. tail
  end
end
in_chunks('ZADD', index, entered)

-- 7. Retention.
local trim = tonumber(take())
if trim > floor then
  call('XTRIM', log, 'MINID', '=', format('%.0f-0', trim + 1))
  floor = trim
end

-- 8. The state of the board, and the outcome of this connection.
if events > 0 then
  revision, time, last_run = last + events, event_time, run
end
local state = '%s %s %.0f %.0f %.0f %.0f %s %.0f '
add('!', format(state, version, board, revision, time, ordinal, born, last_run, floor) .. stamp)
add(slot, commit .. first_text)
in_chunks('HSET', rows, set)
return { 'ok', first_text }
