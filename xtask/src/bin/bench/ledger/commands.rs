//! Complete commands on an idle database, against `/bin/true` and against the baseline.

use std::cell::Cell;
use std::path::Path;
use std::process::Command;

use crate::boards::Scratch;
use crate::programs::{Program, interleave};
use crate::report::{Bar, Line, Unit};
use crate::{Result, Scale};

/// `agent list`, `agent heartbeat`, `work claim`, `status --export`, `--version` and `--help`, each on its own board that no other process
/// uses, alternating with `/bin/true` and with its baseline.
pub fn measure(scale: &Scale) -> Result<Vec<Line>> {
    let runs = scale.of(200, 10);
    let listing = Pair::new(scale, 0)?;
    let mut lists =
        [Program::nothing(), listing.product(&["agent", "list", "--json"]), listing.baseline(&["list"])];
    interleave(&mut lists, scale.rounds, runs)?;

    let beating = Pair::new(scale, 0)?;
    let baseline = ["heartbeat", &beating.session];
    let mut beats =
        [Program::nothing(), beating.product(&["agent", "heartbeat", "--json"]), beating.baseline(&baseline)];
    interleave(&mut beats, scale.rounds, runs)?;

    let claiming = Pair::new(scale, scale.rounds * runs + 1)?;
    let (claimed, baseline_claimed) = (Cell::new(0), Cell::new(0));
    let next = |counter: &Cell<usize>| format!("item-{}", counter.replace(counter.get() + 1));
    let mut claims = [
        Program::nothing(),
        Program::new("claim", || claiming.blackboard(&["work", "claim", &next(&claimed), "--json"])),
        Program::new("baseline of claim", || {
            claiming.baseline_program(&["claim", &claiming.session, &next(&baseline_claimed)])
        }),
    ];
    interleave(&mut claims, scale.rounds, runs)?;

    // Outside of a repository: git takes as long as it takes.
    let exporting = Pair::new(scale, 1000)?;
    let mut exports = [
        Program::nothing(),
        Program::new("export", || {
            let mut command = exporting.blackboard(&["status", "--export", "--all-projects", "--json"]);
            command.current_dir(exporting.product.path().parent().unwrap_or_else(|| Path::new("/tmp")));
            command
        }),
    ];
    interleave(&mut exports, scale.rounds, runs)?;

    let mut words = [Program::nothing(), listing.product(&["--version"]), listing.product(&["--help"])];
    interleave(&mut words, scale.rounds, runs)?;

    let line =
        |what: &str, limit, program: &Program<'_>, other: &Program<'_>, baseline: Option<&Program<'_>>| {
            let detail: Vec<_> =
                [Some(program), Some(other), baseline].into_iter().flatten().map(Program::tell).collect();
            Line::new(what, Bar::AtMost(limit), Unit::Ratio, &program.ratios(other), detail.join(", "))
        };
    let listed = "`agent list --json`, 50 agents, against `/bin/true`";
    let exported = "`status --export`, 50 agents, 1,000 items, without git, against `/bin/true`";
    Ok(vec![
        line(listed, 2.3, &lists[1], &lists[0], Some(&lists[2])),
        line("`agent heartbeat` against `/bin/true`", 3.0, &beats[1], &beats[0], Some(&beats[2])),
        line("`work claim` against `/bin/true`", 3.5, &claims[1], &claims[0], None),
        line("`work claim` against the baseline", 1.35, &claims[1], &claims[2], None),
        line(exported, 5.0, &exports[1], &exports[0], None),
        line("`--version` against `/bin/true`", 1.2, &words[1], &words[0], None),
        line("`--help` against `/bin/true`", 2.5, &words[2], &words[0], None),
    ])
}

/// Two boards with the same content: one for the product, one for the baseline.
struct Pair<'a> {
    scale: &'a Scale,
    product: Scratch,
    baseline: Scratch,
    session: String,
}

impl<'a> Pair<'a> {
    fn new(scale: &'a Scale, items: usize) -> Result<Pair<'a>> {
        let (product, baseline) = (Scratch::new()?, Scratch::new()?);
        let session = product.register(50)?.swap_remove(0);
        product.add_items("item", items)?;
        std::fs::copy(product.path(), baseline.path())?;
        Ok(Pair { scale, product, baseline, session })
    }

    fn product<'p>(&'p self, arguments: &'p [&'p str]) -> Program<'p> {
        Program::new("blackboard", move || self.blackboard(arguments))
    }

    fn baseline<'p>(&'p self, arguments: &'p [&'p str]) -> Program<'p> {
        Program::new("baseline", move || self.baseline_program(arguments))
    }

    fn blackboard(&self, arguments: &[&str]) -> Command {
        let mut command = self.scale.blackboard(&self.product.path());
        command.args(arguments).env("BLACKBOARD_SESSION_ID", &self.session);
        command
    }

    fn baseline_program(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(self.scale.program("baseline"));
        command.arg(arguments[0]).arg(self.baseline.path()).args(&arguments[1..]).env_clear();
        command
    }
}
