//! The hints of the library as commands: one next step that can be pasted.

use std::borrow::Cow;
use std::ffi::OsStr;
use std::fmt;

use blackboard::agent::short_id;
use blackboard::entry::DEFAULT_SCOPE;
use blackboard::text::shell_word;
use blackboard::{CheckedSubject, Hint};

use crate::location::without_password;

/// The options of the call that a command in a hint repeats, so that it is about the same board and session.
#[derive(Clone, Copy, Debug, Default)]
pub struct GivenOptions<'a> {
    /// `--db`.
    pub db: Option<&'a OsStr>,
    /// `--session`.
    pub session: Option<&'a str>,
}

impl GivenOptions<'_> {
    /// A command that can be pasted, for the board of the call.
    pub fn command(&self, words: impl fmt::Display) -> String {
        format!("{} {words}", self.program())
    }

    /// The beginning of such a command.
    pub fn program(&self) -> Cow<'static, str> {
        match self.db.and_then(OsStr::to_str) {
            Some(db) => format!("blackboard --db {}", shell_word(&without_password(db))).into(),
            None => "blackboard".into(),
        }
    }

    /// The same for a command that acts for the session of the call.
    fn acting(&self, words: impl fmt::Display) -> String {
        self.command(format_args!("{words}{}", self.acting_session()))
    }

    /// A command whose first argument is this name, with options after it.
    fn command_on(&self, words: &str, name: &str, options: &str) -> String {
        // Behind the two dashes there are no options.
        if name.starts_with('-') {
            self.command(format_args!("{words}{options} {}", argument(name)))
        } else {
            self.command(format_args!("{words} {}{options}", argument(name)))
        }
    }

    /// The same for a command that acts for the session of the call.
    fn acting_on(&self, words: &str, name: &str, options: &str) -> String {
        self.command_on(words, name, &format!("{options}{}", self.acting_session()))
    }

    fn acting_session(&self) -> String {
        self.session.map(|session| option("--session", session)).unwrap_or_default()
    }
}

/// A name as the last word of a command. One that begins with a dash is not an option.
pub fn argument(name: &str) -> String {
    let dashes = if name.starts_with('-') { "-- " } else { "" };
    format!("{dashes}{}", shell_word(name))
}

/// An option with its value, and a space before it.
pub fn option(name: &str, value: &str) -> String {
    let separator = if value.starts_with('-') { '=' } else { ' ' };
    format!(" {name}{separator}{}", shell_word(value))
}

/// A hint of this program's own: text, and a command of which these are the words.
pub fn command(before: impl Into<Cow<'static, str>>, words: impl Into<Cow<'static, str>>) -> Hint {
    Hint::Command { before: before.into(), words: words.into(), after: "".into(), acts: false }
}

/// The same for a command that acts for the session of the call.
pub fn acting(before: impl Into<Cow<'static, str>>, words: impl Into<Cow<'static, str>>) -> Hint {
    Hint::Command { before: before.into(), words: words.into(), after: "".into(), acts: true }
}

