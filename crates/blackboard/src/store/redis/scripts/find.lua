#!lua flags=no-writes,allow-oom
-- Finds a revision by a number of events or by a time. Ordinals count all events that the board ever had, so the
-- difference of two ordinals is a number of events, whatever ids were skipped.
local log = KEYS[3]
local what, bound, value = ARGV[1], ARGV[2], tonumber(ARGV[3])

local function parse(entries)
  local entry = entries[1]
  if not entry then
    return nil
  end
  local function header(at)
    return string.match(at[2][2] or '', '^(%d+) %d+ (%d+)')
  end
  local time, ordinal = header(entry)
  -- Another program has made it unreadable: its ordinal is counted from an event that can be read.
  local steps, at = 0, entry
  while not ordinal and at do
    steps = steps + 1
    at = redis.call('XREVRANGE', log, '(' .. at[1], '-', 'COUNT', 1)[1]
    if at then
      time, ordinal = header(at)
    end
  end
  if not ordinal then
    steps, at = 0, entry
    while not ordinal and at do
      steps = steps - 1
      at = redis.call('XRANGE', log, '(' .. at[1], '+', 'COUNT', 1)[1]
      if at then
        time, ordinal = header(at)
      end
    end
  end
  return {
    id = tonumber(string.match(entry[1], '^%d+')),
    time = tonumber(time or 0),
    ordinal = tonumber(ordinal or 0) + steps,
  }
end

local function last_up_to(id)
  return parse(redis.call('XREVRANGE', log, id, '-', 'COUNT', 1))
end

local oldest = parse(redis.call('XRANGE', log, '-', '+', 'COUNT', 1))
local newest = last_up_to(bound)
-- An empty answer is the last pruned revision.
if not oldest or not newest then
  return ''
end

-- The event with this ordinal, which is between the oldest and the newest. Ids grow at least as fast as ordinals, so
-- without a gap the first guess is right. After a few wrong ones the interval is halved.
local function event_at(ordinal)
  local low, high = oldest, newest
  local guesses = 0
  while high.ordinal > ordinal do
    local guess = high.id - (high.ordinal - ordinal)
    if guesses > 2 then
      guess = math.min(guess, math.floor((low.id + high.id) / 2))
    end
    guesses = guesses + 1
    local found = last_up_to(string.format('%.0f', guess))
    if found.ordinal >= ordinal then
      high = found
    else
      low = parse(redis.call('XRANGE', log, string.format('(%.0f-0', found.id), '+', 'COUNT', 1))
      -- An event that an operator has deleted is missing: the next one stands for it.
      if low.ordinal >= ordinal then
        return low
      end
    end
  end
  return high
end

local function answer(ordinal)
  if ordinal < oldest.ordinal then
    return ''
  end
  return string.format('%.0f', event_at(ordinal).id)
end

if what == 'back' then
  return answer(newest.ordinal - value)
end
-- The same search as `count_older` of store/mod.rs, so that engines agree even if times do not rise.
local low, high = 0, newest.ordinal - oldest.ordinal + 1
while low < high do
  local middle = low + math.floor((high - low) / 2)
  if event_at(oldest.ordinal + middle).time < value then
    low = middle + 1
  else
    high = middle
  end
end
return answer(oldest.ordinal + low - 1)
