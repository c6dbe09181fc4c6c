//! The texts that a model reads: the brief of a session, updates, and warnings about files that it edits.

mod quota;
mod quote;

use blackboard::agent::{Agent, AgentStatus, ListedAgent, ShortIds};
use blackboard::brief::Brief;
use blackboard::clock::Timestamp;
use blackboard::event::{Event, TargetType};
use blackboard::file::{FileActivity, FileConflict, JUST_NOW};
use blackboard::memory::MAX_RECORD_LENGTH;
use blackboard::text::escape_for_terminal;
use blackboard::updates::Updates;
use blackboard::work::WorkItem;

pub use self::quota::quota_line;
use self::quote::Title;
pub use self::quote::{Section, quote_block, quote_line};
use super::request::MOST_PATHS;

/// The maximum number of characters of one message.
pub const LIMIT: usize = 1500;

/// The maximum number of characters of one text in a message.
const NAME: usize = 40;
const LONGEST_ID: usize = 40;
const TITLE: usize = 80;
const PATH: usize = 100;
const SUMMARY: usize = 160;
const VALUE: usize = 200;
const SOURCE: usize = 300;

/// The maximum number of lines of one section of a brief.
const LINES: usize = 5;

/// The lines that the token quota has for a session. They are of this program.
pub fn quota_notice(lines: &str) -> String {
    let lines: Vec<_> = lines.lines().map(escape_for_terminal).collect();
    lines.join("\n").chars().take(LIMIT).collect()
}

/// Texts of other agents for a model, each with its source, in a quote block. `says` is of this program.
pub fn quoted_records<'t>(says: &str, records: impl Iterator<Item = (&'t str, String)>) -> String {
    let lines = records.map(|(text, source)| {
        format!("- {} ({})", quote_line(text, MAX_RECORD_LENGTH), quote_line(&source, SOURCE))
    });
    quote_block(says, &[Section::untitled(lines.collect())], None, usize::MAX)
}

/// The brief of a session that starts. The sections are in the order of their importance: [`quote_block`] distributes
/// the characters in this order. `quota` is what [`quota_line`] has written, or empty.
pub fn brief(brief: &Brief, quota: &str) -> String {
    let session = &brief.agent.session_id;
    let (own, claimed): (Vec<&WorkItem>, Vec<&WorkItem>) =
        brief.claimed.iter().partition(|item| item.claimed_by.as_ref() == Some(session));
    let newest: Vec<&Event> = brief.recent.events.iter().rev().collect();
    let holders = claimed.iter().filter_map(|item| item.claimed_by.as_deref());
    let ids = short_ids(
        newest.iter().copied(),
        (brief.agents.iter().map(|listed| listed.agent.session_id.as_str()))
            .chain(holders)
            .chain(brief.files.iter().map(|reserved| reserved.session_id.as_str()))
            .chain(brief.locks.iter().map(|lock| lock.session_id.as_str()))
            .chain(brief.conflicts.iter().map(|other| other.session_id.as_str()))
            .chain(brief.assigned_by.values().map(|by| by.session_id.as_str())),
    );
    let sections = [
        section("conflicts on your files", &brief.conflicts, |other| conflict(other, ids)),
        Section::untitled(about_you(&brief.agent, brief.has_registered_project)),
        section("your work", &own, |item| {
            let by = brief.assigned_by.get(&item.item_id).map(|by| {
                format!(", {} assigned it to you", agent_label(&by.agent_name, &by.session_id, ids))
            });
            format!("{}{}", work(item), by.unwrap_or_default())
        }),
        remembered(brief),
        section("other agents", &brief.agents, |other| agent(other, ids)),
        section("claimed work", &claimed, |item| {
            let holder = item.claimed_by.as_deref().map(|session| {
                let name = item.claimed_by_name.as_deref().unwrap_or("unnamed");
                format!(", claimed by {}", agent_label(name, session, ids))
            });
            format!("{}{}", work(item), holder.unwrap_or_default())
        })
        .or_more(brief.more_claimed),
        section("reserved files", &brief.files, |reserved| {
            let holder = agent_label(&reserved.agent_name, &reserved.session_id, ids);
            format!("{} by {holder} since {}", quote_line(&reserved.pattern, PATH), clock(reserved.since))
        }),
        section("locks", &brief.locks, |lock| {
            let holder = agent_label(&lock.agent_name, &lock.session_id, ids);
            format!("{} held by {holder} since {}", quote_line(&lock.name, NAME), clock(lock.since))
        }),
        section("available work", &brief.available, work).or_more(brief.more_available),
        section("last hour, newest first", &newest, |event| event_line(event, session, ids)),
    ];
    let greeting = greeting(&brief.agent, brief.has_registered_project);
    quote_block(&format!("{greeting}{quota}"), &sections, None, LIMIT)
}

