//! The cost of a thousand waiting clients.

use std::io::{Read, Write};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use blackboard::entry::{Value, Write as WriteEntry};
use testkit::process::Lines;

use super::server::{Access, Server, request};
use crate::boards::Scratch;
use crate::programs::end;
use crate::report::{Bar, Line, Unit};
use crate::statistics::median;
use crate::{Result, Scale};

/// How many processes hold the clients: one may not open enough files.
const HOLDERS: usize = 4;

/// The variable with the token of the server.
const TOKEN: &str = "BENCH_TOKEN";

/// Memory with 1,000 clients of the stream.
pub fn of_clients(scale: &Scale) -> Result<Vec<Line>> {
    let clients = scale.of(1000, 100);
    let (mut rounds, mut busy) = (Vec::new(), Vec::new());
    for _ in 0..scale.rounds {
        let scratch = Scratch::new()?;
        let board = scratch.open()?;
        let tell = |number: usize| -> Result {
            board.scope("default").write(&WriteEntry::new("task:a", Value::of(&number)?))?;
            Ok(())
        };
        tell(0)?;
        let server = Server::start(scale, &scratch.path());
        drop(request(&server.access, "/api/status")?);
        let before = server.memory()?;
        let mut holders = Vec::new();
        for _ in 0..HOLDERS {
            holders.push(Holder::start(&server.access, clients / HOLDERS)?);
        }
        let each = |memory: f64| (memory - before) / clients as f64;
        rounds.push(each(server.memory()?));
        // The same after all of them were sent something.
        for number in 0..scale.of(100, 10) {
            tell(number)?;
            std::thread::sleep(Duration::from_millis(50));
        }
        busy.push(each(server.memory()?));
    }
    let detail =
        format!("{clients} clients; {:.1} kB each after 5 s with 20 writes a second", median(&busy) / 1024.0);
    let what = "memory with 1,000 SSE clients, per client";
    Ok(vec![Line::new(what, Bar::AtMost(40.0 * 1024.0), Unit::Bytes, &rounds, detail)])
}

/// A process that holds clients, and reads their streams.
struct Holder(Child);

impl Holder {
    fn start(access: &Access, clients: usize) -> Result<Holder> {
        let mut command = Command::new(std::env::current_exe()?);
        command.args(["holder", &access.port.to_string(), &clients.to_string()]).env(TOKEN, &access.token);
        let mut process = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
        let line = Lines::of(&mut process).next();
        if line == "ready" { Ok(Holder(process)) } else { Err("a client got no stream".into()) }
    }
}

impl Drop for Holder {
    fn drop(&mut self) {
        end(&mut self.0);
    }
}

/// The process that holds clients until its input ends.
pub fn hold(arguments: &[String]) -> Result {
    let [port, clients] = arguments else { return Err("which port, how many clients?".into()) };
    let (access, clients): (_, usize) =
        (Access { port: port.parse()?, token: std::env::var(TOKEN)? }, clients.parse()?);
    for _ in 0..clients {
        let mut stream = request(&access, "/api/events/stream")?;
        std::thread::Builder::new().stack_size(64 * 1024).spawn(move || {
            let mut bytes = [0; 4096];
            while stream.read(&mut bytes).is_ok_and(|count| count > 0) {}
        })?;
    }
    println!("ready");
    std::io::stdout().flush()?;
    std::io::stdin().read_to_end(&mut Vec::new())?;
    Ok(())
}
