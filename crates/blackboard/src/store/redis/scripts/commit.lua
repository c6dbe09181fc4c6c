#!lua
-- Validates what a run has read, and applies its changes with their events. `commit.rs` writes the arguments.
--
-- A script is not rolled back. So everything that can fail comes before the first write: the type of each key is
-- checked, and the server refuses a script without the flag `allow-oom` before it starts if its memory is full.
-- `script.rs` adds that flag for a commit that only ends something. An erasure replaces the log first, and its events
-- are those that were there, so a failure after it would leave a board that is complete.
local rows, index, log, scratch = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local call, format, sub, match, min = redis.call, string.format, string.sub, string.match, math.min
local CHUNK = 4000
-- How many outcomes of other connections a slot keeps.
local MOST_OTHERS = 16

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
local latest, fixed_time, token, guess = tonumber(take()), take(), take(), take()
local repeated = take() == '1'
local stamp, owner = sub(commit, 1, 8), sub(commit, 9, 12)

-- 1. The state of the board, and the rows that the run has read.
local fields, stamps = { '!', slot, '?', 'i' }, {}
for i = 1, tonumber(take()) do
  fields[i + 4] = take()
  stamps[i] = take()
end
local values = get_all(fields)
local meta, outcome, reserved, has_index = values[1], values[2], values[3], values[4]
if not meta then
  return { 'gone' }
end
local of_version, of_board, revision, time, ordinal, born, last_run, floor =
  match(meta, '^(%S+) (%S+) (%d+) (%d+) (%d+) (%d+) (%S+) (%d+) ')
if of_version ~= version then
  return { 'version', match(meta, '^%S*') }
end
if of_board ~= board then
  return { 'gone' }
end
local function clock()
  local time = call('TIME')
  return tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)
end
local now = tonumber(fixed_time) or clock()

-- 2. The slot. It has the last outcome of this connection, and those of other connections with the same number. Theirs
-- are kept as long as a copy of their commit could still be applied.
local own, own_result, others, kept = nil, nil, '', 0
local at = 1
while outcome and at < #outcome do
  local result, ends, next_at = match(outcome, '^([%d?-]+) ?(%d*)%z?()', at + 16)
  if not result then
    break
  end
  if sub(outcome, at + 8, at + 11) == owner then
    own, own_result = sub(outcome, at, at + 15), result
  elseif ends ~= '' and tonumber(ends) >= now and kept < MOST_OTHERS then
    others, kept = others .. sub(outcome, at, next_at - 1), kept + 1
  end
  at = next_at
end
local function outcomes_with(result)
  return commit .. result .. format(' %.0f\0', latest) .. others
end
if own == commit then
  if own_result == '-' or own_result == '?' then
    return { 'conflict', outcome, own_result == '-' and '1' or '' }
  end
  -- The caller repeats a commit whose answer was lost. This write lets the caller wait for replicas.
  call('HSET', rows, slot, outcome)
  return { 'ok', own_result }
end
if own then
  -- A copy of an earlier commit of this connection, which was delayed or is replayed.
  local a, b, c, d = string.byte(own, 13, 16)
  local e, f, g, h = string.byte(commit, 13, 16)
  if ((a * 256 + b) * 256 + c) * 256 + d > ((e * 256 + f) * 256 + g) * 256 + h then
    return { 'conflict', outcome, '' }
  end
end
-- Nothing is changed. The third part is '1' if the slot proves that no earlier copy was applied. If there is one, it
-- may arrive when everything is as it was, so the slot remembers that the commit was refused: '-', or '?' without that
-- proof. `left` is how many milliseconds a reservation lasts.
local function refuse(answer, left)
  local is_proven = own or not outcome or (now <= latest and kept < MOST_OTHERS)
  if repeated then
    call('HSET', rows, slot, outcomes_with(is_proven and '-' or '?'))
  end
  return { answer, outcome or '', is_proven and '1' or '', left }
end

-- 3. What the run has read is unchanged.
if reserved then
  -- A commit that has lost often is the next one. A reservation that is too long is from before the clock was set.
  local other, ends = match(reserved, '^(%S+) (%d+)$')
  local moment = clock()
  if other and other ~= token and tonumber(ends) > moment and tonumber(ends) < moment + 60000 then
    return refuse('reserved', format('%.0f', tonumber(ends) - moment))
  end
end
for i = 1, #stamps do
  local value = values[i + 4]
  if (value and sub(value, 1, 8) or '') ~= stamps[i] then
    return refuse('conflict')
  end
end
local ranges = tonumber(take())
for _ = 1, ranges do
  local from, before, count = take(), take(), tonumber(take())
  if call('ZLEXCOUNT', index, from, before) ~= count then
    return refuse('conflict')
  end
end
-- The server removes a key without content, so a missing one would look like an empty one.
if call('ZCARD', index) == 0 and has_index then
  return { 'no index' }
end
revision, floor = tonumber(revision), tonumber(floor)
if revision > floor and call('EXISTS', log) == 0 then
  return { 'no log' }
