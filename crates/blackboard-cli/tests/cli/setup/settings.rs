//! Every platform's files in ten shapes: set up, set up again, restored byte for byte.

use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use serde_json::Value;

use super::changes;
use crate::scratch::Scratch;

/// How a file can be found.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Shape {
    Missing,
    Empty,
    ForeignHooks,
    OurOldVersion,
    Comments,
    Invalid,
    ReadOnly,
    Symlink,
    LineEndings,
    Huge,
}

const SHAPES: [Shape; 10] = [
    Shape::Missing,
    Shape::Empty,
    Shape::ForeignHooks,
    Shape::OurOldVersion,
    Shape::Comments,
    Shape::Invalid,
    Shape::ReadOnly,
    Shape::Symlink,
    Shape::LineEndings,
    Shape::Huge,
];

/// What a file is written in.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Format {
    Json,
    Toml,
    /// All of it is ours.
    Ours,
}

const FOREIGN_JSON: &str = r#"{
    "version": 1, "theme": "dark", "$schema": "https://example.com/schema.json",
    "hooks": {
        "SessionStart": [
            { "matcher": "*", "hooks": [{ "type": "command", "command": "echo hello" }] }
        ],
        "sessionStart": [
            { "command": "echo hello" }
        ],
        "Notification": []
    },
    "mcpServers": {
        "other": { "command": "other-server", "args": ["--blackboard"] }
    },
    "mcp": {
        "other": { "type": "local", "command": ["other-server"] }
    }
}
"#;

const COMMENTS_JSON: &str = r#"// before
{
	/* a block */ "theme": "dark", // behind
	// "hooks": { "SessionStart": [] },
	"hooks": {
		// between
		"PreToolUse": [
			{ "matcher": "Bash", "hooks": [{ "type": "command", "command": "lint" /* fast */ }] }, // last
		],
	},
	"mcpServers": { /* none yet */ },
}
// after"#;

const FOREIGN_TOML: &str =
    "model = \"large\"\n\n[mcp_servers.other]\ncommand = \"other-server\"\n\n[hooks]\nx = 1\n";

const COMMENTS_TOML: &str = "# before\nmodel   =   'large' # behind\n\n[ mcp_servers . other ] # odd spaces\ncommand = \"x\"\n# after";

#[test]
fn every_file_of_claude_code_is_set_up_and_restored_in_every_shape() {
    check_all("claude");
}

#[test]
fn every_file_of_codex_is_set_up_and_restored_in_every_shape() {
    check_all("codex");
}

#[test]
fn every_file_of_gemini_cli_is_set_up_and_restored_in_every_shape() {
    check_all("gemini");
}

#[test]
fn every_file_of_opencode_is_set_up_and_restored_in_every_shape() {
    check_all("opencode");
}

#[test]
fn every_file_of_copilot_cli_is_set_up_and_restored_in_every_shape() {
    check_all("copilot");
}

#[test]
fn every_file_of_cursor_is_set_up_and_restored_in_every_shape() {
    check_all("cursor");
}

fn check_all(platform: &'static str) {
    let files = files_of(platform);
    assert!(files.len() >= 2, "{platform}: {files:?}");
    for file in files {
        for shape in SHAPES {
            Case { platform, file: file.clone(), shape, format: format_of(&file) }.check();
        }
    }
}

struct Case {
    platform: &'static str,
    file: PathBuf,
    shape: Shape,
    format: Format,
}

impl Case {
    fn check(&self) {
        let scratch = Scratch::new();
        let path = scratch.path().join(&self.file);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        self.make(&path);
        let before = look(&path);
        if self.is_edited() {
            self.is_set_up_and_restored(&scratch, &path, before.as_ref());
        } else {
            self.is_never_touched(&scratch, &path, before.as_ref());
        }
    }

