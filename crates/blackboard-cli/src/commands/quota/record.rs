//! `blackboard quota record`

use std::path::PathBuf;
use std::time::Duration;

use blackboard::clock::Timestamp;
use blackboard::quota::{Ledger, Record, ReportedLimit, Usage};
use blackboard::{Code, Error, Refusal, Result, duration};
use serde::Deserialize;

use super::tokens;
use crate::commands::Run;
use crate::commands::arguments::Session;
use crate::commands::entry::input::read_document;
use crate::context::Context;
use crate::outcome::Outcome;
use crate::output::quota::{RecordedUsage, UsageReport};
use crate::output::shortened;
use crate::quota::{Caller, ledger};

/// How many bytes one call reads.
const LARGEST_INPUT: usize = 64 * 1024 * 1024;
const LONGEST_LINE: usize = 64 * 1024;

/// How far ahead of this machine a message may be: clocks differ.
const AHEAD: Duration = Duration::from_mins(5);

/// Record used tokens, once per message id
///
/// Records the numbers of one message, or JSON lines of a file: {"id", "model", "provider", "at", "board", "session",
/// "agent", "item", "usage": {"input", "cache_write", "cache_read", "output", "reasoning"}}, or a limit that the platform
/// reports: {"provider", "limit": {"window", "used_percent", "resets_at"}}. A message whose id is known is not counted
/// again. A message has at most 20,000,000 tokens and is not in the future. If a line is invalid, nothing is recorded
/// (exit 2). A limit of a window that is not configured, or that has been reset, is ignored.
///
/// Examples:
///   blackboard quota record --id msg_1 --input-tokens 1200 --output-tokens 300
///   blackboard quota record usage.jsonl
///   blackboard quota record - < usage.jsonl
#[derive(clap::Args, Debug)]
#[command(verbatim_doc_comment)]
pub struct RecordUsage {
    /// File with JSON lines; - is standard input
    #[arg(
        value_name = "FILE",
        conflicts_with_all = ["id", "model", "item", "at", "input", "cache_write", "cache_read", "output", "reasoning"]
    )]
    file: Option<PathBuf>,

    /// Id of the message, unique for all platforms [default: a new one]
    #[arg(long, value_name = "ID")]
    id: Option<String>,

    /// Provider [default: that of the model, or the only one]
    #[arg(long, value_name = "NAME")]
    provider: Option<String>,

    /// Model
    #[arg(long, value_name = "NAME")]
    model: Option<String>,

    /// Work item [default: none]
    #[arg(long, value_name = "ID")]
    item: Option<String>,

    /// When the message ended, as an ISO 8601 time [default: now]
    #[arg(long, value_name = "TIME")]
    at: Option<String>,

    /// Input that was neither read from a cache nor written to it
    #[arg(long = "input-tokens", value_name = "N", value_parser = tokens)]
    input: Option<u64>,

    /// Input that was written to a cache
    #[arg(long, value_name = "N", value_parser = tokens)]
    cache_write: Option<u64>,

    /// Input that was read from a cache
    #[arg(long, value_name = "N", value_parser = tokens)]
    cache_read: Option<u64>,

    /// Output without reasoning
    #[arg(long = "output-tokens", value_name = "N", value_parser = tokens)]
    output: Option<u64>,

    /// Reasoning
    #[arg(long, value_name = "N", value_parser = tokens)]
    reasoning: Option<u64>,

    #[command(flatten)]
    session: Session,
}

/// A line of the input.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Line {
    id: Option<String>,
    provider: Option<String>,
    model: Option<String>,
    board: Option<String>,
    session: Option<String>,
    agent: Option<String>,
    item: Option<String>,
    at: Option<Moment>,
    usage: Option<Usage>,
    limit: Option<LimitOfLine>,
}

/// A limit that a platform reports.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct LimitOfLine {
    window: String,
    used_percent: f64,
    resets_at: Moment,
}

/// A moment: ISO 8601, or seconds since 1970.
#[derive(Deserialize)]
#[serde(untagged)]
enum Moment {
    Seconds(u32),
    Text(String),
}

impl Moment {
    fn timestamp(&self) -> Result<Timestamp> {
        match self {
            Moment::Seconds(seconds) => Ok(Timestamp::from_millis(i64::from(*seconds) * 1_000)),
            Moment::Text(text) => moment(text),
        }
    }
}

fn moment(text: &str) -> Result<Timestamp> {
    text.parse().map_err(|_| {
        Refusal::new(
            Code::InvalidValue,
            format!("\"{}\" is not an ISO 8601 time with a zone", shortened(text, 60)),
        )
        .hint("write it as 2026-02-03T15:30:00Z")
        .into()
    })
}

