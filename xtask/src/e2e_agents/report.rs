//! The results: a table in the terminal, and `docs/agents-tested.md`.

use std::fmt::Write;

use super::Tried;
use super::check::Outcome;

/// The table in the terminal.
pub fn terminal(tried: &[Tried]) -> String {
    let mut text = String::new();
    let names = tried.iter().flat_map(|one| &one.checks.all).map(|check| check.name.chars().count());
    let width = names.max().unwrap_or_default();
    for one in tried {
        let _ = writeln!(text, "\n{} ({} {})", one.title, one.package.name, one.package.version);
        for check in &one.checks.all {
            let (word, detail) = words(&check.outcome);
            let _ = writeln!(text, "  {word:<7} {:<width$}  {detail}", check.name);
        }
    }
    text
}

/// The page of the documentation, with the date and the machine.
pub fn document(tried: &[Tried], setting: &str) -> String {
    let mut text = format!(
        "# Agents that were tested\n\nWritten by `cargo xtask e2e-agents --write`, which installs the real clients from npm, \
         connects them by `blackboard setup`,\nand lets stand-in models on loopback call their tools. {setting}\n\n"
    );
    text.push_str("| Client | Package | Version | Checks that hold | that failed |\n|---|---|---|---|---|\n");
    for one in tried {
        let held = one.checks.all.iter().filter(|check| matches!(check.outcome, Outcome::Held(_))).count();
        let (package, failed) = (&one.package, one.checks.failed());
        let _ = writeln!(
            text,
            "| {} | `{}` | {} | {held} | {failed} |",
            one.title, package.name, package.version
        );
    }
    for one in tried {
        let _ = writeln!(
            text,
            "\n## {} {}\n\n| Check | Result | Seen |\n|---|---|---|",
            one.title, one.package.version
        );
        for check in &one.checks.all {
            let (word, detail) = words(&check.outcome);
            let _ = writeln!(text, "| {} | {word} | {} |", check.name, cell(detail));
        }
    }
    text
}

fn words(outcome: &Outcome) -> (&'static str, &str) {
    match outcome {
        Outcome::Held(seen) => ("ok", seen),
        Outcome::Failed(why) => ("FAILED", why),
        Outcome::Absent(why) => ("–", why),
    }
}

/// Escapes text for a cell of a table.
fn cell(text: &str) -> String {
    let text: String = text.chars().take(300).collect();
    text.trim_start_matches("- ").replace('|', "\\|").replace('\n', " ")
}
