//! Memory: levels and records, as human and JSON output.

use blackboard::memory::{
    BatchReason, Compacted, Defined, Drained, Forgotten, LevelRules, ListedLevel, MemoryMap, Pending,
    Promoted, Rated, Recalled, RecalledRecord, Remembered,
};

use super::{Cell, Column, ListPage, Result, Screen, Table, escape, render_list, render_object, time};
use crate::hooks::messages::quoted_records;

render_object! {
    /// The answer of `memory define`.
    DefinedLevels(Defined) = defined;
    /// The answer of `memory map`.
    ShownMap(MemoryMap) = map;
    /// The answer of `memory remember`.
    RememberedRecord(Remembered) = remembered;
    /// The answer of `memory recall`.
    RecalledRecords(Recalled) = recalled;
    /// The answer of `memory recall --tokens`.
    RecalledForModel(Recalled) = for_model;
    /// The answer of `memory feedback`.
    RatedRecord(Rated) = rated;
    /// The answer of `memory promote`.
    PromotedRecords(Promoted) = promoted;
    /// The answer of `memory delete`.
    DeletedRecords(Forgotten) = deleted;
    /// The answer of `memory drain`.
    DrainedLevels(Drained) = drained;
    /// The answer of `memory pending`.
    PendingBatches(Pending) = pending;
    /// The answer of `memory compact`.
    CompactedRecords(Compacted) = compacted;
}

render_list! {
    /// The answer of `memory list`.
    LevelList(ListedLevel) = levels;
}

fn defined(defined: &Defined, screen: &mut Screen<'_>) -> Result {
    for level in &defined.levels {
        let verb = if level.changed { "Defined level" } else { "Level already exists" };
        screen.line(format_args!("{verb}: {}", escape(&level.level.level)))?;
        for missing in &level.missing {
            screen.line(format_args!("  Missing level: {}", escape(missing)))?;
        }
    }
    Ok(())
}

/// The levels to which records go.
fn targets(rules: &LevelRules) -> Option<String> {
    let targets: Vec<_> = rules.at_end.iter().map(|end| format!("{end} (at end)")).collect();
    let targets: Vec<_> = targets.into_iter().chain(rules.next.iter().cloned()).collect();
    (!targets.is_empty()).then(|| targets.join(", "))
}

fn levels(page: &ListPage<ListedLevel>, screen: &mut Screen<'_>) -> Result {
    if page.rows.is_empty() {
        return screen.line(format_args!("No levels. Create them: blackboard memory define"));
    }
    let mut table = Table::new([
        Column::typed("LEVEL"),
        Column::fixed("TTL").importance(2),
        Column::fixed("RECORDS").importance(1),
        Column::fixed("TOKENS").importance(1),
        Column::fixed("HALF-LIFE").importance(2),
        Column::fixed("MIN").importance(1),
        Column::text("NEXT"),
    ]);
    for listed in &page.rows {
        let rules = &listed.rules;
        let duration = |duration: Option<std::time::Duration>| duration.map(time::age);
        table.row([
            Cell::new(&listed.level),
            Cell::optional(duration(rules.ttl).as_ref()),
            Cell::optional(rules.max_entries.map(|most| format!("≤ {most}")).as_ref()),
            Cell::optional(rules.tokens.map(|most| format!("≤ {most}")).as_ref()),
            Cell::optional(duration(rules.half_life).as_ref()),
            Cell::optional(rules.min_relevance.map(|least| least.value().to_string()).as_ref()),
            Cell::optional(targets(rules).as_ref()),
        ]);
    }
    screen.table(&table)?;
    page.note_more(screen)
}

fn map(map: &MemoryMap, screen: &mut Screen<'_>) -> Result {
    if map.levels.is_empty() {
        return screen.line(format_args!("No levels. Create them: blackboard memory define"));
    }
    let mut table = Table::new([
        Column::typed("LEVEL"),
        Column::fixed("RECORDS").importance(4),
        Column::fixed("TOKENS").importance(3),
        Column::fixed("SUMMARIES DUE").importance(1),
        Column::text("NEXT"),
    ]);
    for level in &map.levels {
        let more = if level.incomplete { "+" } else { "" };
        let of = |number: u64, most: Option<u64>| match most {
            Some(most) => format!("{number}{more} of {most}"),
            None => format!("{number}{more}"),
        };
        table.row([
            Cell::new(&level.level),
            Cell::new(of(level.records as u64, level.rules.max_entries)),
            Cell::new(of(level.tokens, level.rules.tokens)),
            Cell::optional((level.pending > 0).then(|| level.pending.to_string()).as_ref()),
            Cell::optional(targets(&level.rules).as_ref()),
        ]);
    }
    screen.table(&table)?;
    for missing in &map.missing {
        screen.line(format_args!("Missing level: {}", escape(missing)))?;
    }
    Ok(())
}

fn remembered(remembered: &Remembered, screen: &mut Screen<'_>) -> Result {
    let Remembered { key, level, .. } = remembered;
    let (key, level) = (escape(key), escape(level));
    if !remembered.defined.is_empty() {
        screen.line(format_args!("Defined levels: {}", remembered.defined.join(", ")))?;
    }
    let verb = if remembered.written { "Remembered" } else { "Already remembered" };
    let tokens = remembered.tokens;
    let word = if tokens == 1 { "token" } else { "tokens" };
    screen.line(format_args!("{verb}: {key} (level {level}, {tokens} {word})"))?;
    for moved in &remembered.moved {
        screen.line(format_args!(
            "Moved: {} from {} to {}",
            records(moved.moved),
            escape(&moved.from),
            escape(&moved.to)
        ))?;
    }
    Ok(())
}

fn records(count: u64) -> String {
    if count == 1 { "1 record".to_owned() } else { format!("{count} records") }
}

