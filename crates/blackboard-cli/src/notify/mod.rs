//! `notify` in the home configuration: commands that are started after events.
//!
//! The process that commits a matching event starts the command after its own output, and never waits for it. The command gets
//! the event as one JSON object on standard input, as `observe --json` prints it. What fails here is one line in `notify.log` and
//! changes nothing else. A command that runs longer, for example one that waits or the MCP server, starts commands from a thread.
//!
//! Without such a configuration there is no [`Notifier`], and no board has an observer.

mod rate;

use std::fs::File;
use std::io::{self, Seek, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use blackboard::clock::{Clock, SystemClock};
use blackboard::event::{Event, Since};
use blackboard::{Board, Result, Revision};

use self::rate::{Decision, RateFile};
use crate::config::{Config, NotifyCommand};
use crate::engine::Engine;
use crate::environment::{Environment, NOTIFYING};
use crate::hooks::log::append_line;
use crate::location::Location;

/// How long after a commit a process that continues starts the commands. Most processes end before, and start them then.
const DELAY: Duration = Duration::from_millis(200);

/// The most events that wait for their commands. An import may commit many more.
const MOST_PENDING: usize = 1000;

/// How many events are read at once.
const BATCH: usize = 100;

/// The names of the log and of the times of the last starts, in the home of boards.
const LOG_FILE: &str = "notify.log";
const RATE_FILE: &str = "notify.json";

/// Starts the commands of one board.
pub struct Notifier {
    commands: Vec<NotifyCommand>,
    home: PathBuf,
    engine: Arc<dyn Engine>,
    pending: Mutex<Pending>,
    /// The commands that this process has started and that may still run. Locked while commands are started.
    started: Mutex<Vec<Child>>,
}

/// The events that wait for their commands.
#[derive(Default)]
struct Pending {
    /// Each with a board that reads them.
    events: Vec<(Board, Event)>,
    /// Whether a thread starts commands.
    has_thread: bool,
}

impl Notifier {
    /// The notifier of a board, if commands are configured. A process that such a command has started has none: its own events would
    /// start it again.
    pub fn new(
        config: &Config,
        location: &Location,
        environment: &Environment,
        engine: &Arc<dyn Engine>,
    ) -> Option<Arc<Notifier>> {
        if config.notify.is_empty() || environment.notifying.is_some() {
            return None;
        }
        Some(Arc::new(Notifier {
            commands: config.notify.clone(),
            home: location.home.clone()?,
            engine: Arc::clone(engine),
            pending: Mutex::default(),
            started: Mutex::default(),
        }))
    }

    /// The board with an observer that keeps the events that commands want.
    pub fn observe(self: &Arc<Notifier>, board: Board) -> Board {
        let (notifier, reader) = (Arc::clone(self), board.clone());
        board.with_commit_observer(move |events| notifier.add(&reader, events))
    }

    fn add(self: &Arc<Notifier>, reader: &Board, events: &[Event]) {
        let mut wanted = events.iter().filter(|event| self.commands.iter().any(|one| one.wants(event)));
        let Some(first) = wanted.next() else { return };
        let mut pending = lock(&self.pending);
        let space = MOST_PENDING.saturating_sub(pending.events.len());
        let wanted = std::iter::once(first).chain(wanted).take(space);
        pending.events.extend(wanted.map(|event| (reader.clone(), event.clone())));
        if !pending.has_thread {
            let notifier = Arc::clone(self);
            let thread = std::thread::Builder::new().spawn(move || notifier.start_from_time_to_time());
            pending.has_thread = thread.is_ok();
        }
    }

    /// Starts commands until no event waits.
    fn start_from_time_to_time(&self) {
        loop {
            std::thread::sleep(DELAY);
            self.start();
            let mut pending = lock(&self.pending);
            if pending.events.is_empty() {
                pending.has_thread = false;
                return;
            }
        }
    }

    /// Starts the commands of all events that wait, and waits for none of them.
    pub fn start(&self) {
        let mut started = lock(&self.started);
        // A process that ended would otherwise stay in the table of processes.
        started.retain_mut(|child| matches!(child.try_wait(), Ok(None)));
        let events = std::mem::take(&mut lock(&self.pending).events);
        if events.is_empty() {
            return;
        }
        let due = match self.due(&events) {
            Ok(due) => due,
            Err(error) => return self.log(&format!("{RATE_FILE} cannot be used: {error}")),
        };
        for (command, index, skipped) in due {
            let (reader, event) = &events[index];
            match self.start_one(command, &complete(reader, event), skipped) {
                Ok(child) => started.push(child),
                Err(error) => {
                    let program = command.command.first().map_or("", String::as_str);
                    self.log(&format!("{} {program} cannot be started: {error}", event.event_type));
                }
            }
        }
    }

    /// The commands to start, each with the index of its event and the number of events that it was not started for. Counts the others.
    fn due(&self, events: &[(Board, Event)]) -> io::Result<Vec<(&NotifyCommand, usize, u64)>> {
        let mut rate = RateFile::open(&self.home.join(RATE_FILE))?;
        let now = SystemClock.now().millis();
        let mut due = Vec::new();
        for (index, (_, event)) in events.iter().enumerate() {
            for command in self.commands.iter().filter(|command| command.wants(event)) {
                if let Decision::Start { skipped } = rate.decide(command, event, now) {
                    due.push((command, index, skipped));
                }
            }
        }
        rate.store(&self.commands)?;
        Ok(due)
    }

    fn start_one(&self, notify: &NotifyCommand, event: &Event, skipped: u64) -> io::Result<Child> {
        let (program, arguments) =
            notify.command.split_first().ok_or_else(|| io::Error::from(io::ErrorKind::InvalidInput))?;
        let mut command = Command::new(program);
        command.args(arguments).current_dir(&self.home);
        command.stdin(input(&self.home, event, skipped)?).stdout(Stdio::null()).stderr(Stdio::null());
        // It acts for the operator, on this board, and not for the session that caused the event.
        command.env(NOTIFYING, "1").env_remove("BLACKBOARD_SESSION_ID");
        match self.engine.file() {
            Some(file) => command.env("BLACKBOARD_DB", file),
            None => command.env("BLACKBOARD_DB", self.engine.name()),
        };
        // A terminal or a platform may end the processes of this group.
        #[cfg(unix)]
        std::os::unix::process::CommandExt::process_group(&mut command, 0);
        command.spawn()
    }

    fn log(&self, what: &str) {
        // An error here cannot be reported anywhere.
        let _ = append_line(&self.home.join(LOG_FILE), what);
    }
}

/// The event as a file without a name: a pipe would block if the command does not read it.
fn input(home: &Path, event: &Event, skipped: u64) -> io::Result<File> {
    let mut json = serde_json::to_value(event)?;
    if let Some(object) = json.as_object_mut().filter(|_| skipped > 0) {
        object.insert("skipped".to_owned(), skipped.into());
    }
    let mut file = tempfile::tempfile_in(home)?;
    file.write_all(format!("{json}\n").as_bytes())?;
    file.rewind()?;
    Ok(file)
}

/// The event as readers of the event log get it, with the change of its entry.
fn complete(reader: &Board, event: &Event) -> Event {
    // What was pruned or purged meanwhile is reported as it was committed.
    read(reader, event.id).ok().flatten().unwrap_or_else(|| event.clone())
}

fn read(reader: &Board, id: Revision) -> Result<Option<Event>> {
    let events = reader.events();
    let observation = events.observe(&Since::Revision(id.previous()), &[])?;
    let mut after = observation.after;
    while after < id {
        let Some(batch) = events.next(&observation, after, BATCH)? else { break };
        after = batch.last;
        if let Some(event) = batch.events.into_iter().find(|event| event.id == id) {
            return Ok(Some(event));
        }
    }
    Ok(None)
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