end

-- 4. The ids and the time of its events.
if fixed_time == '' and now > latest then
  -- The run is based on a moment that has passed: the client was stopped, or the request was delayed.
  return refuse('old')
end
time, ordinal, born = tonumber(time), tonumber(ordinal), tonumber(born)
local last = revision
local process = match(run, '^[^.]*')
if now ~= time then
  -- This process may have been a replica meanwhile, and lost its last commits. The client need not notice.
  local history = match(call('INFO', 'replication'), 'master_replid:(%w+)')
  if history then
    run = process .. '.' .. sub(history, 1, 16)
  end
elseif process == match(last_run, '^[^.]*') then
  -- No server changes its role twice in a millisecond. What the client knows may be older.
  run = last_run
end
if guess ~= '' and (run ~= last_run or now > guess + 1000 or now < guess + 0) then
  -- The client has read nothing for this run: neither that this is another run of the server, nor its clock. An event
  -- is not before the time of its run.
  return refuse('conflict')
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

-- 5. Everything else that is read, before the first write.
local erased, erases = {}, tonumber(take())
for _ = 1, erases do
  local id = take() .. '-0'
  erased[id] = take()
end
local events, payloads, versions = tonumber(take()), {}, {}
for k = 1, events do
  payloads[k], versions[k] = take(), take()
end
local gone, left, appended = take_list(), take_list(), take_list()
local function add_members(field, members)
  for _, member in ipairs(members) do
    if sub(member, -2 - #field, -3) == field then
      left[#left + 1] = member
    end
  end
end
-- A row of a table that is appended contains its members, because it may be replaced or removed without being read.
-- Returns false if it is damaged.
local function add_own_members(value)
  local at = string.find(value, '\0', 10, true)
  local count = at and string.byte(value, at + 1)
  if not count then
    return false
  end
  at = at + 2
  for _ = 1, count do
    local high, low = string.byte(value, at, at + 1)
    if not low then
      return false
    end
    local length = high * 256 + low
    left[#left + 1] = sub(value, at + 2, at + 1 + length)
    at = at + 2 + length
  end
  return true
end
for i, value in ipairs(get_all(appended)) do
  if value and not (sub(value, 9, 9) == 'h' and add_own_members(value)) then
    -- It may be anywhere in the index.
    local from = '-'
    repeat
      local members = call('ZRANGEBYLEX', index, from, '+', 'LIMIT', 0, CHUNK)
      add_members(appended[i], members)
      from = '(' .. (members[#members] or '')
    until #members < CHUNK
  end
end
-- The members of an unreadable row are unknown, so all members of its table are searched.
for _ = 1, tonumber(take()) do
  local field, bounds = take(), take_list()
  for i = 1, #bounds, 2 do
    add_members(field, call('ZRANGEBYLEX', index, bounds[i], bounds[i + 1]))
  end
end

-- 6. Erased events: a stream cannot change an entry, so it is written again.
if erases > 0 then
  call('DEL', scratch)
  local from, copied = '-', 0
  repeat
    local entries = call('XRANGE', log, from, '+', 'COUNT', 1000)
    for _, entry in ipairs(entries) do
      local id, text = entry[1], entry[2][2] or ''
      if erased[id] then
        text = (match(text, '^[^%z]*%z') or '') .. erased[id]
      end
      call('XADD', scratch, id, 'e', text)
      from, copied = '(' .. id, copied + 1
    end
  until #entries < 1000
  if copied > 0 then
    call('RENAME', scratch, log)
  end
end

-- 7. Events and their versions, then rows and members that go. The first id that is too low would fail before any other
-- write.
local set = {}
local function add(field, value)
  set[#set + 1] = field
  set[#set + 1] = value
end
for k = 1, events do
  local value = versions[k]
  local id = format('%.0f', first + k - 1)
  local kind = value == '' and '-' or 'v'
  ordinal = ordinal + 1
  local head = format('%.0f %d %.0f ', event_time, k - 1, ordinal)
  call('XADD', log, id .. '-0', 'e', head .. kind .. '\0' .. payloads[k])
  if value ~= '' then
    add('v' .. id, first_text .. '\0' .. value)
  end
end
if reserved then
  gone[#gone + 1] = '?'
end
in_chunks('HDEL', rows, gone)
in_chunks('ZREM', index, left)

-- 8. Rows and members that come.
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

-- 9. Retention.
local trim = tonumber(take())
if trim > floor then
  call('XTRIM', log, 'MINID', '=', format('%.0f-0', trim + 1))
  floor = trim
end

-- 10. The state of the board, and the outcome of this connection.
if events > 0 then
  revision, time, last_run = last + events, event_time, run
end
local state = '%s %s %.0f %.0f %.0f %.0f %s %.0f '
add('!', format(state, version, board, revision, time, ordinal, born, last_run, floor) .. stamp)
add(slot, outcomes_with(first_text))
in_chunks('HSET', rows, set)
return { 'ok', first_text }
