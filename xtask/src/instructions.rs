//! `cargo xtask bench instructions`: counts the instructions of the hot commands.
//!
//! Times mean nothing on a busy machine; instructions do. A count depends on the C library and the processor, so the
//! guarded value is its ratio to the baseline program's count in the same run. `xtask/instructions.json` has the
//! accepted ratios; `--write` accepts the current ones.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::{Result, release, run};

/// How much a ratio may grow before it is a regression.
const TOLERANCE: f64 = 0.10;

/// More heartbeats than any WAL needs until its checkpoint.
const MOST_BEATS: usize = 10_000;

/// How many agents the board has.
const AGENTS: usize = 50;

/// How often a hook is counted.
const TRIES: usize = 3;

/// A command of the product, and the equivalent of the baseline.
struct Pair {
    name: &'static str,
    command: &'static [&'static str],
    baseline: &'static [&'static str],
    /// The command's standard input. A command that has one is a hook, which has nothing to write shortly after another
    /// one.
    input: Option<&'static str>,
}

/// The session hint, as Claude Code registers it.
const HINT: &str = "claude:counted";

const TOOL_USED: &str = r#"{"session_id":"counted","hook_event_name":"PostToolUse","tool_name":"Bash",
    "tool_input":{"command":"cargo test"},"tool_response":{"stdout":"ok"}}"#;

const PAIRS: &[Pair] = &[
    Pair { name: "--version", command: &["--version"], baseline: &["nothing"], input: None },
    Pair {
        name: "agent list",
        command: &["agent", "list", "--json"],
        baseline: &["list", "DB"],
        input: None,
    },
    Pair {
        name: "agent heartbeat",
        command: &["agent", "heartbeat", "--json"],
        baseline: &["heartbeat", "DB", "SESSION"],
        input: None,
    },
    Pair {
        name: "work claim",
        command: &["work", "claim", "item", "--json"],
        baseline: &["claim", "DB", "SESSION", "item"],
        input: None,
    },
    Pair {
        name: "hook",
        command: &["hook", "claude"],
        baseline: &["hook", "DB", "SESSION"],
        input: Some(TOOL_USED),
    },
];

#[derive(clap::Args, Default)]
#[expect(clippy::struct_excessive_bools, reason = "each is an option of its own")]
pub struct Options {
    /// Fail if a ratio is larger than the accepted one
    #[arg(long)]
    check: bool,

    /// Accept the present ratios
    #[arg(long)]
    write: bool,

    /// Show which functions the instructions are in
    #[arg(long)]
    profile: bool,

    /// Write the linker script that places these functions together, instead of counting
    #[arg(long, conflicts_with_all = ["check", "write", "profile"])]
    order: bool,
}

impl Options {
    pub fn checking() -> Options {
        Options { check: true, ..Options::default() }
    }
}

/// Counts, and compares if requested.
pub fn run(options: &Options) -> Result {
    if options.order {
        return write_order();
    }
    let programs = release::build(release::Options { bench: true, symbols: options.profile })?;
    let board = Board::new(&programs)?;
    let accepted = accepted()?;
    let mut counted = BTreeMap::new();
    let mut grown = Vec::new();
    println!("| Command | Instructions | Baseline | Ratio | Accepted |\n|---|---|---|---|---|");
    for pair in PAIRS {
        let (product, product_profile) = board.count(&board.product(pair), pair.input)?;
        let (baseline, baseline_profile) = board.count(&board.baseline(pair), pair.input)?;
        let ratio = f64::from(product) / f64::from(baseline);
        let known = accepted[pair.name]["ratio"].as_f64();
        let shown = known.map_or("-".to_owned(), |known| format!("{known:.2}"));
        println!("| `{}` | {product} | {baseline} | {ratio:.2} | {shown} |", pair.name);
        if known.is_none_or(|known| ratio > known * (1.0 + TOLERANCE)) {
            grown.push(format!(
                "{} takes {ratio:.2} times the baseline's instructions, {shown} was accepted",
                pair.name
            ));
        }
        counted.insert(
            pair.name,
            json!({"instructions": product, "baseline": baseline, "ratio": (ratio * 100.0).round() / 100.0}),
        );
        if options.profile {
            annotate(pair.name, &product_profile)?;
            annotate(&format!("{} (baseline)", pair.name), &baseline_profile)?;
        }
    }
    if options.write {
        fs::write(table(), format!("{}\n", serde_json::to_string_pretty(&counted)?))?;
    }
    if options.check && !grown.is_empty() {
        let advice = "if that is worth it: cargo xtask bench instructions --write";
        return Err(format!("{}; {advice}", grown.join("; ")).into());
    }
    Ok(())
}