    fn is_set_up_and_restored(&self, scratch: &Scratch, path: &Path, before: Option<&Seen>) {
        let change = self.run(scratch, "setup", 0);
        let expected = if before.is_some() { "change" } else { "create" };
        assert_eq!(change["action"], expected, "{}", self.name());
        let after = look(path).unwrap();
        if let Some(before) = before.filter(|_| self.shape != Shape::OurOldVersion) {
            let mut after = words(&after.text);
            for word in words(&before.text) {
                assert!(after.any(|other| other == word), "{}: {word} is gone", self.name());
            }
        }
        if let Some(before) = before {
            assert_eq!(after.mode, before.mode, "{}", self.name());
            let is_crlf = after.text.matches('\n').count() == after.text.matches("\r\n").count();
            assert_eq!(is_crlf, self.shape == Shape::LineEndings, "{}", self.name());
            // A file that is completely ours is not kept. A kept one may have credentials.
            let backup = look(&backup_of(path)).map(|backup| (backup.text, backup.mode & 0o777));
            let expected = (self.format != Format::Ours).then(|| (before.text.clone(), 0o600));
            assert_eq!(backup, expected, "{}", self.name());
        }
        assert_eq!(self.state(scratch), "set_up", "{}", self.name());

        let everything = scratch.contents();
        assert_eq!(self.run(scratch, "setup", 0)["action"], "none", "{}", self.name());
        assert!(scratch.contents() == everything, "{}: the second time changed something", self.name());

        self.run(scratch, "setup remove", 0);
        assert_eq!(self.state(scratch), "not_set_up", "{}", self.name());
        match (self.shape, self.format) {
            (Shape::OurOldVersion, Format::Ours) => {
                assert_eq!((look(path), look(&backup_of(path))), (None, None), "{}", self.name());
            }
            // The file had entries of ours before, so it cannot be restored.
            (Shape::OurOldVersion, _) => {
                let left = look(path).unwrap().text;
                let squeezed = |text: &str| text.split_whitespace().collect::<String>();
                assert_eq!(squeezed(&left), squeezed(self.foreign()), "{}", self.name());
            }
            _ => {
                assert_eq!(look(path).as_ref(), before, "{}", self.name());
                assert_eq!(look(&backup_of(path)), None, "{}: the backup is no longer of use", self.name());
            }
        }
    }

    fn is_never_touched(&self, scratch: &Scratch, path: &Path, before: Option<&Seen>) {
        for _ in 0..2 {
            let change = self.run(scratch, "setup", 5);
            assert_eq!(change["action"], "refused", "{}", self.name());
            assert!(change["reason"].as_str().is_some_and(|reason| !reason.is_empty()), "{change}");
            assert!(change["by_hand"].as_str().unwrap().contains("blackboard"), "{change}");
            assert_eq!(look(path).as_ref(), before, "{}", self.name());
        }
        let told = scratch.run(["setup", self.platform, "--yes"]);
        assert!(told.stdout.contains("Nothing of it was changed. Add this by hand:"), "{told:?}");
        scratch.run(["setup", "remove", self.platform, "--yes"]);
        assert_eq!(look(path).as_ref(), before, "{}", self.name());
        assert_eq!(look(&backup_of(path)), None, "{}", self.name());
    }

    fn is_edited(&self) -> bool {
        match self.format {
            Format::Ours => matches!(self.shape, Shape::Missing | Shape::OurOldVersion),
            Format::Json | Format::Toml => {
                !matches!(self.shape, Shape::Invalid | Shape::ReadOnly | Shape::Symlink | Shape::Huge)
            }
        }
    }

    fn make(&self, path: &Path) {
        let foreign = self.foreign();
        let text = match self.shape {
            Shape::Missing => return,
            Shape::Empty => String::new(),
            Shape::ForeignHooks | Shape::ReadOnly | Shape::Symlink => foreign.to_owned(),
            Shape::OurOldVersion => self.old_version(),
            Shape::Comments => match self.format {
                Format::Json => COMMENTS_JSON.to_owned(),
                Format::Toml => COMMENTS_TOML.to_owned(),
                Format::Ours => "// mine\n".to_owned(),
            },
            Shape::Invalid => format!("{foreign}[{{"),
            Shape::LineEndings => foreign.replace('\n', "\r\n"),
            Shape::Huge => format!("{foreign}{}", "\n".repeat(16 * 1024 * 1024)),
        };
        if self.shape == Shape::Symlink {
            let elsewhere = path.with_file_name("elsewhere");
            fs::write(&elsewhere, text).unwrap();
            symlink(elsewhere, path).unwrap();
            return;
        }
        fs::write(path, text).unwrap();
        let mode = if self.shape == Shape::ReadOnly { 0o444 } else { 0o640 };
        fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
    }

