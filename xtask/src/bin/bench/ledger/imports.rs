//! The import of GitHub issues into an empty board, as a complete command.

use std::process::Stdio;
use std::time::Instant;

use serde_json::{Value, json};

use crate::programs::status;
use crate::report::{Bar, Line, Unit};
use crate::{Result, Scale};

/// The output of `gh`, first into an empty board, then again without a change.
pub fn measure(scale: &Scale) -> Result<Vec<Line>> {
    let count = scale.of(5000, 100);
    let (mut first, mut again) = (Vec::new(), Vec::new());
    for _ in 0..scale.rounds {
        let directory = tempfile::tempdir()?;
        let (database, file) = (directory.path().join("local.db"), directory.path().join("issues.json"));
        std::fs::write(&file, (1..=count).map(issue).collect::<Value>().to_string())?;
        for seconds in [&mut first, &mut again] {
            let mut import = scale.blackboard(&database);
            import.args(["work", "import", "--from", "github", "--json"]).arg(&file).stdout(Stdio::null());
            let begin = Instant::now();
            let status = status(&mut import, "an import")?;
            seconds.push(begin.elapsed().as_secs_f64());
            if !status.success() {
                return Err(format!("an import ended with {status}").into());
            }
        }
    }
    let line = |what: String, seconds: &[f64]| Line::new(what, Bar::AtMost(2.0), Unit::Seconds, seconds, "");
    Ok(vec![
        line(format!("`work import` of {count} issues"), &first),
        line(format!("`work import` of {count} issues that have not changed"), &again),
    ])
}

/// An open issue. Every third is blocked by the one before it.
fn issue(number: usize) -> Value {
    let url = |number: usize| format!("https://github.com/o/r/issues/{number}");
    let blockers: Vec<Value> = (number % 3 == 2)
        .then(|| json!({"number": number - 1, "url": url(number - 1)}))
        .into_iter()
        .collect();
    json!({
        "number": number, "title": format!("Issue {number}"), "body": "What has to be done.\n".repeat(20), "state": "OPEN",
        "url": url(number), "labels": [{"name": "P2"}, {"name": "tokens:5k"}], "blockedBy": blockers,
    })
}
