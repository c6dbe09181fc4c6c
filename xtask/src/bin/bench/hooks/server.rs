//! The MCP server, with raw JSON-RPC on its standard input and output.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::Instant;

use blackboard::work::Claim;
use serde_json::{Value, json};
use testkit::{limited, patience};

use super::agents::Agents;
use crate::boards::Scratch;
use crate::programs::{end, microseconds};
use crate::report::{Bar, Line, Unit};
use crate::statistics::{median, percentile};
use crate::{Result, Scale};

const MEGABYTE: f64 = 1e6;

/// A server that has the board open. It ends when this value is dropped.
pub struct Server {
    process: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
    line: String,
    last_id: u64,
}

impl Server {
    /// Starts a server, does the handshake, and calls `who`.
    pub fn start(mut command: Command) -> Result<Server> {
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut process = command.spawn()?;
        let pipes = (process.stdin.take(), process.stdout.take());
        let (Some(input), Some(output)) = pipes else { return Err("a server without pipes".into()) };
        let output = BufReader::new(output);
        let mut server = Server { process, input, output, line: String::new(), last_id: 0 };
        let hello = json!({
            "protocolVersion": "2025-06-18",
            "capabilities": {},
            "clientInfo": {"name": "bench", "version": "1"},
        });
        server.ask("initialize", &hello)?;
        server.say(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}))?;
        server.call("who", &json!({}))?;
        Ok(server)
    }

    /// Calls a tool, which has to succeed.
    pub fn call(&mut self, tool: &str, arguments: &Value) -> Result {
        self.ask("tools/call", &json!({"name": tool, "arguments": arguments}))?;
        if self.line.contains("\"isError\":false") {
            return Ok(());
        }
        Err(format!("{tool} failed: {}", self.line).into())
    }

    /// Sends a request, and reads its answer.
    fn ask(&mut self, method: &str, params: &Value) -> Result {
        self.last_id += 1;
        self.say(&json!({"jsonrpc": "2.0", "id": self.last_id, "method": method, "params": params}))?;
        self.line.clear();
        let what = format!("the answer to {method}");
        if limited(&what, patience(), || self.output.read_line(&mut self.line))? == 0 {
            return Err("the server is gone".into());
        }
        Ok(())
    }

    fn say(&mut self, message: &Value) -> Result {
        Ok(self.input.write_all(format!("{message}\n").as_bytes())?)
    }

    /// Its peak memory, in megabytes; `None` if the system does not report it.
    fn peak_memory(&self) -> Option<f64> {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.process.id())).ok()?;
        let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
        Some(line.trim().strip_suffix(" kB")?.parse::<f64>().ok()? / 1024.0)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        end(&mut self.process);
    }
}

/// A claim from the request until its answer, alternating with claims through the library in this process.
pub fn claims(scale: &Scale) -> Result<Vec<Line>> {
    let claims = scale.of(2_000, 100);
    let (mut remote, mut own, mut ratios) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..scale.rounds {
        let agents = Agents::new(scale, 50)?;
        agents.scratch.add_items("item", claims)?;
        let mut server = Server::start(agents.server())?;
        let beside = Scratch::new()?;
        let session = beside.register(50)?.swap_remove(0);
        beside.add_items("item", claims)?;
        let board = beside.open()?;
        let (mut theirs, mut ours) = (Vec::with_capacity(claims), Vec::with_capacity(claims));
        for number in 0..claims {
            let item = format!("item-{number}");
            let arguments = json!({"id": item});
            let start = Instant::now();
            server.call("work_claim", &arguments)?;
            theirs.push(microseconds(start.elapsed()));
            let start = Instant::now();
            board.work().claim(&Claim::of(&item, &session))?;
            ours.push(microseconds(start.elapsed()));
        }
        ratios.push(median(&theirs) / median(&ours));
        remote.extend(theirs);
        own.extend(ours);
    }
    let detail = format!(
        "p50 {:.0} µs (p95 {:.0}), in process {:.0} µs (p95 {:.0})",
        median(&remote),
        percentile(&remote, 95.0),
        median(&own),
        percentile(&own, 95.0)
    );
    let what = "MCP `work_claim` round trip in a running server, p50 against a claim in process";
    Ok(vec![Line::new(what, Bar::AtMost(5.0), Unit::Ratio, &ratios, detail)])
}

/// The memory of a server that has answered for a while, and the size of its binary.
pub fn footprint(scale: &Scale) -> Result<Vec<Line>> {
    let claims = scale.of(1_000, 50);
    let agents = Agents::new(scale, 50)?;
    agents.scratch.add_items("item", claims)?;
    let mut server = Server::start(agents.server())?;
    for number in 0..claims {
        server.call("work_claim", &json!({"id": format!("item-{number}")}))?;
    }
    let mut lines = Vec::new();
    if let Some(memory) = server.peak_memory() {
        let what = format!("memory of the MCP server after {claims} claims");
        lines.push(Line::new(what, Bar::NoLimit, Unit::Megabytes, &[memory], ""));
    }
    let size = std::fs::metadata(scale.program("blackboard"))?.len() as f64 / MEGABYTE;
    lines.push(Line::new("release binary", Bar::AtMost(14.0), Unit::Megabytes, &[size], ""));
    Ok(lines)
}
