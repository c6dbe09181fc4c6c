//! The codes of each command, and a call that provokes each of them.

use std::collections::BTreeSet;
use std::path::PathBuf;

use blackboard::Code;

use super::stage::{Stage, TWINS_PREFIX, has_git};
use crate::scratch::{Scratch, commands, with_options};

/// The codes of a command, from the options in its help and from what it does.
pub fn can_end_with(command: &str) -> BTreeSet<Code> {
    let mut codes = BTreeSet::from([Code::Usage]);
    if command.starts_with("guard ") {
        // No board stops a commit, and what else git and its hooks can be like is seen in the tests of these commands.
        codes.extend(own_codes(command).filter(|_| has_git()));
        return codes;
    }
    if BOARDLESS.contains(&command) {
        codes.extend(own_codes(command));
        return codes;
    }
    // Whatever opens a board.
    codes.extend([
        Code::Io,
        Code::Corrupt,
        Code::ForeignDatabase,
        Code::NewerSchema,
        Code::UpgradeNeeded,
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
    if acts_for_a_session(command) {
        codes.insert(Code::SessionEnded);
    }
    if command == "serve" {
        codes.insert(Code::PortTaken);
    }
    codes.extend(own_codes(command));
    codes
}

/// The codes that a line of [`PROVOCATIONS`] shows.
fn own_codes(command: &str) -> impl Iterator<Item = Code> {
    PROVOCATIONS.iter().filter(move |(path, ..)| *path == command).map(|(_, code, _)| *code)
}

/// Commands that open no board, or only those that they name, or, like a hook and the MCP server, never end because of one: a hook prints nothing then, the
/// server answers with what is wrong. `upgrade` opens a board that no other command opens.
const BOARDLESS: &[&str] = &[
    "completions",
    "copy",
    "demo",
    "hook",
    "mcp",
    "quota fold",
    "quota history",
    "quota init",
    "quota set",
    "quota status",
    "version",
    "setup",
    "setup status",
    "setup remove",
    "spoke init",
    "spoke show",
    "spoke validate",
    "upgrade",
];

/// Commands that never wait for the lock.
pub const READING: &[&str] = &[
    "agent list",
    "agent show",
    "work list",
    "work status",
    "work wait",
    "work export",
    "observe",
    "status",
    "read",
    "list",
    "snapshot",
    "query",
    "search",
    "history",
    "wait",
    "project list",
    "project status",
    "protocol list",
    "protocol show",
    "protocol key",
    "protocol pattern",
    "protocol parse",
    "protocol check",
    "scope show",
    "scope list",
    "page list",
    "page show",
    "memory list",
    "memory map",
    "memory pending",
    "memory recall",
    "export",
    "render",
    "pull",
    "quota check",
    "quota record",
    "quota release",
    "registry",
    "lock list",
    "file list",
    "file check",
    "serve",
];

/// Commands that keep running when they succeed, so they have no call below.
const ENDLESS: &[&str] = &["serve"];

/// A call of each command that succeeds on the stage, so that only an added part causes a refusal.
pub const CALLS: &[(&str, &[&str])] = &[
    ("agent register", &["--name", "Elm"]),
    ("agent heartbeat", &["--session", "ivy"]),
    ("agent list", &[]),
    ("agent show", &["ivy"]),
    ("agent deregister", &["oak"]),
    ("work create", &["new", "--title", "New"]),
    ("work claim", &["open", "--session", "ivy"]),
    ("work release", &["held", "--session", "ivy"]),
    ("work reassign", &["held", "--session", "ivy", "--to", "oak"]),
    ("work edit", &["held", "--title", "New"]),
    ("work import", &["--from", "jsonl", "items.jsonl"]),
    ("work export", &["--to", "jsonl"]),
    ("work complete", &["held", "--session", "ivy"]),
    ("work block", &["open", "--blocked-by", "held"]),
    ("work unblock", &["waiting"]),
    ("work list", &[]),
    ("work status", &["open"]),
    ("work wait", &["done", "--timeout", "1s"]),
    ("observe", &["--session", "ivy"]),
    ("run", &["--work-item", "new", "--title", "New", "--", "true"]),
    ("status", &[]),
    ("write", &["key", "1"]),
    ("read", &["fact"]),
    ("delete", &["fact"]),
    ("list", &[]),
    ("snapshot", &[]),
    ("query", &[]),
    ("search", &["fact"]),
    ("history", &["fact"]),
    ("wait", &["fact", "--timeout", "1s"]),
    ("append", &["items", "1"]),
    ("increment", &["number"]),
    ("txn", &["--file", "valid.json"]),
    ("clear", &["cache:*"]),
    ("purge", &["fact"]),
    ("lock acquire", &["new", "--session", "ivy"]),
    ("lock release", &["deploy", "--session", "ivy"]),
    ("lock list", &[]),
    ("lock run", &["new", "--session", "ivy", "--", "true"]),
    ("file reserve", &["README.md", "--session", "ivy"]),
    ("file release", &["src/", "--session", "ivy"]),
    ("file list", &[]),
    ("file check", &["README.md", "--session", "oak"]),
    ("init", &[]),
    ("project register", &["other", "--name", "Other"]),
    ("project list", &[]),
    ("project status", &["pai"]),
    ("project remove", &["empty"]),
    ("call", &["ns", "1", "--id", "answered", "--timeout", "1s"]),
    ("protocol list", &[]),
    ("protocol show", &["review"]),
    ("protocol key", &["review", "id=1"]),
    ("protocol pattern", &["review"]),
    ("protocol parse", &["review", "review:1"]),
    ("protocol check", &["review:1"]),
    ("protocol define", &["other", "other:{id}"]),
    ("protocol remove", &["review"]),
    ("scope create", &["new", "--ttl", "1h"]),
    ("scope set", &["full", "--ttl", "1h"]),
    ("scope show", &["full"]),
    ("scope list", &[]),
    ("scope delete", &["full"]),
    ("page map", &["pair", "--by", "prefix", "--max-tokens", "1000"]),
    ("page unmap", &["full"]),
    ("page list", &["full"]),
    ("page show", &["bb:full:other"]),
    ("memory define", &[]),
    ("memory list", &[]),
    ("memory map", &[]),
    ("memory remember", &["New text"]),
    ("memory recall", &["text"]),
    ("memory feedback", &["note", "useful"]),
    ("memory promote", &["note", "--to", "collective"]),
    ("memory drain", &["short-term", "--to", "collective"]),
    ("memory pending", &[]),
    ("memory compact", &["--level", "short-term", "--summary", "Short", "--of", "note"]),
    ("memory delete", &["note"]),
    ("work reset", &["held"]),
    ("work delete", &["open"]),
    ("work update-metadata", &["open", "--set", "a=1"]),
    ("work append-event", &["open", "--event-type", "built", "--summary", "Build 7"]),
    ("sweep", &["--threshold", "0"]),
    ("export", &[]),
    ("import", &["entries.json"]),
    ("render", &["board.md"]),
    ("pull", &["--hub", "."]),
    ("quota check", &["--tokens", "1"]),
    ("quota record", &["--input-tokens", "1"]),
    ("quota release", &["--session", "ivy"]),
    ("registry", &["--hub", "."]),
];

/// Stands for a credential in the calls below; a real one would be taken for a leak.
const SECRET: &str = "a credential";
const SECRET_MEMBER: &str = "note=a credential";

/// Calls that end with codes which depend on what they ask for.
const PROVOCATIONS: &[(&str, Code, &[&str])] = &[
    ("setup", Code::InvalidValue, &["codex", "--settings", "local"]),
    ("setup remove", Code::InvalidValue, &["codex", "--settings", "local"]),
    ("agent register", Code::SecretLooking, &["--name", SECRET]),
    ("agent register", Code::SessionStale, &["--parent", "pale"]),
    ("agent register", Code::SessionEnded, &["--parent", "gone"]),
    ("agent register", Code::AgentNotFound, &["--parent", "unknown"]),
    ("agent register", Code::AmbiguousSession, &["--parent", TWINS_PREFIX]),
    ("agent heartbeat", Code::SessionEnded, &["--session", "gone"]),
    ("agent heartbeat", Code::WorkNotFound, &["--session", "ivy", "--work-item", "none"]),
    ("agent heartbeat", Code::SecretLooking, &["--session", "ivy", "--progress", SECRET]),
    ("agent heartbeat", Code::NoSession, &[]),
    ("agent show", Code::NoSession, &[]),
    ("agent deregister", Code::NoSession, &[]),
    ("work list", Code::NoSession, &["--mine"]),
    ("work list", Code::ProjectNotFound, &["--project", "none"]),
    ("work create", Code::ProjectNotFound, &["new", "--title", "New", "--project", "none"]),
    ("work create", Code::AlreadyExists, &["open", "--title", "Another"]),
    ("work create", Code::DependencyCycle, &["new", "--title", "New", "--blocked-by", "new"]),
    ("work create", Code::SecretLooking, &["new", "--title", SECRET]),
    ("work claim", Code::NoSession, &["open"]),
    ("work claim", Code::WorkNotFound, &["none", "--session", "ivy"]),
    ("work claim", Code::ProjectNotFound, &["--next", "--project", "none", "--session", "ivy"]),
    ("work claim", Code::NothingAvailable, &["--next", "--project", "empty", "--session", "ivy"]),
    ("work claim", Code::AlreadyClaimed, &["held", "--session", "oak"]),
    ("work claim", Code::AlreadyCompleted, &["done", "--session", "ivy"]),
    ("work claim", Code::WorkBlocked, &["waiting", "--session", "ivy"]),
    (
        "work claim",
        Code::DependencyCycle,
        &["new", "--title", "New", "--blocked-by", "new", "--session", "ivy"],
    ),
    ("work claim", Code::SessionStale, &["open", "--session", "pale"]),
    ("work claim", Code::SessionEnded, &["open", "--session", "gone"]),
    ("work claim", Code::SecretLooking, &["new", "--title", SECRET, "--session", "ivy"]),
    ("work release", Code::NoSession, &["held"]),
    ("work complete", Code::NoSession, &["held"]),
    ("work release", Code::WorkNotFound, &["none", "--session", "ivy"]),
    ("work complete", Code::WorkNotFound, &["none", "--session", "ivy"]),
    ("work release", Code::AlreadyCompleted, &["done", "--session", "oak"]),
    ("work complete", Code::AlreadyCompleted, &["done", "--session", "oak"]),
    ("work release", Code::SessionStale, &["held", "--session", "pale"]),
    ("work complete", Code::SessionStale, &["held", "--session", "pale"]),
    ("work release", Code::NotHolder, &["held", "--session", "oak"]),
    ("work complete", Code::NotHolder, &["held", "--session", "oak"]),
    ("work release", Code::StaleFence, &["held", "--fence", "1", "--session", "ivy"]),
    ("work complete", Code::StaleFence, &["held", "--fence", "1", "--session", "ivy"]),
    ("work complete", Code::WorkBlocked, &["stuck", "--session", "ivy"]),
    ("work complete", Code::SecretLooking, &["held", "--session", "ivy", "--summary", SECRET]),
    ("work reassign", Code::NoSession, &["held", "--to", "oak"]),
    ("work reassign", Code::WorkNotFound, &["none", "--session", "ivy", "--to", "oak"]),
    ("work reassign", Code::AlreadyClaimed, &["held", "--session", "oak", "--to", "oak"]),
    ("work reassign", Code::AlreadyCompleted, &["done", "--session", "ivy", "--to", "oak"]),
    ("work reassign", Code::WorkBlocked, &["stuck", "--session", "ivy", "--to", "oak"]),
    ("work reassign", Code::NotHolder, &["open", "--session", "ivy", "--to", "oak", "--fence", "1"]),
    ("work reassign", Code::StaleFence, &["held", "--session", "ivy", "--to", "oak", "--fence", "1"]),
    ("work reassign", Code::SessionStale, &["held", "--session", "ivy", "--to", "pale"]),
    ("work reassign", Code::SessionEnded, &["held", "--session", "ivy", "--to", "gone"]),
    ("work reassign", Code::SecretLooking, &["held", "--session", "ivy", "--to", "oak", "--reason", SECRET]),
    ("work edit", Code::WorkNotFound, &["none", "--title", "New"]),
    ("work edit", Code::ProjectNotFound, &["open", "--project", "none"]),
    ("work edit", Code::SecretLooking, &["open", "--title", SECRET]),
    ("work import", Code::ProjectNotFound, &["--from", "jsonl", "items.jsonl", "--project", "none"]),
    ("work export", Code::ProjectNotFound, &["--to", "jsonl", "--project", "none"]),
    ("work block", Code::WorkNotFound, &["none", "--blocked-by", "open"]),
    ("work block", Code::AlreadyCompleted, &["done", "--blocked-by", "open"]),
    ("work block", Code::DependencyCycle, &["open", "--blocked-by", "waiting"]),
    ("work block", Code::SecretLooking, &["open", "--blocked-by", "held", "--reason", SECRET]),
    ("work unblock", Code::WorkNotFound, &["none"]),
    ("work reset", Code::WorkNotFound, &["none"]),
    ("work status", Code::WorkNotFound, &["none"]),
    ("work wait", Code::WorkNotFound, &["none"]),
    ("work wait", Code::TimedOut, &["open", "--timeout", "10ms"]),
    ("work delete", Code::WorkNotFound, &["none"]),
    ("work delete", Code::InUse, &["held"]),
    ("project register", Code::SecretLooking, &["new", "--name", SECRET]),
    ("project status", Code::ProjectNotFound, &["none"]),
    ("project remove", Code::ProjectNotFound, &["none"]),
    ("spoke show", Code::EntryNotFound, &["none"]),
    ("spoke validate", Code::EntryNotFound, &["hub"]),
    ("spoke validate", Code::InvalidValue, &["none"]),
    ("spoke validate", Code::InvalidValue, &["valid.json"]),
    ("pull", Code::InvalidValue, &["--hub", "spoke"]),
    ("project remove", Code::InUse, &["pai"]),
    ("memory define", Code::DependencyCycle, &["procedural", "--next", "short-term"]),
    ("memory define", Code::SecretLooking, &["own", "--without-tag", SECRET]),
    ("memory remember", Code::ScopeNotFound, &["Text", "--level", "none"]),
    ("memory remember", Code::SecretLooking, &[SECRET]),
    ("memory remember", Code::StaleFence, &["Text", "--fence", "work:held=1"]),
    ("memory recall", Code::ScopeNotFound, &["--level", "none"]),
    ("memory pending", Code::ScopeNotFound, &["none"]),
    ("memory drain", Code::ScopeNotFound, &["none"]),
    ("memory feedback", Code::EntryNotFound, &["none", "useful"]),
    ("memory feedback", Code::ScopeNotFound, &["none", "useful", "--level", "none"]),
    ("memory promote", Code::EntryNotFound, &["none", "--to", "semantic"]),
    ("memory promote", Code::ScopeNotFound, &["note", "--to", "none"]),
    ("memory delete", Code::EntryNotFound, &["none"]),
    ("memory delete", Code::ScopeNotFound, &["none", "--level", "none"]),
    ("memory compact", Code::EntryNotFound, &["--level", "short-term", "--summary", "Short", "--of", "none"]),
    ("memory compact", Code::ScopeNotFound, &["--level", "none", "--summary", "Short", "--of", "note"]),
    (
        "memory compact",
        Code::Conflict,
        &["--level", "short-term", "--summary", "Short", "--at", "1", "--of", "note"],
    ),
    ("memory compact", Code::SecretLooking, &["--level", "short-term", "--of", "note", "--summary", SECRET]),
    ("scope create", Code::AlreadyExists, &["full"]),
    ("scope create", Code::ScopeFull, &["default", "--max-entries", "1"]),
    ("scope create", Code::ProtocolNotFound, &["new", "--validate-protocol", "a=none"]),
    ("scope create", Code::SecretLooking, &[SECRET]),
    ("scope set", Code::ScopeNotFound, &["none", "--ttl", "1h"]),
    ("scope set", Code::ProtocolNotFound, &["full", "--validate-protocol", "a=none"]),
    ("scope set", Code::ScopeFull, &["pair", "--max-entries", "1"]),
    ("scope set", Code::SecretLooking, &["full", "--validate", "a credential=int"]),
    ("scope show", Code::ScopeNotFound, &["none"]),
    ("scope delete", Code::ScopeNotFound, &["none"]),
    ("scope delete", Code::Held, &["default", "--entries"]),
    ("page list", Code::NotMapped, &["pair"]),
    ("page show", Code::PageNotFound, &["none"]),
    ("page map", Code::NotAllowed, &["private", "--session", "oak"]),
    ("page unmap", Code::NotAllowed, &["private", "--session", "oak"]),
    ("page list", Code::NotAllowed, &["private", "--as", "oak"]),
    ("page list", Code::SessionEnded, &["--as", "gone"]),
    ("page list", Code::AmbiguousSession, &["--as", TWINS_PREFIX]),
    ("page show", Code::SessionEnded, &["bb:full:other", "--as", "gone"]),
    ("page show", Code::AmbiguousSession, &["bb:full:other", "--as", TWINS_PREFIX]),
    ("read", Code::NotAllowed, &["hidden", "--scope", "private", "--as", "oak"]),
    ("list", Code::NotAllowed, &["--scope", "private", "--as", "oak"]),
    ("query", Code::NotAllowed, &["*", "--scope", "private", "--as", "oak"]),
    ("history", Code::NotAllowed, &["hidden", "--scope", "private", "--as", "oak"]),
    ("wait", Code::NotAllowed, &["hidden", "--scope", "private", "--as", "oak"]),
    ("snapshot", Code::NotAllowed, &["--scope", "private", "--as", "oak"]),
    ("render", Code::NotAllowed, &["board.md", "--scope", "private", "--as", "oak"]),
    ("write", Code::NotAllowed, &["hidden", "1", "--scope", "private", "--session", "oak"]),
    ("append", Code::NotAllowed, &["hidden", "1", "--scope", "private", "--session", "oak"]),
    ("increment", Code::NotAllowed, &["hidden", "--scope", "private", "--session", "oak"]),
    ("delete", Code::NotAllowed, &["hidden", "--scope", "private", "--session", "oak"]),
    ("purge", Code::NotAllowed, &["hidden", "--scope", "private", "--session", "oak"]),
    ("scope create", Code::NotAllowed, &["private", "--session", "oak"]),
    ("scope set", Code::NotAllowed, &["private", "--ttl", "1h", "--session", "oak"]),
    ("scope delete", Code::NotAllowed, &["private", "--session", "oak"]),
    ("txn", Code::NotAllowed, &["--file", "hidden.json", "--session", "oak"]),
    ("read", Code::SessionEnded, &["fact", "--as", "gone"]),
    ("read", Code::AmbiguousSession, &["fact", "--as", TWINS_PREFIX]),
    ("list", Code::SessionEnded, &["--as", "gone"]),
    ("list", Code::AmbiguousSession, &["--as", TWINS_PREFIX]),
    ("query", Code::SessionEnded, &["--as", "gone"]),
    ("query", Code::AmbiguousSession, &["--as", TWINS_PREFIX]),
    ("search", Code::SessionEnded, &["fact", "--as", "gone"]),
    ("search", Code::AmbiguousSession, &["fact", "--as", TWINS_PREFIX]),
    ("history", Code::SessionEnded, &["fact", "--as", "gone"]),
    ("history", Code::AmbiguousSession, &["fact", "--as", TWINS_PREFIX]),
    ("wait", Code::SessionEnded, &["fact", "--as", "gone"]),
    ("wait", Code::AmbiguousSession, &["fact", "--as", TWINS_PREFIX]),
    ("snapshot", Code::SessionEnded, &["--as", "gone"]),
    ("snapshot", Code::AmbiguousSession, &["--as", TWINS_PREFIX]),
    ("render", Code::SessionEnded, &["board.md", "--as", "gone"]),
    ("render", Code::AmbiguousSession, &["board.md", "--as", TWINS_PREFIX]),
    ("export", Code::ScopeNotFound, &["--scope", "none"]),
    ("import", Code::ScopeNotFound, &["export.json", "--scope", "none"]),
    ("export", Code::NotAllowed, &["--scope", "private", "--as", "oak"]),
    ("export", Code::SessionEnded, &["--as", "gone"]),
    ("export", Code::AmbiguousSession, &["--as", TWINS_PREFIX]),
    ("observe", Code::SessionEnded, &["--peek", "--as", "gone"]),
    ("observe", Code::AmbiguousSession, &["--peek", "--as", TWINS_PREFIX]),
    ("scope create", Code::NoSession, &["new", "--visibility", "local"]),
    ("scope create", Code::WorkNotFound, &["new", "--work-item", "none"]),
    ("scope create", Code::AlreadyCompleted, &["new", "--work-item", "done"]),
    ("write", Code::ScopeFull, &["key", "1", "--scope", "full"]),
    ("append", Code::ScopeFull, &["key", "1", "--scope", "full"]),
    ("increment", Code::ScopeFull, &["key", "--scope", "full"]),
    ("txn", Code::ScopeFull, &["--file", "full.json"]),
    ("write", Code::ScopeEnded, &["key", "1", "--scope", "over"]),
    ("append", Code::ScopeEnded, &["key", "1", "--scope", "over"]),
    ("increment", Code::ScopeEnded, &["key", "--scope", "over"]),
    ("scope set", Code::ScopeEnded, &["over", "--ttl", "1h"]),
    ("observe", Code::CursorAhead, &["--session", "pale"]),
    ("observe", Code::NoSession, &["--others"]),
    ("run", Code::ProjectNotFound, &["--work-item", "x", "--title", "X", "--project", "none", "--", "true"]),
    ("run", Code::WorkNotFound, &["--work-item", "none", "--", "true"]),
    ("run", Code::AlreadyClaimed, &["--work-item", "held", "--", "true"]),
    ("run", Code::AlreadyCompleted, &["--work-item", "done", "--", "true"]),
    ("run", Code::WorkBlocked, &["--work-item", "waiting", "--", "true"]),
    ("run", Code::SecretLooking, &["--name", SECRET, "--", "true"]),
    ("write", Code::NoSession, &["key", "1", "--lease"]),
    ("write", Code::AlreadyExists, &["fact", "1", "--if-absent"]),
    ("write", Code::Conflict, &["fact", "1", "--if-revision", "1"]),
    ("write", Code::Held, &["leased", "1", "--session", "oak"]),
    ("write", Code::StaleFence, &["key", "1", "--fence", "work:held=1"]),
    ("write", Code::SessionStale, &["key", "1", "--lease", "--session", "pale"]),
    ("write", Code::SessionEnded, &["key", "1", "--lease", "--session", "gone"]),
    ("write", Code::SecretLooking, &["key", SECRET]),
    ("txn", Code::NoSession, &["--file", "lease.json"]),
    ("txn", Code::AlreadyExists, &["--file", "absent.json"]),
    ("txn", Code::Conflict, &["--file", "compare.json"]),
    ("txn", Code::Held, &["--file", "leased.json", "--session", "oak"]),
    ("txn", Code::StaleFence, &["--file", "valid.json", "--fence", "lock:deploy=1"]),
    ("txn", Code::SessionStale, &["--file", "lease.json", "--session", "pale"]),
    ("txn", Code::SessionEnded, &["--file", "lease.json", "--session", "gone"]),
    ("txn", Code::SecretLooking, &["--file", "valid.json", "--agent", SECRET]),
    ("read", Code::CursorAhead, &["fact", "--as-of", "1000"]),
    ("read", Code::Compacted, &["fact", "--as-of", "0"]),
    ("history", Code::EntryNotFound, &["none"]),
    ("wait", Code::TimedOut, &["none", "--timeout", "10ms"]),
    ("wait", Code::BoardNotFound, &["fact", "--db", "none.db"]),
    ("observe", Code::BoardNotFound, &["--follow", "--db", "none.db"]),
    ("quota check", Code::QuotaExceeded, &["--tokens", "1M"]),
    ("quota check", Code::TimedOut, &["--tokens", "300k", "--wait", "--timeout", "10ms"]),
    ("quota release", Code::NoSession, &[]),
    ("quota init", Code::AlreadyExists, &[]),
    ("quota set", Code::InvalidValue, &["enforce", "kill"]),
    ("quota history", Code::InvalidValue, &["--provider", "none"]),
    ("registry", Code::RegistryMismatch, &["--hub", "hub", "--check"]),
    ("render", Code::BoardNotFound, &["board.md", "--db", "none.db"]),
    ("delete", Code::EntryNotFound, &["none"]),
    ("delete", Code::Conflict, &["fact", "--if-revision", "1"]),
    ("delete", Code::Held, &["leased"]),
    ("delete", Code::StaleFence, &["fact", "--fence", "work:none=1"]),
    ("delete", Code::SecretLooking, &["fact", "--agent", SECRET]),
    ("append", Code::Held, &["leased-list", "1"]),
    ("append", Code::StaleFence, &["items", "1", "--fence", "work:held=1"]),
    ("append", Code::SecretLooking, &["items", SECRET]),
    ("increment", Code::Held, &["leased"]),
    ("increment", Code::StaleFence, &["number", "--fence", "work:held=1"]),
    ("increment", Code::SecretLooking, &[SECRET]),
    ("clear", Code::Held, &["lease*"]),
    ("clear", Code::StaleFence, &["cache:*", "--fence", "work:held=1"]),
    ("clear", Code::SecretLooking, &["cache:*", "--agent", SECRET]),
    ("purge", Code::EntryNotFound, &["none"]),
    ("purge", Code::Held, &["leased"]),
    ("purge", Code::StaleFence, &["fact", "--fence", "work:none=1"]),
    ("purge", Code::SecretLooking, &["fact", "--agent", SECRET]),
    ("lock acquire", Code::NoSession, &["new"]),
    ("lock acquire", Code::Held, &["deploy", "--session", "oak"]),
    ("lock acquire", Code::TimedOut, &["deploy", "--wait", "10ms", "--session", "oak"]),
    ("lock acquire", Code::SessionStale, &["new", "--session", "pale"]),
    ("lock acquire", Code::SessionEnded, &["new", "--session", "gone"]),
    ("lock acquire", Code::SecretLooking, &["new", "--note", SECRET, "--session", "ivy"]),
    ("lock release", Code::NoSession, &["deploy"]),
    ("lock release", Code::NotHolder, &["deploy", "--session", "oak"]),
    ("lock release", Code::StaleFence, &["deploy", "--fence", "1", "--session", "ivy"]),
    ("lock release", Code::SessionStale, &["deploy", "--session", "pale"]),
    ("lock run", Code::Held, &["deploy", "--session", "oak", "--", "true"]),
    ("lock run", Code::TimedOut, &["deploy", "--wait", "10ms", "--session", "oak", "--", "true"]),
    ("lock run", Code::SessionStale, &["new", "--session", "pale", "--", "true"]),
    ("lock run", Code::SessionEnded, &["new", "--session", "gone", "--", "true"]),
    ("lock run", Code::SecretLooking, &["new", "--name", SECRET, "--", "true"]),
    ("file reserve", Code::NoSession, &["README.md"]),
    ("file reserve", Code::Held, &["src/lib.rs", "--session", "oak"]),
    ("file reserve", Code::SessionStale, &["README.md", "--session", "pale"]),
    ("file reserve", Code::SessionEnded, &["README.md", "--session", "gone"]),
    ("file reserve", Code::SecretLooking, &["README.md", "--note", SECRET, "--session", "ivy"]),
    ("file release", Code::NoSession, &["src/"]),
    ("file release", Code::NotHolder, &["src/", "--session", "oak"]),
    ("file release", Code::SessionStale, &["src/", "--session", "pale"]),
    ("file check", Code::Held, &["src/lib.rs", "--session", "oak"]),
    ("guard install", Code::AlreadyExists, &[]),
    ("guard check", Code::AgentNotFound, &["--session", "unknown"]),
    ("guard check", Code::AmbiguousSession, &["--session", TWINS_PREFIX]),
    ("guard check", Code::Held, &["--session", "oak"]),
    ("call", Code::TimedOut, &["ns", "1", "--timeout", "10ms"]),
    ("call", Code::CallFailed, &["ns", "1", "--id", "failed"]),
    ("call", Code::AlreadyExists, &["ns", "2", "--id", "answered"]),
    ("call", Code::ScopeFull, &["ns", "1", "--scope", "full"]),
    ("call", Code::ScopeEnded, &["ns", "1", "--scope", "over"]),
    ("call", Code::SecretLooking, &["ns", SECRET]),
    ("call", Code::BoardNotFound, &["ns", "1", "--db", "none.db"]),
    ("protocol show", Code::ProtocolNotFound, &["none"]),
    ("protocol key", Code::ProtocolNotFound, &["none", "id=1"]),
    ("protocol pattern", Code::ProtocolNotFound, &["none"]),
    ("protocol parse", Code::ProtocolNotFound, &["none", "review:1"]),
    ("protocol parse", Code::ProtocolMismatch, &["review", "task:1"]),
    ("protocol check", Code::ProtocolMismatch, &["task:1", "1"]),
    ("protocol define", Code::AlreadyExists, &["review", "other:{id}"]),
    ("protocol define", Code::SecretLooking, &["other", "other:{id}", "--summary", SECRET]),
    ("protocol remove", Code::ProtocolNotFound, &["none"]),
    ("init", Code::Busy, &["--db", "new.db"]),
    ("work release", Code::SecretLooking, &["held", "--session", "ivy", "--reason", SECRET]),
    ("work complete", Code::ProjectNotFound, &["--all", "--project", "none", "--yes"]),
    ("work update-metadata", Code::WorkNotFound, &["none", "--set", "a=1"]),
    ("work update-metadata", Code::SecretLooking, &["open", "--set", SECRET_MEMBER]),
    ("work append-event", Code::WorkNotFound, &["none", "--event-type", "built", "--summary", "Build 7"]),
    ("work append-event", Code::SecretLooking, &["open", "--event-type", "built", "--summary", SECRET]),
    ("upgrade", Code::BoardNotFound, &["--db", "none.db"]),
    ("upgrade", Code::InvalidValue, &["--db", "ftp://board"]),
    ("copy", Code::BoardNotFound, &["none.db", "copy.db"]),
    ("copy", Code::InvalidValue, &["ftp://board", "copy.db"]),
    ("serve", Code::NotRunning, &["--stop"]),
    ("serve", Code::AlreadyRunning, &["--port", "0"]),
];

/// The arguments with which a command ends with a code.
pub fn provoke(stage: &Stage, command: &str, code: Code) -> Option<Vec<String>> {
    let with = |arguments: &[&str]| -> Vec<String> {
        let arguments = arguments.iter().map(|text| text.replace(SECRET, &secret()));
        command.split(' ').map(str::to_owned).chain(arguments).collect()
    };
    if code == Code::Usage {
        return Some(with(&["--no-such-option"]));
    }
    let known = PROVOCATIONS.iter().find(|(path, provoked, _)| (*path, *provoked) == (command, code));
    if let Some((_, _, arguments)) = known.filter(|_| !command.starts_with("guard ") || has_git()) {
        return Some(with(arguments));
    }
    let valid = match command {
        "serve" => with(&["--port", &stage.taken_port()]),
        _ => with(CALLS.iter().find(|(path, _)| *path == command)?.1),
    };
    let on = |database: PathBuf| {
        let database = ["--db".to_owned(), database.to_str().unwrap().to_owned()];
        Some(with_options(valid.clone(), database))
    };
    match code {
        // No file system takes names that long.
        Code::Io => on(stage.scratch.path().join("x".repeat(300))),
        Code::Corrupt => on(stage.damaged()),
        Code::ForeignDatabase => on(stage.text_file()),
        Code::NewerSchema => on(stage.newer()),
        Code::UpgradeNeeded => on(stage.reference()),
        Code::UnsafePermissions => on(stage.readable_by_all()),
        Code::ReadOnly => on(stage.locked_away()),
        Code::InvalidValue => on(PathBuf::from("ftp://board")),
        Code::PortTaken if command == "serve" => on(PathBuf::from("not-there.db")),
        Code::Busy if !READING.contains(&command) => Some(valid),
        Code::AgentNotFound if takes_a_session(command) => Some(on_behalf_of("unknown", valid)),
        Code::AmbiguousSession if takes_a_session(command) => Some(on_behalf_of(TWINS_PREFIX, valid)),
        Code::SessionEnded if acts_for_a_session(command) => Some(on_behalf_of("gone", valid)),
        _ => None,
    }
}

/// The same call for another session.
fn on_behalf_of(session: &str, mut call: Vec<String>) -> Vec<String> {
    match call.iter().position(|argument| argument == "ivy" || argument == "oak") {
        Some(named) => session.clone_into(&mut call[named]),
        None => call.extend(["--session".to_owned(), session.to_owned()]),
    }
    call
}

fn takes_a_session(command: &str) -> bool {
    let help = Scratch::new().run(command.split(' ').chain(["--help"])).success().stdout;
    help.contains("--session <ID>")
}

/// Whether a session that has ended is refused, as by every command that changes something for one. Ending it twice is no
/// error.
fn acts_for_a_session(command: &str) -> bool {
    takes_a_session(command) && !READING.contains(&command) && command != "agent deregister"
}

/// A credential of a well-known form, put together so that no scanner takes this file for a leak.
fn secret() -> String {
    format!("ghp_{}", "a1B2c3D4e5F6".repeat(3))
}

#[test]
fn every_command_that_opens_a_board_has_a_call() {
    let called: BTreeSet<&str> = CALLS.iter().map(|(command, _)| *command).collect();
    for command in commands() {
        let ends = !ENDLESS.contains(&command.as_str());
        let opens = ends && !BOARDLESS.contains(&command.as_str()) && !command.starts_with("guard ");
        assert_eq!(called.contains(command.as_str()), opens, "{command}");
    }
    for (command, ..) in PROVOCATIONS {
        assert!(commands().contains(&(*command).to_owned()), "{command} does not exist");
    }
}