impl Run for RecordUsage {
    fn run(mut self, context: &Context) -> Result<Outcome> {
        let text = self.file.as_deref().map(|file| read_document(file, LARGEST_INPUT)).transpose()?;
        let at = self.at.as_deref().map(moment).transpose()?;
        let caller = Caller::find(context, &self.session)?;
        let ledger = ledger(context)?;
        let is_one = text.is_none();
        let (records, limits) = match text {
            Some(text) => parse(&ledger, &caller, self.provider.as_deref(), &text)?,
            None => (vec![self.record(&ledger, &caller, at)?], Vec::new()),
        };
        if let Some(item) = records.first().and_then(|record| record.item.as_deref()).filter(|_| is_one) {
            caller.note_unknown_item(context, item);
        }
        let recorded = ledger.record(&records)?;
        let (limits, ignored): (Vec<_>, Vec<_>) =
            limits.into_iter().partition(|limit| ledger.replaces_a_sum(limit));
        let limits_ignored = ignored.len() as u64;
        let limits = if limits.is_empty() { 0 } else { ledger.report(&limits)? };
        // The usage is recorded, whether or not the board can be written.
        if let Err(error) = caller.announce(context, &ledger) {
            context.note(&format!("a warning of the quota is not on the board: {error}"));
        }
        Ok(Outcome::new(RecordedUsage(UsageReport { recorded, limits, limits_ignored })))
    }
}

impl RecordUsage {
    fn record(&mut self, ledger: &Ledger, caller: &Caller, at: Option<Timestamp>) -> Result<Record> {
        let numbers = [self.input, self.cache_write, self.cache_read, self.output, self.reasoning];
        if numbers.iter().all(Option::is_none) {
            return Err(Refusal::new(Code::Usage, "quota record requires a number of tokens or FILE")
                .hint("pass --input-tokens, --cache-write, --cache-read, --output-tokens or --reasoning")
                .into());
        }
        let [input, cache_write, cache_read, output, reasoning] = numbers.map(Option::unwrap_or_default);
        let id = self.id.take().unwrap_or_else(|| uuid::Uuid::new_v4().to_string());
        let provider = ledger.provider_for(self.provider.as_deref(), self.model.as_deref())?;
        let usage = Usage { input, cache_write, cache_read, output, reasoning };
        let at = at.unwrap_or_else(|| ledger.now());
        refuse_future(ledger, at)?;
        Ok(Record {
            model: self.model.take().unwrap_or_default(),
            board: Some(caller.name.clone()),
            session: caller.session.clone(),
            agent: caller.agent.clone(),
            item: self.item.take(),
            ..Record::new(id, provider, at, usage)
        })
    }
}

/// A message of the future would stay in its windows until then.
fn refuse_future(ledger: &Ledger, at: Timestamp) -> Result<()> {
    if at > ledger.now().plus(AHEAD) {
        return Err(Error::invalid(format!("{at} is in the future")));
    }
    Ok(())
}

/// All records and limits in JSON lines.
fn parse(
    ledger: &Ledger,
    caller: &Caller,
    provider: Option<&str>,
    text: &str,
) -> Result<(Vec<Record>, Vec<ReportedLimit>)> {
    let (mut records, mut limits) = (Vec::new(), Vec::new());
    for (number, line) in (1..).zip(text.lines()) {
        if line.trim().is_empty() {
            continue;
        }
        let of_line = |error: Error| -> Error {
            let message = format!("line {number}: {error}");
            Refusal::new(Code::InvalidValue, message)
                .hint("nothing was recorded; correct it and retry")
                .into()
        };
        if line.len() > LONGEST_LINE {
            return Err(of_line(Error::invalid("it is longer than 64 KB")));
        }
        if !line.trim_start().starts_with('{') {
            return Err(of_line(Error::invalid("it is not a JSON object")));
        }
        let parsed: Line = serde_json::from_str(line).map_err(|error| {
            // The line of the error is the one inside of this line.
            let (text, place) = (error.to_string(), format!(" at line 1 column {}", error.column()));
            of_line(Error::invalid(shortened(text.strip_suffix(&place).unwrap_or(&text), 200).into_owned()))
        })?;
        parsed.read(ledger, caller, provider, &mut records, &mut limits).map_err(of_line)?;
    }
    Ok((records, limits))
}

impl Line {
    fn read(
        self,
        ledger: &Ledger,
        caller: &Caller,
        provider: Option<&str>,
        records: &mut Vec<Record>,
        limits: &mut Vec<ReportedLimit>,
    ) -> Result<()> {
        let provider = ledger.provider_for(self.provider.as_deref().or(provider), self.model.as_deref())?;
        let at = self.at.as_ref().map(Moment::timestamp).transpose()?.unwrap_or_else(|| ledger.now());
        if let Some(limit) = &self.limit {
            let length: Duration = duration::parse(&limit.window)?;
            limits.push(ReportedLimit {
                provider: provider.clone(),
                window_minutes: length.as_secs() / 60,
                used_percent: limit.used_percent,
                resets_at: limit.resets_at.timestamp()?,
                reported_at: at,
            });
        }
        let Some(usage) = self.usage else {
            let has_limit = self.limit.is_some();
            return if has_limit { Ok(()) } else { Err(Error::invalid("it has neither usage nor a limit")) };
        };
        let id = self.id.ok_or_else(|| Error::invalid("it has no id"))?;
        // A session belongs to a board: what names a session of its own is not of the caller.
        let (session, agent) = match self.session {
            Some(session) => (Some(session), self.agent),
            None => (caller.session.clone(), self.agent.or_else(|| caller.agent.clone())),
        };
        let record = Record {
            model: self.model.unwrap_or_default(),
            board: Some(caller.name_of(self.board)),
            session,
            agent,
            item: self.item,
            ..Record::new(id, provider, at, usage)
        };
        refuse_future(ledger, at)?;
        record.check()?;
        records.push(record);
        Ok(())
    }
}
