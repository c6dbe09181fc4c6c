//! Hints of the library as tool calls: what a model should call next.

use std::borrow::Cow;

use blackboard::{CheckedSubject, Hint};

/// The hint in the words of the tools.
#[expect(clippy::too_many_lines, reason = "one arm for each hint")]
pub fn as_tool(hint: &Hint) -> Cow<'_, str> {
    match hint {
        Hint::NameSession | Hint::ListActiveAgents | Hint::UseSessionId => "list agents with `who`".into(),
        Hint::ListEventTypes => "use types that `observe` returned as `event_type`".into(),
        Hint::Reactivate => "call again: your session is active again after this call".into(),
        Hint::PassSession | Hint::RegisterAgain => {
            "repeat this call: it registers a new session for you".into()
        }
        Hint::EndGoneHolder { pid, .. } => format!(
            "the holder's process (PID {pid}) is gone; repeat this call 10 seconds after its last heartbeat"
        )
        .into(),
        Hint::ClaimNext => "claim another item with `work_claim` and `next: true`".into(),
        Hint::ClaimItem(item) => format!("claim it first with `work_claim` and `id: \"{item}\"`").into(),
        Hint::CreateBlocked { item, .. } => format!(
            "create it without claiming it: `work_update` with `action: \"create\"` and `id: \"{item}\"`"
        )
        .into(),
        Hint::ListOpenItems => "list open items with `work_find`".into(),
        Hint::ListAllItems => "list items with `work_find`".into(),
        Hint::ShowItem(item) => format!("show it with `work_find` and `id: \"{item}\"`").into(),
        Hint::CheckLostItem(item) => {
            format!("your claim was lost; check the item with `work_find` and `id: \"{item}\"`").into()
        }
        Hint::CompleteOrUnblock { item, blocker } => format!(
            "complete {blocker} first, or remove it: `work_update` with `action: \"unblock\"`, `id: \"{item}\"` and \
             `blocked_by: [\"{blocker}\"]`"
        )
        .into(),
        Hint::RemoveBlocker { item, blocker } => format!(
            "remove that blocker first: `work_update` with `action: \"unblock\"`, `id: \"{item}\"` and \
             `blocked_by: [\"{blocker}\"]`"
        )
        .into(),
        Hint::ListKeys(_) => "find keys with `entry_query`".into(),
        Hint::ReadKey { key, .. } => format!("read it with `entry_read` and `key: \"{key}\"`").into(),
        Hint::ReadAndRetry { key, .. } | Hint::ReadAndRetryOrElse { key, .. } => {
            format!("read it again with `entry_read` and `key: \"{key}\"`, then retry").into()
        }
        Hint::WaitLongerForKey => "call again to keep waiting, or list active agents with `who`".into(),
        Hint::WaitForResult { key, .. } => {
            format!("the request stays; call `wait` with `key: \"{key}\"` for its result").into()
        }
        Hint::WaitLongerForItem(item) => format!("check it with `work_find` and `id: \"{item}\"`").into(),
        Hint::FenceTokenForm => "use the `fence` that `work_claim` or `hold` returned".into(),
        Hint::WaitForLock => "wait for it with `wait`, or check the holder with `hold` and `check`".into(),
        Hint::WaitLongerForLock => "call `wait` again to keep waiting, or work on something else".into(),
        Hint::AcquireLock(lock) => format!("acquire the lock with `hold` and `name: \"{lock}\"`").into(),
        Hint::ReleaseLock(lock) => {
            format!("if it is no longer in use, release it with `hold`, `action: \"unlock\"` and `name: \"{lock}\"`")
                .into()
        }
        Hint::CheckLostLock => "your lock was lost; check with `who` what its holder does now".into(),
        Hint::ListLocks => "list locks with `who`".into(),
        Hint::ListReservations => "list reservations with `who`".into(),
        Hint::UseLocks | Hint::UseFiles => "use `hold`, or another scope".into(),
        Hint::WorkOnOtherFiles => "work on other files, or check the holder with `hold` and `check`".into(),
        Hint::ShareFiles => "it is shared: reserve it with `shared: true` too, or work on other files".into(),
        Hint::StartOver => "start over with `observe` and `since: \"1h\"`".into(),
        Hint::NewIdempotencyKey => "use a new `op` for each call, and repeat it only to retry".into(),
        Hint::RepeatWithOperation => "repeat it with the same `op`".into(),
        Hint::CheckWhetherDone(subject) => match subject {
            CheckedSubject::Item(item) => {
                format!("check with `work_find` and `id: \"{item}\"` whether it was done, then repeat it").into()
            }
            CheckedSubject::Items => "check with `work_find` whether it was done, then repeat it".into(),
            CheckedSubject::Projects | CheckedSubject::Protocols | CheckedSubject::Scopes => "repeat it".into(),
            CheckedSubject::Session(_)
            | CheckedSubject::Agents
            | CheckedSubject::Locks
            | CheckedSubject::Files => "check with `who` whether it was done, then repeat it".into(),
        },
        Hint::UseCopyOf(_) | Hint::ReplaceCopyAt(_) => {
            "the board was copied; ask the user which board to use".into()
        }
        Hint::PassName => "pass a name".into(),
        Hint::AllowSecret => "remove it".into(),
        Hint::Advice(advice) => Cow::Borrowed(advice),
        // No tool does this: the user who runs the server can.
        Hint::Command { words, .. } => format!("ask the user to run: blackboard {words}").into(),
        Hint::ResetItem(item) => format!("ask the user to reset item \"{item}\"").into(),
        Hint::EndHold(item) => format!("claim another item, or ask the user to unblock item \"{item}\"").into(),
        Hint::DeleteItemAnyway(item) => format!("ask the user to delete item \"{item}\"").into(),
        Hint::ReassignAnyway(item) => {
            format!("ask its holder to release it, or ask the user to reassign item \"{item}\"").into()
        }
        Hint::ListScopes => "ask the user which scopes exist".into(),
        Hint::ListLevels => "leave out the level to search in all of them".into(),
        Hint::ShowScope(scope) => {
            format!("ask the user for the rules of scope \"{scope}\"").into()
        }
        Hint::DeleteEntriesOf(scope) => {
            format!("ask the user to delete the entries of scope \"{scope}\"").into()
        }
        Hint::CreateScope(scope) | Hint::SetScope(scope) => {
            format!("ask the user to change the policies of scope \"{scope}\"").into()
        }
        Hint::CreateScopeAgain(scope) => {
            format!("use another scope, or ask the user to create scope \"{scope}\" again").into()
        }
        Hint::FreeSpaceIn(scope) => {
            format!("delete entries of scope \"{scope}\", or ask the user to give it a larger limit").into()
        }
        Hint::RefuseWhenFull => "ask the user to let the scope refuse writes".into(),
        Hint::NameMembers => "name the agents that the scope is for".into(),
        Hint::CountUses { .. } => "pass the number of uses as `access_count` in `metadata`".into(),
        Hint::ListProjects => "omit `project`, or ask the user which projects are registered".into(),
        Hint::RegisterProject(project) => {
            format!("omit `project`, or ask the user to register project \"{project}\"").into()
        }
        Hint::MapScope(scope) => format!("ask the user to map scope \"{scope}\" into pages").into(),
        Hint::ListPages => "ask the user which pages there are".into(),
        Hint::ListProtocols => "ask the user which protocols are defined".into(),
        Hint::ShowProtocol(protocol) => {
            format!("ask the user to show protocol \"{protocol}\"").into()
        }
        Hint::RemoveProjectAnyway(project) => {
            format!("ask the user to remove project \"{project}\"").into()
        }
        Hint::UseAnotherBoard | Hint::UseRealFile | Hint::UseLocalDisk => {
            "the board cannot be used; report this error to the user".into()
        }
        Hint::UpgradeBoard | Hint::UpgradeForeignBoard => "ask the user to upgrade the board".into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hints::tests::hints;

    #[test]
    fn hints_name_tools_and_never_commands() {
        testkit::limit_test();
        let others = [
            Hint::FenceTokenForm,
            Hint::WaitLongerForLock,
            Hint::UseLocks,
            Hint::UseFiles,
            Hint::NewIdempotencyKey,
            Hint::AllowSecret,
            Hint::PassName,
            Hint::RefuseWhenFull,
            Hint::NameMembers,
            Hint::UseRealFile,
            Hint::UseAnotherBoard,
            Hint::UseLocalDisk,
        ];
        for hint in hints("x").into_iter().chain(others) {
            let text = as_tool(&hint);
            let names_command = !matches!(hint, Hint::Command { .. }) && text.contains("blackboard ");
            assert!(!names_command && !text.contains("--db") && !text.contains(" --session"), "{text}");
        }
    }

    #[test]
    fn a_hint_without_a_tool_asks_the_user() {
        testkit::limit_test();
        for (hint, expected) in [
            (
                Hint::RegisterProject("nope".to_owned()),
                "omit `project`, or ask the user to register project \"nope\"",
            ),
            (Hint::ResetItem("x".to_owned()), "ask the user to reset item \"x\""),
            (Hint::UseLocalDisk, "the board cannot be used; report this error to the user"),
            (Hint::RegisterAgain, "repeat this call: it registers a new session for you"),
            (crate::hints::command("create one: ", "init"), "ask the user to run: blackboard init"),
        ] {
            assert_eq!(as_tool(&hint), expected);
        }
    }
}
