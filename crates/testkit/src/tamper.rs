//! Changes of a board without its verbs, on each engine: values that no command writes, and times that have passed.

use std::path::Path;
use std::sync::Arc;

use blackboard::clock::SystemClock;
use blackboard::copy::copy;
use blackboard::store::redis::{Redis, RedisOptions};
use blackboard::store::sqlite::{Sqlite, SqliteOptions};
use blackboard::store::{LoadingBoard as _, Store, TABLES};
use rusqlite::{Connection, params};
use serde_json::Value;

use crate::redis::SharedBoard;
use crate::scratch::Scratch;
use crate::tables::{EVENT, VERSION};
use crate::{patience, scale::Chance};

/// Puts a value into one column of the rows that have a value in another one. ARGV: the table, both places, the value
/// as JSON, the value to search for, and whether the new value comes before the old one. The positions of the rows stay.
const SET: &str = r#"
local start, place, where = '[1,"' .. ARGV[1] .. '",', tonumber(ARGV[2]), tonumber(ARGV[3])
local changed = 0
local function with(value)
  local at = string.find(value, start, 1, true)
  local cells = at and cjson.decode(string.sub(value, at))
  if not cells or (ARGV[5] ~= '' and cells[where] ~= ARGV[5]) then return nil end
  local new, old = cjson.decode('[' .. ARGV[4] .. ']')[1], cells[place]
  if ARGV[6] == 'front' then
    if type(old) ~= 'string' then return nil end
    new = new .. old
  end
  cells[place] = new
  changed = changed + 1
  return string.sub(value, 1, at - 1) .. cjson.encode(cells)
end
local all = redis.call('HGETALL', KEYS[1])
for i = 1, #all, 2 do
  local value = with(all[i + 1])
  if value then redis.call('HSET', KEYS[1], all[i], value) end
end
return changed
"#;

/// Makes the metadata or the time of one event unreadable. ARGV: its revision, and the place of the metadata, or 0. The log
/// is written again, because a stream cannot be changed.
const DAMAGE_EVENT: &str = r#"
local changed, place = 0, tonumber(ARGV[2])
local events = redis.call('XRANGE', KEYS[1], '-', '+')
redis.call('DEL', KEYS[1])
for _, event in ipairs(events) do
  local fields = event[2]
  if event[1] == ARGV[1] .. '-0' then
    local value = fields[2]
    local at = string.find(value, '[1,"events",', 1, true)
    if place == 0 then
      value = 'soon' .. string.sub(value, string.find(value, ' ', 1, true), -1)
    else
      local cells = cjson.decode(string.sub(value, at))
      cells[place] = '{'
      value = string.sub(value, 1, at - 1) .. cjson.encode(cells)
    end
    fields[2] = value
    changed = changed + 1
  end
  redis.call('XADD', KEYS[1], event[1], unpack(fields))
end
return changed
"#;

