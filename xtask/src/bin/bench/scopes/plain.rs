//! `write` into a scope without policies, against the same command of another version of the program.

use std::cell::Cell;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use testkit::{limited, patience};

use crate::boards::Scratch;
use crate::programs::{Program, interleave, status};
use crate::report::{Bar, Line, Unit};
use crate::statistics::ratios;
use crate::{Result, Scale};

/// Names the program of the other version: for example one that was built from the commit before scopes.
const BEFORE: &str = "BLACKBOARD_BENCH_BEFORE";

/// How many keys are written in turn.
const KEYS: usize = 20;

/// Complete processes in turn, and the instructions of one of them.
pub fn writing(scale: &Scale) -> Result<Vec<Line>> {
    let Some(before) = std::env::var_os(BEFORE).map(PathBuf::from) else {
        eprintln!("not measured: {BEFORE} names no program of another version");
        return Ok(Vec::new());
    };
    let (ours, theirs) = (Side::new(scale.program("blackboard"))?, Side::new(before)?);
    let mut programs =
        [Program::new("write", || ours.next()), Program::new("write before", || theirs.next())];
    interleave(&mut programs, scale.rounds, scale.of(200, 10))?;
    let [now, before] = &programs;
    let times = format!("{}, {}", now.tell(), before.tell());
    let speed = ratios(&before.medians(), &now.medians());
    let (counted, counted_before) = (ours.instructions()?, theirs.instructions()?);
    let counts = format!("{counted:.0}, before {counted_before:.0}");
    let what = "`write` into a plain scope against before";
    Ok(vec![
        Line::new(
            format!("{what}, instructions"),
            Bar::AtMost(1.02),
            Unit::Ratio,
            &[counted / counted_before],
            counts,
        ),
        Line::new(format!("{what}, speed"), Bar::AtLeast(0.95), Unit::Ratio, &speed, times),
    ])
}

/// One version of the program on its own board.
struct Side {
    program: PathBuf,
    scratch: Scratch,
    written: Cell<usize>,
}

impl Side {
    fn new(program: PathBuf) -> Result<Side> {
        let side = Side { program, scratch: Scratch::new()?, written: Cell::new(0) };
        for _ in 0..KEYS {
            let mut command = side.next();
            let status = status(command.stdout(Stdio::null()).stderr(Stdio::null()), "write")?;
            if !status.success() {
                return Err(format!("{command:?} ended with {status}").into());
            }
        }
        Ok(side)
    }

    /// The next write.
    fn next(&self) -> Command {
        let number = self.written.replace(self.written.get() + 1) % KEYS;
        let mut command = Command::new(&self.program);
        self.write(&mut command, &self.scratch.path(), number);
        command
    }

    fn write(&self, command: &mut Command, database: &Path, number: usize) {
        let home = self.scratch.home();
        command.env_clear().env("HOME", home).env("BLACKBOARD_DB", database).current_dir(home);
        command.args(["write", &format!("task:{number}"), r#"{"status":"in_progress","step":17}"#, "--json"]);
    }

    /// The instructions of a write on a board without a WAL.
    fn instructions(&self) -> Result<f64> {
        self.scratch.fold()?;
        let place = tempfile::tempdir()?;
        let database = place.path().join("local.db");
        std::fs::copy(self.scratch.path(), &database)?;
        let mut command = Command::new("valgrind");
        let profile = format!("--callgrind-out-file={}", place.path().join("profile").display());
        command.args(["--tool=callgrind", &profile]).arg(&self.program);
        self.write(&mut command, &database, 0);
        command.env("PATH", std::env::var_os("PATH").unwrap_or_default());
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
        let output = limited("valgrind", patience(), || command.output())?;
        let report = String::from_utf8_lossy(&output.stderr);
        let count = report.lines().find_map(|line| line.split_once("Collected : ")?.1.trim().parse().ok());
        count.filter(|_| output.status.success()).ok_or_else(|| format!("valgrind failed: {report}").into())
    }
}
