//! What an agent reads: when it starts, when something new concerns it, and before it edits a file that another one has.

mod quote;

use blackboard::agent::{Agent, AgentStatus};
use blackboard::brief::Brief;
use blackboard::clock::Timestamp;
use blackboard::event::{Event, TargetType};
use blackboard::file::{FileActivity, FileConflict, JUST_NOW};
use blackboard::updates::Updates;
use blackboard::work::WorkItem;

use self::quote::{quote_block, quote_line};
use super::request::MOST_PATHS;

/// How many characters an injection has at most.
pub const LIMIT: usize = 1500;

/// How many characters of one thing are shown.
const NAME: usize = 40;
const TITLE: usize = 80;
const PATH: usize = 100;
const SUMMARY: usize = 160;
const VALUE: usize = 200;

/// How many lines of one kind a brief has.
const LINES: usize = 5;

/// What a session should know when it starts.
pub fn brief(brief: &Brief) -> String {
    let mut data = Vec::new();
    let project = brief.agent.project.as_deref().unwrap_or("none");
    data.push(format!("- your project: {}", quote_line(project, NAME)));
    section(&mut data, "agents here", &brief.agents, agent);
    section(&mut data, "claimed work", &brief.claimed, |item| {
        let holder = item.claimed_by_name.as_deref().unwrap_or("somebody");
        format!("{} by {}", work(item), quote_line(holder, NAME))
    });
    section(&mut data, "available work", &brief.available, work);
    section(&mut data, "reserved files", &brief.files, |reserved| {
        let (pattern, name) = (quote_line(&reserved.pattern, PATH), quote_line(&reserved.agent_name, NAME));
        format!("{pattern} by {name} since {}", clock(reserved.since))
    });
    section(&mut data, "locks", &brief.locks, |lock| {
        let (name, holder) = (quote_line(&lock.name, NAME), quote_line(&lock.agent_name, NAME));
        format!("{name} held by {holder} since {}", clock(lock.since))
    });
    let newest: Vec<&Event> = brief.lately.events.iter().rev().collect();
    section(&mut data, "last hour, newest first", &newest, |event| event_line(event));
    quote_block(&greeting(&brief.agent), &data, LIMIT)
}

/// What this program itself has to say to a new session. Nothing in it was written by anybody else.
fn greeting(agent: &Agent) -> String {
    let session = &agent.session_id;
    if agent.parent_id.is_some() {
        return format!(
            "[blackboard] You are a sub-agent with a session of your own on the board that agents share here: {session}. You \
             have your parent's environment, so give it in every command: blackboard work claim ID --session {session}"
        );
    }
    format!(
        "[blackboard] Your session on the board that agents share here is {session}. Claim work before you do it \
         (blackboard work list, work claim ID, work complete ID) and reserve files you will change (blackboard file \
         reserve PATH). Add --session {session} if a command asks who you are."
    )
}

/// What is new.
pub fn news(news: &Updates) -> String {
    let mut data: Vec<String> = news.events.iter().map(|event| format!("- {}", event_line(event))).collect();
    if news.left_out > 0 {
        data.insert(0, format!("- ({} older events left out: blackboard observe)", news.left_out));
    }
    quote_block("[blackboard] News from other agents:", &data, LIMIT)
}

/// That others have files that an agent is about to edit, or has just edited.
pub fn warning(others: &[FileConflict], after: bool) -> String {
    let says = if after {
        "[blackboard] Another agent has a file that you just edited. Look at the file again before you go on, and \
         agree with that agent or work on something else."
    } else {
        "[blackboard] Another agent has a file that you are about to edit. Look at the file again first, and agree with \
         that agent or work on something else."
    };
    quote_block(says, &conflict_lines(others), LIMIT)
}

/// Why an agent may not edit files.
pub fn deny_message(others: &[FileConflict]) -> String {
    let says = format!(
        "[blackboard] Not edited: another agent has this file, and the configuration of this board says that it is not \
         edited meanwhile. Work on something else; {}.",
        when_to_try_again(others)
    );
    quote_block(&says, &conflict_lines(others), LIMIT)
}

/// The log line about an edit of which not all files were checked.
pub const NOT_CHECKED: &str =
    "some files of the edit were not checked: too many files, or paths that are too long";

/// That some files of an edit were not compared with what others hold.
pub fn unchecked() -> String {
    format!(
        "[blackboard] Some files of this edit were not checked against the reservations of other agents: the edit has more \
         than {MOST_PATHS} files, or paths that are too long."
    )
}