/// Changes one value at random. ARGV: three numbers that choose the field, the place in its value, and the change.
const MUTATE: &str = r"
local fields = redis.call('HKEYS', KEYS[1])
table.sort(fields)
local field = fields[1 + tonumber(ARGV[1]) % #fields]
local value = redis.call('HGET', KEYS[1], field)
local place, byte = 1 + tonumber(ARGV[2]) % math.max(#value, 1), tonumber(ARGV[3])
local way = byte % 5
if way == 0 then value = string.sub(value, 1, place - 1)
elseif way == 1 then value = string.sub(value, 1, place - 1) .. string.char(byte) .. string.sub(value, place + 1)
elseif way == 2 then value = string.rep(string.char(byte), #value)
elseif way == 3 then value = value .. string.rep('\255', 1 + place)
else value = redis.call('HGET', KEYS[1], fields[1 + place % #fields]) end
redis.call('HSET', KEYS[1], field, value)
return redis.status_reply(field)
";

impl Scratch {
    /// Puts a value into a column of a table, where another column has the value `found`, past all checks. Positions in
    /// indexes stay as they are.
    #[track_caller]
    pub fn set_value(&self, table: &str, column: &str, value: &Value, (other, found): (&str, &str)) {
        let changed = if let Some(board) = self.served() {
            let place = |name| place_of(table, name).to_string();
            let value = value.to_string();
            board.change(SET, &["rows"], &[table, &place(column), &place(other), &value, found, ""])
        } else {
            let sql = format!("UPDATE {table} SET {column} = ?1 WHERE {other} = ?2");
            let text = value.as_str().map_or_else(|| value.to_string(), ToOwned::to_owned);
            let connection = self.tables();
            connection.execute_batch("PRAGMA ignore_check_constraints = ON").unwrap();
            let changed = match value.as_i64() {
                Some(number) => connection.execute(&sql, params![number, found]),
                None => connection.execute(&sql, params![text, found]),
            };
            changed.unwrap()
        };
        assert!(changed > 0, "{table} has a row where {other} is {found}");
    }

    /// Makes an event unreadable, by its metadata or by its time.
    #[track_caller]
    pub fn damage_event(&self, revision: i64, column: &str) {
        let Some(board) = self.served() else {
            let value = if column == "metadata" { "{" } else { "soon" };
            let sql = format!("UPDATE events SET {column} = ?1 WHERE id = ?2");
            assert_eq!(self.tables().execute(&sql, params![value, revision]).unwrap(), 1);
            return;
        };
        let place = if column == "metadata" { place_of("events", column) } else { 0 };
        assert_eq!(board.change(DAMAGE_EVENT, &["log"], &[&revision.to_string(), &place.to_string()]), 1);
    }

    /// Changes the board with SQL, past its verbs. A board on a server is copied to a file and back: it is another board
    /// afterwards, without the clock readings of machines.
    #[track_caller]
    pub fn rewrite(&self, sql: &str) {
        let Some(board) = self.served() else {
            self.tables().execute_batch(sql).unwrap();
            return;
        };
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("board.db");
        let options = SqliteOptions::default();
        let mut target = Sqlite::create_to_load(&file, Arc::new(SystemClock), &options, false).unwrap();
        copy(&*self.store().0, &mut target, &mut |_| {}).unwrap();
        target.open().unwrap();
        Connection::open(&file).unwrap().execute_batch(sql).unwrap();
        board.delete();
        board.load(&file);
        self.forget_known_board();
    }

    /// A digest of every byte that a server has of the board.
    pub fn keys_of_the_server(&self) -> String {
        let board = self.served().expect("a file is compared as bytes");
        let keys = ["rows", "index", "log"].map(|name| board.key(name));
        board.command(&["DEBUG", "DIGEST-VALUE", &keys[0], &keys[1], &keys[2]])
    }

    /// Changes one stored value at random, if the board is on a server, and returns what was changed.
    pub fn mutate(&self, chance: &mut Chance) -> String {
        let board = self.served().expect("a file is mutated as bytes");
        let [field, place, byte] = [1 << 20, 1 << 20, 256].map(|bound| chance.below(bound).to_string());
        board.command(&["EVAL", MUTATE, "1", &board.key("rows"), &field, &place, &byte])
    }
}

impl SharedBoard {
    /// Copies the board of a file here.
    #[track_caller]
    pub fn load(&self, file: &Path) {
        let options = SqliteOptions::default();
        let source = Sqlite::open(file, Arc::new(SystemClock), &options).unwrap();
        self.load_from(&source);
    }

    fn load_from(&self, source: &dyn Store) {
        let options =
            RedisOptions { patience: 2 * patience(), reply_limit: patience(), ..RedisOptions::default() };
        let mut target = Redis::create_to_load(self.url().parse().unwrap(), &options, false).unwrap();
        copy(source, &mut target, &mut |_| {}).unwrap();
        target.open().unwrap();
    }

    /// Puts a text before that of a column, in every row of a table; `false` if the server has no such texts.
    pub(crate) fn put_in_front(&self, table: &str, column: &str, text: &str) -> bool {
        let Some(place) = find_place(table, column) else { return false };
        let (place, text) = (place.to_string(), Value::from(text).to_string());
        self.change(SET, &["rows"], &[table, &place, "1", &text, "", "front"]) > 0
    }

    /// Runs a script that changes keys of the board, and returns the number that it returns.
    #[track_caller]
    fn change(&self, script: &str, keys: &[&str], arguments: &[&str]) -> usize {
        let count = keys.len().to_string();
        let keys: Vec<String> = keys.iter().map(|name| self.key(name)).collect();
        let mut call = vec!["EVAL", script, &count];
        call.extend(keys.iter().map(String::as_str));
        call.extend(arguments);
        let reply = self.command(&call);
        let number = reply.trim().strip_prefix(':').and_then(|number| number.parse().ok());
        number.unwrap_or_else(|| panic!("{reply}"))
    }
}

/// The place of a column in the stored form of its table, for Lua: the version of the form and the table come first.
fn find_place(table: &str, column: &str) -> Option<usize> {
    let split = |columns: &'static str| columns.split(", ").map(str::trim).collect();
    let columns: Vec<&str> = match table {
        "entry_versions" => split(VERSION),
        "events" => split(EVENT),
        _ => TABLES.iter().find(|known| known.name == table)?.columns.to_vec(),
    };
    Some(3 + columns.iter().position(|name| *name == column)?)
}

fn place_of(table: &str, column: &str) -> usize {
    find_place(table, column).unwrap_or_else(|| panic!("{table} has no {column}"))
}
