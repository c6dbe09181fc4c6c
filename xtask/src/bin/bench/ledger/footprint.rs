//! The resources that the product uses: disk, memory, and space for its WAL.

use std::process::Stdio;

use crate::boards::Scratch;
use crate::programs::{peak_memory, status};
use crate::report::{Bar, Line, Unit};
use crate::{Result, Scale};

const MEGABYTE: f64 = 1e6;

/// The size of the binary, the memory of a claim, and the largest WAL in thousands of commands.
pub fn measure(scale: &Scale) -> Result<Vec<Line>> {
    let size = std::fs::metadata(scale.program("blackboard"))?.len() as f64 / MEGABYTE;
    let mut lines = vec![Line::new("release binary", Bar::AtMost(14.0), Unit::Megabytes, &[size], "")];
    let scratch = Scratch::new()?;
    let session = scratch.register(50)?.swap_remove(0);
    scratch.add_items("item", 1)?;
    let command = |arguments: &[&str]| {
        let mut command = scale.blackboard(&scratch.path());
        command.args(arguments).env("BLACKBOARD_SESSION_ID", &session);
        command
    };
    if let Some(memory) = peak_memory(&command(&["work", "claim", "item-0", "--json"]))? {
        lines.push(Line::new("memory of `work claim`", Bar::AtMost(6.0), Unit::Megabytes, &[memory], ""));
    }
    let commands = scale.of(10_000, 300);
    let mut longest = 0;
    for _ in 0..commands {
        let mut heartbeat = command(&["agent", "heartbeat", "--json"]);
        let status = status(heartbeat.stdout(Stdio::null()), "a heartbeat")?;
        if !status.success() {
            return Err(format!("a heartbeat ended with {status}").into());
        }
        longest = longest.max(scratch.log_size());
    }
    let what = format!("write-ahead log in {commands} one-shot commands, at its longest");
    lines.push(Line::new(what, Bar::AtMost(2.0), Unit::Megabytes, &[longest as f64 / MEGABYTE], ""));
    Ok(lines)
}
