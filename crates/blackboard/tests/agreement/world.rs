//! One board with its own clock and processes, on which a sequence of steps runs.

use std::collections::HashMap;
use std::fmt::Debug;
use std::sync::Arc;
use std::time::Duration;

use blackboard::agent::{AgentFilter, AgentStatus, Heartbeat, Register};
use blackboard::clock::{Clock, FixedClock};
use blackboard::entry;
use blackboard::event::{Event, Since};
use blackboard::id::{CountingIds, session_id_from_hint};
use blackboard::process::FakeProcesses;
use blackboard::project::RegisterProject;
use blackboard::protocol::DefineProtocol;
#[cfg(all(unix, feature = "redis"))]
use blackboard::store::redis::{Address, Redis, RedisOptions};
use blackboard::store::sqlite::{Sqlite, SqliteOptions};
use blackboard::store::{Memory, Store};
use blackboard::sweep::Sweep;
use blackboard::work::{
    AppendEvent, Block, Claim, ClaimNext, Complete, Create, Edit, ForceComplete, ImportItems, OutsideItem,
    Reassign, Release, Status, UpdateMetadata, WorkFilter,
};
use blackboard::{Board, Metadata, Result, Revision, Settings};
use tempfile::TempDir;

use crate::entries::Taking;
use crate::revisions::Revisions;
use crate::step::{Fate, FenceToken, Step, WorkStep};

pub struct World {
    pub board: Board,
    pub store: Arc<dyn Store>,
    clock: Arc<FixedClock>,
    processes: Arc<FakeProcesses>,
    revisions: Revisions,
    /// The fence token of the last claim of each item.
    fences: HashMap<u8, Revision>,
    directory: Option<TempDir>,
}

impl World {
    pub fn memory() -> World {
        World::on(|clock| (Arc::new(Memory::new(clock)), None))
    }

    /// With the rules of a board that several machines share.
    #[cfg(all(unix, feature = "redis"))]
    pub fn shared_memory() -> World {
        World::on(|clock| (Arc::new(Memory::new(clock).shared_by_machines()), None))
    }

    pub fn memory_running_twice() -> World {
        World::on(|clock| (Arc::new(Memory::new(clock).running_everything_twice()), None))
    }

    pub fn memory_with_gaps() -> World {
        World::on(|clock| (Arc::new(Memory::new(clock).skipping_revisions()), None))
    }

    pub fn sqlite() -> World {
        World::on_sqlite(|store| store)
    }

    pub fn sqlite_with_gaps() -> World {
        World::on_sqlite(Sqlite::skipping_revisions)
    }

    /// `None` if this machine has no server.
    #[cfg(all(unix, feature = "redis"))]
    pub fn redis() -> Option<World> {
        World::on_redis(|store| store)
    }

    /// `None` if this machine has no server.
    #[cfg(all(unix, feature = "redis"))]
    pub fn redis_running_twice() -> Option<World> {
        World::on_redis(Redis::running_everything_twice)
    }

    #[cfg(all(unix, feature = "redis"))]
    fn on_redis(change: impl FnOnce(Redis) -> Redis) -> Option<World> {
        testkit::limit_test();
        let address: Address = testkit::redis::shared_redis()?.parse().unwrap();
        Some(World::on(|clock| {
            let options = RedisOptions { fixed_clock: Some(clock), ..RedisOptions::default() };
            (Arc::new(change(Redis::open(address, &options).unwrap())), None)
        }))
    }

    fn on_sqlite(change: impl FnOnce(Sqlite) -> Sqlite) -> World {
        World::on(|clock| {
            let directory = testkit::tempdir().unwrap();
            let path = directory.path().join("local.db");
            let store = Sqlite::open(&path, clock, &SqliteOptions::default()).unwrap();
            (Arc::new(change(store)), Some(directory))
        })
    }