/// The hint as people read it on the command line, with the options of the call in its command.
#[expect(clippy::too_many_lines, reason = "a table: one entry for each hint")]
pub fn as_command<'a>(hint: &'a Hint, given: &GivenOptions<'_>) -> Cow<'a, str> {
    let word = |text: &str| shell_word(text).into_owned();
    let (advice, command) = match hint {
        Hint::Advice(advice) => return Cow::Borrowed(advice),
        Hint::Command { before, words, after, acts } => {
            let command = if *acts { given.acting(words) } else { given.command(words) };
            return format!("{before}{command}{after}").into();
        }
        Hint::PassSession => {
            let command = given.command("agent register --name NAME --shell");
            return format!("pass --session ID, or register: eval \"$({command})\"").into();
        }
        Hint::ReadAndRetryOrElse { key, .. } => {
            return format!("read {key} and retry, or add an \"else\" list").into();
        }
        Hint::FenceTokenForm => {
            return "use lock:NAME=N or work:ID=N with the number printed by `lock acquire` or `work claim`"
                .into();
        }
        Hint::WaitLongerForLock => {
            return "wait longer with --wait, or ask the holder to release it".into();
        }
        Hint::RefuseWhenFull => return "add --eviction refuse".into(),
        Hint::NameMembers => return "add --member NAME for each agent".into(),
        Hint::UseLocks => return "use `blackboard lock`, or another scope".into(),
        Hint::UseFiles => return "use `blackboard file`, or another scope".into(),
        Hint::NewIdempotencyKey => {
            return "use a new value of --op for each call, and repeat it only to retry".into();
        }
        Hint::AllowSecret => {
            return "remove it, or pass --allow-secret-looking if it is not a secret".into();
        }
        Hint::RepeatWithOperation => {
            return "repeat it with the same --op; without --op, check first whether it was done".into();
        }
        Hint::CheckWhetherDone(subject) => {
            let command = match subject {
                CheckedSubject::Session(session) => given.command_on("agent show", session, ""),
                CheckedSubject::Agents => given.command("agent list"),
                CheckedSubject::Item(item) => given.command_on("work status", item, ""),
                CheckedSubject::Items => given.command("work list"),
                CheckedSubject::Projects => given.command("project list"),
                CheckedSubject::Protocols => given.command("protocol list"),
                CheckedSubject::Scopes => given.command("scope list"),
                CheckedSubject::Locks => given.command("lock list"),
                CheckedSubject::Files => given.command("file list"),
            };
            ("check whether it was done, then repeat it".into(), command)
        }
        Hint::UseCopyOf(location) => (
"use the copy; if it refuses calls, repeat it with --seal --replace; if no agent uses it, unseal this board".into(),
            format!("blackboard copy --unseal {}", word(location)),
        ),
        Hint::ReplaceCopyAt(location) => (
            "wait until the copy ends; if none runs, replace it".into(),
            format!("blackboard copy FROM {} --replace", word(location)),
        ),
        Hint::PassName => return "pass one with --name NAME".into(),
        Hint::UseRealFile => return "name the real file with --db or BLACKBOARD_DB".into(),
        Hint::UseAnotherBoard => {
            return "use a file in a directory of your own with --db or BLACKBOARD_DB".into();
        }
        Hint::UseLocalDisk => {
            return "use a file on a local disk with --db or BLACKBOARD_DB; if only one machine uses \
                    the board, set database.allowNetworkFilesystem in the home configuration"
                .into();
        }
        Hint::NameSession => {
            ("use an agent name or at least 6 characters of an id".into(), given.command("agent list --all"))
        }
        Hint::Reactivate => ("reactivate it".into(), given.acting("agent heartbeat")),
        Hint::RegisterAgain => ("register a new one".into(), given.command("agent register --name NAME")),
        Hint::ListActiveAgents => ("name an active session".into(), given.command("agent list")),
        Hint::UseSessionId => ("use a session id".into(), given.command("agent list")),
        Hint::ListEventTypes => ("list event types".into(), given.command("observe --help")),
        Hint::EndGoneHolder { session, pid } => (
            format!(
                "the holder's process (PID {pid}) is gone; try again in 10 s, or release its holdings now"
            )
            .into(),
            given.command(format_args!("agent deregister --session {}", word(short_id(session)))),
        ),
        Hint::ClaimNext => ("claim another item".into(), given.acting("work claim --next")),
        Hint::ClaimItem(item) => ("claim it first".into(), given.acting_on("work claim", item, "")),
        Hint::CreateBlocked { item, blocked_by } => (
            "create it without claiming it".into(),
            given.acting_on(
                "work create",
                item,
                &format!(" --title TEXT{}", option("--blocked-by", &blocked_by.join(","))),
            ),
        ),
        Hint::ListOpenItems => ("list open items".into(), given.command("work list")),
        Hint::ListAllItems => ("list all items".into(), given.command("work list --all")),
        Hint::ShowItem(item) => ("show it".into(), given.command_on("work status", item, "")),
        Hint::CheckLostItem(item) => {
            ("your claim was lost; check the item".into(), given.command_on("work status", item, ""))
        }
        Hint::ResetItem(item) => ("to do it again".into(), given.acting_on("work reset", item, "")),
        Hint::EndHold(item) => {
            ("if it can be done now, end the hold".into(), given.acting_on("work unblock", item, ""))
        }
        Hint::CompleteOrUnblock { item, blocker } => (
            format!("complete {blocker} first, or remove it").into(),
            given.acting_on("work unblock", item, &option("--blocked-by", blocker)),
        ),
        Hint::RemoveBlocker { item, blocker } => (
            "remove that blocker first".into(),
            given.acting_on("work unblock", item, &option("--blocked-by", blocker)),
        ),
        Hint::DeleteItemAnyway(item) => {
            ("delete it anyway".into(), given.acting_on("work delete", item, " --force"))
        }
        Hint::ReassignAnyway(item) => (
            "ask its holder, or take it anyway".into(),
            given.acting_on("work reassign", item, " --to SESSION --force"),
        ),
        Hint::ListProjects => ("list projects".into(), given.command("project list")),
        Hint::RegisterProject(project) => {
            ("register it".into(), given.acting_on("project register", project, " --name NAME"))
        }
        Hint::RemoveProjectAnyway(project) => {
            ("remove it anyway".into(), given.acting_on("project remove", project, " --force"))
        }
        Hint::ListProtocols => ("list protocols".into(), given.command("protocol list")),
        Hint::ShowProtocol(protocol) => ("show it".into(), given.command_on("protocol show", protocol, "")),
        Hint::MapScope(scope) => ("map it".into(), given.acting_on("page map", scope, "")),
        Hint::ListPages => {
            ("a changed page has another name; list the pages".into(), given.command("page list"))
        }
        Hint::ListScopes => ("list scopes".into(), given.command("scope list")),
        Hint::ListLevels => ("list the levels".into(), given.command("memory map")),
        Hint::ShowScope(scope) => ("show its policies".into(), given.command_on("scope show", scope, "")),
        Hint::CreateScope(scope) => ("give it policies".into(), given.acting_on("scope create", scope, "")),
        Hint::CreateScopeAgain(scope) => {
            ("use another scope, or create it again".into(), given.acting_on("scope create", scope, ""))
        }
        Hint::DeleteEntriesOf(scope) => {
            ("delete its entries".into(), given.acting_on("scope delete", scope, " --entries"))
        }
        Hint::SetScope(scope) => {
            ("change them with `scope set`, or show them".into(), given.command_on("scope show", scope, ""))
        }
        Hint::FreeSpaceIn(scope) => (
            "delete entries or set a larger limit; list the entries".into(),
            given.command(format_args!("list{}", in_scope(scope))),
        ),
        Hint::CountUses { scope, key } => (
            "write it with a count".into(),
            format!(
                "{} {} VALUE",
                given.acting(format_args!("write --metadata '{{\"access_count\":0}}'{}", in_scope(scope))),
                argument(key)
            ),
        ),
        Hint::ListKeys(scope) => ("list keys".into(), given.command(format_args!("list{}", in_scope(scope)))),
        Hint::ReadKey { scope, key } => ("read it".into(), given.command_on("read", key, &in_scope(scope))),
        Hint::ReadAndRetry { scope, key } => {
            ("read it and retry".into(), given.command_on("read", key, &in_scope(scope)))
        }
        Hint::WaitLongerForKey => {
            ("increase --timeout, or list active agents".into(), given.command("agent list"))
        }
        Hint::WaitForResult { scope, key, after } => (
            "the request stays; wait for its result".into(),
            given.command_on("wait", key, &format!(" --after {after}{}", in_scope(scope))),
        ),
        Hint::WaitLongerForItem(item) => {
            ("increase --timeout, or show the item".into(), given.command_on("work status", item, ""))
        }
        Hint::WaitForLock => ("wait for it with --wait 1m, or list locks".into(), given.command("lock list")),
        Hint::AcquireLock(lock) => ("acquire the lock".into(), given.acting_on("lock acquire", lock, "")),
        Hint::ReleaseLock(lock) => {
            ("if it is no longer in use".into(), given.acting_on("lock release", lock, ""))
        }
        Hint::CheckLostLock => (
            "your lock was lost; check what its new holder did before you continue".into(),
            given.command("lock list"),
        ),
        Hint::ListLocks => ("list locks".into(), given.command("lock list")),
        Hint::ListReservations => ("list reservations".into(), given.command("file list")),
        Hint::WorkOnOtherFiles => {
            ("work on other files, or list reservations".into(), given.command("file list"))
        }
        Hint::ShareFiles => (
            "it is shared: reserve it with --shared too, or list reservations".into(),
            given.command("file list"),
        ),
        Hint::StartOver => ("start over".into(), given.acting("observe --since 1h")),
        Hint::UpgradeBoard => ("upgrade it by running once".into(), given.command("status")),
        Hint::UpgradeForeignBoard => {
            ("upgrade it; a copy of it stays beside it".into(), given.command("upgrade"))
        }
    };
    let advice: Cow<'_, str> = advice;
    format!("{advice}: {command}").into()
}

