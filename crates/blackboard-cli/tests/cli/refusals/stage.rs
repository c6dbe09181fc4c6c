//! A board on which every refusal can be provoked.

use std::fs::{self, File, Permissions};
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, Stdio};
use std::sync::OnceLock;

use blackboard::Revision;
use blackboard::id::session_id_from_hint;
use blackboard::store::{Cursor, Range};
use rusqlite::Connection;
use testkit::process::RunToEnd as _;

use crate::machine::can;
use crate::scratch::{Scratch, with_dying_process, with_options};

/// Two hints whose sessions begin with the same six characters.
const TWINS: [&str; 2] = ["twin-5653", "twin-6505"];
pub const TWINS_PREFIX: &str = "f4b24f";

/// The input of `txn`, of `import` and of `work import`.
const TRANSACTIONS: [(&str, &str); 10] = [
    ("export.json", r#"{"entries":[{"scope":"default","key":"imported","value":1}]}"#),
    ("entries.json", r#"{"imported":{"key":"imported","value":1,"source_agent":"Ivy"}}"#),
    ("items.jsonl", r#"{"id":"imported","title":"Imported"}"#),
    ("valid.json", r#"{"then":[{"write":{"key":"key","value":1}}]}"#),
    ("lease.json", r#"{"then":[{"write":{"key":"key","value":1,"lease":true}}]}"#),
    ("leased.json", r#"{"then":[{"write":{"key":"leased","value":1}}]}"#),
    ("absent.json", r#"{"then":[{"write":{"key":"fact","value":1,"if_absent":true}}]}"#),
    ("hidden.json", r#"{"then":[{"read":{"scope":"private","key":"hidden"}}]}"#),
    ("full.json", r#"{"then":[{"write":{"scope":"full","key":"key","value":1}}]}"#),
    ("compare.json", r#"{"compare":[{"key":"fact","exists":false}],"then":[]}"#),
];

/// A board on which everything can go wrong that depends on what is there.
pub struct Stage {
    pub scratch: Scratch,
    damaged: OnceLock<PathBuf>,
    /// A port that no other program can use.
    taken: TcpListener,
    /// The file of a dashboard that is just starting.
    _dashboard: File,
}

impl Stage {
    pub fn new() -> Stage {
        let scratch = Scratch::new();
        if has_git() {
            // Something staged that will be reserved, and a place for the hook that is taken.
            let script =
                "git init -q && mkdir -p src .git/hooks/pre-commit && touch src/lib.rs && git add src";
            assert!(scratch.shell(script).run_to_end().status.success());
        }
        with_dying_process(|pid| {
            let register = ["agent", "register", "--name", "Pale", "--session-hint", "pale", "--pid", pid];
            scratch.run(register).success();
        });
        for call in [
            &["agent", "register", "--name", "Ivy", "--session-hint", "ivy"][..],
            &["agent", "register", "--name", "Oak", "--session-hint", "oak"],
            &["agent", "register", "--name", "Gone", "--session-hint", "gone"],
            &["agent", "register", "--name", "Twin", "--session-hint", TWINS[0]],
            &["agent", "register", "--name", "Twin", "--session-hint", TWINS[1]],
            &["agent", "deregister", "gone"],
            &["project", "register", "pai", "--name", "PAI"],
            &["project", "register", "empty", "--name", "Empty"],
            &["protocol", "define", "review", "review:{id}"],
            &["memory", "remember", "Remembered text", "--key", "note"],
            &["work", "create", "open", "--title", "Open", "--project", "pai"],
            &["work", "create", "waiting", "--title", "Waiting", "--blocked-by", "open"],
            &["work", "claim", "held", "--title", "Held", "--session", "ivy"],
            &["work", "claim", "stuck", "--title", "Stuck", "--session", "ivy"],
            &["work", "block", "stuck", "--blocked-by", "open"],
            &["work", "claim", "done", "--title", "Done", "--session", "ivy"],
            &["work", "complete", "done", "--session", "ivy"],
            &["work", "claim", "ending", "--title", "Ending", "--session", "ivy"],
            &["scope", "create", "over", "--work-item", "ending"],
            &["work", "complete", "ending", "--session", "ivy"],
            &["write", "fact", "1"],
            &["write", "leased", "1", "--lease", "--session", "ivy"],
            &["write", "leased-list", "[]", "--lease", "--session", "ivy"],
            &["lock", "acquire", "deploy", "--session", "ivy"],
            &["file", "reserve", "src/", "--session", "ivy"],
            &["scope", "create", "full", "--max-entries", "1", "--eviction", "refuse"],
            &["write", "only", "1", "--scope", "full"],
            &["page", "map", "full"],
            &["scope", "create", "private", "--visibility", "shared", "--member", "Ivy"],
            &["write", "hidden", "1", "--scope", "private"],
            &["scope", "create", "pair"],
            &["write", "one", "1", "--scope", "pair"],
            &["write", "two", "1", "--scope", "pair"],
            &["write", "request:run:ns:answered", "1"],
            &["write", "result:run:ns:answered", "1"],
            &["write", "request:run:ns:failed", "1"],
            &["write", "result:run:ns:failed", "\"no contract\"", "--metadata", r#"{"failed":true}"#],
            &["quota", "init"],
            &["quota", "check", "--tokens", "1k", "--reserve"],
            &["observe", "--session", "pale"],
            &["sweep", "--threshold", "0"],
        ] {
            scratch.run(call).success();
        }
        // As if the reader had come from another board.
        let cursors = Range::cursors_of(&session_id_from_hint("pale"));
        scratch.change_rows(&cursors, |cursor: &mut Cursor, _| cursor.revision = Revision::new(1000));
        // The beginning of the log is pruned.
        scratch.prune(1, &[]);
        write_transactions(&scratch);
        fs::create_dir(scratch.path().join("hub")).unwrap();
        let registry = "## Active Projects\n| Project |\n|---|\n| signal |\n";
        fs::write(scratch.path().join("hub/REGISTRY.md"), registry).unwrap();
        let taken = TcpListener::bind("127.0.0.1:0").unwrap();
        let name = if scratch.is_served() { "serve" } else { "local.db-serve" };
        let dashboard = File::create(scratch.sidecar(name)).unwrap();
        dashboard.lock().unwrap();
        Stage { scratch, damaged: OnceLock::new(), taken, _dashboard: dashboard }
    }

    pub fn taken_port(&self) -> String {
        self.taken.local_addr().unwrap().port().to_string()
    }

    /// Starts the program, without the privileges with which no file is locked away.
    pub fn start(&self, call: &[String], json: bool) -> Child {
        let options = json.then(|| "--json".to_owned());
        let mut command = self.scratch.command(with_options(call.to_vec(), options));
        if call.iter().any(|word| word.ends_with("locked-away/local.db")) && is_root() {
            command.uid(OTHER_USER).env("HOME", self.scratch.path().join("locked-away"));
        }
        if call.iter().any(|word| word == "check") && call[0] != "quota" {
            // An agent with several sessions, which names none of them.
            command.env("CLAUDE_PID", std::process::id().to_string());
        }
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        command.spawn().unwrap()
    }

    /// A sweep without anything to do does not ask for the lock.
    pub fn register_agent_with_gone_process(&self) {
        with_dying_process(|pid| {
            self.scratch.run(["agent", "register", "--name", "Ash", "--pid", pid]).success();
        });
    }

    /// A board in a file, complete in that file.
    pub fn copy(&self, name: &str) -> PathBuf {
        let copy = self.scratch.path().join(name);
        if !copy.exists() {
            let original = self.scratch.path().join("original.db");
            if !original.exists() {
                self.scratch.run(["init", "--db", original.to_str().unwrap()]).success();
            }
            let database = Connection::open(&original).unwrap();
            database.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(())).unwrap();
            fs::copy(original, &copy).unwrap();
            fs::set_permissions(&copy, Permissions::from_mode(0o600)).unwrap();
        }
        copy
    }

    /// Everything after the first page is overwritten.
    pub fn damaged(&self) -> PathBuf {
        let make = || {
            let file = self.copy("damaged.db");
            let mut bytes = fs::read(&file).unwrap();
            bytes[4096..].fill(0xa5);
            fs::write(&file, bytes).unwrap();
            file
        };
        self.damaged.get_or_init(make).clone()
    }

    pub fn text_file(&self) -> PathBuf {
        let file = self.scratch.path().join("notes.txt");
        fs::write(&file, "These are my notes, and no board.\n".repeat(100)).unwrap();
        fs::set_permissions(&file, Permissions::from_mode(0o600)).unwrap();
        file
    }

    pub fn newer(&self) -> PathBuf {
        let file = self.copy("newer.db");
        Connection::open(&file).unwrap().execute_batch("PRAGMA user_version = 99").unwrap();
        file
    }

    /// A board of ivy-blackboard.
    pub fn reference(&self) -> PathBuf {
        let file = self.scratch.path().join("reference.db");
        if !file.exists() {
            Connection::open(&file).unwrap().execute_batch(&testkit::reference::database(9)).unwrap();
            fs::set_permissions(&file, Permissions::from_mode(0o600)).unwrap();
        }
        file
    }

    pub fn readable_by_all(&self) -> PathBuf {
        let file = self.copy("open.db");
        fs::set_permissions(&file, Permissions::from_mode(0o644)).unwrap();
        file
    }

    /// A database of this user that the user can neither read nor write.
    pub fn locked_away(&self) -> PathBuf {
        let directory = self.scratch.path().join("locked-away");
        fs::create_dir_all(&directory).unwrap();
        let file = self.copy("locked-away/local.db");
        fs::set_permissions(&file, Permissions::from_mode(0o000)).unwrap();
        if is_root() {
            fs::set_permissions(self.scratch.path(), Permissions::from_mode(0o755)).unwrap();
            for path in [&directory, &file] {
                std::os::unix::fs::chown(path, Some(OTHER_USER), None).unwrap();
            }
        }
        file
    }
}

/// Whether there is git here; where there is none, what needs it is left out.
pub fn has_git() -> bool {
    static HAS_GIT: OnceLock<bool> = OnceLock::new();
    *HAS_GIT.get_or_init(|| can("a commit", "git", &["--version"]))
}

/// The status of a spoke.
const STATUS: &str =
    "schemaVersion: '1.0'\ngeneratedAt: '2026-02-03T16:00:00Z'\nproject: {name: pai, phase: building}\n";

/// Writes the files that calls of `txn` name, a spoke, and an empty hub.
pub fn write_transactions(scratch: &Scratch) {
    for (name, transaction) in TRANSACTIONS {
        fs::write(scratch.path().join(name), transaction).unwrap();
    }
    fs::create_dir_all(scratch.path().join("projects")).unwrap();
    fs::create_dir_all(scratch.path().join("spoke/.collab")).unwrap();
    fs::write(scratch.path().join("spoke/.collab/status.yaml"), STATUS).unwrap();
}

/// A user without privileges.
const OTHER_USER: u32 = 65534;

fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

#[test]
fn twin_hints_share_their_prefix() {
    for hint in TWINS {
        assert!(blackboard::id::session_id_from_hint(hint).starts_with(TWINS_PREFIX));
    }
}
