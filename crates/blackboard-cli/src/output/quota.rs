//! The token quota, as human and JSON output.

use blackboard::agent::short_id;
use blackboard::clock::Timestamp;
use blackboard::quota::{
    Config, HistoryPoint, ProviderStatus, Recorded, Reserved, Status, Step, UncountedModel, WindowStatus,
};
use blackboard::text::{grouped, shell_word};
use serde::Serialize;

use super::{Cell, Column, Result, Screen, Table, Tone, escape, render_object, time};
use crate::envelope::Answer;
use crate::outcome::Render;

/// How many agents and work items a status shows.
const ROWS: usize = 10;

/// The width of the longest bar.
const BAR: usize = 40;

/// The columns of a step and its number, beside the bar.
const BESIDE_BAR: usize = 34;

/// What `quota record` has recorded.
#[derive(Serialize)]
pub struct UsageReport {
    /// Messages.
    #[serde(flatten)]
    pub recorded: Recorded,
    /// Limits that were reported.
    pub limits: u64,
    /// Limits that replace no sum: of a window that is not configured, or that has been reset.
    pub limits_ignored: u64,
}

/// What `quota fold` has done.
#[derive(Default, Serialize)]
pub struct FoldReport {
    /// Messages that were counted.
    pub counted: u64,
    /// Thresholds that were announced.
    pub announced: usize,
    /// Reservations of sessions that have ended.
    pub released: usize,
}

/// What `quota release` has released.
#[derive(Serialize)]
pub struct ReleasedTokens {
    /// The number of reservations.
    pub released: usize,
}

/// The configuration that `quota init` and `quota set` have written.
#[derive(Serialize)]
pub struct SetQuota {
    /// The file.
    pub file: String,
    /// The changed key; none if all of it is new.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    /// The complete quota.
    pub quota: Config,
}

render_object! {
    /// The answer of `quota init` and `quota set`.
    ConfiguredQuota(SetQuota) = configured;
    /// The answer of `quota check`.
    CheckedQuota(Reserved) = checked;
    /// The answer of `quota record`.
    RecordedUsage(UsageReport) = recorded;
    /// The answer of `quota fold`.
    FoldedUsage(FoldReport) = folded;
    /// The answer of `quota release`.
    Released(ReleasedTokens) = released;
}

/// The answer of `quota status`.
pub struct QuotaStatus(pub Status);

impl Render for QuotaStatus {
    fn json(&self, answer: &mut Answer<'_>) -> Result {
        answer.object(&self.0)
    }

    fn human(&self, screen: &mut Screen<'_>) -> Result {
        for (place, provider) in self.0.providers.iter().enumerate() {
            if place > 0 {
                screen.gap()?;
            }
            show_provider(provider, screen)?;
        }
        show_uncounted(&self.0, screen)
    }

    fn needs_board(&self) -> bool {
        false
    }
}

/// The answer of `quota history`.
#[derive(Serialize)]
pub struct QuotaHistory {
    /// One for each provider.
    pub histories: Vec<UsageHistory>,
}

/// The usage of a provider over time.
#[derive(Serialize)]
pub struct UsageHistory {
    /// The provider.
    pub provider: String,
    /// The time between two points.
    pub step: Step,
    /// The points, the oldest one first.
    pub points: Vec<HistoryPoint>,
}

impl Render for QuotaHistory {
    fn json(&self, answer: &mut Answer<'_>) -> Result {
        answer.object(self)
    }

    fn human(&self, screen: &mut Screen<'_>) -> Result {
        for (place, history) in self.histories.iter().enumerate() {
            if place > 0 {
                screen.gap()?;
            }
            show_history(history, screen)?;
        }
        Ok(())
    }

    fn needs_board(&self) -> bool {
        false
    }
}

/// The lines of `status`: one for each provider, and warnings below it.
pub fn show_briefly(status: &Status, screen: &mut Screen<'_>) -> Result {
    for (place, provider) in status.providers.iter().enumerate() {
        let label = if place == 0 { "Quota:" } else { "" };
        let windows: Vec<_> = provider.windows.iter().map(briefly).collect();
        let windows = if windows.is_empty() { "no windows".to_owned() } else { windows.join(", ") };
        let text = format!("{} {windows}", escape(&provider.provider));
        screen.wrapped_line(&format!("{label:<11}"), &text)?;
        for window in &provider.windows {
            if let Some(text) = passed(window) {
                caution_line("           ", &text, screen)?;
            }
        }
    }
    Ok(())
}

/// `5h 320k of 500k (64%)`
fn briefly(window: &WindowStatus) -> String {
    let reported = if window.reported.is_some() { ", reported" } else { "" };
    let (used, budget) = (compact(window.used), compact(window.budget));
    format!("{} {used} of {budget} ({}%{reported})", escape(&window.window), percent(window))
}

