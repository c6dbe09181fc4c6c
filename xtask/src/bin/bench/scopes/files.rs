//! Files with many entries: complete commands that import and render them.

use std::io::Write as _;
use std::process::{Command, Stdio};
use std::time::Instant;

use crate::boards::Scratch;
use crate::programs::status;
use crate::report::{Bar, Line, Unit};
use crate::{Result, Scale};

/// `import` of a snapshot into an empty board, then `render` into a new file.
pub fn importing_and_rendering(scale: &Scale) -> Result<Vec<Line>> {
    let entries = scale.of(100_000, 1_000);
    let (mut imported, mut rendered) = (Vec::new(), Vec::new());
    for _ in 0..scale.rounds {
        let scratch = Scratch::new()?;
        drop(scratch.open()?);
        let snapshot = scratch.home().join("snapshot.json");
        write_snapshot(&snapshot, entries)?;
        let seconds = seconds(scale.blackboard(&scratch.path()).arg("import").arg(&snapshot))?;
        imported.push(entries as f64 / seconds);
        let file = scratch.home().join("swarm-blackboard.md");
        rendered.push(self::seconds(scale.blackboard(&scratch.path()).arg("render").arg(file))?);
    }
    let detail = |verb: &str| format!("{verb} of {entries} entries, complete process");
    Ok(vec![
        Line::new(
            "entries imported per second",
            Bar::AtLeast(20_000.0),
            Unit::Count,
            &imported,
            detail("import"),
        ),
        Line::new("10⁵ entries rendered", Bar::AtMost(2.0), Unit::Seconds, &rendered, detail("render")),
    ])
}

/// A JSON snapshot as `blackboard.py snapshot` prints it.
fn write_snapshot(path: &std::path::Path, entries: usize) -> Result {
    let mut file = std::io::BufWriter::new(std::fs::File::create(path)?);
    writeln!(file, "{{")?;
    for number in 0..entries {
        let end = if number + 1 == entries { "" } else { "," };
        writeln!(
            file,
            r#""task:{number:06}": {{"key": "task:{number:06}", "value": {{"status": "pending", "step": {number}}}, "source_agent": "data_analyst", "timestamp": "2026-02-04T10:00:00.000000+00:00", "ttl": null}}{end}"#
        )?;
    }
    writeln!(file, "}}")?;
    Ok(file.flush()?)
}

fn seconds(command: &mut Command) -> Result<f64> {
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let start = Instant::now();
    let status = status(command, "a command on a file")?;
    if !status.success() {
        return Err(format!("{command:?} ended with {status}").into());
    }
    Ok(start.elapsed().as_secs_f64())
}
