//! The results, for people: a table in the terminal, and `docs/agents-tested.md`.

use std::fmt::Write;

use super::Tried;
use super::check::Outcome;

/// What the terminal shows.
pub fn terminal(tried: &[Tried]) -> String {
    let mut text = String::new();
    for one in tried {
        let package = &one.client.package;
        let _ = writeln!(text, "\n{} ({} {})", one.client.title, package.name, package.version);
        for check in &one.checks.all {
            let (word, detail) = match &check.outcome {
                Outcome::Held(seen) => ("ok", seen.as_str()),
                Outcome::Failed(why) => ("FAILED", why.as_str()),
                Outcome::Absent(why) => ("–", *why),
            };
            let _ = writeln!(text, "  {word:<7} {:<42} {detail}", check.name);
        }
    }
    text
}