/// The option that names a scope, if it is not the default one.
pub fn in_scope(scope: &str) -> String {
    if scope == DEFAULT_SCOPE { String::new() } else { option("--scope", scope) }
}

#[cfg(test)]
pub mod tests {
    use std::ffi::OsString;

    use blackboard::Revision;

    use super::*;

    fn text(text: &str) -> String {
        text.to_owned()
    }

    /// A hint of every kind that names a command, with this text as every id.
    pub fn hints(id: &str) -> Vec<Hint> {
        let name = || text(id);
        vec![
            Hint::PassSession,
            Hint::NameSession,
            Hint::Reactivate,
            Hint::RegisterAgain,
            Hint::ListActiveAgents,
            Hint::UseSessionId,
            Hint::EndGoneHolder { session: text("84a674b5-9206"), pid: 7 },
            Hint::ClaimNext,
            Hint::ClaimItem(name()),
            Hint::CreateBlocked { item: name(), blocked_by: vec![name()] },
            Hint::ListOpenItems,
            Hint::ListAllItems,
            Hint::ShowItem(name()),
            Hint::CheckLostItem(name()),
            Hint::ResetItem(name()),
            Hint::EndHold(name()),
            Hint::CompleteOrUnblock { item: name(), blocker: name() },
            Hint::RemoveBlocker { item: name(), blocker: name() },
            Hint::DeleteItemAnyway(name()),
            Hint::ReassignAnyway(name()),
            Hint::ListProjects,
            Hint::RegisterProject(name()),
            Hint::RemoveProjectAnyway(name()),
            Hint::ListProtocols,
            Hint::ShowProtocol(name()),
            Hint::MapScope(name()),
            Hint::ListPages,
            Hint::ListScopes,
            Hint::ListLevels,
            Hint::ShowScope(name()),
            Hint::CreateScope(name()),
            Hint::CreateScopeAgain(name()),
            Hint::DeleteEntriesOf(name()),
            Hint::SetScope(name()),
            Hint::FreeSpaceIn(name()),
            Hint::CountUses { scope: name(), key: name() },
            Hint::ListKeys(name()),
            Hint::ReadKey { scope: name(), key: name() },
            Hint::ReadAndRetry { scope: name(), key: name() },
            Hint::WaitLongerForKey,
            Hint::WaitForResult { scope: name(), key: name(), after: Revision::new(7) },
            Hint::WaitLongerForItem(name()),
            Hint::WaitForLock,
            Hint::AcquireLock(name()),
            Hint::ReleaseLock(name()),
            Hint::CheckLostLock,
            Hint::ListLocks,
            Hint::ListReservations,
            Hint::WorkOnOtherFiles,
            Hint::ShareFiles,
            Hint::StartOver,
            Hint::UpgradeBoard,
            Hint::UpgradeForeignBoard,
            Hint::CheckWhetherDone(CheckedSubject::Session(name())),
            Hint::CheckWhetherDone(CheckedSubject::Agents),
            Hint::CheckWhetherDone(CheckedSubject::Item(name())),
            Hint::CheckWhetherDone(CheckedSubject::Items),
            Hint::CheckWhetherDone(CheckedSubject::Projects),
            Hint::CheckWhetherDone(CheckedSubject::Protocols),
            Hint::CheckWhetherDone(CheckedSubject::Scopes),
            Hint::CheckWhetherDone(CheckedSubject::Locks),
            Hint::CheckWhetherDone(CheckedSubject::Files),
            command("check --db, or create one: ", "init"),
            command("run: ", "observe --follow --cursor VALUE"),
            acting("add one: ", "work create ship --title TEXT"),
        ]
    }