/// What is remembered: how much, and the best records for the work of the session.
fn remembered(brief: &Brief) -> Section {
    let Some(memory) = &brief.memory else { return Section::untitled(Vec::new()) };
    let lines = memory.best.iter().map(|record| {
        format!("  - {} (by {})", quote_line(&record.text, SUMMARY), quote_line(&record.remembered_by, NAME))
    });
    let total = usize::try_from(memory.records).unwrap_or(usize::MAX);
    let text = "remembered, more with `blackboard recall WORDS`".to_owned();
    Section { title: Some(Title { text, total, or_more: false }), lines: lines.collect() }
}

/// The part of a brief outside of the quote block. It contains no text that another agent may have written.
fn greeting(agent: &Agent, has_registered_project: bool) -> String {
    let session = &agent.session_id;
    let project = agent.project.as_deref().filter(|project| is_plain(project));
    let project =
        project.map(|project| format!(" in project {}", named_project(project, has_registered_project)));
    let project = project.unwrap_or_default();
    if agent.parent_id.is_some() {
        return format!(
            "[blackboard] You are a subagent with your own session {session}{project} on the shared board. Your shell has your parent's \
             environment, so add --session {session} to every blackboard command."
        );
    }
    let name = if is_plain(&agent.agent_name) { format!("{}, ", agent.agent_name) } else { String::new() };
    format!(
        "[blackboard] You share a board with other agents. You are {name}session {session}{project}. Before you start: `blackboard \
         work list`, then `blackboard work claim ITEM`. Before you edit: `blackboard file reserve PATH`. When done: \
         `blackboard work complete ITEM`. If a command asks for a session, add --session {session}."
    )
}

/// Whether a name is one word that cannot be read as an instruction. Any agent can register a session again under
/// another name, so all other names are quoted.
fn is_plain(name: &str) -> bool {
    let is_plain =
        |character: char| character.is_ascii_alphanumeric() || matches!(character, '-' | '_' | '.');
    !name.is_empty() && name.len() <= NAME && name.chars().all(is_plain)
}

/// The name of a project. It may be that of the directory or of its repository: commands refuse a project that does not
/// exist.
fn named_project(project: &str, is_registered: bool) -> String {
    format!("{}{}", quote_line(project, NAME), if is_registered { "" } else { " (not registered)" })
}

/// The names of the session itself that are not plain.
fn about_you(agent: &Agent, has_registered_project: bool) -> Vec<String> {
    let name = Some(&agent.agent_name).filter(|name| !is_plain(name));
    let name = name.map(|name| format!("- your name: {}", quote_line(name, NAME)));
    let project = agent.project.as_ref().filter(|project| !is_plain(project));
    let project =
        project.map(|project| format!("- your project: {}", named_project(project, has_registered_project)));
    name.into_iter().chain(project).collect()
}

/// What other agents did since the last message to this session.
pub fn updates(updates: &Updates, session: &str) -> String {
    let ids = short_ids(&updates.events, []);
    let lines = updates.events.iter().map(|event| format!("- {}", event_line(event, session, ids))).collect();
    let omitted = match updates.left_out {
        0 => None,
        1 => Some("1 older update omitted: run `blackboard observe`.".to_owned()),
        count => Some(format!("{count} older updates omitted: run `blackboard observe`.")),
    };
    let says = "[blackboard] Updates from other agents:";
    quote_block(says, &[Section::untitled(lines)], omitted.as_deref(), LIMIT)
}

/// The warning that other agents work on files that the agent is about to edit, or has just edited.
pub fn warning(others: &[FileConflict], after: bool) -> String {
    let when = if after { "just edited" } else { "are about to edit" };
    let says = format!(
        "[blackboard] Another agent is working on a file you {when}. Read the file again, then coordinate with that agent or \
         work on something else."
    );
    quote_block(&says, &[Section::untitled(conflict_lines(others))], None, LIMIT)
}

/// The reason why an edit is denied.
pub fn deny_message(others: &[FileConflict], is_registered: bool) -> String {
    let says = format!(
        "[blackboard] Edit blocked: another agent is working on this file, and this board denies concurrent edits \
         (fileGuard: deny). Work on something else; {}.",
        when_to_try_again(others, is_registered)
    );
    quote_block(&says, &[Section::untitled(conflict_lines(others))], None, LIMIT)
}

/// The log line about an edit whose files were not all checked.
pub const NOT_CHECKED: &str =
    "some files of the edit were not checked: too many files, or paths that are too long";

/// The warning that some files of an edit were not checked.
pub fn unchecked() -> String {
    format!(
        "[blackboard] Check with `blackboard file check PATH` whether other agents reserved the files of this edit. Some were not \
         checked: the edit has more than {MOST_PATHS} files, or paths that are too long."
    )
}

/// The reason why an edit with unchecked files is denied.
pub fn unchecked_denial() -> String {
    format!(
        "[blackboard] Edit blocked: split this edit into edits of at most {MOST_PATHS} files. This board checks every file \
         (fileGuard: deny), and this edit has too many files or paths that are too long."
    )
}

