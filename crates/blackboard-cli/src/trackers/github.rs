//! GitHub issues, as the user's own `gh` prints them. No token is handled here.

use std::process::Command;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use blackboard::duration;
use blackboard::text::{escape_for_terminal, shell_word};
use blackboard::work::OutsideItem;
use blackboard::{Code, Error, Fault, Refusal, Result};
use serde_json::Value;

use super::object::Object;
use super::{MOST_BYTES, Place, TrackerFile, labels};
use crate::program::{self, Failure, Finished, Limits};
use crate::repository_name::owner_and_name;

/// The fields that every `gh` has.
const FIELDS: &str = "number,title,body,state,labels,url";

/// The field that only newer ones have.
const BLOCKERS: &str = "blockedBy";

/// The host without a name in ids.
const GITHUB: &str = "github.com";

/// Which issues to ask for.
#[derive(Clone, Debug)]
pub struct Issues {
    /// The repository, `[HOST/]OWNER/REPO`; that of the current directory if there is none.
    pub repository: Option<String>,
    /// The most issues.
    pub limit: usize,
    /// How long `gh` may take.
    pub timeout: Duration,
}

impl Issues {
    /// Runs `gh issue list`; `None` if `interrupted` has ended it.
    pub fn list(&self, interrupted: &AtomicBool) -> Result<Option<TrackerFile>> {
        if let Some(repository) = &self.repository {
            check_repository(repository)?;
        }
        let mut finished = self.run(&format!("{FIELDS},{BLOCKERS}"), interrupted)?;
        let is_unknown = |finished: &Finished| finished.stderr.contains("Unknown JSON field");
        if finished.as_ref().is_some_and(|finished| finished.code != Some(0) && is_unknown(finished)) {
            finished = self.run(FIELDS, interrupted)?;
        }
        let Some(finished) = finished else { return Ok(None) };
        if finished.code != Some(0) {
            return Err(failed(&finished));
        }
        let text =
            String::from_utf8(finished.stdout).map_err(|_| garbage("its output is not text in UTF-8"))?;
        let mut file = parse(&text).map_err(|why| garbage(&why))?;
        if file.items.len() + file.unread >= self.limit {
            file.add_problem(
                Place::Text,
                &format!("only the newest {} issues were read; use a larger --limit", self.limit),
            );
        }
        Ok(Some(file))
    }

    fn run(&self, fields: &str, interrupted: &AtomicBool) -> Result<Option<Finished>> {
        let mut gh = Command::new("gh");
        gh.args(["issue", "list", "--state", "all", "--limit", &self.limit.to_string(), "--json", fields]);
        if let Some(repository) = &self.repository {
            gh.args(["--repo", repository]);
        }
        gh.env("GH_PROMPT_DISABLED", "1").env("GH_NO_UPDATE_NOTIFIER", "1").env("NO_COLOR", "1");
        let limits = Limits { time: self.timeout, output: MOST_BYTES as u64, directory: None };
        match program::run(&mut gh, Vec::new(), &limits, interrupted) {
            Ok(finished) => Ok(Some(finished)),
            Err(Failure::Interrupted) => Ok(None),
            Err(failure) => Err(not_finished(failure)),
        }
    }
}

/// Why `gh` did not end by itself.
fn not_finished(failure: Failure) -> Error {
    match failure {
        Failure::CannotStart(error) => Fault::new(Code::Io, "gh cannot be started")
            .hint("install the GitHub CLI, or put it on the PATH; or import a file with its output")
            .because(error)
            .into(),
        Failure::CannotWait(error) => Fault::new(Code::Io, "gh cannot be waited for").because(error).into(),
        Failure::TimedOut(limit) => {
            let message = format!("gh did not end within {}", duration::human(limit));
            Refusal::new(Code::TimedOut, message).hint("check the network, or use a longer --timeout").into()
        }
        Failure::TooMuchOutput(most) => Error::invalid(format!(
            "gh printed more than the {most} bytes that are allowed; use a smaller --limit"
        )),
        Failure::TooMuchSpace(_) | Failure::Interrupted => Fault::new(Code::Io, "gh was ended").into(),
    }
}