    #[test]
    fn commands_in_hints_repeat_the_options_of_the_call() {
        testkit::limit_test();
        let given = GivenOptions { db: Some("my board.db".as_ref()), session: Some("Ivy") };
        let in_call = |hint: &Hint| as_command(hint, &given).into_owned();
        for (hint, expected) in [
            (
                Hint::ClaimNext,
                "claim another item: blackboard --db 'my board.db' work claim --next --session Ivy",
            ),
            (Hint::Reactivate, "reactivate it: blackboard --db 'my board.db' agent heartbeat --session Ivy"),
            (Hint::ListLocks, "list locks: blackboard --db 'my board.db' lock list"),
            (
                Hint::AcquireLock("-x".to_owned()),
                "acquire the lock: blackboard --db 'my board.db' lock acquire --session Ivy -- -x",
            ),
            (
                Hint::ReadKey { scope: "-s".to_owned(), key: "k".to_owned() },
                "read it: blackboard --db 'my board.db' read k --scope=-s",
            ),
            (Hint::from("start one: blackboard serve --db x"), "start one: blackboard serve --db x"),
            (Hint::WaitLongerForLock, "wait longer with --wait, or ask the holder to release it"),
            (
                Hint::EndGoneHolder { session: "84a674b5-9206".to_owned(), pid: 7 },
                "the holder's process (PID 7) is gone; try again in 10 s, or release its holdings now: \
                 blackboard --db 'my board.db' agent deregister --session 84a674b5",
            ),
        ] {
            assert_eq!(in_call(&hint), expected);
        }
        let nothing = GivenOptions::default();
        let hint = "claim another item: blackboard work claim --next";
        assert_eq!(as_command(&Hint::ClaimNext, &nothing), hint);
    }

