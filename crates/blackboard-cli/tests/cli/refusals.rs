//! Every command × every code that it can end with, each provoked with the real program.
//!
//! The commands come from the help text and the codes from `Code::ALL`, so that neither a new command nor a new code
//! is forgotten: [`can_end_with`] says which pairs there are, [`provoke`] has the call for each of them, and a pair
//! without a call, a call without a pair, or a code without a command fails.

use std::collections::BTreeSet;
use std::fs::{self, File, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::Child;
use std::sync::OnceLock;

use blackboard::Code;
use rusqlite::Connection;

use crate::scratch::{Output, Scratch, commands, dead_process};

/// Codes that no command of the program can be brought to end with, and why.
const NOT_PROVOKED: &[(Code, &str)] = &[
    (Code::DiskFull, "needs a file system without room, which `cargo xtask torture` makes"),
    (Code::Internal, "would be a bug of this program"),
    (Code::Conflict, "SQLite runs one writer at a time; only optimistic engines lose against others"),
];

/// The words in which a lower layer would speak, and those of a crash.
const FORBIDDEN: &[&str] =
    &["panicked", "backtrace", "RUST_", "constraint", "SQLITE", "UNIQUE", "SELECT", "INSERT", "rusqlite"];

/// Two hints whose sessions begin with the same six characters.
const TWINS: [&str; 2] = ["twin-5653", "twin-6505"];
const TWINS_PREFIX: &str = "f4b24f";

/// A credential of a well-known form, put together so that no scanner takes this file for a leak.
fn secret() -> String {
    format!("ghp_{}", "a1B2c3D4e5F6".repeat(3))
}

#[test]
fn every_refusal_of_every_command_is_told_in_two_ways() {
    let stage = Stage::new();
    let mut covered = BTreeSet::new();
    for command in commands() {
        let possible = can_end_with(&command);
        for &code in Code::ALL {
            match (possible.contains(&code), provoke(&stage, &command, code)) {
                (true, Some(call)) => {
                    covered.insert(code);
                    // They wait for five seconds each, so they wait together, in a test of their own.
                    if code != Code::Busy {
                        check(&stage, &call, code);
                    }
                }
                (true, None) => panic!("`{command}` can end with {code}, but nothing provokes it"),
                (false, Some(call)) => {
                    panic!("{call:?} provokes {code}, which `{command}` is not known to end with")
                }
                (false, None) => {}
            }
        }
    }
    for &code in Code::ALL {
        let excused = NOT_PROVOKED.iter().any(|(excused, _)| *excused == code);
        assert_eq!(
            covered.contains(&code),
            !excused,
            "{code}: either a command ends with it, or it is excused"
        );
    }
}

#[test]
fn whoever_waits_too_long_for_the_lock_is_told() {
    let stage = Stage::new();
    stage.let_somebody_die();
    let lock = Connection::open(stage.scratch.database()).unwrap();
    lock.execute_batch("BEGIN IMMEDIATE").unwrap();
    let queue = File::create(stage.scratch.path().join("new.db-lock")).unwrap();
    queue.lock().unwrap();
    let waiting: Vec<(Vec<String>, bool, Child)> = commands()
        .into_iter()
        .filter_map(|command| provoke(&stage, &command, Code::Busy))
        .flat_map(|call| [(call.clone(), false), (call, true)])
        .map(|(call, json)| (stage.start(&call, json), call, json))
        .map(|(child, call, json)| (call, json, child))
        .collect();
    assert!(waiting.len() > 20);
    for (call, json, child) in waiting {
        check_output(&call, json, &Output::of(child.wait_with_output().unwrap()), Code::Busy);
    }
}

/// The codes that a command can end with, from what its help says it takes and from what it does.
fn can_end_with(command: &str) -> BTreeSet<Code> {
    let mut codes = BTreeSet::from([Code::Usage]);
    if matches!(command, "completions" | "version") {
        return codes;
    }
    // Whatever opens a board.
    codes.extend([
        Code::Io,
        Code::Corrupt,
        Code::ForeignDatabase,
        Code::NewerSchema,
        Code::InvalidValue,
        Code::UnsafePermissions,
        Code::ReadOnly,
    ]);
    if !READING.contains(&command) {
        codes.insert(Code::Busy);
    }
    let help = Scratch::new().run(command.split(' ').chain(["--help"])).success().stdout;
    if help.contains("--session <ID>") || help.contains("--parent <SESSION>") {
        codes.extend([Code::AgentNotFound, Code::AmbiguousSession]);
    }
    codes.extend(match command {
        "agent register" => &[Code::SecretLooking, Code::SessionStale, Code::SessionEnded][..],
        "agent heartbeat" => &[Code::NoSession, Code::SessionEnded, Code::WorkNotFound, Code::SecretLooking],
        "agent show" | "agent deregister" | "work list" => &[Code::NoSession],
        "work create" => {
            &[Code::ProjectNotFound, Code::AlreadyExists, Code::DependencyCycle, Code::SecretLooking]
        }
        "work claim" => &[
            Code::NoSession,
            Code::ProjectNotFound,
            Code::WorkNotFound,
            Code::NothingAvailable,
            Code::AlreadyClaimed,
            Code::AlreadyCompleted,
            Code::WorkBlocked,
            Code::DependencyCycle,
            Code::SessionStale,
            Code::SessionEnded,
            Code::SecretLooking,
        ],
        "work release" => {
            &[Code::NoSession, Code::WorkNotFound, Code::AlreadyCompleted, Code::NotHolder, Code::StaleFence]
        }
        "work complete" => &[
            Code::NoSession,
            Code::WorkNotFound,
            Code::AlreadyCompleted,
            Code::WorkBlocked,
            Code::NotHolder,
            Code::StaleFence,
            Code::SecretLooking,
        ],
        "work block" => {
            &[Code::WorkNotFound, Code::AlreadyCompleted, Code::DependencyCycle, Code::SecretLooking]
        }
        "work unblock" | "work reset" | "work status" => &[Code::WorkNotFound],
        "work delete" => &[Code::WorkNotFound, Code::InUse],
        "project register" => &[Code::SecretLooking],
        "project status" => &[Code::ProjectNotFound],
        "project remove" => &[Code::ProjectNotFound, Code::InUse],
        "observe" => &[Code::CursorAhead],
        _ => &[],
    });
    codes
}

/// Commands that never wait for the lock.
pub const READING: &[&str] = &[
    "agent list",
    "agent show",
    "work list",
    "work status",
    "observe",
    "status",
    "project list",
    "project status",
    "export",
];

/// A call of each command that would succeed on the stage, so that only what is added to it goes wrong.
pub const CALLS: &[(&str, &[&str])] = &[
    ("agent register", &["--name", "Elm"]),
    ("agent heartbeat", &["--session", "ivy"]),
    ("agent list", &[]),
    ("agent show", &["ivy"]),
    ("agent deregister", &["oak"]),
    ("work create", &["new", "--title", "New"]),
    ("work claim", &["open", "--session", "ivy"]),
    ("work release", &["held", "--session", "ivy"]),
    ("work complete", &["held", "--session", "ivy"]),
    ("work block", &["open", "--blocked-by", "held"]),
    ("work unblock", &["waiting"]),
    ("work list", &[]),
    ("work status", &["open"]),
    ("observe", &["--session", "ivy"]),
    ("status", &[]),
    ("init", &[]),
    ("project register", &["other", "--name", "Other"]),
    ("project list", &[]),
    ("project status", &["pai"]),
    ("project remove", &["empty"]),
    ("work reset", &["held"]),
    ("work delete", &["open"]),
    ("sweep", &["--threshold", "0"]),
    ("export", &[]),
];

/// The arguments with which a command ends with a code.
fn provoke(stage: &Stage, command: &str, code: Code) -> Option<Vec<String>> {
    let words = || command.split(' ').map(str::to_owned);
    let with =
        |arguments: &[&str]| Some(words().chain(arguments.iter().map(|&text| text.to_owned())).collect());
    let secret = secret();
    match (command, code) {
        (_, Code::Usage) => return with(&["--no-such-option"]),
        ("agent register", Code::SecretLooking) => return with(&["--name", &secret]),
        ("agent register", Code::SessionStale) => return with(&["--parent", "pale"]),
        ("agent register", Code::SessionEnded) => return with(&["--parent", "gone"]),
        ("agent register", Code::AgentNotFound) => return with(&["--parent", "nobody"]),
        ("agent register", Code::AmbiguousSession) => return with(&["--parent", TWINS_PREFIX]),
        ("agent heartbeat", Code::SessionEnded) => return with(&["--session", "gone"]),
        ("agent heartbeat", Code::WorkNotFound) => return with(&["--session", "ivy", "--work-item", "none"]),
        ("agent heartbeat", Code::SecretLooking) => {
            return with(&["--session", "ivy", "--progress", &secret]);
        }
        ("agent heartbeat" | "agent show" | "agent deregister", Code::NoSession) => return with(&[]),
        ("work list", Code::NoSession) => return with(&["--mine"]),
        ("work list", Code::AgentNotFound) => return with(&["--mine", "--session", "nobody"]),
        ("work list", Code::AmbiguousSession) => return with(&["--mine", "--session", TWINS_PREFIX]),
        ("work create", Code::ProjectNotFound) => {
            return with(&["new", "--title", "New", "--project", "none"]);
        }
        ("work create", Code::AlreadyExists) => return with(&["open", "--title", "Another"]),
        ("work create", Code::DependencyCycle) => {
            return with(&["new", "--title", "New", "--blocked-by", "new"]);
        }
        ("work create", Code::SecretLooking) => return with(&["new", "--title", &secret]),
        ("work claim", Code::NoSession) => return with(&["open"]),
        ("work claim", Code::WorkNotFound) => return with(&["none", "--session", "ivy"]),
        ("work claim", Code::ProjectNotFound) => {
            return with(&["--next", "--project", "none", "--session", "ivy"]);
        }
        ("work claim", Code::NothingAvailable) => {
            return with(&["--next", "--project", "empty", "--session", "ivy"]);
        }
        ("work claim", Code::AlreadyClaimed) => return with(&["held", "--session", "oak"]),
        ("work claim", Code::AlreadyCompleted) => return with(&["done", "--session", "ivy"]),
        ("work claim", Code::WorkBlocked) => return with(&["waiting", "--session", "ivy"]),
        ("work claim", Code::DependencyCycle) => {
            return with(&["new", "--title", "New", "--blocked-by", "new", "--session", "ivy"]);
        }
        ("work claim", Code::SessionStale) => return with(&["open", "--session", "pale"]),
        ("work claim", Code::SessionEnded) => return with(&["open", "--session", "gone"]),
        ("work claim", Code::SecretLooking) => return with(&["new", "--title", &secret, "--session", "ivy"]),
        ("work release" | "work complete", Code::NoSession) => return with(&["held"]),
        ("work release" | "work complete", Code::WorkNotFound) => return with(&["none", "--session", "ivy"]),
        ("work release" | "work complete", Code::AlreadyCompleted) => {
            return with(&["done", "--session", "oak"]);
        }
        ("work release" | "work complete", Code::NotHolder) => return with(&["held", "--session", "oak"]),
        ("work release" | "work complete", Code::StaleFence) => {
            return with(&["held", "--fence", "1", "--session", "ivy"]);
        }
        ("work complete", Code::WorkBlocked) => return with(&["stuck", "--session", "ivy"]),
        ("work complete", Code::SecretLooking) => {
            return with(&["held", "--session", "ivy", "--summary", &secret]);
        }
        ("work block", Code::WorkNotFound) => return with(&["none", "--blocked-by", "open"]),
        ("work block", Code::AlreadyCompleted) => return with(&["done", "--blocked-by", "open"]),
        ("work block", Code::DependencyCycle) => return with(&["open", "--blocked-by", "waiting"]),
        ("work block", Code::SecretLooking) => {
            return with(&["open", "--blocked-by", "held", "--reason", &secret]);
        }
        ("work unblock" | "work reset" | "work status" | "work delete", Code::WorkNotFound) => {
            return with(&["none"]);
        }
        ("work delete", Code::InUse) => return with(&["held"]),
        ("project register", Code::SecretLooking) => return with(&["new", "--name", &secret]),
        ("project status" | "project remove", Code::ProjectNotFound) => return with(&["none"]),
        ("project remove", Code::InUse) => return with(&["pai"]),
        ("observe", Code::CursorAhead) => return with(&["--session", "pale"]),
        ("init", Code::Busy) => return with(&["--db", "new.db"]),
        _ => {}
    }
    let valid = CALLS.iter().find(|(path, _)| *path == command)?.1;
    let writes = !READING.contains(&command);
    let on = |database: PathBuf| {
        let database = database.to_str().unwrap().to_owned();
        Some(
            words()
                .chain(valid.iter().map(|&text| text.to_owned()))
                .chain(["--db".to_owned(), database])
                .collect(),
        )
    };
    match code {
        // No file system takes names that long.
        Code::Io => on(stage.scratch.path().join("x".repeat(300))),
        Code::Corrupt => on(stage.damaged()),
        Code::ForeignDatabase => on(stage.text_file()),
        Code::NewerSchema => on(stage.from_the_future()),
        Code::UnsafePermissions => on(stage.readable_by_all()),
        Code::ReadOnly => on(stage.locked_away()),
        Code::InvalidValue => on(PathBuf::from("ftp://board")),
        Code::Busy if writes => with(valid),
        Code::AgentNotFound | Code::AmbiguousSession if takes_a_session(command) => {
            let named = if code == Code::AgentNotFound { "nobody" } else { TWINS_PREFIX };
            let mut call: Vec<String> = words().chain(valid.iter().map(|&text| text.to_owned())).collect();
            match call.iter().position(|argument| argument == "ivy" || argument == "oak") {
                Some(session) => named.clone_into(&mut call[session]),
                None => call.extend(["--session".to_owned(), named.to_owned()]),
            }
            Some(call)
        }
        _ => None,
    }
}

fn takes_a_session(command: &str) -> bool {
    let help = Scratch::new().run(command.split(' ').chain(["--help"])).success().stdout;
    help.contains("--session <ID>")
}

fn check(stage: &Stage, call: &[String], code: Code) {
    for json in [false, true] {
        let output = Output::of(stage.start(call, json).wait_with_output().unwrap());
        check_output(call, json, &output, code);
    }
}

fn check_output(call: &[String], json: bool, output: &Output, code: Code) {
    let context = format!("{} ({code}, json: {json}): {output:?}", call.join(" "));
    assert_eq!(output.code, i32::from(code.exit_code()), "{context}");
    for word in FORBIDDEN {
        assert!(!output.stderr.contains(word) && !output.stdout.contains(word), "{word} in {context}");
    }
    if !json {
        assert_eq!(output.stdout, "", "{context}");
        assert!(output.stderr.starts_with("error: "), "{context}");
        return;
    }
    assert_eq!(output.stderr, "", "{context}");
    let answer = output.json();
    assert_eq!(answer["ok"], false, "{context}");
    assert_eq!(answer["code"], code.as_str(), "{context}");
    assert!(answer["error"].as_str().is_some_and(|text| !text.is_empty()), "{context}");
    assert!(answer["timestamp"].as_str().is_some_and(|text| text.ends_with('Z')), "{context}");
    assert!(
        answer.get("hint").is_none_or(|hint| hint.as_str().is_some_and(|hint| !hint.is_empty())),
        "{context}"
    );
}

/// A board on which everything can go wrong that depends on what is there.
struct Stage {
    scratch: Scratch,
    damaged: OnceLock<PathBuf>,
}

impl Stage {
    fn new() -> Stage {
        let scratch = Scratch::new();
        let dead = dead_process().to_string();
        for call in [
            &["agent", "register", "--name", "Pale", "--session-hint", "pale", "--pid", &dead][..],
            &["agent", "register", "--name", "Ivy", "--session-hint", "ivy"],
            &["agent", "register", "--name", "Oak", "--session-hint", "oak"],
            &["agent", "register", "--name", "Gone", "--session-hint", "gone"],
            &["agent", "register", "--name", "Twin", "--session-hint", TWINS[0]],
            &["agent", "register", "--name", "Twin", "--session-hint", TWINS[1]],
            &["agent", "deregister", "gone"],
            &["project", "register", "pai", "--name", "PAI"],
            &["project", "register", "empty", "--name", "Empty"],
            &["work", "create", "open", "--title", "Open", "--project", "pai"],
            &["work", "create", "waiting", "--title", "Waiting", "--blocked-by", "open"],
            &["work", "claim", "held", "--title", "Held", "--session", "ivy"],
            &["work", "claim", "stuck", "--title", "Stuck", "--session", "ivy"],
            &["work", "block", "stuck", "--blocked-by", "open"],
            &["work", "claim", "done", "--title", "Done", "--session", "ivy"],
            &["work", "complete", "done", "--session", "ivy"],
            &["observe", "--session", "pale"],
            &["sweep", "--threshold", "0"],
        ] {
            scratch.run(call).success();
        }
        // As if the reader had come from another board.
        let database = Connection::open(scratch.database()).unwrap();
        database.execute("UPDATE cursors SET revision = 1000", []).unwrap();
        Stage { scratch, damaged: OnceLock::new() }
    }

    /// Starts the program, without the privileges with which no file is locked away.
    fn start(&self, call: &[String], json: bool) -> Child {
        let mut command = self.scratch.command(call);
        if json {
            command.arg("--json");
        }
        if call.last().is_some_and(|last| last.ends_with("locked-away/local.db")) && is_root() {
            command.uid(NOBODY).env("HOME", self.scratch.path().join("locked-away"));
        }
        command.stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::piped());
        command.spawn().unwrap()
    }

    /// A sweep without anything to do does not ask for the lock.
    fn let_somebody_die(&self) {
        let dead = dead_process().to_string();
        self.scratch.run(["agent", "register", "--name", "Ash", "--pid", &dead]).success();
    }

    /// A copy of the board, complete in one file.
    fn copy(&self, name: &str) -> PathBuf {
        let copy = self.scratch.path().join(name);
        if !copy.exists() {
            let original = Connection::open(self.scratch.database()).unwrap();
            original.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(())).unwrap();
            fs::copy(self.scratch.database(), &copy).unwrap();
            fs::set_permissions(&copy, Permissions::from_mode(0o600)).unwrap();
        }
        copy
    }

    /// Everything behind the first page is noise.
    fn damaged(&self) -> PathBuf {
        let make = || {
            let file = self.copy("damaged.db");
            let mut bytes = fs::read(&file).unwrap();
            bytes[4096..].fill(0xa5);
            fs::write(&file, bytes).unwrap();
            file
        };
        self.damaged.get_or_init(make).clone()
    }

    fn text_file(&self) -> PathBuf {
        let file = self.scratch.path().join("notes.txt");
        fs::write(&file, "These are my notes, and no board.\n".repeat(100)).unwrap();
        fs::set_permissions(&file, Permissions::from_mode(0o600)).unwrap();
        file
    }

    fn from_the_future(&self) -> PathBuf {
        let file = self.copy("newer.db");
        Connection::open(&file).unwrap().execute_batch("PRAGMA user_version = 99").unwrap();
        file
    }

    fn readable_by_all(&self) -> PathBuf {
        let file = self.copy("open.db");
        fs::set_permissions(&file, Permissions::from_mode(0o644)).unwrap();
        file
    }

    /// A database of one's own that one may neither read nor write.
    fn locked_away(&self) -> PathBuf {
        let directory = self.scratch.path().join("locked-away");
        fs::create_dir_all(&directory).unwrap();
        let file = self.copy("locked-away/local.db");
        fs::set_permissions(&file, Permissions::from_mode(0o000)).unwrap();
        if is_root() {
            fs::set_permissions(self.scratch.path(), Permissions::from_mode(0o711)).unwrap();
            for path in [&directory, &file] {
                std::os::unix::fs::chown(path, Some(NOBODY), None).unwrap();
            }
        }
        file
    }
}

/// A user without privileges.
const NOBODY: u32 = 65534;

fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

#[test]
fn the_twins_are_twins() {
    for hint in TWINS {
        assert!(blackboard::id::session_of_hint(hint).starts_with(TWINS_PREFIX));
    }
}

#[test]
fn every_command_that_opens_a_board_has_a_call() {
    let called: BTreeSet<&str> = CALLS.iter().map(|(command, _)| *command).collect();
    for command in commands() {
        let opens = !matches!(command.as_str(), "completions" | "version");
        assert_eq!(called.contains(command.as_str()), opens, "{command}");
    }
}