/// Why an agent may not make an edit of which some files were not checked.
pub fn unchecked_denial() -> String {
    format!(
        "[blackboard] Not edited: some files of this edit cannot be checked against the reservations of other agents, because \
         the edit has more than {MOST_PATHS} files or paths that are too long, and the configuration of this board requires \
         the check. Split the edit: at most {MOST_PATHS} files at once."
    )
}

/// What to wait for. The end of a reservation is told; that an edit is long ago is told by nobody.
fn when_to_try_again(others: &[FileConflict]) -> String {
    let is_reserved = |other: &&FileConflict| matches!(other.touch, FileActivity::Reserved { .. });
    let last_edit = others.iter().filter(|other| !is_reserved(other)).map(|other| other.since).max();
    let quiet = last_edit.map(|edit| clock(edit.plus(JUST_NOW)));
    match (others.iter().any(|other| is_reserved(&other)), quiet) {
        (_, None) => "you will be told when it is free".to_owned(),
        (false, Some(quiet)) => format!("try again after {quiet} if nobody edits it until then"),
        (true, Some(quiet)) => {
            format!("you will be told when it is no longer reserved, and try again after {quiet}")
        }
    }
}

fn conflict_lines(others: &[FileConflict]) -> Vec<String> {
    let line = |other: &FileConflict| {
        let path = quote_line(&other.path, PATH);
        let name = format!("{} ({})", quote_line(&other.agent_name, NAME), short(&other.session_id));
        let working = match &other.current_work {
            Some(work) => format!(", who works on \"{}\"", quote_line(work, TITLE)),
            None => String::new(),
        };
        let when = clock(other.since);
        match &other.touch {
            FileActivity::Reserved { pattern, note } => {
                let note =
                    note.as_ref().map(|note| format!(": {}", quote_line(note, TITLE))).unwrap_or_default();
                let pattern = quote_line(pattern, PATH);
                format!("- {path}: reserved ({pattern}) by {name}{working}, since {when}{note}")
            }
            FileActivity::Edited { .. } => format!("- {path}: edited by {name}{working}, at {when}"),
        }
    };
    others.iter().map(line).collect()
}

fn section<T>(data: &mut Vec<String>, title: &str, items: &[T], line: impl Fn(&T) -> String) {
    if items.is_empty() {
        return;
    }
    data.push(format!("- {title} ({}):", items.len()));
    data.extend(items.iter().take(LINES).map(|item| format!("  - {}", line(item))));
}

fn agent(agent: &Agent) -> String {
    let project = agent.project.as_deref().map(|project| format!(", {}", quote_line(project, NAME)));
    let idle = if agent.status == AgentStatus::Idle { ", idle" } else { "" };
    let work = agent.current_work.as_deref().map(|work| format!(": {}", quote_line(work, TITLE)));
    format!(
        "{} ({}{}{idle}){}",
        quote_line(&agent.agent_name, NAME),
        short(&agent.session_id),
        project.unwrap_or_default(),
        work.unwrap_or_default()
    )
}

/// As much of a session's id as tells it from others, and as the key of an entry needs to reach it.
fn short(session: &str) -> String {
    quote_line(session, usize::MAX / 4).chars().take(8).collect()
}

fn work(item: &WorkItem) -> String {
    format!("{} {}: {}", item.priority, quote_line(&item.item_id, TITLE), quote_line(&item.title, TITLE))
}

fn event_line(event: &Event) -> String {
    let value = event.entry.as_ref().and_then(|change| change.value.as_ref());
    // Locks and reservations say everything in their summary.
    let value = value.filter(|_| event.entry.as_ref().is_some_and(|change| !is_lease(&change.scope)));
    let value = value.map(|value| format!(" = {}", quote_line(value.as_str(), VALUE))).unwrap_or_default();
    // What was done to which item comes first: a title may be long, and no command takes it.
    let item = event.target_id.as_deref().filter(|_| event.target_type == Some(TargetType::WorkItem));
    let item =
        item.map(|item| format!("{} {}: ", event.event_type, quote_line(item, TITLE))).unwrap_or_default();
    format!("{} {item}{}{value}", clock(event.timestamp), quote_line(&event.summary, SUMMARY))
}

fn is_lease(scope: &str) -> bool {
    matches!(scope, blackboard::entry::LOCKS | blackboard::entry::FILES)
}

/// The time of the day, in UTC.
fn clock(moment: Timestamp) -> String {
    let text = moment.to_string();
    format!("{}Z", text.get(11..16).unwrap_or(&text))
}