    #[test]
    fn hints_about_copies_name_the_board_and_are_understood() {
        testkit::limit_test();
        let url = "redis://ivy@host?board=b";
        for (hint, expected) in [
            (Hint::UseCopyOf(text(url)), "blackboard copy --unseal 'redis://ivy@host?board=b'"),
            (Hint::ReplaceCopyAt(text(url)), "blackboard copy FROM 'redis://ivy@host?board=b' --replace"),
        ] {
            let shown = as_command(&hint, &GivenOptions::default());
            assert!(shown.ends_with(expected), "{shown}");
            let crate::Invocation::Leaf { leaf, arguments } = crate::find(&split(expected)[1..]) else {
                panic!("{expected}");
            };
            leaf.parse(&arguments).unwrap();
        }
    }

    #[test]
    fn names_that_look_like_a_command_do_not_change_the_advice() {
        testkit::limit_test();
        let given = GivenOptions { db: Some("b.db".as_ref()), session: Some("Ivy") };
        let key = text("blackboard key ");
        let retry = Hint::ReadAndRetryOrElse { scope: text("default"), key: key.clone() };
        assert_eq!(as_command(&retry, &given), "read blackboard key  and retry, or add an \"else\" list");
        let unblock = Hint::CompleteOrUnblock { item: text("ship"), blocker: key };
        assert_eq!(
            as_command(&unblock, &given),
            "complete blackboard key  first, or remove it: blackboard --db b.db work unblock ship \
             --blocked-by 'blackboard key ' --session Ivy"
        );
    }

    /// The words of a command, of which some are in single quotation marks.
    fn split(command: &str) -> Vec<OsString> {
        let mut words = Vec::new();
        for (index, part) in command.split('\'').enumerate() {
            match index % 2 {
                0 => words.extend(part.split_whitespace().map(OsString::from)),
                _ => words.push(part.into()),
            }
        }
        words
    }

    #[test]
    fn commands_in_hints_are_understood() {
        testkit::limit_test();
        let given = GivenOptions { db: Some("my board.db".as_ref()), session: Some("Ivy") };
        for hint in hints("blackboard key ").into_iter().chain(hints("-x")) {
            let text = as_command(&hint, &given);
            let start = text.find("blackboard --db 'my board.db' ").unwrap();
            let command = text[start..].trim_end_matches(")\"");
            let crate::Invocation::Leaf { leaf, arguments } = crate::find(&split(command)[1..]) else {
                panic!("{command}");
            };
            leaf.parse(&arguments).unwrap_or_else(|error| panic!("{command}: {error}"));
        }
    }
}
