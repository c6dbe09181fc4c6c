//! The default name and project of a session.

use std::ffi::OsStr;
use std::fs;
use std::io::Read;
use std::path::Path;

use blackboard::text::visible;
use blackboard::{Board, Result};

use crate::config::Config;
use crate::environment::Environment;
use crate::location::{self, Request};
use crate::platforms;

/// Git's configuration is short. Longer files are not read to their end.
const LONGEST_CONFIGURATION: u64 = 64 * 1024;

/// The maximum length of an agent's name.
const LONGEST_NAME: usize = 100;

/// The maximum length of a generated name's prefix.
const LONGEST_BASE: usize = 40;

/// The prefix of a generated name: the platform or the program, in letters that are easy to type. The board adds
/// characters of the session id, so that the name is unique: `claude-84a6`.
pub fn name_base(program: &str) -> String {
    let is_typed = |character: char| character.is_alphanumeric() || matches!(character, '.' | '_');
    let shown = visible(program).to_lowercase();
    let words =
        shown.split(|character| !is_typed(character)).filter(|word| word.contains(char::is_alphanumeric));
    let base: String = words.collect::<Vec<_>>().join("-").chars().take(LONGEST_BASE).collect();
    if base.is_empty() { "agent".to_owned() } else { base }
}

/// The name that the user gave to sessions here, in the environment, the configuration or the settings of a platform.
pub fn name(environment: &Environment, config: &Config) -> Option<String> {
    let given = environment.agent_name.as_deref().and_then(OsStr::to_str).and_then(usable_name);
    given
        .or_else(|| config.agent_name.as_deref().and_then(usable_name))
        .or_else(|| platforms::agent_name(environment))
}

/// The name without invisible characters, for example the variation selector of an emoji: the board refuses them, and
/// the caller did not type them. `None` if the rest is empty or too long.
pub fn usable_name(name: &str) -> Option<String> {
    let name = visible(name);
    let name = name.trim();
    (!name.is_empty() && name.chars().count() <= LONGEST_NAME).then(|| name.to_owned())
}

/// The project of a session: the registered project whose path contains the directory, or the name of the git remote,
/// or that of the directory.
pub fn project(board: &Board, request: &Request) -> Result<Option<String>> {
    let here = &request.current_dir;
    let main = location::main_worktree(request);
    let directories: Vec<&Path> =
        [here.as_path()].into_iter().chain(main.as_ref().map(|(_, same)| same.as_path())).collect();
    if let Some(project) = board.projects().at_path(&directories)? {
        return Ok(Some(project.project_id));
    }
    let root = main.map(|(root, _)| root);
    let remote = root.as_deref().and_then(remote_name);
    let directory = root.as_deref().unwrap_or(here);
    Ok(remote.or_else(|| directory.file_name().and_then(OsStr::to_str).map(str::to_owned)))
}

/// The remote of a repository.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Remote {
    /// The last part of its address: `repo` for `git@host:owner/repo.git`.
    pub name: String,
    /// The last two parts: `owner/repo`.
    pub repository: Option<String>,
}

/// The remote `origin` of the repository with this root, or the first one if there is no `origin`.
pub fn remote(root: &Path) -> Option<Remote> {
    let ordinary = root.join(".git/config");
    let file = if ordinary.is_file() { ordinary } else { root.join("config") };
    if !fs::metadata(&file).ok()?.is_file() {
        return None;
    }
    let mut text = String::new();
    fs::File::open(file).ok()?.take(LONGEST_CONFIGURATION).read_to_string(&mut text).ok()?;
    remote_in_configuration(&text)
}

/// The name of a remote repository: `repo` for `git@host:owner/repo.git`.
fn remote_name(root: &Path) -> Option<String> {
    remote(root).map(|remote| remote.name)
}

