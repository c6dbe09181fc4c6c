//! How well texts match words. The only function of memory that compares words.

use std::collections::BTreeSet;

/// How strongly a word that is repeated in one text counts.
const SATURATION: f64 = 1.2;

/// How strongly a long text counts less.
const LENGTH_WEIGHT: f64 = 0.75;

/// For each text, how well it matches, from 0 to 1, the best one having 1; `None` if it has none of the words. All texts match
/// words without a letter or digit.
pub(super) fn scores(words: &str, texts: &[String]) -> Vec<Option<f64>> {
    let wanted: BTreeSet<String> = terms(words).into_iter().collect();
    if wanted.is_empty() {
        return vec![Some(0.0); texts.len()];
    }
    let documents: Vec<Vec<String>> = texts.iter().map(|text| terms(text)).collect();
    let average = average_length(&documents);
    let mut scores = vec![0.0_f64; texts.len()];
    for word in &wanted {
        let counts: Vec<usize> = documents.iter().map(|document| occurrences(word, document)).collect();
        let having = counts.iter().filter(|count| **count > 0).count();
        let rarity = (1.0 + (as_number(texts.len() - having) + 0.5) / (as_number(having) + 0.5)).ln();
        for ((score, count), document) in scores.iter_mut().zip(counts).zip(&documents) {
            let length = 1.0 - LENGTH_WEIGHT + LENGTH_WEIGHT * as_number(document.len()) / average;
            let count = as_number(count);
            *score += rarity * count * (SATURATION + 1.0) / (count + SATURATION * length);
        }
    }
    let best = scores.iter().copied().fold(0.0, f64::max);
    scores.into_iter().map(|score| (score > 0.0).then(|| score / best)).collect()
}

fn average_length(documents: &[Vec<String>]) -> f64 {
    let total: usize = documents.iter().map(Vec::len).sum();
    (as_number(total) / as_number(documents.len().max(1))).max(1.0)
}

#[expect(clippy::cast_precision_loss, reason = "numbers of words are far below 2^52")]
fn as_number(count: usize) -> f64 {
    count as f64
}

/// How often a word occurs, also as the beginning of a longer one.
fn occurrences(word: &str, document: &[String]) -> usize {
    document.iter().filter(|term| term.starts_with(word)).count()
}

/// The words of a text in small letters, without endings. Identifiers are also split at `_`, `-` and changes of case.
fn terms(text: &str) -> Vec<String> {
    let mut terms = Vec::new();
    let mut word = String::new();
    let mut previous_is_small = false;
    let mut end = |word: &mut String| {
        if !word.is_empty() {
            terms.push(stem(&word.to_lowercase()));
            word.clear();
        }
    };
    for character in text.chars() {
        if !character.is_alphanumeric() {
            end(&mut word);
            previous_is_small = false;
            continue;
        }
        if character.is_uppercase() && previous_is_small {
            end(&mut word);
        }
        previous_is_small = character.is_lowercase();
        word.push(character);
    }
    end(&mut word);
    terms
}

/// A word without the most common endings of English, if enough of it is left.
fn stem(word: &str) -> String {
    const ENDINGS: [(&str, &str); 6] =
        [("ies", "y"), ("ing", ""), ("ed", ""), ("es", ""), ("s", ""), ("e", "")];
    for (ending, instead) in ENDINGS {
        if let Some(rest) = word.strip_suffix(ending)
            && rest.len() >= 3
        {
            return format!("{rest}{instead}");
        }
    }
    word.to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ranked(words: &str, texts: &[&str]) -> Vec<usize> {
        let texts: Vec<_> = texts.iter().map(|text| (*text).to_owned()).collect();
        let scores = scores(words, &texts);
        let mut found: Vec<_> = (0..texts.len()).filter(|place| scores[*place].is_some()).collect();
        found.sort_by(|a, b| scores[*b].partial_cmp(&scores[*a]).unwrap());
        found
    }

    #[test]
    fn words_match_by_stem_prefix_and_part_of_an_identifier() {
        let texts =
            ["The login test fails on CI", "fn parse_login_token()", "Releases are tagged", "LoginForm"];
        for (words, expected) in [
            ("login", &[0, 1, 3][..]),
            ("failing", &[0]),
            ("tagging", &[2]),
            ("tok", &[1]),
            ("nothing of this", &[]),
            ("tests failed", &[0]),
        ] {
            let mut found = ranked(words, &texts);
            found.sort_unstable();
            assert_eq!(found, expected, "{words}");
        }
    }

    #[test]
    fn a_rare_word_counts_more_than_a_frequent_one() {
        let texts = ["the build is slow", "the build broke", "the build of redis", "the build"];
        assert_eq!(ranked("build redis", &texts)[0], 2);
        assert_eq!(scores("...", &[String::new()]), [Some(0.0)]);
        assert!(scores("a", &[]).is_empty());
    }
}