/// The largest threshold that a window has passed.
fn passed(window: &WindowStatus) -> Option<String> {
    let share = window.warning? * 100.0;
    Some(format!("warning: the {} window has passed {share:.0}% of its budget", escape(&window.window)))
}

/// A line that a person should not miss. It has its color if it fits into one line.
fn caution_line(indent: &str, text: &str, screen: &mut Screen<'_>) -> Result {
    let length = indent.len() + text.chars().count();
    if screen.width().is_some_and(|width| usize::from(width) < length) {
        return screen.wrapped_line(indent, text);
    }
    let painted = screen.styles().paint(Tone::Caution, text);
    screen.line(format_args!("{indent}{painted}"))
}

/// The used percentage of a window, rounded down. It may be more than 100.
pub fn percent(window: &WindowStatus) -> u64 {
    window.used.saturating_mul(100) / window.budget.max(1)
}

/// A number of tokens in a sentence, rounded down: `999`, `1.2k`, `320k`, `2.1M`.
pub fn compact(number: u64) -> String {
    let (unit, name) = match number {
        0..1_000 => return number.to_string(),
        1_000..1_000_000 => (1_000, "k"),
        1_000_000..1_000_000_000 => (1_000_000, "M"),
        _ => (1_000_000_000, "G"),
    };
    let tenths = number / (unit / 10) % 10;
    if number < 10 * unit && tenths > 0 {
        return format!("{}.{tenths}{name}", number / unit);
    }
    format!("{}{name}", number / unit)
}

/// A moment in a sentence, in UTC: its time, and its date if that is another one than today.
pub fn clock_time(moment: Timestamp, now: Timestamp) -> String {
    let (text, today) = (moment.to_string(), now.to_string());
    let time = text.get(11..16).unwrap_or_default();
    match (text.get(..10), today.get(..10)) {
        (Some(date), Some(today)) if date != today => format!("{date} {time}Z"),
        _ => format!("{time}Z"),
    }
}

fn configured(set: &SetQuota, screen: &mut Screen<'_>) -> Result {
    let file = escape(&set.file);
    if let Some(key) = &set.key {
        return screen.line(format_args!("Changed quota.{} in {file}", escape(key)));
    }
    screen.line(format_args!("Wrote an example of a token quota to {file}"))?;
    let set = screen.command("quota set providers.anthropic.windows.5h.budget N");
    screen.line(format_args!("Change the budgets there, or with: {set}"))?;
    screen.line(format_args!("Then see: {}", screen.command("quota status")))
}

fn checked(reserved: &Reserved, screen: &mut Screen<'_>) -> Result {
    let check = &reserved.check;
    let (tokens, provider) = (grouped(check.tokens), escape(&check.provider));
    if let Some(reservation) = &reserved.reservation {
        let ttl = time::left(reservation.expires_at.since(screen.now()));
        return screen
            .line(format_args!("Reserved {tokens} tokens of {provider} for {ttl}: {}", reservation.id));
    }
    let available = match check.available {
        Some(available) => format!("{} available", grouped(available)),
        None => "no limit".to_owned(),
    };
    screen.line(format_args!("{tokens} tokens of {provider} fit ({available})"))
}

fn recorded(report: &UsageReport, screen: &mut Screen<'_>) -> Result {
    let Recorded { recorded, duplicates, skipped } = report.recorded;
    let mut parts = vec![format!("{recorded} recorded")];
    for (count, what) in [(duplicates, "known already"), (skipped, "too old")] {
        if count > 0 {
            parts.push(format!("{count} {what}"));
        }
    }
    screen.line(format_args!("Messages: {}", parts.join(", ")))?;
    if report.limits > 0 {
        screen.line(format_args!("Limits of the platform: {}", report.limits))?;
    }
    if report.limits_ignored > 0 {
        screen.line(format_args!(
            "Ignored limits: {} (their window is not configured, or has been reset)",
            report.limits_ignored
        ))?;
    }
    Ok(())
}

fn folded(report: &FoldReport, screen: &mut Screen<'_>) -> Result {
    match report.counted {
        1 => screen.line(format_args!("Counted 1 message"))?,
        count => screen.line(format_args!("Counted {count} messages"))?,
    }
    for (count, one, more) in [
        (report.announced, "Announced 1 threshold", "Announced thresholds"),
        (report.released, "Released 1 reservation", "Released reservations"),
    ] {
        match count {
            0 => {}
            1 => screen.line(format_args!("{one}"))?,
            count => screen.line(format_args!("{more}: {count}"))?,
        }
    }
    Ok(())
}

fn released(released: &ReleasedTokens, screen: &mut Screen<'_>) -> Result {
    match released.released {
        0 => screen.line(format_args!("Nothing to release.")),
        1 => screen.line(format_args!("Released 1 reservation")),
        count => screen.line(format_args!("Released {count} reservations")),
    }
}

