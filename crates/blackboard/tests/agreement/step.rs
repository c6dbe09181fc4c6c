//! The steps on a board: every verb, the passing of time, and changes of processes.

use blackboard::agent::AgentStatus;
use proptest::option;
use proptest::prelude::*;

use crate::entries::{EntryStep, entry_step};
use crate::memory::{MemoryStep, memory_step};

#[derive(Clone, Debug)]
pub enum Step {
    Register {
        who: u8,
        project: Option<u8>,
        parent: Option<u8>,
        pid: Option<u32>,
        shares_process: bool,
    },
    Heartbeat {
        who: u8,
        progress: bool,
        work: Option<u8>,
        item: Option<u8>,
        status: Option<AgentStatus>,
        operation: Option<u8>,
    },
    Deregister {
        who: u8,
    },
    Work(WorkStep),
    RegisterProject {
        project: u8,
        name: u8,
    },
    RemoveProject {
        project: u8,
        force: bool,
    },
    DefineProtocol {
        protocol: u8,
        template: u8,
    },
    RemoveProtocol {
        protocol: u8,
    },
    Sweep {
        threshold: Option<u64>,
        dry_run: bool,
        caller: Option<u8>,
    },
    SweepInPassing {
        caller: Option<u8>,
    },
    Prune,
    Observe {
        who: u8,
        reader: u8,
        limit: usize,
    },
    Look {
        who: u8,
        item: u8,
    },
    Entry(EntryStep),
    Memory(MemoryStep),
    Fate(Fate),
}

/// Steps on work items.
#[derive(Clone, Debug)]
pub enum WorkStep {
    Create { item: u8, title: u8, priority: u8, project: Option<u8>, blockers: Vec<u8> },
    Claim { item: u8, who: u8, title: Option<u8>, blockers: Vec<u8> },
    ClaimNext { who: u8, project: Option<u8>, priority: Option<u8> },
    Release { item: u8, who: u8, fence: FenceToken, failed: bool },
    Reassign { item: u8, who: u8, to: u8, fence: FenceToken, force: bool },
    Complete { item: u8, who: u8, fence: FenceToken },
    ForceComplete { item: u8, who: Option<u8> },
    UpdateMetadata { item: u8, who: Option<u8>, value: u8 },
    AppendEvent { item: u8, who: Option<u8> },
    Block { item: u8, blockers: Vec<u8> },
    Unblock { item: u8, blockers: Vec<u8> },
    Reset { item: u8 },
    Delete { item: u8, force: bool },
    Edit { item: u8, title: u8, label: u8 },
    Import { items: Vec<ImportedItem>, with_closed: bool, adopt: bool, dry_run: bool },
}

/// An item of another tracker.
#[derive(Clone, Debug)]
pub struct ImportedItem {
    pub item: u8,
    pub title: u8,
    pub priority: Option<u8>,
    pub has_labels: bool,
    pub is_closed: bool,
    pub blockers: Vec<u8>,
}

/// Changes outside the board.
#[derive(Clone, Debug)]
pub enum Fate {
    Pass { seconds: u64 },
    SetClock { seconds: i64 },
    StartProcess { pid: u32 },
    EndProcess { pid: u32 },
    Reboot,
}

/// The fence token that a caller passes.
#[derive(Clone, Debug)]
pub enum FenceToken {
    None,
    Last,
    Number(i64),
}

pub fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        12 => agents(),
        20 => work().prop_map(Step::Work),
        4 => projects(),
        6 => sweeping(),
        5 => looking(),
        30 => entry_step().prop_map(Step::Entry),
        8 => memory_step().prop_map(Step::Memory),
        8 => fate().prop_map(Step::Fate),
    ]
}

fn who() -> std::ops::Range<u8> {
    0..4
}

fn item() -> std::ops::Range<u8> {
    0..5
}

pub fn pid() -> std::ops::Range<u32> {
    10..13
}

fn agents() -> impl Strategy<Value = Step> {
    let status = prop_oneof![Just(AgentStatus::Active), Just(AgentStatus::Idle), Just(AgentStatus::Stale)];
    prop_oneof![
        4 => (who(), option::of(0..2_u8), option::weighted(0.3, who()), option::of(pid()), prop::bool::weighted(0.1))
            .prop_map(|(who, project, parent, pid, shares_process)| {
                Step::Register { who, project, parent, pid, shares_process }
            }),
        4 => (
            who(),
            any::<bool>(),
            option::weighted(0.2, 0..3_u8),
            option::weighted(0.3, item()),
            option::weighted(0.3, status),
            option::weighted(0.3, 0..3_u8),
        )
            .prop_map(|(who, progress, work, item, status, operation)| {
                Step::Heartbeat { who, progress, work, item, status, operation }
            }),
        1 => who().prop_map(|who| Step::Deregister { who }),
    ]
}

fn fence() -> impl Strategy<Value = FenceToken> {
    prop_oneof![
        3 => Just(FenceToken::None),
        2 => Just(FenceToken::Last),
        1 => (0..20_i64).prop_map(FenceToken::Number),
    ]
}