fn recalled(recalled: &Recalled, screen: &mut Screen<'_>) -> Result {
    if recalled.records.is_empty() {
        return screen.line(format_args!("Nothing is remembered about that."));
    }
    let mut table = Table::new([
        Column::typed("KEY"),
        Column::fixed("SCORE").importance(3),
        Column::fixed("PARTS").importance(1),
        Column::fixed("LEVEL").importance(2),
        Column::fixed("AGE").importance(2),
        Column::name("BY"),
        Column::text("TEXT"),
    ]);
    for record in &recalled.records {
        table.row([
            Cell::new(&record.key),
            Cell::new(format!("{:.2}", record.score)),
            Cell::new(parts(record)),
            Cell::new(&record.level),
            Cell::new(time::age(screen.now().since(record.remembered_at))),
            Cell::new(&record.remembered_by),
            Cell::new(&record.text),
        ]);
    }
    screen.table(&table)?;
    let shown = recalled.records.len();
    if recalled.total > shown {
        screen.line(format_args!("Showing {shown} of {}. Use --limit N for more.", recalled.total))?;
    }
    incomplete(recalled, screen)
}

/// What the score is made of.
fn parts(record: &RecalledRecord) -> String {
    let parts = &record.parts;
    let words = parts.words.map_or_else(String::new, |words| format!("words {words:.2}, "));
    let (relevance, age, usefulness) = (parts.relevance, parts.age, parts.usefulness);
    format!("{words}relevance {relevance:.2} × age {age:.2}, useful {usefulness:.2}")
}

fn incomplete(recalled: &Recalled, screen: &mut Screen<'_>) -> Result {
    for level in &recalled.incomplete {
        screen.line(format_args!("Only the newest records of level {} were examined.", escape(level)))?;
    }
    Ok(())
}

fn for_model(recalled: &Recalled, screen: &mut Screen<'_>) -> Result {
    let left_out = recalled.total - recalled.records.len();
    let says = format!(
        "{} of {} records, {} tokens{}.",
        recalled.records.len(),
        recalled.total,
        recalled.tokens,
        if left_out > 0 { ", the others did not fit" } else { "" }
    );
    let lines = recalled.records.iter().map(|record| {
        let age = time::age(screen.now().since(record.remembered_at));
        let source =
            format!("{}, {} ago by {}, revision {}", record.key, age, record.remembered_by, record.revision);
        (record.text.as_str(), source)
    });
    let text = quoted_records(&says, lines);
    text.lines().try_for_each(|line| screen.line(format_args!("{line}")))
}

fn rated(rated: &Rated, screen: &mut Screen<'_>) -> Result {
    screen.line(format_args!(
        "Rated: {} (usefulness {:.2}, {} {})",
        escape(&rated.key),
        rated.usefulness.value(),
        rated.ratings,
        if rated.ratings == 1 { "rating" } else { "ratings" }
    ))
}

fn promoted(promoted: &Promoted, screen: &mut Screen<'_>) -> Result {
    let to = escape(&promoted.to);
    for key in &promoted.keys {
        screen.line(format_args!("Moved: {} to {to}", escape(key)))?;
    }
    for key in &promoted.already_there {
        screen.line(format_args!("Already in {to}: {}", escape(key)))?;
    }
    Ok(())
}

fn deleted(deleted: &Forgotten, screen: &mut Screen<'_>) -> Result {
    deleted.keys.iter().try_for_each(|key| screen.line(format_args!("Deleted: {}", escape(key))))
}

fn drained(drained: &Drained, screen: &mut Screen<'_>) -> Result {
    for edge in &drained.edges {
        let (from, to) = (escape(&edge.from), escape(&edge.to));
        screen.line(format_args!("Moved: {} from {from} to {to}", records(edge.moved)))?;
        if edge.refused > 0 {
            screen.line(format_args!("  Not allowed: {}", records(edge.refused)))?;
        }
    }
    if drained.edges.is_empty() {
        screen.line(format_args!("Nothing to move."))?;
    }
    for missing in &drained.missing {
        screen.line(format_args!("Missing level: {}", escape(missing)))?;
    }
    if let Some(left) = drained.left.filter(|left| *left > 0) {
        screen.line(format_args!("Left: {} that no next level takes", records(left)))?;
    }
    Ok(())
}

fn pending(pending: &Pending, screen: &mut Screen<'_>) -> Result {
    if pending.batches.is_empty() {
        return screen.line(format_args!("No records need a summary."));
    }
    for batch in &pending.batches {
        let (level, into) = (escape(&batch.level), escape(&batch.into));
        let why = match batch.reason {
            BatchReason::Tokens => "the level has 90 % of its tokens",
            BatchReason::Entries => "the level has too many records",
            BatchReason::Next => "the next level takes summaries",
        };
        let count = records(batch.records.len() as u64);
        let says = format!(
            "Summarize {count} of level {level} ({} tokens, {why}): blackboard memory compact --level {level} \
             --into {into} --at {} --summary TEXT --of KEY...",
            batch.tokens, pending.revision
        );
        let lines = batch.records.iter().map(|record| {
            let age = time::age(screen.now().since(record.remembered_at));
            (record.text.as_str(), format!("{}, {age} ago by {}", record.key, record.remembered_by))
        });
        let text = quoted_records(&says, lines);
        text.lines().try_for_each(|line| screen.line(format_args!("{line}")))?;
    }
    Ok(())
}

fn compacted(compacted: &Compacted, screen: &mut Screen<'_>) -> Result {
    screen.line(format_args!(
        "Summarized: {} as {} (level {}, {} tokens before, {} now)",
        records(compacted.replaced as u64),
        escape(&compacted.key),
        escape(&compacted.level),
        compacted.tokens_before,
        compacted.tokens
    ))
}