/// Writes the linker script: the sections of all functions that the hot commands run, those of most commands first. Names
/// that many generic functions share come last: only a few of these functions run, and they would move the others apart.
fn write_order() -> Result {
    let programs = release::build(release::Options { symbols: true, ..release::Options::default() })?;
    let board = Board { has_mangled_names: true, ..Board::new(&programs)? };
    let mut names = Command::new("nm");
    names.arg("--defined-only").arg(programs.join(release::program("blackboard")));
    let names = run::output(&mut names, run::SHORT)?;
    let functions = functions_by_section(&String::from_utf8(names.stdout)?);
    let mut uses: BTreeMap<String, usize> = BTreeMap::new();
    for pair in PAIRS {
        let (_, place) = board.count(&board.product(pair), pair.input)?;
        for section in sections_of(&fs::read_to_string(place.path().join("profile"))?) {
            *uses.entry(section).or_default() += 1;
        }
    }
    let mut sections: Vec<_> = uses.into_iter().collect();
    sections.sort_by_key(|(section, uses)| {
        let functions: usize = functions.get(section).copied().unwrap_or(1);
        (functions.next_power_of_two(), Reverse(*uses))
    });
    let mut script = "/* Written by cargo xtask bench instructions --order */\n".to_owned();
    script.push_str("SECTIONS { .text.hot : {\n");
    script.extend(sections.iter().map(|(section, _)| format!("*({section})\n")));
    script.push_str("} }\nINSERT BEFORE .text;\n");
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().ok_or("xtask has no parent directory")?;
    Ok(fs::write(root.join(release::ORDER), script)?)
}

/// The sections of the functions in a profile: those of Rust and of SQLite, which have one section each.
fn sections_of(profile: &str) -> BTreeSet<String> {
    let (mut sections, mut files, mut functions, mut is_sqlite) =
        (BTreeSet::new(), BTreeMap::new(), BTreeMap::new(), false);
    for line in profile.lines() {
        let Some((kind, value)) = line.split_once("=(") else { continue };
        let Some((number, name)) = value.split_once(')') else { continue };
        // A name is written once, with its number, wherever it occurs first. Calls of a recursive function are counted
        // separately.
        let name = name.trim_start().split('\'').next().unwrap_or_default();
        match kind {
            "fl" | "fi" | "fe" | "cfi" | "cfl" => {
                let is_in_sqlite = *files.entry(number).or_insert_with(|| name.ends_with("/sqlite3.c"));
                if kind == "fl" {
                    is_sqlite = is_in_sqlite;
                }
            }
            "cfn" => drop(functions.entry(number).or_insert(name)),
            "fn" => {
                let name = *functions.entry(number).or_insert(name);
                sections.extend(if is_sqlite {
                    Some(format!(".text.{name}"))
                } else {
                    section_of_rust(name)
                });
            }
            _ => {}
        }
    }
    sections
}

/// The section of a Rust function. The hash at the end of its name differs between builds.
fn section_of_rust(name: &str) -> Option<String> {
    const HASH: &str = "17h";
    const HASH_DIGITS: usize = 16;
    if !name.starts_with("_ZN") {
        return None;
    }
    let end = name.rfind(HASH).filter(|end| name.len() >= end + HASH.len() + HASH_DIGITS);
    let known = end.map_or(name, |end| &name[..end + HASH.len()]);
    let is_special = |letter: char| !letter.is_ascii_alphanumeric() && !"_.".contains(letter);
    Some(format!(".text.{}*", known.replace(is_special, "?")))
}

/// How many functions each section of Rust stands for, by the names of all functions, as `nm` prints them.
fn functions_by_section(names: &str) -> BTreeMap<String, usize> {
    let mut functions = BTreeMap::new();
    for section in names.lines().filter_map(|line| section_of_rust(line.split_whitespace().last()?)) {
        *functions.entry(section).or_default() += 1;
    }
    functions
}

fn table() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("instructions.json")
}

