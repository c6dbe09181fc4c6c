//! Hints of the library as tool calls: what a model should call next.

use std::borrow::Cow;

use blackboard::Hint;

use crate::hints::{self, GivenOptions};

/// The hint in the words of the tools.
pub fn as_tool(hint: &Hint) -> Cow<'_, str> {
    match hint {
        Hint::NameSession | Hint::ListActiveAgents | Hint::UseSessionId => "list agents with `who`".into(),
        Hint::ListEventTypes => "use types that `observe` returned as `event_type`".into(),
        Hint::Reactivate => "call again: your session is active again after this call".into(),
        Hint::PassSession | Hint::RegisterAgain => {
            "call `who`, which registers a session for you, then repeat this call".into()
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
        Hint::WaitLongerForItem(item) => format!("check it with `work_find` and `id: \"{item}\"`").into(),
        Hint::FenceTokenForm => "use the `fence` that `work_claim` or `hold` returned".into(),
        Hint::WaitForLock => "wait for it with `wait`, or check the holder with `hold` and `check`".into(),
        Hint::WaitLongerForLock => "call `wait` again to keep waiting, or work on something else".into(),
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
        Hint::PassName => "pass a name".into(),
        Hint::AllowSecret => "remove it".into(),
        Hint::Advice(advice) => Cow::Borrowed(advice),
        // No tool does this. An agent with a shell can, and so can the person who runs the server.
        Hint::Command { .. }
        | Hint::ResetItem(_)
        | Hint::DeleteItemAnyway(_)
        | Hint::ReassignAnyway(_)
        | Hint::ListProjects
        | Hint::RegisterProject(_)
        | Hint::RemoveProjectAnyway(_)
        | Hint::UseAnotherBoard
        | Hint::UseRealFile
        | Hint::UseLocalDisk
        | Hint::UpgradeBoard => hints::as_command(hint, &GivenOptions::default()),
    }
}
