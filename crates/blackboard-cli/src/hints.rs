//! The hints of the library as commands: one next step that can be pasted.

use std::borrow::Cow;
use std::ffi::OsStr;

use blackboard::Hint;
use blackboard::agent::short_id;
use blackboard::entry::DEFAULT_SCOPE;
use blackboard::text::shell_word;

/// The hint as people read it on the command line.
#[expect(clippy::too_many_lines, reason = "a table: one entry for each hint")]
pub fn as_command(hint: &Hint) -> Cow<'_, str> {
    let word = |text: &str| shell_word(text).into_owned();
    match hint {
        Hint::Advice(advice) => Cow::Borrowed(advice),
        Hint::PassSession => {
            r#"pass --session ID, or register: eval "$(blackboard agent register --name NAME --shell)""#
                .into()
        }
        Hint::NameSession => {
            "use an agent name or at least 6 characters of an id: blackboard agent list --all".into()
        }
        Hint::Reactivate => "reactivate it: blackboard agent heartbeat".into(),
        Hint::RegisterAgain => "register a new one: blackboard agent register --name NAME".into(),
        Hint::ListActiveAgents => "name an active session: blackboard agent list".into(),
        Hint::EndGoneHolder { session, pid } => format!(
            "the holder's process (PID {pid}) is gone; release its holdings now: \
             blackboard agent deregister --session {}",
            word(short_id(session))
        )
        .into(),
        Hint::ClaimNext => "claim another item: blackboard work claim --next".into(),
        Hint::ClaimItem(item) => format!("claim it first: blackboard work claim {}", word(item)).into(),
        Hint::CreateBlocked { item, blocked_by } => format!(
            "create it without claiming it: blackboard work create {} --title TEXT --blocked-by {}",
            word(item),
            word(&blocked_by.join(","))
        )
        .into(),
        Hint::ListOpenItems => "list open items: blackboard work list".into(),
        Hint::ListAllItems => "list all items: blackboard work list --all".into(),
        Hint::ShowItem(item) => format!("show it: blackboard work status {}", word(item)).into(),
        Hint::CheckLostItem(item) => {
            format!("your claim was lost; check the item: blackboard work status {}", word(item)).into()
        }
        Hint::ResetItem(item) => format!("to do it again: blackboard work reset {}", word(item)).into(),
        Hint::CompleteOrUnblock { item, blocker } => format!(
            "complete {blocker} first, or remove it: blackboard work unblock {} --blocked-by {}",
            word(item),
            word(blocker)
        )
        .into(),
        Hint::RemoveBlocker { item, blocker } => format!(
            "remove that blocker first: blackboard work unblock {} --blocked-by {}",
            word(item),
            word(blocker)
        )
        .into(),
        Hint::DeleteItemAnyway(item) => {
            format!("delete it anyway: blackboard work delete {} --force", word(item)).into()
        }
        Hint::ReassignAnyway(item) => format!(
            "ask its holder, or take it anyway: blackboard work reassign {} --to SESSION --force",
            word(item)
        )
        .into(),
        Hint::ListProjects => "list projects: blackboard project list".into(),
        Hint::RegisterProject(project) => {
            format!("register it: blackboard project register {} --name NAME", word(project)).into()
        }
        Hint::RemoveProjectAnyway(project) => {
            format!("remove it anyway: blackboard project remove {} --force", word(project)).into()
        }
        Hint::ListKeys(scope) => format!("list keys: blackboard list{}", in_scope(scope)).into(),
        Hint::ReadKey { scope, key } => {
            format!("read it: blackboard read {}{}", word(key), in_scope(scope)).into()
        }
        Hint::ReadAndRetry { scope, key } => {
            format!("read it and retry: blackboard read {}{}", word(key), in_scope(scope)).into()
        }
        Hint::ReadAndRetryOrElse { key, .. } => {
            format!("read {key} and retry, or add an \"else\" list").into()
        }
        Hint::WaitLongerForKey => "increase --timeout, or list active agents: blackboard agent list".into(),
        Hint::WaitLongerForItem(item) => {
            format!("increase --timeout, or show the item: blackboard work status {}", word(item)).into()
        }
        Hint::FenceTokenForm => {
            "use lock:NAME=N or work:ID=N with the number printed by `lock acquire` or `work claim`".into()
        }
        Hint::WaitForLock => "wait for it with --wait 1m, or list locks: blackboard lock list".into(),
        Hint::WaitLongerForLock => "wait longer with --wait, or ask the holder to release it".into(),
        Hint::ReleaseLock(lock) => {
            format!("if it is no longer in use: blackboard lock release {}", word(lock)).into()
        }
        Hint::CheckLostLock => {
            "your lock was lost; check what its new holder did before you continue: blackboard lock list"
                .into()
        }
        Hint::ListLocks => "list locks: blackboard lock list".into(),
        Hint::ListReservations => "list reservations: blackboard file list".into(),
        Hint::UseLocks => "use `blackboard lock`, or another scope".into(),
        Hint::UseFiles => "use `blackboard file`, or another scope".into(),
        Hint::WorkOnOtherFiles => "work on other files, or list reservations: blackboard file list".into(),
        Hint::ShareFiles => {
            "it is shared: reserve it with --shared too, or list reservations: blackboard file list".into()
        }
        Hint::StartOver => "start over: blackboard observe --since 1h".into(),
        Hint::NewIdempotencyKey => {
            "use a new value of --op for each call, and repeat it only to retry".into()
        }
        Hint::AllowSecret => "remove it, or pass --allow-secret-looking if it is not a secret".into(),
        Hint::UseAnotherBoard => "use a file in a directory of your own with --db or BLACKBOARD_DB".into(),
        Hint::UseLocalDisk => {
            "use a file on a local disk with --db or BLACKBOARD_DB; if only one machine uses \
                               the board, set database.allowNetworkFilesystem in the home configuration"
                .into()
        }
        Hint::UpgradeBoard => "upgrade it by running once: blackboard status".into(),
    }
}

