//! Searching a board: `cargo xtask bench search`.

use std::cell::Cell;
use std::path::{Path, PathBuf};
use std::time::Instant;

use blackboard::entry::{Value, Write};
use blackboard::search::{CatchUp, IndexLocation};

use crate::boards::Scratch;
use crate::programs::{Program, interleave};
use crate::report::{Bar, Line, Unit};
use crate::statistics::ratios;
use crate::{Measurement, Result, Scale};

/// Every measurement, in the order in which they run.
pub const MEASUREMENTS: &[Measurement] =
    &[("find", finding), ("index", indexing), ("write", writing_beside_an_index)];

/// How many different words the texts have. The most frequent ones are in every entry.
const WORDS: usize = 20_000;

/// How many words a text has.
const LENGTH: usize = 45;

/// One of this many entries has the rare word: 0.2 %.
const RARE: usize = 500;

/// How many entries one commit writes.
const BATCH: usize = 5_000;

/// The index of a board.
fn index_of(database: &Path) -> PathBuf {
    let mut path = database.as_os_str().to_owned();
    path.push("-search");
    PathBuf::from(path)
}

/// A board with entries of a project. Returns it with the number of bytes of all texts.
fn filled(entries: usize) -> Result<(Scratch, usize)> {
    let scratch = Scratch::new()?;
    let board = scratch.open()?;
    let mut bytes = 0;
    for start in (0..entries).step_by(BATCH) {
        let mut texts = Vec::with_capacity(BATCH);
        for number in start..entries.min(start + BATCH) {
            let key = format!("note:{}:{number}", word(number % 37));
            let text = text_of(number);
            bytes += key.len() + text.len();
            texts.push((key, Value::of(&text)?));
        }
        board.transaction(|tx| {
            let mut scope = tx.scope("project");
            texts.iter().try_for_each(|(key, value)| scope.write(&Write::new(key, value.clone())))
        })?;
    }
    board.maintain();
    drop(board);
    scratch.fold()?;
    Ok((scratch, bytes))
}

/// Words whose frequencies fall as those of a language do.
fn text_of(number: usize) -> String {
    let mut text = String::from("component");
    if number.is_multiple_of(RARE) {
        text.push_str(" quixotic");
    }
    let mut seed = number as u64 * 0x9e37_79b9_7f4a_7c15 + 1;
    for _ in 0..LENGTH {
        seed ^= seed << 13;
        seed ^= seed >> 7;
        seed ^= seed << 17;
        // The product of two uniform numbers prefers small ones.
        let (one, other) = ((seed >> 32) as usize % 1000, seed as usize % 1000);
        text.push(' ');
        text.push_str(&word(one * other * WORDS / 1_000_000));
    }
    text
}

fn word(number: usize) -> String {
    const SYLLABLES: [&str; 10] = ["ka", "lo", "mi", "ne", "ru", "sa", "te", "vo", "da", "gi"];
    let mut word = String::new();
    let mut rest = number + 10;
    while rest > 0 {
        word.push_str(SYLLABLES[rest % 10]);
        rest /= 10;
    }
    word
}

fn indexed(scratch: &Scratch) -> Result<(f64, IndexLocation)> {
    let location = IndexLocation::File(index_of(&scratch.path()));
    let board = scratch.open()?;
    let start = Instant::now();
    let indexed = board.update_index(&location, CatchUp::COMPLETE)?;
    if indexed.behind.is_some() {
        return Err("the index is not complete".into());
    }
    Ok((start.elapsed().as_secs_f64(), location))
}

