//! What a search has found.

use blackboard::clock::{Clock, SystemClock, Timestamp};
use blackboard::search::{Behind, Found, Kind, SearchResult, Suggestions, estimate_tokens, pack};
use serde::Serialize;

use super::{Cell, Column, ListPage, Result, Screen, Table, escape, time};
use crate::envelope::Answer;
use crate::hooks::messages::{Section, quote_block, quote_line};
use crate::outcome::Render;

/// The longest id and text of a result in a quote block, in characters.
const ID: usize = 120;
const TEXT: usize = 20_000;

/// About how many tokens the lines around quoted results have.
const AROUND: usize = 90;

/// The answer of `search`.
pub struct SearchAnswer {
    results: ListPage<SearchResult>,
    behind: Option<Behind>,
    not_stored: Option<String>,
    suggestions: Suggestions,
    /// The text for a model, if the call asks for it.
    packed: Option<Packed>,
}

/// The best results in a number of tokens.
#[derive(Serialize)]
struct Packed {
    /// The text.
    context: String,
    /// About how many tokens it has.
    tokens: usize,
    /// How many results did not fit.
    left_out: usize,
}

/// What JSON output says beside the results.
#[derive(Serialize)]
struct About<'a> {
    total: usize,
    behind: Option<Behind>,
    #[serde(skip_serializing_if = "Option::is_none")]
    not_stored: Option<&'a str>,
    #[serde(skip_serializing_if = "Suggestions::is_empty")]
    suggestions: &'a Suggestions,
    #[serde(flatten)]
    packed: Option<&'a Packed>,
}

impl SearchAnswer {
    /// The answer, with a text of at most `tokens` if a model will read it.
    pub fn new(found: Found, tokens: Option<usize>) -> SearchAnswer {
        let Found { mut results, total, behind, not_stored, suggestions } = found;
        let packed = tokens.map(|tokens| packed(&results, tokens, SystemClock.now()));
        for result in &mut results {
            result.text = None;
        }
        SearchAnswer { results: ListPage::of(results, total), behind, not_stored, suggestions, packed }
    }
}

/// The best results that fit, in a quote block.
fn packed(results: &[SearchResult], tokens: usize, now: Timestamp) -> Packed {
    let line = |result: &SearchResult, is_complete: bool| quoted(result, is_complete, now);
    let (lines, left_out) = pack(results, tokens.saturating_sub(AROUND), line);
    let says = match lines.len() {
        0 if results.is_empty() => "[blackboard] Nothing was found.".to_owned(),
        0 => "[blackboard] No result fits into so few tokens.".to_owned(),
        1 => "[blackboard] 1 result of a search of the board.".to_owned(),
        count => format!("[blackboard] {count} results of a search of the board, the best first."),
    };
    let context = quote_block(&says, &[Section::untitled(lines)], None, usize::MAX);
    Packed { tokens: estimate_tokens(&context), context, left_out }
}

/// A result as one line of a quote block.
fn quoted(result: &SearchResult, is_complete: bool, now: Timestamp) -> String {
    let scope = result.scope.as_deref().map(|scope| format!(" in scope {}", quote_line(scope, ID)));
    let author = result.author.as_deref().map(|author| format!(", by {}", quote_line(author, ID)));
    let title = result.title.as_deref().map(|title| format!("{}: ", quote_line(title, ID)));
    let text = if is_complete { result.text.as_deref().unwrap_or_default() } else { &result.snippet };
    format!(
        "- {} {}{} (revision {}{}, {}): {}{}",
        result.kind,
        quote_line(&result.id, ID),
        scope.unwrap_or_default(),
        result.revision,
        author.unwrap_or_default(),
        time::ago(now.since(result.updated_at)),
        title.unwrap_or_default(),
        quote_line(text, TEXT),
    )
}

impl Render for SearchAnswer {
    fn is_list(&self) -> bool {
        true
    }

    fn json(&self, answer: &mut Answer<'_>) -> Result {
        let about = About {
            total: self.results.total,
            behind: self.behind,
            not_stored: self.not_stored.as_deref(),
            suggestions: &self.suggestions,
            packed: self.packed.as_ref(),
        };
        answer.list_with(&self.results.rows, &about)
    }

    fn human(&self, screen: &mut Screen<'_>) -> Result {
        if let Some(packed) = &self.packed {
            return packed.context.lines().try_for_each(|line| screen.line(format_args!("{line}")));
        }
        let results = &self.results.rows;
        if results.is_empty() {
            screen.line(format_args!("Nothing found."))?;
            return suggest(&self.suggestions, screen);
        }
        let mut table = Table::new([
            Column::typed("ID"),
            Column::fixed("KIND").importance(3),
            Column::name("SCOPE").if_wide(),
            Column::name("AUTHOR").importance(2),
            Column::fixed("AGE").importance(4),
            Column::fixed("REVISION").if_wide(),
            Column::fixed("SCORE").if_wide(),
            Column::text("SNIPPET").importance(6),
        ]);
        for result in results {
            let title = result.title.as_deref().filter(|_| result.kind == Kind::Work);
            let snippet = match title {
                Some(title) if result.snippet.is_empty() => title.to_owned(),
                Some(title) => format!("{title}: {}", result.snippet),
                None => result.snippet.clone(),
            };
            table.row([
                Cell::new(&result.id),
                Cell::word(result.kind.as_str()),
                Cell::optional(result.scope.as_ref()),
                Cell::optional(author(result)),
                Cell::new(time::age(screen.now().since(result.updated_at))),
                Cell::new(result.revision.to_string()),
                Cell::new(format!("{:.1}", result.score)),
                Cell::new(snippet),
            ]);
        }
        screen.table(&table)?;
        self.results.note_more(screen)
    }
}

/// The author; the beginning of the session of an event.
fn author(result: &SearchResult) -> Option<String> {
    let author = result.author.as_deref()?;
    Some(if result.kind == Kind::Event { author.chars().take(8).collect() } else { author.to_owned() })
}

fn suggest(suggestions: &Suggestions, screen: &mut Screen<'_>) -> Result {
    let Suggestions { words, tags, keys } = suggestions;
    for (what, list) in [("Similar words", words), ("Similar tags", tags), ("Perhaps", keys)] {
        if !list.is_empty() {
            let list: Vec<_> = list.iter().map(|one| escape(one)).collect();
            screen.wrapped_line(&format!("{what}: "), &list.join(", "))?;
        }
    }
    Ok(())
}