/// When to try again. A registered agent is notified when a reservation ends, but not when the last edit is long ago.
fn when_to_try_again(others: &[FileConflict], is_registered: bool) -> String {
    let is_reserved = |other: &&FileConflict| matches!(other.activity, FileActivity::Reserved { .. });
    let last_edit = others.iter().filter(|other| !is_reserved(other)).map(|other| other.since).max();
    let quiet = last_edit.map(|edit| clock(edit.plus(JUST_NOW)));
    match (others.iter().any(|other| is_reserved(&other)), quiet) {
        (_, None) if is_registered => "you will be notified when the file is released".to_owned(),
        (_, None) => "run `blackboard file check PATH` before you try again".to_owned(),
        (false, Some(quiet)) => format!("try again after {quiet} if no agent edits it until then"),
        (true, Some(quiet)) if !is_registered => {
            format!("run `blackboard file check PATH` before you try again, after {quiet}")
        }
        (true, Some(quiet)) => {
            format!("you will be notified when the file is released; then try again after {quiet}")
        }
    }
}

fn conflict_lines(others: &[FileConflict]) -> Vec<String> {
    let ids = ShortIds::of(others.iter().map(|other| other.session_id.as_str()));
    others.iter().map(|other| format!("- {}", conflict(other, ids))).collect()
}

fn conflict(other: &FileConflict, ids: ShortIds) -> String {
    let path = quote_line(&other.path, PATH);
    let name = agent_label(&other.agent_name, &other.session_id, ids);
    let working = match &other.current_work {
        Some(work) => format!(", working on \"{}\"", quote_line(work, TITLE)),
        None => String::new(),
    };
    let when = clock(other.since);
    match &other.activity {
        FileActivity::Reserved { pattern, note } => {
            let note = note.as_ref().map(|note| format!(": {}", quote_line(note, TITLE))).unwrap_or_default();
            let pattern = quote_line(pattern, PATH);
            format!("{path}: reserved ({pattern}) by {name}{working}, since {when}{note}")
        }
        FileActivity::Edited { .. } => format!("{path}: edited by {name}{working}, at {when}"),
    }
}

fn section<T>(title: &str, items: &[T], line: impl Fn(&T) -> String) -> Section {
    let lines = items.iter().take(LINES).map(|item| format!("  - {}", line(item)));
    let title = Title { text: title.to_owned(), total: items.len(), or_more: false };
    Section { title: Some(title), lines: lines.collect() }
}

fn agent(listed: &ListedAgent, ids: ShortIds) -> String {
    let agent = &listed.agent;
    let project = agent.project.as_deref().map(|project| format!(", {}", quote_line(project, NAME)));
    let idle = if agent.status == AgentStatus::Idle { ", idle" } else { "" };
    let work = agent.current_work.as_deref().map(|work| format!(": {}", quote_line(work, TITLE)));
    format!(
        "{}{}{idle}{}{}",
        agent_label(&agent.agent_name, &agent.session_id, ids),
        project.unwrap_or_default(),
        if listed.is_gone() { ", process gone" } else { "" },
        work.unwrap_or_default()
    )
}

/// `NAME (SHORT)`, quoted.
fn agent_label(name: &str, session: &str, ids: ShortIds) -> String {
    ids.label(&quote_line(name, NAME), &quote_line(session, LONGEST_ID))
}

/// The length of the session ids in one message: those of the agents that its events name, and these.
fn short_ids<'a>(
    events: impl IntoIterator<Item = &'a Event>,
    sessions: impl IntoIterator<Item = &'a str>,
) -> ShortIds {
    let named: Vec<_> = events.into_iter().filter_map(Event::named_agent).collect();
    let mut all: Vec<&str> = named.iter().map(|(_, session)| session.as_str()).collect();
    for session in sessions {
        all.push(session);
    }
    ShortIds::of(all)
}

fn work(item: &WorkItem) -> String {
    format!("{} {}: {}", item.priority, quote_line(&item.item_id, TITLE), quote_line(&item.title, TITLE))
}

fn event_line(event: &Event, reader: &str, ids: ShortIds) -> String {
    let value = event.entry.as_ref().and_then(|change| change.value.as_ref());
    // The summary of a lock or a reservation is complete.
    let value = value.filter(|_| event.entry.as_ref().is_some_and(|change| !is_lease(&change.scope)));
    let value = value.map(|value| format!(" = {}", quote_line(value.as_str(), VALUE))).unwrap_or_default();
    // The id comes first: commands accept it, and a long title is shortened.
    let item = event.target_id.as_deref().filter(|_| event.target_type == Some(TargetType::WorkItem));
    let item =
        item.map(|item| format!("{} {}: ", event.event_type, quote_line(item, TITLE))).unwrap_or_default();
    format!(
        "{} {item}{}{value}",
        clock(event.timestamp),
        quote_line(&event.summary_for(reader, ids), SUMMARY)
    )
}

fn is_lease(scope: &str) -> bool {
    matches!(scope, blackboard::entry::LOCKS | blackboard::entry::FILES)
}

/// The time of the day, in UTC.
fn clock(moment: Timestamp) -> String {
    let text = moment.to_string();
    format!("{}Z", text.get(11..16).unwrap_or(&text))
}
