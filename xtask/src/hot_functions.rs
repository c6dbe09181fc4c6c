//! `cargo xtask hot-functions`: which functions the hot commands call.
//!
//! A short command spends much of its time on page faults. The kernel maps 64 kB of the program for each, and the functions
//! that `agent heartbeat` calls are in 77 such blocks of 100. `xtask/hot-functions.ld` is a linker script that places them
//! together (docs/decisions/0019). A function that has another name after an upgrade only loses its place.

use std::collections::{BTreeSet, HashSet};
use std::fs;
use std::path::{Path, PathBuf};

use crate::instructions::{Board, PAIRS};
use crate::release::{self, Options};
use crate::{Result, packages};

/// Commands that agents run often, besides those whose instructions are counted. A registration is not among them: it reads the
/// clock in a way that valgrind does not support.
const COMMANDS: &[&[&str]] = &[
    &["write", "key", "1"],
    &["list"],
    &["work", "list"],
    &["work", "claim", "--next"],
    &["observe"],
    &["file", "check", "a.rs"],
];

const EDITS: &str = r#"{"session_id":"counted","hook_event_name":"PreToolUse","tool_name":"Edit",
    "tool_input":{"file_path":"a.rs","old_string":"a","new_string":"b"}}"#;

/// The linker script.
pub fn script() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("hot-functions.ld")
}

/// Runs the hot commands and writes the script.
pub fn run() -> Result {
    if !release::STATIC {
        return Err("the linker script is for static binaries on Linux".into());
    }
    packages::install_missing(&["valgrind"])?;
    let programs = release::build(Options { symbols: true, map: true, ..Options::default() })?;
    let mut board = Board::new(&programs)?;
    board.mangled = true;
    let counted = PAIRS.iter().map(|pair| (pair.command, pair.input));
    let hook: &[&str] = &["hook", "claude"];
    let commands = COMMANDS.iter().map(|&command| (command, None));
    let mut called = HashSet::new();
    for (command, input) in counted.chain([(hook, Some(EDITS))]).chain(commands) {
        let (_, profile) = board.count(&board.line("blackboard", command), input)?;
        let profile = fs::read_to_string(profile.path().join("profile"))?;
        called.extend(functions(&profile).map(str::to_owned));
    }
    let patterns = patterns(&fs::read_to_string(release::map()?)?, &called);
    fs::write(script(), script_of(&patterns))?;
    println!("{}: {} functions", script().display(), patterns.len());
    Ok(())
}

fn script_of(patterns: &BTreeSet<String>) -> String {
    let lines: Vec<&str> = patterns.iter().map(String::as_str).collect();
    format!(
        "/* Written by cargo xtask hot-functions. */\n\
         SECTIONS\n{{\n  .text.hot : {{\n    {}\n  }}\n}}\nINSERT BEFORE .text;\n",
        lines.join("\n    ")
    )
}

/// The functions in a profile of callgrind, each as often as it appears.
fn functions(profile: &str) -> impl Iterator<Item = &str> {
    profile.lines().filter_map(|line| {
        let name = line.strip_prefix("fn=(").or_else(|| line.strip_prefix("cfn=("))?;
        let (_, name) = name.split_once(") ")?;
        // A function that calls itself has its depth as an ending.
        Some(name.split_once('\'').map_or(name, |(name, _)| name))
    })
}

/// What the script says of the input sections in the linker's map that contain one of these functions.
fn patterns(map: &str, called: &HashSet<String>) -> BTreeSet<String> {
    let mut section = None;
    let mut patterns = BTreeSet::new();
    for line in map.lines() {
        // Address, load address, size, alignment, and a section of the output, a section of the input or a symbol.
        let Some(name) = line.split_whitespace().nth(4) else { continue };
        if let Some((object, input)) = name.strip_suffix(')').and_then(|name| name.rsplit_once(":(")) {
            section = input.starts_with(".text").then_some((object, input));
        } else if called.contains(name) {
            patterns.extend(section.and_then(|(object, input)| pattern(object, input)));
        }
    }
    patterns
}