fn show_provider(provider: &ProviderStatus, screen: &mut Screen<'_>) -> Result {
    let tier = provider.tier.as_ref().map(|tier| format!(" ({})", escape(tier))).unwrap_or_default();
    screen.heading(&format!("{}{tier}", escape(&provider.provider)))?;
    if provider.windows.is_empty() {
        screen.line(format_args!("No windows are configured."))?;
    } else {
        windows(provider, screen)?;
    }
    let load = &provider.load;
    let headroom = load.headroom.map(|left| format!(", {} left", grouped(left))).unwrap_or_default();
    let agents = if load.active_agents == 1 { "agent" } else { "agents" };
    let requests = if load.requests_per_minute == 1 { "request" } else { "requests" };
    let load = format!(
        "{} active {agents}, {} tokens/min{headroom}, {} {requests}/min",
        load.active_agents,
        grouped(load.tokens_per_minute),
        load.requests_per_minute
    );
    screen.wrapped_line("Load: ", &load)?;
    if provider.operator > 0 {
        let kept = format!("{} tokens of each window", grouped(provider.operator));
        screen.wrapped_line("Kept for you: ", &kept)?;
    }
    for window in &provider.windows {
        forecast(window, screen)?;
    }
    agents_and_items(provider, screen)
}

/// Models that no provider has, so that their usage is not lost in silence.
fn show_uncounted(status: &Status, screen: &mut Screen<'_>) -> Result {
    let Status { uncounted: models, providers, .. } = status;
    if models.is_empty() {
        return Ok(());
    }
    let provider = match providers.as_slice() {
        [only] => shell_word(&only.provider).into_owned(),
        _ => "PROVIDER".to_owned(),
    };
    screen.gap()?;
    for UncountedModel { model, messages } in models.iter().take(ROWS) {
        let (count, noun) = (grouped(*messages), if *messages == 1 { "message" } else { "messages" });
        let (name, pattern) = match model.as_str() {
            "" => ("an unknown model".into(), "*"),
            model => (escape(model), model),
        };
        let key = format!("models.{pattern}");
        let command = screen.command(format_args!("quota set {} {provider}", shell_word(&key)));
        screen
            .line(format_args!("Not counted: {count} {noun} of {name}, which no provider has: {command}"))?;
    }
    let others = models.len().saturating_sub(ROWS);
    if others > 0 {
        screen.line(format_args!("Not counted: messages of {others} other models"))?;
    }
    Ok(())
}

fn windows(provider: &ProviderStatus, screen: &mut Screen<'_>) -> Result {
    let mut table = Table::new([
        Column::typed("WINDOW"),
        Column::fixed("BUDGET").importance(3),
        Column::fixed("USED").importance(5),
        Column::fixed("RESERVED").importance(2),
        Column::fixed("REMAINING").importance(4),
        Column::fixed("AVAILABLE").importance(6),
        Column::fixed("FREES UP IN").importance(1),
    ]);
    for window in &provider.windows {
        let frees = window.frees_at.map(|moment| time::left(moment.since(screen.now())));
        let used = match &window.reported {
            Some(limit) => format!(
                "{} (reported: {}%)",
                grouped(window.used),
                (limit.used_percent * 10.0).round() / 10.0
            ),
            None => format!("{} ({}%)", grouped(window.used), percent(window)),
        };
        table.row([
            Cell::new(&window.window),
            Cell::new(grouped(window.budget)),
            Cell::new(used),
            Cell::new(grouped(window.reserved)),
            Cell::new(grouped(window.remaining)),
            Cell::new(grouped(window.available)),
            Cell::optional(frees.as_ref()),
        ]);
    }
    screen.table(&table)
}

fn forecast(window: &WindowStatus, screen: &mut Screen<'_>) -> Result {
    if let Some(text) = passed(window) {
        caution_line("", &text, screen)?;
    }
    let Some(moment) = window.used_up_at else { return Ok(()) };
    let text = if moment <= screen.now() {
        format!("The {} window is used up", window.window)
    } else {
        let left = time::length(moment.since(screen.now()));
        format!("At this rate the {} window is used up in {left}", window.window)
    };
    caution_line("", &text, screen)
}