    fn on(engine: impl FnOnce(Arc<dyn Clock>) -> (Arc<dyn Store>, Option<TempDir>)) -> World {
        testkit::limit_test();
        let clock = Arc::new(FixedClock::at("2026-02-03T15:30:00Z").unwrap());
        let processes = Arc::new(FakeProcesses::default());
        // A session cannot register with a process that does not run.
        for pid in crate::step::pid() {
            processes.start(pid);
        }
        let (store, directory) = engine(clock.clone());
        let board = Board::on(store.clone(), clock.clone())
            .with_processes(processes.clone())
            .with_ids(Arc::new(CountingIds::default()))
            // Retention runs all the time, not once in a month.
            .with_settings(Settings { keep_events: Duration::from_hours(2), ..Settings::default() });
        World {
            revisions: Revisions::of(board.clone()),
            board,
            store,
            clock,
            processes,
            fences: HashMap::new(),
            directory,
        }
    }

    /// The file of an engine that has one.
    pub fn file(&self) -> Option<std::path::PathBuf> {
        self.directory.as_ref().map(|directory| directory.path().join("local.db"))
    }

    /// The complete event log.
    pub fn log(&self) -> Vec<Event> {
        let observation = self.board.events().observe(&Since::Revision(Revision::ZERO), &[]).unwrap();
        let batch = self.board.events().next(&observation, observation.after, usize::MAX).unwrap();
        batch.map(|batch| batch.events).unwrap_or_default()
    }

    /// Takes a step, and returns its complete answer or refusal as text. Revisions are the numbers of their events,
    /// which are the same on every engine.
    pub fn take(&mut self, step: &Step) -> String {
        let answer = match self.try_take(step) {
            Ok(answer) => answer,
            Err(error) => format!("{}: {error} {:?} {:?}", error.code(), error.hint(), error.details()),
        };
        self.revisions.note();
        self.revisions.numbered(&answer)
    }

    /// A value as text, with the numbers of events in place of their ids.
    pub fn shown(&self, value: impl Debug) -> String {
        self.revisions.numbered(&shown(value))
    }