fn work() -> impl Strategy<Value = WorkStep> {
    let blockers = || prop::collection::vec(item(), 0..3);
    prop_oneof![
        4 => (item(), 0..2_u8, 0..3_u8, option::weighted(0.3, 0..2_u8), blockers())
            .prop_map(|(item, title, priority, project, blockers)| {
                WorkStep::Create { item, title, priority, project, blockers }
            }),
        5 => (item(), who(), option::weighted(0.3, 0..2_u8), blockers())
            .prop_map(|(item, who, title, blockers)| WorkStep::Claim { item, who, title, blockers }),
        3 => (who(), option::weighted(0.2, 0..2_u8), option::weighted(0.2, 0..3_u8))
            .prop_map(|(who, project, priority)| WorkStep::ClaimNext { who, project, priority }),
        2 => (item(), who(), fence(), any::<bool>())
            .prop_map(|(item, who, fence, failed)| WorkStep::Release { item, who, fence, failed }),
        3 => (item(), who(), who(), fence(), prop::bool::weighted(0.3))
            .prop_map(|(item, who, to, fence, force)| WorkStep::Reassign { item, who, to, fence, force }),
        3 => (item(), who(), fence()).prop_map(|(item, who, fence)| WorkStep::Complete { item, who, fence }),
        1 => (item(), option::of(who())).prop_map(|(item, who)| WorkStep::ForceComplete { item, who }),
        1 => (item(), option::of(who()), 0..2_u8)
            .prop_map(|(item, who, value)| WorkStep::UpdateMetadata { item, who, value }),
        1 => (item(), option::of(who())).prop_map(|(item, who)| WorkStep::AppendEvent { item, who }),
        2 => (item(), blockers()).prop_map(|(item, blockers)| WorkStep::Block { item, blockers }),
        1 => (item(), blockers()).prop_map(|(item, blockers)| WorkStep::Unblock { item, blockers }),
        1 => item().prop_map(|item| WorkStep::Reset { item }),
        1 => (item(), any::<bool>()).prop_map(|(item, force)| WorkStep::Delete { item, force }),
        1 => (item(), 0..3_u8, 0..3_u8).prop_map(|(item, title, label)| WorkStep::Edit { item, title, label }),
        3 => (prop::collection::vec(imported_item(), 0..4), any::<bool>(), any::<bool>(), any::<bool>())
            .prop_map(|(items, with_closed, adopt, dry_run)| {
                WorkStep::Import { items, with_closed, adopt, dry_run }
            }),
    ]
}

fn imported_item() -> impl Strategy<Value = ImportedItem> {
    let blockers = prop::collection::vec(item(), 0..3);
    (item(), 0..3_u8, option::of(0..3_u8), any::<bool>(), any::<bool>(), blockers).prop_map(
        |(item, title, priority, has_labels, is_closed, blockers)| ImportedItem {
            item,
            title,
            priority,
            has_labels,
            is_closed,
            blockers,
        },
    )
}

fn projects() -> impl Strategy<Value = Step> {
    prop_oneof![
        3 => (0..2_u8, 0..2_u8).prop_map(|(project, name)| Step::RegisterProject { project, name }),
        1 => (0..2_u8, any::<bool>()).prop_map(|(project, force)| Step::RemoveProject { project, force }),
        2 => (0..2_u8, 0..2_u8).prop_map(|(protocol, template)| Step::DefineProtocol { protocol, template }),
        1 => (0..2_u8).prop_map(|protocol| Step::RemoveProtocol { protocol }),
    ]
}

fn sweeping() -> impl Strategy<Value = Step> {
    let threshold = option::weighted(0.2, prop_oneof![Just(0), Just(60), Just(10_000)]);
    prop_oneof![
        2 => (threshold, prop::bool::weighted(0.2), option::of(who()))
            .prop_map(|(threshold, dry_run, caller)| Step::Sweep { threshold, dry_run, caller }),
        2 => option::of(who()).prop_map(|caller| Step::SweepInPassing { caller }),
        2 => Just(Step::Prune),
    ]
}

fn looking() -> impl Strategy<Value = Step> {
    prop_oneof![
        1 => (who(), 0..2_u8, 0..4_usize).prop_map(|(who, reader, limit)| Step::Observe { who, reader, limit }),
        1 => (who(), item()).prop_map(|(who, item)| Step::Look { who, item }),
    ]
}

fn fate() -> impl Strategy<Value = Fate> {
    let seconds = prop::sample::select(vec![1, 59, 61, 301, 1801, 3601, 86_401, 8 * 86_400, 31 * 86_400]);
    let set = prop::sample::select(vec![-3 * 86_400, -3600, -20, 20, 3600, 3 * 86_400]);
    prop_oneof![
        6 => seconds.prop_map(|seconds| Fate::Pass { seconds }),
        1 => set.prop_map(|seconds| Fate::SetClock { seconds }),
        2 => pid().prop_map(|pid| Fate::StartProcess { pid }),
        2 => pid().prop_map(|pid| Fate::EndProcess { pid }),
        1 => Just(Fate::Reboot),
    ]
}