fn failed(finished: &Finished) -> Error {
    let said = finished.stderr.lines().map(str::trim).find(|line| !line.is_empty());
    let said: String = said.unwrap_or("it printed no reason").chars().take(300).collect();
    let code = finished.code.map_or("a signal".to_owned(), |code| format!("exit code {code}"));
    let message = format!("gh failed ({code}): {}", escape_for_terminal(&said));
    Fault::new(Code::Io, message).hint("check its login with: gh auth status").into()
}

/// What `gh` printed is not what it prints for issues.
fn garbage(why: &str) -> Error {
    let message = format!("gh printed no list of GitHub issues: {why}");
    Fault::new(Code::Io, message).hint("check that it is the GitHub CLI: gh --version").into()
}

fn not_a_list(why: &str) -> Error {
    Refusal::new(Code::InvalidValue, format!("this is not a list of GitHub issues: {why}"))
        .hint(format!("a file has the output of: gh issue list --state all --json {FIELDS}"))
        .into()
}

/// Refuses what `gh` could take for an option, and what is not the name of a repository.
pub fn check_repository(repository: &str) -> Result<()> {
    let name = match repository.split_once('/') {
        Some((host, name)) if name.contains('/') => is_host(host).then_some(name),
        _ => Some(repository),
    };
    if name.and_then(owner_and_name).is_some() {
        return Ok(());
    }
    let message = format!("{} is not a repository", shell_word(repository));
    Err(Refusal::new(Code::InvalidValue, message).hint("write OWNER/REPO, for example --repo o/r").into())
}

/// A name of a server, without a port: `gh` has none.
fn is_host(host: &str) -> bool {
    let is_allowed = |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '-' | '_' | '.');
    host.starts_with(|first: char| first.is_ascii_alphanumeric()) && host.chars().all(is_allowed)
}

/// Reads the output of `gh issue list --json`.
pub fn read(text: &str) -> Result<TrackerFile> {
    parse(text).map_err(|why| not_a_list(&why))
}

fn parse(text: &str) -> std::result::Result<TrackerFile, String> {
    let list: Vec<Value> = serde_json::from_str(text.trim_start_matches('\u{feff}'))
        .map_err(|error| format!("it is not a JSON list ({error})"))?;
    let mut file = TrackerFile::default();
    for (index, issue) in list.into_iter().enumerate() {
        let number = issue.get("number").and_then(Value::as_u64);
        file.add_at(Place::Issue(index + 1, number), Object::of(issue).and_then(|issue| item(&issue)));
    }
    Ok(file)
}

fn item(issue: &Object) -> std::result::Result<OutsideItem, String> {
    let number = issue.get(&["number"]).and_then(Value::as_u64).ok_or("it has no number")?;
    let repository = repository_of(&issue.required(&["url"])?).ok_or("its url is not that of an issue")?;
    let given = issue.texts(&["labels"], "name")?;
    let known = given.as_deref().unwrap_or_default();
    Ok(OutsideItem {
        id: format!("gh:{repository}#{number}"),
        title: issue.required(&["title"])?,
        description: issue.text(&["body"])?,
        priority: labels::priority(known),
        project: None,
        source: Some("github".to_owned()),
        source_ref: Some(format!("{repository}#{number}")),
        estimate: labels::estimate(known),
        is_closed: issue.required(&["state"])?.eq_ignore_ascii_case("closed"),
        blocked_by: blockers(issue.get(&[BLOCKERS]), &repository),
        labels: given,
        on_hold: None,
    })
}

