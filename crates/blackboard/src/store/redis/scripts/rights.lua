#!lua flags=no-writes,allow-oom
-- Whether this user may run every command of a read, of a commit, and of a commit that erases events. A script is not
-- rolled back when a command of it is denied, so this is checked before the first commit. Answers with the first denied
-- command of each, or nothing. The argument is the number of replicas that a commit waits for.
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
  { 'xread', 'STREAMS', log, '0' },
  { 'time' },
  { 'info', 'replication' },
}
local writes = {
  { 'hset', rows, '!', '' },
  { 'exists', log },
  { 'hdel', rows, '?' },
  { 'zadd', index, '0', '' },
  { 'zrem', index, '' },
  { 'xadd', log, '1-0', 'e', '' },
  { 'xtrim', log, 'MINID', '=', '0' },
}
if tonumber(ARGV[1]) > 0 then
  writes[#writes + 1] = { 'wait', ARGV[1], '1' }
end
local erasures = {
  { 'del', log },
  { 'rename', log, log },
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
return { denied(reads), denied(writes), denied(erasures) }