/// The options of the call that a command in a hint repeats, so that it is about the same board and session.
#[derive(Clone, Copy, Debug, Default)]
pub struct GivenOptions<'a> {
    /// `--db`.
    pub db: Option<&'a OsStr>,
    /// `--session`.
    pub session: Option<&'a str>,
}

/// The commands in hints that act for the session that the call named.
const ACTING: &[&str] = &[
    "agent heartbeat",
    "lock release",
    "observe",
    "project register",
    "project remove",
    "work claim",
    "work create",
    "work delete",
    "work reassign",
    "work reset",
    "work unblock",
];

impl GivenOptions<'_> {
    /// The hint with the options of the call in its command.
    pub fn add_to<'a>(&self, hint: Cow<'a, str>) -> Cow<'a, str> {
        const PROGRAM: &str = "blackboard ";
        if self.db.is_none() && self.session.is_none() {
            return hint;
        }
        let Some((before, command)) = hint.split_once(PROGRAM) else { return hint };
        let db = self.db.and_then(OsStr::to_str).filter(|_| !command.contains("--db "));
        let db = db.map(|db| format!("--db {} ", shell_word(db))).unwrap_or_default();
        // The command is the end of the hint, so that the option can follow it.
        let acts = ACTING.iter().any(|acting| command.starts_with(acting)) && !command.contains("--session");
        let session = self.session.filter(|_| acts);
        let session =
            session.map(|session| format!(" --session {}", shell_word(session))).unwrap_or_default();
        format!("{before}{PROGRAM}{db}{command}{session}").into()
    }
}

/// The option that names a scope, if it is not the default one.
fn in_scope(scope: &str) -> String {
    if scope == DEFAULT_SCOPE { String::new() } else { format!(" --scope {}", shell_word(scope)) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commands::{COMMANDS, Leaf};

    /// Commands in hints that take a session and only read, or name the session that they are about.
    const NOT_ACTING: &[&str] = &["agent deregister", "work list"];

    #[test]
    fn commands_in_hints_that_act_are_known() {
        testkit::limit_test();
        let source = include_str!("hints.rs");
        let (table, _) = source.split_once("#[cfg(test)]").unwrap();
        for command in COMMANDS {
            let definition = Leaf { command, alias: None }.standing_alone();
            let takes_session = definition.get_arguments().any(|argument| argument.get_id() == "session");
            let is_in_a_hint = table.contains(&format!("blackboard {}", command.path));
            let is_known = ACTING.contains(&command.path);
            let acts = takes_session && is_in_a_hint && !NOT_ACTING.contains(&command.path);
            assert_eq!(is_known, acts, "{}", command.path);
        }
    }

    #[test]
    fn commands_in_hints_repeat_the_options_of_the_call() {
        testkit::limit_test();
        let given = GivenOptions { db: Some("my board.db".as_ref()), session: Some("Ivy") };
        let in_call = |hint: &Hint| given.add_to(as_command(hint)).into_owned();
        for (hint, expected) in [
            (
                Hint::ClaimNext,
                "claim another item: blackboard --db 'my board.db' work claim --next --session Ivy",
            ),
            (Hint::Reactivate, "reactivate it: blackboard --db 'my board.db' agent heartbeat --session Ivy"),
            (Hint::ListLocks, "list locks: blackboard --db 'my board.db' lock list"),
            (Hint::from("start one: blackboard serve --db x"), "start one: blackboard serve --db x"),
            (Hint::WaitLongerForLock, "wait longer with --wait, or ask the holder to release it"),
            (
                Hint::EndGoneHolder { session: "84a674b5-9206".to_owned(), pid: 7 },
                "the holder's process (PID 7) is gone; release its holdings now: \
                 blackboard --db 'my board.db' agent deregister --session 84a674b5",
            ),
        ] {
            assert_eq!(in_call(&hint), expected);
        }
        let nothing = GivenOptions::default();
        assert_eq!(nothing.add_to(as_command(&Hint::ClaimNext)), as_command(&Hint::ClaimNext));
    }
}
