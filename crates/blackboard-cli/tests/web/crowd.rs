//! A thousand browsers, each of which gets every event in order.

use std::time::{Duration, Instant};

use blackboard::Board;
use blackboard::entry::{Value, Write};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::client::own;
use crate::scale::size;
use crate::served::Served;

const CLIENTS: usize = 1000;
const WRITES_A_SECOND: usize = 20;

/// Reads all events up to the last, and returns their order.
async fn follow(port: u16, last: i64) -> Vec<i64> {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).await.unwrap();
    let request = format!("GET /api/events/stream?after=0 HTTP/1.1\r\n{}\r\n", own(port));
    stream.write_all(request.as_bytes()).await.unwrap();
    let (mut text, mut buffer, mut ids) = (Vec::new(), [0; 4096], Vec::new());
    while ids.last() != Some(&last) {
        let count = stream.read(&mut buffer).await.unwrap();
        assert!(count > 0, "cut off after {:?}", ids.last());
        text.extend_from_slice(&buffer[..count]);
        while let Some(end) = text.iter().position(|byte| *byte == b'\n') {
            let line: Vec<u8> = text.drain(..=end).collect();
            if let Some(id) = line.strip_prefix(b"id: ") {
                ids.push(std::str::from_utf8(id).unwrap().trim().parse().unwrap());
            }
        }
    }
    ids
}

#[test]
fn a_thousand_clients_get_every_event_in_order() {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let Rlimit { maximum, .. } = getrlimit(Resource::Nofile);
    setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum }).unwrap();
    let served = Served::new();
    let seconds = size(5, 60);
    let writes = seconds * WRITES_A_SECOND;
    let last = i64::try_from(writes).unwrap();
    let before = usage(served.pid());
    let runtime = tokio::runtime::Builder::new_current_thread().enable_io().enable_time().build().unwrap();
    let (memory, idle) = runtime.block_on(async {
        let clients: Vec<_> = (0..CLIENTS).map(|_| tokio::spawn(follow(served.port, last))).collect();
        // All of them are there before the first write.
        let all_are_there = async {
            while established(served.port) < CLIENTS {
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        };
        let limit = 2 * testkit::patience();
        tokio::time::timeout(limit, all_are_there).await.expect("all clients are connected");
        let idle = usage(served.pid()).memory;
        let database = served.database();
        let busy = std::thread::spawn(move || {
            let board = Board::open(&database).unwrap();
            let start = Instant::now();
            for number in 0..writes {
                let due = start + Duration::from_millis(1000 * number as u64 / WRITES_A_SECOND as u64);
                std::thread::sleep(due.saturating_duration_since(Instant::now()));
                let key = format!("key:{}", number % 50);
                board.scope("team").write(&Write::new(&key, Value::of(&number).unwrap())).unwrap();
            }
        });
        let expected: Vec<i64> = (1..=last).collect();
        for client in clients {
            assert_eq!(client.await.unwrap(), expected);
        }
        busy.join().unwrap();
        (usage(served.pid()).memory, idle)
    });
    let after = usage(served.pid());
    println!(
        "web-crowd: {CLIENTS} clients, {seconds} s: {} kB a client while idle, {} kB at the end, {:.1} s of CPU",
        idle.saturating_sub(before.memory) / CLIENTS,
        memory.saturating_sub(before.memory) / CLIENTS,
        after.seconds - before.seconds
    );
}

/// How many connections the server has.
fn established(port: u16) -> usize {
    let text = std::fs::read_to_string("/proc/net/tcp").unwrap();
    let local = format!("0100007F:{port:04X}");
    let is_ours = |line: &&str| {
        let mut words = line.split_whitespace().skip(1);
        words.next() == Some(local.as_str()) && words.nth(1) == Some("01")
    };
    text.lines().filter(is_ours).count()
}

/// What a process uses: kilobytes that stay in memory, and seconds of CPU.
struct Usage {
    memory: usize,
    seconds: f64,
}

fn usage(pid: u32) -> Usage {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let memory = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    let ticks: f64 = stat
        .rsplit(") ")
        .next()
        .unwrap()
        .split(' ')
        .skip(11)
        .take(2)
        .map(|ticks| ticks.parse::<f64>().unwrap())
        .sum();
    Usage { memory: memory.trim().trim_end_matches(" kB").parse().unwrap(), seconds: ticks / 100.0 }
}