    fn try_take(&mut self, step: &Step) -> Result<String> {
        let board = self.board.clone();
        match step {
            Step::Register { who, project, parent, pid, shares_process } => {
                let request = Register {
                    session_hint: Some(hint(*who)),
                    project: project.map(|project| format!("p{project}")),
                    parent: parent.map(session),
                    pid: *pid,
                    shares_process: *shares_process,
                    ..Register::named(&format!("Agent {who}"))
                };
                board.agents().register(&request).map(shown)
            }
            Step::Heartbeat { who, progress, work, item: about, status, operation } => {
                let beat = Heartbeat {
                    progress: progress.then(|| "Half done".to_owned()),
                    work: work.map(current_work),
                    work_item: about.map(item),
                    status: *status,
                    operation: operation.map(|number| format!("op{number}")),
                    ..Heartbeat::of(&session(*who))
                };
                board.agents().heartbeat(&beat).map(shown)
            }
            Step::Deregister { who } => board.agents().deregister(&session(*who)).map(shown),
            Step::Work(step) => self.try_work(step),
            Step::RegisterProject { project, name } => {
                let request = RegisterProject::new(&format!("p{project}"), &format!("Name {name}"));
                board.projects().register(&request).map(shown)
            }
            Step::RemoveProject { project, force } => {
                board.projects().remove(&format!("p{project}"), *force, None).map(shown)
            }
            Step::DefineProtocol { protocol, template } => {
                // A protocol with a schema can be the rule of a scope.
                let value_schema = (*template == 0).then(|| r#"{"type": ["array", "integer"]}"#.to_owned());
                let template = format!("t{template}:{{id}}");
                let request = DefineProtocol {
                    value_schema,
                    ..DefineProtocol::new(&format!("q{protocol}"), &template)
                };
                board.protocols().define(&request).map(shown)
            }
            Step::RemoveProtocol { protocol } => {
                board.protocols().remove(&format!("q{protocol}"), None).map(shown)
            }
            Step::Sweep { threshold, dry_run, caller } => {
                let sweep = Sweep {
                    threshold: threshold.map(Duration::from_secs),
                    dry_run: *dry_run,
                    caller: caller.map(session),
                };
                board.sweep(&sweep).map(shown)
            }
            Step::SweepInPassing { caller } => Ok(shown(board.try_sweep(caller.map(session).as_deref()))),
            Step::Prune => board.prune().map(shown),
            Step::Observe { who, reader, limit } => {
                self.observe(&session(*who), &format!("reader{reader}"), *limit)
            }
            Step::Look { who, item: id } => self.look(*who, *id),
            Step::Entry(step) => {
                Taking { board: &board, revisions: &self.revisions, fence: &|id| self.claim_of(id) }
                    .take(step)
            }
            Step::Memory(step) => crate::memory::take(&board, step).map(shown),
            Step::Fate(fate) => {
                self.befall(fate);
                Ok(String::new())
            }
        }
    }

    #[expect(clippy::too_many_lines, reason = "one arm for each step")]
    fn try_work(&mut self, step: &WorkStep) -> Result<String> {
        let board = self.board.clone();
        match step {
            WorkStep::Create { item: id, title, priority, project, blockers } => {
                board.work().create(&create(*id, *title, *priority, *project, blockers)).map(shown)
            }
            WorkStep::Claim { item: id, who, title, blockers } => {
                let claim = Claim {
                    create: title.map(|title| create(*id, title, 1, None, blockers)),
                    ..Claim::of(&item(*id), &session(*who))
                };
                let claimed = board.work().claim(&claim)?;
                self.fences.extend(claimed.item.fence.map(|fence| (*id, fence)));
                Ok(shown(claimed))
            }
            WorkStep::ClaimNext { who, project, priority: only } => {
                let next = ClaimNext {
                    session: session(*who),
                    project: project.map(|project| format!("p{project}")),
                    priority: only.map(priority),
                    most_tokens: None,
                };
                board.work().claim_next(&next).map(shown)
            }
            WorkStep::Release { item: id, who, fence, failed } => {
                let release = Release {
                    fence: self.fence(*id, fence),
                    failed: *failed,
                    reason: failed.then(|| "It failed".to_owned()),
                    ..Release::of(&item(*id), &session(*who))
                };
                board.work().release(&release).map(shown)
            }
            WorkStep::Reassign { item: id, who, to, fence, force } => {
                let reassign = Reassign {
                    fence: self.fence(*id, fence),
                    force: *force,
                    ..Reassign::of(&item(*id), &session(*who), &session(*to))
                };
                let reassigned = board.work().reassign(&reassign)?;
                self.fences.extend(reassigned.item.fence.map(|fence| (*id, fence)));
                Ok(shown(reassigned))
            }
            WorkStep::Complete { item: id, who, fence } => {
                let fence = self.fence(*id, fence);
                board
                    .work()
                    .complete(&Complete { fence, ..Complete::of(&item(*id), &session(*who)) })
                    .map(shown)
            }
            WorkStep::ForceComplete { item: id, who } => {
                let force = ForceComplete { id: item(*id), session: who.map(session), summary: None };
                board.work().force_complete(&force).map(shown)
            }
            WorkStep::UpdateMetadata { item: id, who, value } => {
                let metadata = Metadata::parse(&format!("{{\"value\": {value}}}"))?;
                let update = UpdateMetadata { id: item(*id), metadata, session: who.map(session) };
                board.work().update_metadata(&update).map(shown)
            }
            WorkStep::AppendEvent { item: id, who } => {
                let append = AppendEvent {
                    id: item(*id),
                    event_type: "built".to_owned(),
                    summary: "Build 7".to_owned(),
                    metadata: None,
                    session: who.map(session),
                };
                board.work().append_event(&append).map(shown)
            }
            WorkStep::Block { item: id, blockers } => {
                let block = Block { id: item(*id), blocked_by: items(blockers), ..Block::default() };
                board.work().block(&block).map(shown)
            }
            WorkStep::Unblock { item: id, blockers } => {
                board.work().unblock(&item(*id), &items(blockers), None).map(shown)
            }
            WorkStep::Reset { item: id } => board.work().reset(&item(*id), None).map(shown),
            WorkStep::Delete { item: id, force } => board.work().delete(&item(*id), *force, None).map(shown),
            WorkStep::Edit { item: id, title, label } => {
                let edit = Edit {
                    title: Some(format!("Title {title}")),
                    add_labels: vec![format!("label-{label}")],
                    ..Edit::of(&item(*id))
                };
                board.work().edit(&edit).map(shown)
            }
            WorkStep::Import { items: outside, with_closed, adopt, dry_run } => {
                let outside = outside.iter().map(|one| OutsideItem {
                    id: item(one.item),
                    title: format!("Title {}", one.title),
                    priority: one.priority.map(priority),
                    labels: one.has_labels.then(|| vec!["outside".to_owned()]),
                    is_closed: one.is_closed,
                    blocked_by: Some(items(&one.blockers)),
                    ..OutsideItem::default()
                });
                let import = ImportItems {
                    items: outside.collect(),
                    from: "jsonl".to_owned(),
                    with_closed: *with_closed,
                    adopt: *adopt,
                    dry_run: *dry_run,
                    ..ImportItems::default()
                };
                board.work().import(&import).map(shown)
            }
        }
    }

    fn befall(&self, fate: &Fate) {
        match fate {
            Fate::Pass { seconds } => self.clock.advance(Duration::from_secs(*seconds)),
            Fate::SetClock { seconds } => {
                let by = Duration::from_secs(seconds.unsigned_abs());
                let now = self.clock.now();
                self.clock.set(if *seconds < 0 { now.minus(by) } else { now.plus(by) });
            }
            Fate::StartProcess { pid } => drop(self.processes.start(*pid)),
            Fate::EndProcess { pid } => self.processes.end(*pid),
            Fate::Reboot => self.processes.reboot(),
        }
    }

    fn fence(&self, id: u8, fence: &FenceToken) -> Option<Revision> {
        match fence {
            FenceToken::None => None,
            FenceToken::Last => self.fences.get(&id).copied(),
            FenceToken::Number(number) => Some(self.revisions.id(*number)),
        }
    }

    /// The fence token of the last claim of an item.
    fn claim_of(&self, id: u8) -> Option<entry::FenceToken> {
        self.fences.get(&id).map(|&fence| entry::FenceToken::Work { id: item(id), fence })
    }

    /// Reads one batch, and moves the cursor after it.
    fn observe(&self, session: &str, reader: &str, limit: usize) -> Result<String> {
        let since = Since::Cursor { session: session.to_owned(), reader: reader.to_owned() };
        let observation = self.board.events().observe(&since, &[])?;
        let batch = self.board.events().next(&observation, observation.after, limit)?;
        if let Some(batch) = &batch {
            self.board.events().advance(session, reader, batch.last)?;
        }
        Ok(shown((observation, batch)))
    }

    /// All verbs that only read.
    fn look(&self, who: u8, id: u8) -> Result<String> {
        let board = &self.board;
        let mut status = board.status()?;
        // The only difference between engines.
        status.database_size_bytes = 0;
        let all = AgentFilter { statuses: AgentStatus::ALL.to_vec(), project: None };
        let mine = WorkFilter {
            statuses: Status::ALL.to_vec(),
            claimed_by: Some(session(who)),
            ..WorkFilter::default()
        };
        let lists = (board.agents().list(&all)?, board.projects().list()?, board.work().list(&mine)?);
        let open = board.work().list(&WorkFilter::default())?;
        let project = board.projects().status("p0").map_err(|error| error.code());
        let agent = board.agents().show(&session(who)).map_err(|error| error.code());
        Ok(shown((status, lists, open, project, agent, board.work().status(&item(id))?)))
    }
}

fn create(id: u8, title: u8, how_soon: u8, project: Option<u8>, blockers: &[u8]) -> Create {
    Create {
        priority: Some(priority(how_soon)),
        project: project.map(|project| format!("p{project}")),
        blocked_by: items(blockers),
        ..Create::new(&item(id), &format!("Title {title}"))
    }
}

/// The current work that a session reports: an item, by its title, or nothing.
fn current_work(number: u8) -> String {
    if number == 2 { String::new() } else { format!("Title {number}") }
}

fn priority(number: u8) -> blackboard::work::Priority {
    blackboard::work::Priority::ALL[usize::from(number)]
}

fn hint(who: u8) -> String {
    format!("terminal-{who}")
}

pub fn session(who: u8) -> String {
    session_id_from_hint(&hint(who))
}

pub fn item(id: u8) -> String {
    format!("w{id}")
}

fn items(ids: &[u8]) -> Vec<String> {
    ids.iter().map(|&id| item(id)).collect()
}

fn shown(answer: impl Debug) -> String {
    format!("{answer:?}")
}
