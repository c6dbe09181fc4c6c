//! A hook as a complete process, against `/bin/true`.

use std::cell::Cell;

use super::agents::Agents;
use super::server::Server;
use crate::programs::{Program, interleave};
use crate::report::{Bar, Line, Unit};
use crate::{Result, Scale};

/// A tool call shortly after another one, which has nothing to write: while the session's MCP server has the board
/// open, and on a board that no process has open. Once in ten seconds such a call is a heartbeat and writes, which does
/// not change a median.
pub fn throttled(scale: &Scale) -> Result<Vec<Line>> {
    let runs = scale.of(300, 10);
    let mut lines = Vec::new();
    for (is_open, limit) in [(true, 1.8), (false, 2.2)] {
        let agents = Agents::new(scale, 50)?;
        let server = if is_open { Some(Server::start(agents.server())?) } else { None };
        let hook = Program::fed("hook", || agents.used_a_tool(0));
        let what = if is_open { "its MCP server has the board open" } else { "idle database" };
        lines.push(against_nothing(&format!("throttled away, {what}"), limit, hook, scale, runs)?);
        drop(server);
    }
    Ok(lines)
}

/// A tool call that writes on a board that no process has open: a heartbeat, and the edit of a file.
pub fn writing(scale: &Scale) -> Result<Vec<Line>> {
    let runs = scale.of(200, 10);
    let count = scale.rounds * runs + 1;
    let agents = Agents::new(scale, count)?;
    agents.fall_silent()?;
    let next = Cell::new(0);
    let beat = Program::fed("hook", || agents.used_a_tool(next.replace(next.get() + 1)));
    let mut lines = vec![against_nothing("that is a sign of life, idle database", 3.0, beat, scale, runs)?];

    let editor = Agents::new(scale, 50)?;
    let next = Cell::new(0);
    let edit =
        Program::fed("hook", || editor.edited(0, &format!("src/file-{}.rs", next.replace(next.get() + 1))));
    lines.push(against_nothing("that notes an edit, idle database", 3.0, edit, scale, runs)?);
    Ok(lines)
}

/// A tool call that reads 20 new lines of its transcript, against the same call of a user without a quota.
pub fn usage(scale: &Scale) -> Result<Vec<Line>> {
    let runs = scale.of(300, 10);
    let (without, with) = (Agents::new(scale, 50)?, Agents::new(scale, 50)?);
    with.configure_quota()?;
    let next = Cell::new(0);
    let mut programs = [
        Program::fed("without a quota", || {
            let _ = without.continue_transcript(next.get());
            without.used_a_tool(0)
        }),
        Program::fed("with 20 new lines", || {
            // A line that is missing makes the hook faster, and the median does not change.
            let _ = with.continue_transcript(next.replace(next.get() + 1));
            with.used_a_tool(0)
        }),
    ];
    interleave(&mut programs, scale.rounds, runs)?;
    let [without, with] = &programs;
    let what = "`hook claude` for PostToolUse that reads 20 new lines of its transcript, against that without a quota";
    let detail = format!("{}, {}", with.tell(), without.tell());
    Ok(vec![Line::new(what, Bar::AtMost(1.25), Unit::Ratio, &with.ratios(without), detail)])
}

fn against_nothing(what: &str, limit: f64, hook: Program<'_>, scale: &Scale, runs: usize) -> Result<Line> {
    let mut programs = [Program::nothing(), hook];
    interleave(&mut programs, scale.rounds, runs)?;
    let [nothing, hook] = &programs;
    let what = format!("`hook claude` for PostToolUse {what}, against `/bin/true`");
    let detail = format!("{}, {}", hook.tell(), nothing.tell());
    Ok(Line::new(what, Bar::AtMost(limit), Unit::Ratio, &hook.ratios(nothing), detail))
}
