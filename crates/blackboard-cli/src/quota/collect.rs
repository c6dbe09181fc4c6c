//! What a hook does about usage, after its answer: reads new lines of its session's files, and appends the numbers to the
//! spool. Only if a quota is configured.

use std::cell::RefCell;
use std::collections::HashMap;
use std::io;
use std::path::PathBuf;

use blackboard::Board;
use blackboard::id::session_id_from_hint;

use super::fold;
use super::ledger_location::LedgerLocation;
use super::reading::{Reading, UsageFormat};
use super::spool::{self, SpoolLine};
use super::transcript::{self, Origin, Transcript, TranscriptFile};
use crate::context::Context;
use crate::hooks::request::{HookEvent, HookRequest, Payload};
use crate::platforms::Platform;
use crate::setup::SettingsDirs;

/// How many bytes a hook reads. The next one continues.
const BYTES: usize = 1024 * 1024;

/// How many files of subagents a hook looks at.
const DELEGATES: usize = 50;

/// How many messages a hook accepts from its platform.
const MESSAGES: usize = 10_000;

/// What a hook knows about the usage of its session.
pub struct UsageCall {
    platform: &'static Platform,
    format: &'static UsageFormat,
    ledger: LedgerLocation,
    /// The directory of the platform, as its paths begin with it, and without symbolic links.
    directories: Option<(PathBuf, PathBuf)>,
    /// The location of the board.
    board: String,
    session: String,
    delegate: Option<String>,
    looks_at_delegates: bool,
    input: String,
}

impl UsageCall {
    /// The usage of a call; `None` if its platform reports none.
    pub fn new(
        platform: &'static Platform,
        request: &HookRequest,
        context: &Context,
        ledger: LedgerLocation,
        board: String,
        input: &str,
    ) -> Option<UsageCall> {
        let format = platform.usage.as_ref()?;
        let located_from = context.request();
        let user_home =
            located_from.environment.user_home.as_ref().map(|user| located_from.current_dir.join(user));
        let directories = user_home.and_then(|user_home| {
            let current = located_from.current_dir.clone();
            let dirs =
                SettingsDirs::new(user_home, current.clone(), located_from.environment.clone(), current);
            let directory = (platform.settings.directory)(&dirs);
            let root = directory.canonicalize().ok()?;
            Some((directory, root))
        });
        Some(UsageCall {
            platform,
            format,
            ledger,
            directories,
            board,
            session: request.session.clone(),
            delegate: request.delegate.clone(),
            looks_at_delegates: matches!(
                request.event,
                HookEvent::Idle | HookEvent::DelegateEnded | HookEvent::Ended
            ),
            input: input.to_owned(),
        })
    }

    /// Reads new usage and appends it to the spool. Starts a fold if one is due.
    pub fn collect(&self, board: &Board) -> io::Result<()> {
        let Some(payload) = Payload::parse(&self.input) else { return Ok(()) };
        let mut ignored = 0;
        let agents = AgentsOnBoard { board, known: RefCell::default() };
        let mut has_appended = false;
        let mut append = |origin: &mut Origin, reading: &Reading| {
            agents.complete(origin);
            spool::append(self.ledger.home(), &SpoolLine::of(origin, reading))?;
            has_appended = true;
            Ok(())
        };
        let mut outcome = self.pass_messages(&payload, &mut ignored, &mut append);
        let mut left = BYTES;
        for (file, origin) in self.files(&payload) {
            let opened = Transcript::open(self.ledger.home(), file, &origin);
            let opened = opened.map(|mut opened| {
                // A fold may be the first to read it, and does not know the board.
                if let Some(opened) = opened.as_mut().filter(|opened| opened.is_new()) {
                    agents.complete(opened.origin_mut());
                }
                opened
            });
            let read = opened.and_then(|opened| match opened {
                Some(mut opened) if left > 0 => {
                    let progress = opened.read(left, &mut append)?;
                    ignored += progress.ignored;
                    Ok(progress.bytes)
                }
                // A fold reads it.
                Some(mut opened) => opened.store_if_new().map(|()| 0),
                None => Ok(0),
            });
            match read {
                Ok(bytes) => left = left.saturating_sub(bytes),
                // The other files are read anyway.
                Err(error) => outcome = Err(error),
            }
        }
        if has_appended {
            fold::start_if_due(&self.ledger)?;
        }
        if ignored > 0 {
            let problem = "messages have more tokens than a message can have, and are not counted";
            outcome = outcome.and(Err(io::Error::other(format!("{ignored} {problem}"))));
        }
        outcome
    }