    fn foreign(&self) -> &'static str {
        match self.format {
            Format::Json => FOREIGN_JSON,
            Format::Toml => FOREIGN_TOML,
            Format::Ours => "This is mine.\n",
        }
    }

    /// What an older version would have left: the same entries with another command.
    fn old_version(&self) -> String {
        let scratch = Scratch::new();
        let path = scratch.path().join(&self.file);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        if self.format != Format::Ours {
            fs::write(&path, self.foreign()).unwrap();
        }
        self.run(&scratch, "setup", 0);
        let text = fs::read_to_string(path).unwrap();
        match self.format {
            Format::Ours => text + "\nSomething that this version says in another way.\n",
            _ => text
                .replace("\"blackboard\"", "\"/opt/old/bin/blackboard\"")
                .replace("\"/opt/old/bin/blackboard\":", "\"blackboard\":")
                .replace("\"blackboard hook", "\"/opt/old/bin/blackboard hook"),
        }
    }

    /// Runs the command for the platform, and returns its result for the file.
    fn run(&self, scratch: &Scratch, command: &str, code: i32) -> Value {
        let words = command.split(' ').chain([self.platform, "--yes", "--json"]);
        let output = scratch.run(words);
        assert_eq!((output.code, output.stderr.as_str()), (code, ""), "{}: {output:?}", self.name());
        let file = scratch.path().join(&self.file);
        let answer = output.json();
        let change = changes(&answer).find(|change| change["file"] == file.to_str().unwrap());
        change.unwrap_or_else(|| panic!("{}: {answer}", self.name())).clone()
    }

    fn state(&self, scratch: &Scratch) -> String {
        let answer = scratch.json(["setup", "status"]);
        let platforms = answer["items"].as_array().unwrap().iter();
        let mut files = platforms.flat_map(|platform| platform["files"].as_array().unwrap());
        let path = scratch.path().join(&self.file);
        let file = files.find(|file| file["file"] == path.to_str().unwrap()).unwrap();
        file["state"].as_str().unwrap().to_owned()
    }

    fn name(&self) -> String {
        format!("{} {} {:?}", self.platform, self.file.display(), self.shape)
    }
}

/// Everything about a file that has to be as it was.
#[derive(Debug, PartialEq)]
struct Seen {
    text: String,
    mode: u32,
    leads_to: Option<PathBuf>,
}

/// The words of a text, comments included; the text between them may be on other lines after an edit.
fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|character: char| character.is_whitespace() || "{}[],".contains(character))
        .filter(|word| !word.is_empty())
}

fn look(path: &Path) -> Option<Seen> {
    let metadata = fs::symlink_metadata(path).ok()?;
    let text = fs::read_to_string(path).unwrap();
    Some(Seen { text, mode: metadata.permissions().mode(), leads_to: fs::read_link(path).ok() })
}

fn backup_of(path: &Path) -> PathBuf {
    PathBuf::from(format!("{}.before-blackboard", path.display()))
}

/// The files of a platform, from the home directory.
fn files_of(platform: &str) -> Vec<PathBuf> {
    let scratch = Scratch::new();
    let answer = scratch.json(["setup", platform, "--dry-run"]);
    let relative = |change: &Value| {
        let file = PathBuf::from(change["file"].as_str().unwrap());
        file.strip_prefix(scratch.path()).unwrap().to_owned()
    };
    changes(&answer).map(relative).collect()
}

fn format_of(file: &Path) -> Format {
    match file.extension().and_then(|extension| extension.to_str()) {
        Some("json") => Format::Json,
        Some("toml") => Format::Toml,
        _ => Format::Ours,
    }
}
