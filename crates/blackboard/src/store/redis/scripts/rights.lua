#!lua flags=no-writes,allow-oom
-- Whether this user may run every command of a commit. A script is not rolled back when a command of it is denied, so
-- this is checked before the first commit. Answers with the first command that is denied, or nothing.
local rows, index, log = KEYS[1], KEYS[2], KEYS[3]
if not redis.acl_check_cmd then
  return ''
end
local commands = {
  { 'hset', rows, '!', '' },
  { 'hdel', rows, '?' },
  { 'hget', rows, '!' },
  { 'hmget', rows, '!' },
  { 'zadd', index, '0', '' },
  { 'zrem', index, '' },
  { 'zcard', index },
  { 'zlexcount', index, '-', '+' },
  { 'zrangebylex', index, '-', '+' },
  { 'zrevrangebylex', index, '+', '-' },
  { 'xadd', log, '1-0', 'e', '' },
  { 'xtrim', log, 'MINID', '=', '0' },
  { 'xrange', log, '-', '+' },
  { 'xrevrange', log, '+', '-' },
  { 'time' },
  { 'info', 'replication' },
}
for _, command in ipairs(commands) do
  if not redis.acl_check_cmd(unpack(command)) then
    return command[1]
  end
end
return ''