/// `owner/repo` of the address of an issue, behind the host if that is another one.
fn repository_of(url: &str) -> Option<String> {
    let path = url.strip_prefix("https://").or_else(|| url.strip_prefix("http://"))?;
    let [host, owner, name, "issues", _] = path.split('/').collect::<Vec<_>>()[..] else { return None };
    let repository =
        if host == GITHUB { format!("{owner}/{name}") } else { format!("{host}/{owner}/{name}") };
    check_repository(&repository).is_ok().then_some(repository)
}

/// The issues that block one: a list, or a connection with `nodes`. An issue without an address is one of the same repository.
fn blockers(value: Option<&Value>, repository: &str) -> Option<Vec<String>> {
    let value = value?;
    let list = value.as_array().or_else(|| value.get("nodes")?.as_array())?;
    let id = |issue: &Value| {
        let number = issue.get("number")?.as_u64()?;
        let address = issue.get("url").and_then(Value::as_str).and_then(repository_of);
        Some(format!("gh:{}#{number}", address.as_deref().unwrap_or(repository)))
    };
    Some(list.iter().filter_map(id).collect())
}

#[cfg(test)]
mod tests {
    use blackboard::work::Priority;

    use super::*;

    #[test]
    fn issues_of_the_sample_are_read() {
        let file = read(include_str!("../../tests/fixtures/trackers/github.json")).unwrap();
        assert_eq!(file.problems, []);
        let ids: Vec<_> = file.items.iter().map(|item| (item.id.as_str(), item.is_closed)).collect();
        assert_eq!(
            ids,
            [
                ("gh:mellanon/pai-collab#78", false),
                ("gh:mellanon/pai-collab#77", false),
                ("gh:mellanon/pai-collab#56", true)
            ]
        );
        let first = &file.items[0];
        assert_eq!(
            (first.source.as_deref(), first.source_ref.as_deref(), first.priority),
            (Some("github"), Some("mellanon/pai-collab#78"), Some(Priority::P2))
        );
        assert_eq!(first.labels.as_deref().unwrap().len(), 3);
        let blockers = first.blocked_by.as_deref();
        assert_eq!(
            blockers,
            Some(&["gh:mellanon/pai-collab#77".to_owned(), "gh:other/repo#5".to_owned()][..])
        );
        assert_eq!(file.items[2].blocked_by, None);
    }

    #[test]
    fn addresses_and_names_of_repositories_are_checked() {
        for (url, expected) in [
            ("https://github.com/o/r/issues/7", Some("o/r")),
            ("https://ghe.example.com/o/r/issues/7", Some("ghe.example.com/o/r")),
            ("https://github.com/o/r/pull/7", None),
            ("https://github.com/o/r#x/issues/7", None),
            ("https://github.com/-o/r/issues/7", None),
            ("ftp://github.com/o/r/issues/7", None),
            ("", None),
        ] {
            assert_eq!(repository_of(url).as_deref(), expected, "{url}");
        }
        for (repository, is_allowed) in [
            ("o/r", true),
            ("host.example/o/r", true),
            ("--help", false),
            ("o/--web", false),
            ("o", false),
            ("a/b/c/d", false),
            ("o/..", false),
        ] {
            assert_eq!(check_repository(repository).is_ok(), is_allowed, "{repository}");
        }
    }

    #[test]
    fn what_is_not_a_list_is_refused_and_damaged_issues_are_reported() {
        for text in ["", "{}", "null", "<html>", "[", "[1"] {
            assert_eq!(read(text).unwrap_err().code(), Code::InvalidValue, "{text}");
        }
        let file = read(
            r#"[1, {"number": 1}, {"number": 1, "url": "https://github.com/o/r/issues/1", "title": ""}]"#,
        );
        let file = file.unwrap();
        let problems: Vec<_> =
            file.problems.iter().map(|one| (one.place.as_str(), one.problem.as_str())).collect();
        assert_eq!(
            problems,
            [("issue 1", "it is not a JSON object"), ("#1", "it has no url"), ("#1", "it has no title")]
        );
    }
}