fn agents_and_items(provider: &ProviderStatus, screen: &mut Screen<'_>) -> Result {
    if !provider.agents.is_empty() {
        let mut table = Table::new([
            Column::name("AGENT").importance(6),
            Column::fixed("SESSION").importance(2),
            Column::fixed("TOKENS").importance(5),
            Column::fixed("INPUT").importance(1),
            Column::fixed("CACHE READ").importance(1),
            Column::fixed("OUTPUT").importance(1),
        ]);
        for agent in provider.agents.iter().take(ROWS) {
            let name = if agent.agent.is_empty() { "-" } else { agent.agent.as_str() };
            let usage = &agent.usage;
            table.row([
                Cell::new(name),
                Cell::optional(Some(short_id(&agent.session)).filter(|session| !session.is_empty())),
                Cell::new(grouped(agent.tokens)),
                Cell::new(grouped(usage.input.saturating_add(usage.cache_write))),
                Cell::new(grouped(usage.cache_read)),
                Cell::new(grouped(usage.output.saturating_add(usage.reasoning))),
            ]);
        }
        screen.gap()?;
        screen.table(&table)?;
    }
    if !provider.items.is_empty() {
        let mut table = Table::new([Column::typed("WORK ITEM"), Column::fixed("TOKENS").importance(5)]);
        for item in provider.items.iter().take(ROWS) {
            table.row([Cell::new(&item.item), Cell::new(grouped(item.tokens))]);
        }
        screen.gap()?;
        screen.table(&table)?;
    }
    if !provider.reservations.is_empty() {
        let mut table = Table::new([
            Column::typed("RESERVATION"),
            Column::name("AGENT").importance(3),
            Column::fixed("TOKENS").importance(4),
            Column::fixed("LEFT").importance(2),
            Column::fixed("EXPIRES IN").importance(1),
        ]);
        for held in provider.reservations.iter().take(ROWS) {
            table.row([
                Cell::new(&held.id),
                Cell::optional(Some(&held.agent).filter(|agent| !agent.is_empty())),
                Cell::new(grouped(held.tokens)),
                Cell::new(grouped(held.left)),
                Cell::new(time::left(held.expires_at.since(screen.now()))),
            ]);
        }
        screen.gap()?;
        screen.table(&table)?;
    }
    Ok(())
}

/// A line for each step; with a bar on a terminal.
fn show_history(history: &UsageHistory, screen: &mut Screen<'_>) -> Result {
    let total: u64 = history.points.iter().map(|point| point.tokens).sum();
    screen.heading(&format!("{}: {} tokens", escape(&history.provider), grouped(total)))?;
    let most = history.points.iter().map(|point| point.tokens).max().unwrap_or(0);
    let first = history.points.iter().position(|point| point.tokens > 0).unwrap_or(history.points.len());
    let room = screen.width().map(|width| usize::from(width).saturating_sub(BESIDE_BAR).min(BAR));
    for point in &history.points[first..] {
        let moment = match history.step {
            Step::Day => time::utc(point.start)[..10].to_owned(),
            Step::Hour | Step::FiveMinutes => time::local(point.start)[..16].replace('T', " "),
        };
        let bar = room.map(|room| bar(point.tokens, most, room)).filter(|bar| !bar.is_empty());
        let bar = bar.map(|bar| format!("  {bar}")).unwrap_or_default();
        screen.line(format_args!("{moment}  {:>13}{bar}", grouped(point.tokens)))?;
    }
    Ok(())
}

/// A bar whose length is the share of the largest number, in eighths of a column.
fn bar(number: u64, most: u64, width: usize) -> String {
    const PARTS: [char; 8] = ['█', '▏', '▎', '▍', '▌', '▋', '▊', '▉'];
    let eighths = u128::from(number) * (width as u128 * 8) / u128::from(most.max(1));
    let eighths = usize::try_from(eighths).unwrap_or(0);
    let mut bar: String = std::iter::repeat_n(PARTS[0], eighths / 8).collect();
    if eighths % 8 > 0 {
        bar.push(PARTS[eighths % 8]);
    } else if eighths == 0 && number > 0 && width > 0 {
        bar.push(PARTS[1]);
    }
    bar
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_commas() {
        for (number, expected) in [(0, "0"), (999, "999"), (1_000, "1,000"), (1_234_567, "1,234,567")] {
            assert_eq!(grouped(number), expected);
        }
    }

    #[test]
    fn compact_numbers_are_rounded_down() {
        for (number, expected) in [
            (0, "0"),
            (999, "999"),
            (1_000, "1k"),
            (1_290, "1.2k"),
            (10_900, "10k"),
            (999_999, "999k"),
            (2_150_000, "2.1M"),
            (5_000_000, "5M"),
            (12_999_999_999, "12G"),
        ] {
            assert_eq!(compact(number), expected, "{number}");
        }
    }

    #[test]
    fn bars_are_as_long_as_their_share() {
        testkit::limit_test();
        for (number, expected) in [(0, ""), (1, "▏"), (500, "██"), (560, "██▏"), (1_000, "████")]
        {
            assert_eq!(bar(number, 1_000, 4), expected, "{number}");
        }
        assert_eq!(bar(0, 0, 4), "");
        assert_eq!(bar(u64::MAX, u64::MAX, 2), "██");
    }
}