/// The remote in the URL of `origin`, or of the first remote if there is no `origin`.
fn remote_in_configuration(text: &str) -> Option<Remote> {
    let mut section = "";
    let mut first = None;
    for line in text.lines().map(str::trim) {
        if line.starts_with('[') {
            section = line;
        } else if let Some(("url", address)) =
            line.split_once('=').map(|(key, value)| (key.trim(), value.trim()))
            && section.starts_with("[remote ")
        {
            let mut parts = address.trim_end_matches('/').rsplit(['/', ':', '\\']);
            let name = parts.next().unwrap_or_default();
            let name = name.strip_suffix(".git").unwrap_or(name).trim_matches('"');
            if name.is_empty() {
                continue;
            }
            let owner = parts.next().map(|owner| owner.trim_matches('"')).filter(|owner| !owner.is_empty());
            let repository = owner.map(|owner| format!("{owner}/{name}"));
            let remote = Remote { name: name.to_owned(), repository };
            if section == "[remote \"origin\"]" {
                return Some(remote);
            }
            first.get_or_insert(remote);
        }
    }
    first
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_agent_is_called_as_pai_calls_it_unless_it_is_named_here() {
        let directory = testkit::tempdir().unwrap();
        let home = directory.path();
        let settings = |place: &str, text: &str| {
            fs::create_dir_all(home.join(place)).unwrap();
            fs::write(home.join(place).join("settings.json"), text).unwrap();
        };
        let mut environment = Environment { user_home: Some(home.into()), ..Environment::default() };
        let mut config = Config::default();
        assert_eq!(name(&environment, &config), None, "no settings");
        let long = "x".repeat(101);
        for (text, expected) in [
            (r#"{"daidentity": {"name": " Ivy "}, "env": {"DA": "Kai"}}"#, Some("Ivy")),
            (r#"{"env": {"DA": "Kai"}}"#, Some("Kai")),
            (r#"{"daidentity": {"name": ""}, "env": {"DA": "Kai"}}"#, Some("Kai")),
            (r#"{"daidentity": {"name": 7}}"#, None),
            (r#"{"daidentity": "Ivy"}"#, None),
            (r#"{"daidentity": {"name": "I\u001bvy"}}"#, None),
            ("{\"daidentity\": {\"name\": \"Kai \u{26a1}\u{fe0f}\"}}", Some("Kai \u{26a1}")),
            ("{\"daidentity\": {\"name\": \"\u{fe0f}\"}, \"env\": {\"DA\": \"Kai\"}}", Some("Kai")),
            (&format!(r#"{{"daidentity": {{"name": "{long}"}}}}"#), None),
            (&format!(r#"{{"daidentity": {{"name": "Ivy"}}, "x": "{}"}}"#, "x".repeat(1024 * 1024)), None),
            ("{", None),
            ("[]", None),
        ] {
            settings(".claude", text);
            assert_eq!(name(&environment, &config).as_deref(), expected, "{text:.80}");
        }
        settings(".claude", r#"{"daidentity": {"name": "Ivy"}}"#);
        settings("claude", r#"{"daidentity": {"name": "Oak"}}"#);
        settings("pai", r#"{"daidentity": {"name": "Elm"}}"#);
        environment.platform_variables = vec![("CLAUDE_CONFIG_DIR", home.join("claude").into())];
        assert_eq!(name(&environment, &config).as_deref(), Some("Oak"));
        environment.platform_variables.push(("PAI_DIR", home.join("pai").into()));
        assert_eq!(name(&environment, &config).as_deref(), Some("Elm"));
        config.agent_name = Some("Ash".to_owned());
        assert_eq!(name(&environment, &config).as_deref(), Some("Ash"));
        environment.agent_name = Some("Fern".into());
        assert_eq!(name(&environment, &config).as_deref(), Some("Fern"));
    }

    #[test]
    fn a_generated_name_begins_with_letters_that_are_easy_to_type() {
        testkit::limit_test();
        for (program, expected) in [
            ("claude", "claude"),
            ("claude-code", "claude-code"),
            ("Visual Studio Code", "visual-studio-code"),
            ("MCP client", "mcp-client"),
            ("backup.sh", "backup.sh"),
            ("--<system>\u{202e}x", "system-x"),
            ("Ökonom", "ökonom"),
            ("", "agent"),
            (" \u{1b}", "agent"),
            (&"x".repeat(1000), &*"x".repeat(LONGEST_BASE)),
        ] {
            assert_eq!(name_base(program), expected, "{program}");
        }
    }

    fn name_in_configuration(text: &str) -> Option<String> {
        remote_in_configuration(text).map(|remote| remote.name)
    }

    #[test]
    fn a_repository_has_an_owner_if_its_address_has_one() {
        for (address, expected) in [
            ("git@github.com:owner/repo.git", Some("owner/repo")),
            ("https://github.com/owner/repo/", Some("owner/repo")),
            ("/srv/git/repo.git", Some("git/repo")),
            ("/repo", None),
            ("repo", None),
        ] {
            let text = format!("[remote \"origin\"]\n\turl = {address}\n");
            let remote = remote_in_configuration(&text).unwrap();
            assert_eq!(remote.repository.as_deref(), expected, "{address}");
        }
    }

    #[test]
    fn a_repository_is_called_as_its_origin_is() {
        for (address, expected) in [
            ("git@github.com:owner/repo.git", Some("repo")),
            ("https://github.com/owner/repo", Some("repo")),
            ("https://github.com/owner/repo.git/", Some("repo")),
            ("/srv/git/repo.git", Some("repo")),
            ("host:repo", Some("repo")),
            ("", None),
        ] {
            let text = format!("[core]\n\turl = no\n[remote \"origin\"]\n\turl = {address}\n\tfetch = x\n");
            assert_eq!(name_in_configuration(&text).as_deref(), expected, "{address}");
        }
        let two =
            "[remote \"up\"]\nurl=a/first\n[remote \"origin\"]\nurl = a/own.git\n[branch \"x\"]\nurl = no";
        assert_eq!(name_in_configuration(two).as_deref(), Some("own"));
        let other = "[remote \"up\"]\n  url = a/first\n";
        assert_eq!(name_in_configuration(other).as_deref(), Some("first"));
        assert_eq!(name_in_configuration("nonsense"), None);
    }
}