    /// Messages in the input itself.
    fn pass_messages(
        &self,
        payload: &Payload<'_>,
        ignored: &mut u64,
        append: &mut dyn FnMut(&mut Origin, &Reading) -> io::Result<()>,
    ) -> io::Result<()> {
        let mut reading = Reading::default();
        for message in payload.values(self.format.messages).into_iter().take(MESSAGES) {
            (self.format.read)(message, &mut reading);
        }
        *ignored += reading.ignored;
        if reading.is_empty() {
            return Ok(());
        }
        append(&mut self.origin(self.delegate.as_deref()), &reading)
    }

    /// The files that the call is about, and whose they are.
    fn files(&self, payload: &Payload<'_>) -> Vec<(TranscriptFile, Origin)> {
        let Some((directory, root)) = &self.directories else { return Vec::new() };
        let (format, delegate) = (self.format, self.delegate.as_deref());
        let mut paths: Vec<(PathBuf, Option<String>)> = Vec::new();
        let mut add = |path: PathBuf, delegate: Option<String>| {
            let is_inside = path.starts_with(directory) || path.starts_with(root);
            if is_inside && !paths.iter().any(|(known, _)| *known == path) {
                paths.push((path, delegate));
            }
        };
        let usual =
            || Some(root.join(format.usual_transcript.filter(|_| is_name(&self.session))?(&self.session)));
        let main = payload.text(format.transcript).map(PathBuf::from).or_else(usual);
        // A platform may name the file of the session here, which has the messages of all.
        let delegate_file = payload.text(format.delegate_transcript).map(PathBuf::from);
        if let Some(path) = delegate_file.filter(|path| Some(path) != main.as_ref()) {
            add(path, delegate.map(str::to_owned));
        }
        if let Some(main) = main {
            // A thread of a session has a file of its own, whose name ends with its id.
            let stem = main.file_stem().and_then(|stem| stem.to_str()).unwrap_or_default();
            let of_delegate = delegate.filter(|delegate| stem.ends_with(delegate)).map(str::to_owned);
            let beside = format.delegates.map(|directory| directory(&main));
            add(main.clone(), of_delegate);
            if let (Some(beside), Some(delegate)) = (beside, delegate.filter(|delegate| is_name(delegate))) {
                add(beside.join(format!("agent-{delegate}.jsonl")), Some(delegate.to_owned()));
            }
            if self.looks_at_delegates {
                for (path, delegate) in transcript::delegate_files(self.platform, &main, DELEGATES) {
                    add(path, Some(delegate));
                }
            }
        }
        let files = paths.into_iter().map(|(path, delegate)| {
            let own_session = delegate.is_none().then(|| self.session.clone());
            let origin = self.origin(delegate.as_deref());
            (TranscriptFile { path, root: root.clone(), platform: self.platform, own_session }, origin)
        });
        files.collect()
    }

    fn origin(&self, delegate: Option<&str>) -> Origin {
        let session = session_id_from_hint(&self.platform.session_hint(&self.session, delegate));
        Origin { board: self.board.clone(), session, agent: None, item: None }
    }
}

/// Whether it can be a part of a file name.
fn is_name(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte))
}

/// Agents and what they work on, looked up once each and only if there is new usage.
struct AgentsOnBoard<'a> {
    board: &'a Board,
    known: RefCell<HashMap<String, Option<KnownAgent>>>,
}

/// An agent: its name, whether it is live, and its newest claim.
struct KnownAgent {
    name: String,
    is_live: bool,
    item: Option<String>,
}

impl AgentsOnBoard<'_> {
    /// Adds agent and work item: the newest claim of the session. What a session held before its end stays.
    fn complete(&self, origin: &mut Origin) {
        let mut known = self.known.borrow_mut();
        let found = known.entry(origin.session.clone()).or_insert_with_key(|session| {
            let shown = self.board.agents().show(session).ok()?;
            let newest = shown.work_items.into_iter().max_by_key(|listed| listed.item.claimed_at);
            let item = newest.map(|listed| listed.item.item_id);
            Some(KnownAgent { name: shown.agent.agent_name, is_live: shown.agent.status.is_live(), item })
        });
        if let Some(KnownAgent { name, is_live, item }) = found {
            origin.agent = Some(name.clone());
            if *is_live {
                origin.item.clone_from(item);
            }
        }
    }
}
