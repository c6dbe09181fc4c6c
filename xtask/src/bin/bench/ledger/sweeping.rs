//! The sweep: with nothing to do, and with a hundred stale agents.

use std::process::Command;
use std::time::{Duration, Instant};

use blackboard::Settings;
use blackboard::sweep::Sweep;
use blackboard::work::Claim;

use crate::boards::Scratch;
use crate::programs::{Program, end, interleave, microseconds, milliseconds};
use crate::report::{Bar, Line, Unit};
use crate::statistics::{median, percentile};
use crate::{Result, Scale};

/// The cost that the sweep adds to every command when all agents are alive.
pub fn nothing_to_do(scale: &Scale) -> Result<Vec<Line>> {
    let agents = scale.of(10_000, 500);
    let runs = scale.of(200, 20);
    let scratch = Scratch::new()?;
    scratch.register(agents)?;
    scratch.fold()?;
    let (mut added, mut alone, mut commits) = (Vec::new(), Vec::new(), 0);
    for _ in 0..scale.rounds {
        let (mut plain, mut sweeping) = (Vec::new(), Vec::new());
        for run in 0..2 * runs {
            // A command sweeps once, as part of its first read on a connection that it has just opened.
            let (board, watched) = scratch.open_watched(Settings::default())?;
            let sweeps = run % 2 == 1;
            if sweeps {
                board.sweep_with_next_call(None);
            }
            let start = Instant::now();
            board.projects().list()?;
            let elapsed = microseconds(start.elapsed());
            if sweeps { &mut sweeping } else { &mut plain }.push(elapsed);
            commits += watched.take_held().len();
        }
        alone.push(median(&plain));
        added.push(median(&sweeping) - median(&plain));
    }
    let raw = format!("in the first read, which takes {:.1} µs without it", median(&alone));
    let what = format!("automatic sweep with nothing to do among {agents} agents");
    Ok(vec![
        Line::new(format!("{what}, added to a command"), Bar::AtMost(20.0), Unit::Microseconds, &added, raw),
        Line::new(
            format!("{what}: writer locks taken"),
            Bar::AtMost(0.0),
            Unit::Count,
            &[commits as f64],
            "",
        ),
    ])
}

/// A hundred stale agents with three items each.
pub fn the_dead(scale: &Scale) -> Result<Vec<Line>> {
    const AGENTS: usize = 100;
    const ITEMS: usize = 3;
    let mut process = Command::new("sleep").arg("600").spawn()?;
    let template = Scratch::new()?;
    let sessions = template.register_with(AGENTS, process.id())?;
    end(&mut process);
    template.add_items("item", AGENTS * ITEMS)?;
    let board = template.open()?;
    for number in 0..AGENTS * ITEMS {
        board.work().claim(&Claim::of(&format!("item-{number}"), &sessions[number / ITEMS]))?;
    }
    drop(board);
    template.fold()?;

    let runs = scale.of(5, 1);
    let mut copies =
        (0..=scale.rounds * runs).map(|_| Scratch::copy_of(&template)).collect::<Result<Vec<_>>>()?;
    let mut used = Vec::new();
    let mut programs = [Program::new("sweep", || {
        used.extend(copies.pop());
        // There are as many copies as runs.
        let path = used.last().map(Scratch::path).unwrap_or_default();
        let mut command = scale.blackboard(&path);
        command.args(["sweep", "--threshold", "0", "--json"]);
        command
    })];
    interleave(&mut programs, scale.rounds, runs)?;
    let [command] = &programs;

    let mut held = Vec::new();
    for _ in 0..scale.rounds {
        let copy = Scratch::copy_of(&template)?;
        let (board, watched) = copy.open_watched(Settings::default())?;
        let swept = board.sweep(&Sweep { threshold: Some(Duration::ZERO), ..Sweep::default() })?;
        let items: usize = swept.stale_agents.iter().map(|agent| agent.released_items.len()).sum();
        if (swept.stale_agents.len(), items) != (AGENTS, AGENTS * ITEMS) {
            return Err(format!("swept {} agents and {items} items", swept.stale_agents.len()).into());
        }
        let locks: Vec<f64> = watched.take_held().into_iter().map(milliseconds).collect();
        held.push(percentile(&locks, 99.0));
    }
    let what = "sweep of 100 stale agents with 3 items each";
    Ok(vec![
        Line::new(
            format!("{what}, whole command"),
            Bar::AtMost(100.0),
            Unit::Milliseconds,
            &command.medians(),
            command.tell(),
        ),
        Line::new(format!("{what}: lock held, p99"), Bar::AtMost(15.0), Unit::Milliseconds, &held, ""),
    ])
}
