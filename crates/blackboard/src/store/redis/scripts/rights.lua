#!lua flags=no-writes,allow-oom
-- Whether this user may run every command of a read, and every command of a commit. A script is not rolled back when a
-- command of it is denied, so this is checked before the first commit. Answers with the first denied command of each, or
-- nothing.
local rows, index, log = KEYS[1], KEYS[2], KEYS[3]
local reads = {
  { 'hget', rows, '!' },
  { 'hmget', rows, '!' },
  { 'zcard', index },
  { 'zlexcount', index, '-', '+' },
  { 'zrangebylex', index, '-', '+' },
  { 'zrevrangebylex', index, '+', '-' },
  { 'xrange', log, '-', '+' },
  { 'xrevrange', log, '+', '-' },
  { 'time' },
  { 'info', 'replication' },
}
local writes = {
  { 'hset', rows, '!', '' },
  { 'hdel', rows, '?' },
  { 'zadd', index, '0', '' },
  { 'zrem', index, '' },
  { 'xadd', log, '1-0', 'e', '' },
  { 'xtrim', log, 'MINID', '=', '0' },
}
local function denied(commands)
  if redis.acl_check_cmd then
    for _, command in ipairs(commands) do
      if not redis.acl_check_cmd(unpack(command)) then
        return command[1]
      end
    end
  end
  return ''
end
return { denied(reads), denied(writes) }
