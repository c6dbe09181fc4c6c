//! Whole commands on an idle database, against `/bin/true` and against the floor.

use std::cell::Cell;
use std::process::Command;

use crate::boards::Scratch;
use crate::programs::{Program, interleave};
use crate::report::{Bar, Line, Unit};
use crate::{Result, Scale};

/// `agent list`, `agent heartbeat`, `work claim`, `--version` and `--help`.
pub fn measure(scale: &Scale) -> Result<Vec<Line>> {
    let runs = scale.of(200, 10);
    let (product, floor) = (Scratch::new()?, Scratch::new()?);
    let session = product.register(50)?.swap_remove(0);
    product.add_items("item", scale.rounds * runs + 1)?;
    std::fs::copy(product.path(), floor.path())?;

    let blackboard = |arguments: &[&str]| {
        let mut command = scale.blackboard(&product.path());
        command.args(arguments).env("BLACKBOARD_SESSION_ID", &session);
        command
    };
    let floor_of = |arguments: &[&str]| {
        let mut command = Command::new(scale.program("floor"));
        command.arg(arguments[0]).arg(floor.path()).args(&arguments[1..]).env_clear();
        command
    };
    let (claimed, floor_claimed) = (Cell::new(0), Cell::new(0));
    let next = |counter: &Cell<usize>| format!("item-{}", counter.replace(counter.get() + 1));
    let mut programs = [
        Program::new("/bin/true", || {
            let mut command = Command::new("/bin/true");
            command.env_clear();
            command
        }),
        Program::new("list", || blackboard(&["agent", "list", "--json"])),
        Program::new("floor of list", || floor_of(&["list"])),
        Program::new("heartbeat", || blackboard(&["agent", "heartbeat", "--json"])),
        Program::new("floor of heartbeat", || floor_of(&["heartbeat", &session])),
        Program::new("claim", || blackboard(&["work", "claim", &next(&claimed), "--json"])),
        Program::new("floor of claim", || floor_of(&["claim", &session, &next(&floor_claimed)])),
        Program::new("--version", || blackboard(&["--version"])),
        Program::new("--help", || blackboard(&["--help"])),
    ];
    interleave(&mut programs, scale.rounds, runs)?;

    let [nothing, list, list_floor, heartbeat, heartbeat_floor, claim, claim_floor, version, help] =
        &programs;
    let line =
        |what: &str, limit, program: &Program<'_>, other: &Program<'_>, floor: Option<&Program<'_>>| {
            let told: Vec<_> =
                [Some(program), Some(other), floor].into_iter().flatten().map(Program::tell).collect();
            Line::new(what, Bar::AtMost(limit), Unit::Ratio, &program.ratios(other), told.join(", "))
        };
    let listed = "`agent list --json`, 50 agents, against `/bin/true`";
    Ok(vec![
        line(listed, 2.3, list, nothing, Some(list_floor)),
        line("`agent heartbeat` against `/bin/true`", 3.0, heartbeat, nothing, Some(heartbeat_floor)),
        line("`work claim` against `/bin/true`", 3.5, claim, nothing, None),
        line("`work claim` against the floor", 1.35, claim, claim_floor, None),
        line("`--version` against `/bin/true`", 1.2, version, nothing, None),
        line("`--help` against `/bin/true`", 3.0, help, nothing, None),
    ])
}
