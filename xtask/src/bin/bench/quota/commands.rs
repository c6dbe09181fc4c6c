//! Complete commands over a large ledger.

use std::cell::Cell;
use std::process::Command;
use std::time::Duration;

use super::ledger::Home;
use crate::boards::Scratch;
use crate::programs::{Program, interleave};
use crate::report::{Bar, Line, Unit};
use crate::{Result, Scale};

/// `quota status` against `status`, `quota check` and `quota record`, with a million records in the last 7 days.
pub fn measure(scale: &Scale) -> Result<Vec<Line>> {
    let (runs, count) = (scale.of(200, 5), scale.of(1_000_000, 5_000));
    let (board, home, without) = (Scratch::new()?, Home::new()?, tempfile::tempdir()?);
    let session = board.register(50)?.swap_remove(0);
    home.record(&board.path(), count, Duration::from_hours(7 * 24))?;
    let command = |arguments: &[&str], home: &std::path::Path| -> Command {
        let mut command = scale.blackboard(&board.path());
        command.args(arguments).env("BLACKBOARD_HOME", home).env("BLACKBOARD_SESSION_ID", &session);
        command
    };
    let number = Cell::new(0);
    let mut programs = [
        Program::nothing(),
        Program::new("status", || command(&["status", "--json"], without.path())),
        Program::new("status with a quota", || command(&["status", "--json"], home.path())),
        Program::new("quota status", || command(&["quota", "status", "--json"], home.path())),
        Program::new("quota check", || {
            command(&["quota", "check", "--tokens", "30k", "--json"], home.path())
        }),
        Program::new("quota record", || {
            let id = format!("new_{}", number.replace(number.get() + 1));
            command(&["quota", "record", "--id", &id, "--input-tokens", "1000", "--json"], home.path())
        }),
    ];
    interleave(&mut programs, scale.rounds, runs)?;
    let [nothing, status, with_quota, quota_status, check, record] = &programs;
    let line = |what: String, bar, program: &Program<'_>, other: &Program<'_>| {
        let raw = format!("{}, {}", program.tell(), other.tell());
        Line::new(what, bar, Unit::Ratio, &program.ratios(other), raw)
    };
    Ok(vec![
        line(
            format!("`quota status`, {count} records, against `status`"),
            Bar::AtMost(3.0),
            quota_status,
            status,
        ),
        line(
            format!("`status` with a quota, {count} records, against one without"),
            Bar::NoLimit,
            with_quota,
            status,
        ),
        line(format!("`quota check`, {count} records, against `/bin/true`"), Bar::NoLimit, check, nothing),
        line("`quota record` of one message against `/bin/true`".to_owned(), Bar::NoLimit, record, nothing),
    ])
}