/// Nothing for a section that has more than functions, outside of the C library.
fn pattern(object: &str, input: &str) -> Option<String> {
    match object.rsplit_once("libc.a(").and_then(|(_, member)| member.strip_suffix(')')) {
        // The C library has one section for all functions of a file.
        Some(member) => Some(format!("*libc.a:{member}(.text .text.*)")),
        None if input == ".text" => None,
        None => Some(format!("*({})", without_hashes(input))),
    }
}

/// The name of a section, with a `?` for each character of a hash that depends on the compiler or on other crates.
fn without_hashes(section: &str) -> String {
    // Link-time optimization renames what it makes visible to other units.
    if let Some((section, _)) = section.split_once(".llvm.") {
        return format!("{}*", without_hashes(section));
    }
    // `Cs4X4t9plMPHF_3std` is a crate, `17hbb7da82e07859d2fE` the end of a name in the older form.
    let section = masked(section, "Cs", char::is_ascii_alphanumeric, "_");
    masked(&section, "17h", char::is_ascii_hexdigit, "E")
}

/// The text with a `?` for each character of a hash: at least eight of `part` between `begin` and `end`.
fn masked(text: &str, begin: &str, part: fn(&char) -> bool, end: &str) -> String {
    let mut parts = text.split(begin);
    let mut masked = parts.next().unwrap_or_default().to_owned();
    for rest in parts {
        masked.push_str(begin);
        let length = rest.chars().take_while(part).count();
        // All of them are ASCII.
        if length >= 8 && rest[length..].starts_with(end) {
            masked.extend(std::iter::repeat_n('?', length));
            masked.push_str(&rest[length..]);
        } else {
            masked.push_str(rest);
        }
    }
    masked
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_profile_names_its_functions_once_each() {
        let profile = "fl=(1) main.rs\nfn=(1) _RNv4main\n0 3\ncfn=(2) malloc'2\ncalls=1 0\nfn=(2)\n";
        assert_eq!(functions(profile).collect::<Vec<_>>(), ["_RNv4main", "malloc"]);
    }

    #[test]
    fn a_pattern_names_the_section_of_a_function_without_hashes() {
        let map = "\
             VMA LMA Size Align Out In Symbol
              10  10   99    16 .text
              10  10   20    16         /a/blackboard.cgu.0.o:(.text._RNvCs4X4t9plMPHF_3std3run)
              10  10   20     1                 _RNvCs4X4t9plMPHF_3std3run
              30  30   20    16         /a/blackboard.cgu.0.o:(.text._RNvCs4X4t9plMPHF_3std4cold)
              30  30   20     1                 _RNvCs4X4t9plMPHF_3std4cold
              50  50   20    16         /usr/lib/libc.a(malloc.o):(.text)
              50  50   20     1                 _int_malloc
              60  60   10     1                 malloc
              70  70   10    16         /usr/lib/crt1.o:(.text)
              70  70   10     1                 _start
              80  80    4     4         /a/blackboard.cgu.0.o:(.rodata.table)
              80  80    4     1                 table";
        let called = ["_RNvCs4X4t9plMPHF_3std3run", "malloc", "_start", "table"].map(str::to_owned).into();
        let found: Vec<_> = patterns(map, &called).into_iter().collect();
        assert_eq!(found, ["*(.text._RNvCs???????????_3std3run)", "*libc.a:malloc.o(.text .text.*)"]);
    }

    #[test]
    fn only_hashes_are_replaced() {
        for (section, expected) in [
            (".text.sqlite3_step", ".text.sqlite3_step"),
            (".text._RNvCs4X4t9plMPHF_3std3run.llvm.123", ".text._RNvCs???????????_3std3run*"),
            (
                ".text._ZN3std2rt10lang_start17hbb7da82e07859d2fE",
                ".text._ZN3std2rt10lang_start17h????????????????E",
            ),
            (".text.HasACsInIt", ".text.HasACsInIt"),
            (".text._RNvCs12_3std", ".text._RNvCs12_3std"),
        ] {
            assert_eq!(without_hashes(section), expected);
        }
    }
}