fn accepted() -> Result<Value> {
    match fs::read(table()) {
        Ok(text) => Ok(serde_json::from_slice(&text)?),
        Err(_) => Ok(Value::Null),
    }
}

/// The board from which every count starts.
struct Board {
    programs: PathBuf,
    template: TempDir,
    session: String,
    /// Whether profiles have the names of the linker.
    has_mangled_names: bool,
}

impl Board {
    fn new(programs: &Path) -> Result<Board> {
        let template = tempfile::tempdir()?;
        let mut board = Board {
            programs: programs.to_owned(),
            template,
            session: String::new(),
            has_mangled_names: false,
        };
        let pid = std::process::id().to_string();
        for number in 0..AGENTS {
            let name = format!("Agent {number}");
            let mut register = vec!["agent", "register", "--name", &name, "--pid", &pid, "--json"];
            if number + 1 == AGENTS {
                register.extend(["--session-hint", HINT]);
            }
            let answer = board.answer(&register)?;
            answer["session_id"].as_str().unwrap_or_default().clone_into(&mut board.session);
        }
        board.answer(&["work", "create", "item", "--title", "Design SQL schema", "--json"])?;
        // Until the WAL was just checkpointed: then every count starts without one.
        let log = board.template.path().join("local.db-wal");
        let mut beats = 0;
        while fs::metadata(&log).is_ok_and(|metadata| metadata.len() > 0) {
            if beats == MOST_BEATS {
                return Err(format!("{beats} heartbeats caused no checkpoint of the WAL").into());
            }
            board.answer(&["agent", "heartbeat", "--json"])?;
            beats += 1;
        }
        Ok(board)
    }

    fn answer(&self, arguments: &[&str]) -> Result<Value> {
        let mut words = vec![self.programs.join(release::program("blackboard")).display().to_string()];
        words.extend(arguments.iter().map(|&argument| argument.to_owned()));
        let output = run::output(&mut self.command(&words, self.template.path()), run::SHORT)?;
        if !output.status.success() {
            return Err(
                format!("{} failed: {}", words.join(" "), String::from_utf8_lossy(&output.stdout)).into()
            );
        }
        Ok(serde_json::from_slice(&output.stdout)?)
    }

    fn product(&self, pair: &Pair) -> Vec<String> {
        self.line("blackboard", pair.command)
    }

    fn baseline(&self, pair: &Pair) -> Vec<String> {
        self.line("baseline", pair.baseline)
    }

    fn line(&self, program: &str, arguments: &[&str]) -> Vec<String> {
        let mut words = vec![self.programs.join(release::program(program)).display().to_string()];
        words.extend(arguments.iter().map(|&argument| match argument {
            "DB" => "local.db".to_owned(),
            "SESSION" => self.session.clone(),
            other => other.to_owned(),
        }));
        words
    }

    /// Counts the instructions of one call on a copy of the board, and returns the directory of the profile.
    fn count(&self, line: &[String], input: Option<&str>) -> Result<(u32, TempDir)> {
        let place = tempfile::tempdir()?;
        fs::copy(self.template.path().join("local.db"), place.path().join("local.db"))?;
        let Some(input) = input else {
            return Ok((self.collect(line, place.path(), Stdio::null())?, place));
        };
        let file = place.path().join("input");
        fs::write(&file, input)?;
        // A hook that has nothing to write is counted: the heartbeat is recent, and the previous hook has moved the
        // cursor. On a slow machine the next heartbeat may be due during a count; the smallest of a few counts avoids
        // that.
        let mut smallest = u32::MAX;
        for _ in 0..TRIES {
            let beat = self.line("blackboard", &["agent", "heartbeat"]);
            run::success(self.command(&beat, place.path()).stdout(Stdio::null()), run::SHORT)?;
            let mut first = self.command(&self.line("blackboard", &["hook", "claude"]), place.path());
            run::success(first.stdin(fs::File::open(&file)?).stdout(Stdio::null()), run::SHORT)?;
            smallest = smallest.min(self.collect(line, place.path(), fs::File::open(&file)?.into())?);
        }
        Ok((smallest, place))
    }

