//! The tool `who`.

use blackboard::Result;
use blackboard::agent::{AgentFilter, AgentStatus};
use blackboard::file::FileFilter;
use blackboard::status::WorkCounts;
use rmcp::schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::reply::{ItemList, Reply};
use super::tools::{Arguments, Call, Tool};
use crate::quota::{ProviderSummary, QuotaReader, summarize};
use crate::zone;

/// The maximum number of items in each list.
const LIMIT: usize = 40;

/// List active agents with their current work, held locks, reserved files and work-item counts. `you` is your session.
#[derive(Clone, Deserialize, JsonSchema)]
#[schemars(crate = "rmcp::schemars")]
#[serde(deny_unknown_fields)]
pub struct Who {
    /// Only agents of this project
    project: Option<String>,
    /// Include stale and completed agents
    #[serde(default)]
    all: bool,
}

impl Arguments for Who {
    const NAME: &'static str = "who";
    const READS: bool = true;
}

#[derive(Serialize)]
struct WhoReply {
    you: Option<String>,
    agents: ItemList,
    locks: ItemList,
    files: ItemList,
    work_items: WorkCounts,
    /// The token quota, if it is configured.
    #[serde(skip_serializing_if = "Option::is_none")]
    quota: Option<Vec<ProviderSummary>>,
    /// Why it cannot be shown.
    #[serde(skip_serializing_if = "Option::is_none")]
    quota_error: Option<String>,
}

impl Tool for Who {
    fn call(self, call: &Call) -> Result<Reply> {
        let (board, you) = call.reading()?;
        let statuses = if self.all { AgentStatus::ALL.to_vec() } else { AgentFilter::default().statuses };
        let agents = board.agents().list(&AgentFilter { statuses, project: self.project })?;
        let (quota, quota_error) = match call.state.quota().map(QuotaReader::status) {
            Some(Ok(status)) => (Some(summarize(status)), None),
            Some(Err(error)) => (None, Some(error.to_string())),
            None => (None, None),
        };
        Reply::new(&WhoReply {
            you,
            agents: ItemList::of(agents, LIMIT)?,
            locks: ItemList::of(board.locks().list()?, LIMIT)?,
            files: ItemList::of(board.files().list(&FileFilter::default())?, LIMIT)?,
            work_items: board.work_counts(zone::today())?,
            quota,
            quota_error,
        })
    }
}
