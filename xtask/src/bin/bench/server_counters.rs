//! What a Redis server counts itself: requests, processor time and memory.

use std::time::Duration;

use crate::Result;
use crate::redis_server::Client;

/// The counters of a server when they were read.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Counters {
    /// How often it has read from a connection: once per round trip, because a request is sent in one piece.
    pub requests: u64,
    /// How long its process was on a processor.
    pub processor: Duration,
}

impl Counters {
    /// The counters now. The request for them is counted, too.
    pub fn of(client: &mut Client) -> Result<Counters> {
        Counters::read(&info(client, &["stats", "cpu"])?)
    }

    fn read(info: &str) -> Result<Counters> {
        let seconds = number(info, "used_cpu_sys")? + number(info, "used_cpu_user")?;
        let requests = number(info, "total_reads_processed")? as u64;
        Ok(Counters { requests, processor: Duration::from_secs_f64(seconds) })
    }

    /// What was counted between two moments, without the request of the second one.
    pub fn since(self, earlier: Counters) -> Counters {
        Counters {
            requests: self.requests.saturating_sub(earlier.requests + 1),
            processor: self.processor.saturating_sub(earlier.processor),
        }
    }
}

/// The memory of each key of a board, in bytes, without the tables of hashes. A table doubles from time to time, so what is
/// added at that moment would seem to need all of it. On average it adds about 12 bytes for each row and member.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct KeyMemory {
    pub rows: f64,
    pub index: f64,
    pub log: f64,
}

impl KeyMemory {
    /// The exact memory now.
    pub fn of(client: &mut Client, board: &str) -> Result<KeyMemory> {
        let mut memory = |name: &str| -> Result<f64> {
            let key = format!("bb:{{{board}}}:{name}");
            let answer = client.call(&["MEMORY", "USAGE", &key, "SAMPLES", "0"])?;
            let size: f64 = answer.first().and_then(|size| size.parse().ok()).unwrap_or(0.0);
            // Only hashes and sorted sets have tables.
            let tables = client.call(&["DEBUG", "HTSTATS-KEY", &key]).unwrap_or_default();
            Ok(size - 8.0 * slots(&tables.concat()))
        };
        Ok(KeyMemory { rows: memory("rows")?, index: memory("index")?, log: memory("log")? })
    }

    /// How much rows and their members grew since then, for each of `count`.
    pub fn rows_since(self, earlier: KeyMemory, count: usize) -> f64 {
        (self.rows + self.index - earlier.rows - earlier.index) / count.max(1) as f64
    }

    /// How much the event log grew since then.
    pub fn log_since(self, earlier: KeyMemory) -> f64 {
        self.log - earlier.log
    }
}

/// The slots of all tables in the statistics of a key: two while it grows.
fn slots(statistics: &str) -> f64 {
    let sizes = statistics.lines().filter_map(|line| line.trim().strip_prefix("table size:"));
    sizes.filter_map(|size| size.trim().parse::<f64>().ok()).sum()
}

/// The memory of each connection that waits for events, in bytes.
pub fn memory_of_waiting(client: &mut Client) -> Result<Vec<f64>> {
    let list = client.call(&["CLIENT", "LIST"])?.concat();
    Ok(list.lines().filter(|line| line.contains(" cmd=xread ")).filter_map(total_memory).collect())
}

fn total_memory(line: &str) -> Option<f64> {
    line.split(' ').find_map(|part| part.strip_prefix("tot-mem=")?.parse().ok())
}

/// A number that the server reports.
pub fn reported(client: &mut Client, section: &str, name: &str) -> Result<f64> {
    number(&info(client, &[section])?, name)
}

fn info(client: &mut Client, sections: &[&str]) -> Result<String> {
    let words: Vec<&str> = std::iter::once("INFO").chain(sections.iter().copied()).collect();
    Ok(client.call(&words)?.concat())
}

fn number(info: &str, name: &str) -> Result<f64> {
    let line = info.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
    let number = line.and_then(|value| value.trim().parse().ok());
    number.ok_or_else(|| format!("the server does not report {name}").into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_are_read_from_the_report_of_a_server() {
        let info = "# Stats\r\ntotal_reads_processed:7\r\nused_cpu_sys:0.5\r\nused_cpu_user:1.25\r\nused_cpu_user_children:9\r\n";
        let before = Counters::read(info).unwrap();
        assert_eq!(before, Counters { requests: 7, processor: Duration::from_millis(1750) });
        let after = Counters { requests: 10, processor: Duration::from_secs(2) };
        let expected = Counters { requests: 2, processor: Duration::from_millis(250) };
        assert_eq!(after.since(before), expected, "without the request for the counters");
        assert!(Counters::read("used_cpu_sys:1").is_err());
    }

    #[test]
    fn tables_and_connections_are_read_from_their_statistics() {
        let tables = "Hash table 0 stats (main hash table):\n table size: 4\n number of elements: 3\nHash table 1 stats\n table size: 8\n";
        assert_eq!(slots(tables).total_cmp(&12.0), std::cmp::Ordering::Equal);
        assert_eq!(total_memory("id=3 tot-mem=1928 events=r cmd=xread user=default"), Some(1928.0));
    }

    #[test]
    fn growth_of_rows_and_of_the_log_are_separate() {
        let before = KeyMemory { rows: 100.0, index: 50.0, log: 10.0 };
        let after = KeyMemory { rows: 300.0, index: 150.0, log: 70.0 };
        assert_eq!(after.rows_since(before, 10).total_cmp(&30.0), std::cmp::Ordering::Equal);
        assert_eq!(after.log_since(before).total_cmp(&60.0), std::cmp::Ordering::Equal);
    }
}
