//! The snippet of a result: the part of its current text that has the most words of the query.

use super::query::QueryTerm;
use super::words::each_word;

/// How many characters a snippet has.
const LENGTH: usize = 200;

/// How many bytes before the first word of the query are shown.
const BEFORE: usize = 40;

/// What of a text is shown, and how many words of the query the complete text has.
pub(super) struct Excerpt {
    pub(super) snippet: String,
    pub(super) found: usize,
}

/// The part of a text with the most words of the query, on one line. Characters that it leaves out are marked by `…`.
pub(super) fn excerpt(text: &str, terms: &[QueryTerm]) -> Excerpt {
    let mut places: Vec<(usize, usize)> = Vec::new();
    each_word(text, &mut |word| {
        let term = terms.iter().position(|term| term.is_found_as(word.term, word.surface));
        places.extend(term.map(|term| (word.start, term)));
    });
    // An identifier comes after its parts.
    places.sort_unstable();
    let mut distinct: Vec<usize> = places.iter().map(|(_, term)| *term).collect();
    distinct.sort_unstable();
    distinct.dedup();
    let start = best_start(&places, terms.len());
    Excerpt { snippet: cut(text, start), found: distinct.len() }
}

/// Where the window of [`LENGTH`] with the most different words begins.
fn best_start(places: &[(usize, usize)], terms: usize) -> usize {
    let mut counts = vec![0_usize; terms];
    let (mut different, mut best, mut best_start, mut until) = (0, 0, 0, 0);
    for &(start, term) in places {
        while let Some(&(_, added)) = places.get(until).filter(|(place, _)| *place < start + LENGTH - BEFORE)
        {
            different += usize::from(counts[added] == 0);
            counts[added] += 1;
            until += 1;
        }
        if different > best {
            (best, best_start) = (different, start);
        }
        counts[term] -= 1;
        different -= usize::from(counts[term] == 0);
    }
    best_start
}

/// A line of [`LENGTH`] characters that begins before a place.
fn cut(text: &str, place: usize) -> String {
    let mut start = if place <= BEFORE * 2 { 0 } else { text.floor_char_boundary(place - BEFORE) };
    // A snippet begins with a word.
    if start > 0
        && let Some(space) = text[start..place].find(char::is_whitespace)
    {
        start += space;
    }
    let mut line = String::new();
    let mut count = 0;
    if start > 0 {
        line.push('…');
    }
    for word in text[start..].split_whitespace() {
        let length = word.chars().count();
        if count > 0 && count + 1 + length > LENGTH {
            line.push('…');
            return line;
        }
        if count > 0 {
            line.push(' ');
            count += 1;
        }
        if length > LENGTH {
            line.extend(word.chars().take(LENGTH));
            line.push('…');
            return line;
        }
        line.push_str(word);
        count += length;
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::search::Query;

    #[test]
    fn a_snippet_has_the_most_words_of_the_query() {
        testkit::limit_test();
        let filler = "nothing of interest is written here at all ".repeat(20);
        let text = format!("The login page. {filler} login retries are limited to five\nper minute {filler}");
        let terms = Query::new("login retry limits").terms().unwrap();
        let Excerpt { snippet, found } = excerpt(&text, &terms);
        assert_eq!(found, 3);
        assert!(snippet.starts_with('…') && snippet.ends_with('…'), "{snippet}");
        assert!(snippet.contains("login retries are limited to five per minute"), "{snippet}");
        assert!(snippet.chars().count() <= LENGTH + 2);
    }

    #[test]
    fn a_short_text_is_shown_completely() {
        testkit::limit_test();
        let terms = Query::new("b").terms().unwrap();
        assert_eq!(excerpt(" a\nb ", &terms).snippet, "a b");
        assert_eq!(excerpt("", &terms).snippet, "");
        assert_eq!(excerpt("c", &terms).found, 0);
    }

    #[test]
    fn a_text_without_spaces_is_cut() {
        testkit::limit_test();
        let text = "é".repeat(500);
        let snippet = excerpt(&text, &Query::new("b").terms().unwrap()).snippet;
        assert_eq!(snippet.chars().count(), LENGTH + 1);
    }
}