fn finding(scale: &Scale) -> Result<Vec<Line>> {
    let (few, many) = (scale.of(100_000, 2_000), scale.of(1_000_000, 20_000));
    let (small, large) = (filled(few)?.0, filled(many)?.0);
    indexed(&small)?;
    indexed(&large)?;
    let search = |scratch: &Scratch, word: &'static str| {
        let path = scratch.path();
        move || {
            let mut command = scale.blackboard(&path);
            command.args(["search", word, "--json"]);
            command
        }
    };
    let mut programs = [
        Program::nothing(),
        Program::new("rare word", search(&small, "quixotic")),
        Program::new("every entry", search(&small, "component")),
        Program::new("rare word among more", search(&large, "quixotic")),
        Program::new("every entry among more", search(&large, "component")),
    ];
    interleave(&mut programs, scale.rounds, scale.of(40, 2))?;
    let [nothing, rare, every, more_rare, more_every] = &programs;
    let line = |what: String, limit, program: &Program<'_>, other: &Program<'_>| {
        let raw = format!("{}, {}", program.tell(), other.tell());
        Line::new(what, Bar::AtMost(limit), Unit::Ratio, &program.ratios(other), raw)
    };
    Ok(vec![
        line(
            format!("`search` for a word of 0.2 % of {few} entries, against `/bin/true`"),
            8.0,
            rare,
            nothing,
        ),
        line(format!("`search` for a word of all {few} entries, against `/bin/true`"), 60.0, every, nothing),
        line(format!("the first among {many} entries"), 12.0, more_rare, rare),
        line(format!("the second among {many} entries"), 12.0, more_every, every),
    ])
}

fn indexing(scale: &Scale) -> Result<Vec<Line>> {
    let count = scale.of(100_000, 2_000);
    let (scratch, bytes) = filled(count)?;
    let (mut built, mut followed, mut sizes) = (Vec::new(), Vec::new(), Vec::new());
    for round in 0..scale.rounds {
        let (seconds, location) = indexed(&scratch)?;
        built.push(count as f64 / seconds);
        let board = scratch.open()?;
        let size = std::fs::metadata(index_of(&scratch.path()))?.len();
        sizes.push(size as f64 / bytes as f64);
        let added = count / 10;
        board.transaction(|tx| {
            let mut scope = tx.scope("more");
            (0..added.min(BATCH)).try_for_each(|number| {
                let text = text_of(round * count + number);
                scope.write(&Write::new(&format!("more:{number}"), Value::of(&text)?))
            })
        })?;
        let start = Instant::now();
        board.update_index(&location, CatchUp::COMPLETE)?;
        followed.push(added.min(BATCH) as f64 / start.elapsed().as_secs_f64());
        board.scope("more").clear("*")?;
        for ending in ["", "-wal", "-shm"] {
            let mut file = index_of(&scratch.path()).into_os_string();
            file.push(ending);
            let _ = std::fs::remove_file(file);
        }
    }
    let line = |what: &str, bar, unit, rounds: &[f64]| Line::new(what, bar, unit, rounds, String::new());
    Ok(vec![
        line("a new index: entries per second", Bar::AtLeast(20_000.0), Unit::Count, &built),
        line("catching up: entries per second", Bar::AtLeast(20_000.0), Unit::Count, &followed),
        line("the size of the index against the texts", Bar::AtMost(1.2), Unit::Ratio, &sizes),
    ])
}

fn writing_beside_an_index(scale: &Scale) -> Result<Vec<Line>> {
    let count = scale.of(10_000, 500);
    let (with, without) = (filled(count)?.0, filled(count)?.0);
    indexed(&with)?;
    let number = Cell::new(0);
    let write = |scratch: &Scratch| {
        let (path, number) = (scratch.path(), &number);
        move || {
            let mut command = scale.blackboard(&path);
            command.args(["write", &format!("new-{}", number.replace(number.get() + 1)), "1", "--json"]);
            command
        }
    };
    let mut programs =
        [Program::new("with an index", write(&with)), Program::new("without", write(&without))];
    interleave(&mut programs, scale.rounds, scale.of(200, 3))?;
    let [with, without] = &programs;
    let raw = format!("{}, {}", with.tell(), without.tell());
    let rounds = ratios(&with.medians(), &without.medians());
    Ok(vec![Line::new("`write` while an index exists", Bar::AtMost(1.02), Unit::Ratio, &rounds, raw)])
}