    fn collect(&self, line: &[String], place: &Path, stdin: Stdio) -> Result<u32> {
        let out = format!("--callgrind-out-file={}", place.join("profile").display());
        let demangle = format!("--demangle={}", if self.has_mangled_names { "no" } else { "yes" });
        let mut words = vec!["valgrind".to_owned(), "--tool=callgrind".to_owned(), demangle, out];
        words.extend_from_slice(line);
        let output = run::output(self.command(&words, place).stdin(stdin), run::SHORT)?;
        let report = String::from_utf8_lossy(&output.stderr);
        if !output.status.success() {
            return Err(format!("{} failed: {report}", line.join(" ")).into());
        }
        let collected =
            report.lines().find_map(|line| line.split_once("Collected : ")?.1.trim().parse().ok());
        Ok(collected.ok_or("valgrind reported no count")?)
    }

    fn command(&self, words: &[String], place: &Path) -> Command {
        let mut command = Command::new(&words[0]);
        command.args(&words[1..]).current_dir(place).stdin(Stdio::null()).env_clear();
        command.env("PATH", std::env::var_os("PATH").unwrap_or_default());
        command.env("HOME", place).env("BLACKBOARD_HOME", place);
        // Under valgrind a hook takes longer than its limit.
        command.env("BLACKBOARD_HOOK_DEADLINE", "60000");
        if !self.session.is_empty() {
            command.env("BLACKBOARD_SESSION_ID", &self.session);
        }
        command
    }
}

/// Prints the functions with the most instructions, including their callees, each once.
fn annotate(name: &str, place: &TempDir) -> Result {
    const SHOWN: usize = 60;
    let mut annotate = Command::new("callgrind_annotate");
    annotate.args(["--inclusive=yes", "--threshold=100", "--auto=no"]).arg(place.path().join("profile"));
    let output = run::output(&mut annotate, run::SHORT)?;
    println!("\n{name}, by function, with what it calls:");
    let text = String::from_utf8_lossy(&output.stdout);
    let mut seen = HashSet::new();
    let functions = text.lines().skip_while(|line| !line.starts_with("Ir")).filter_map(cost_and_function);
    // A function is listed once for each file that parts of it were inlined from; the first is the complete one.
    for (cost, function) in functions.filter(|(_, function)| seen.insert(*function)).take(SHOWN) {
        println!("{cost}  {function}");
    }
    println!();
    Ok(())
}

/// Parses a line like `  1,234 (5.6%)  src/main.rs:blackboard::main [/path/to/blackboard]`.
fn cost_and_function(line: &str) -> Option<(&str, &str)> {
    let (cost, place) = line.split_once(")  ")?;
    let (_, function) = place.split_once(':')?;
    let function = function.split_once(" [").map_or(function, |(function, _)| function);
    Some((cost.split_once(" (")?.0, function))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sections_of_a_profile_are_those_of_rust_and_of_sqlite() {
        let profile = "cfi=(1) /src/sqlite3.c\nfl=(1)\nfn=(1) yy_reduce.constprop.0\n1 2\n\
            cfn=(2) _ZN5board4read28_$u7b$$u7b$closure$u7d$$u7d$17h0123456789abcdefE\n\
            fl=(2) /src/board.rs\nfn=(2)\n1 2\nfl=(3) ???\nfn=(3) memcpy\nfl=(1)\nfn=(4) balance'2\n";
        let expected = [
            ".text._ZN5board4read28_?u7b??u7b?closure?u7d??u7d?17h*",
            ".text.balance",
            ".text.yy_reduce.constprop.0",
        ];
        assert_eq!(sections_of(profile).into_iter().collect::<Vec<_>>(), expected);
    }

    #[test]
    fn generic_functions_share_a_section() {
        let names = "0001 t _ZN5board4read17h0123456789abcdefE\n0002 T memcpy\n\
            0003 t _ZN5board4read17hfedcba9876543210E\n0004 t _ZN5board5write17h0123456789abcdefE\n";
        let functions = functions_by_section(names);
        let expected = [(".text._ZN5board4read17h*", 2), (".text._ZN5board5write17h*", 1)];
        assert!(functions.iter().map(|(section, count)| (section.as_str(), *count)).eq(expected));
    }

    #[test]
    fn a_line_of_a_profile_has_a_cost_and_a_function() {
        let line = "  1,234 ( 5.6%)  src/main.rs:blackboard::main [/path/to/blackboard]";
        assert_eq!(cost_and_function(line), Some(("  1,234", "blackboard::main")));
        assert_eq!(cost_and_function("1,234 (5.6%)  ???:main"), Some(("1,234", "main")));
        assert_eq!(cost_and_function("-----"), None);
    }
}
