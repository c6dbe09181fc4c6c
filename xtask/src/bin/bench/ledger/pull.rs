//! The spokes of a hub whose repositories have not changed since they were read, as a complete command.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Instant;

use blackboard::clock::{Clock as _, SystemClock};
use testkit::repositories::make_repositories;

use crate::programs::status;
use crate::report::{Bar, Line, Unit};
use crate::{Result, Scale};

/// Every repository is asked for its last commit; without a network, only the cache is read.
pub fn measure(scale: &Scale) -> Result<Vec<Line>> {
    let spokes = scale.of(200, 10);
    let directory = tempfile::tempdir()?;
    make_hub(directory.path(), spokes)?;
    // The first call fills the cache.
    pull(scale, directory.path(), &[])?;
    let (mut asking, mut offline) = (Vec::new(), Vec::new());
    for _ in 0..scale.rounds {
        asking.push(pull(scale, directory.path(), &[])?);
        offline.push(pull(scale, directory.path(), &["--offline"])?);
    }
    let line = |what: String, seconds: &[f64]| Line::new(what, Bar::AtMost(2.0), Unit::Seconds, seconds, "");
    Ok(vec![
        line(format!("`pull` of {spokes} cached spokes"), &asking),
        line(format!("`pull --offline` of {spokes} cached spokes"), &offline),
    ])
}

/// A hub in `hub/`, whose projects have the repositories in `repositories/`.
fn make_hub(directory: &Path, spokes: usize) -> Result {
    let repositories = directory.join("repositories");
    fs::create_dir(&repositories)?;
    let moment = SystemClock.now();
    let status = |index: usize| {
        let text = format!(
            "schemaVersion: '1.0'\ngeneratedAt: '{moment}'\ngeneratedBy: 'bench'\nphase: 'build'\n\
             project: {{name: 'spoke', phase: 'building'}}\nagentActivity: {{activeAgents: {index}}}\n\
             tests: {{passing: 17, failing: 0}}\ngit: {{branch: 'main', dirty: false, behindRemote: 0}}\n"
        );
        (format!("spoke-{index}"), text)
    };
    let texts: Vec<_> = (0..spokes).map(status).collect();
    make_repositories(&repositories, ".collab/status.yaml", &texts);
    for (name, _) in &texts {
        let project = directory.join("hub/projects").join(name);
        fs::create_dir_all(&project)?;
        let source = format!("source: {{repo: 'file://{}'}}\n", repositories.join(name).display());
        fs::write(
            project.join("PROJECT.yaml"),
            format!("name: {name}\nmaintainer: ivy\nstatus: building\n{source}"),
        )?;
    }
    Ok(())
}

/// The seconds of a call that reads all spokes.
fn pull(scale: &Scale, directory: &Path, options: &[&str]) -> Result<f64> {
    let answer = directory.join("answer.json");
    let mut command: Command = scale.blackboard(&directory.join("local.db"));
    command.env("HOME", directory).env("PATH", std::env::var_os("PATH").unwrap_or_default());
    command.args(["pull", "--json", "--hub"]).arg(directory.join("hub"));
    command.arg("--allow-path").arg(directory).args(options);
    command.stdout(fs::File::create(&answer)?).stderr(Stdio::null());
    let begin = Instant::now();
    let status = status(&mut command, "a pull")?;
    let seconds = begin.elapsed().as_secs_f64();
    let answer: serde_json::Value = serde_json::from_slice(&fs::read(&answer)?)?;
    if !status.success() || answer["failed"] != 0 {
        return Err(format!("a pull ended with {status}: {} failed", answer["failed"]).into());
    }
    Ok(seconds)
}
