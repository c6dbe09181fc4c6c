//! The stem of an English word, so that "claims" and "claiming" find "claimed": the algorithm of Porter (1980), with its later
//! rule for a final y.

/// Replaces a lower-case ASCII word with its stem. Shorter words than three letters are their own stems.
pub(super) fn stem(word: &mut String) {
    if word.len() < 3 || !word.bytes().all(|byte| byte.is_ascii_lowercase()) {
        return;
    }
    let mut stemmer = Stemmer { word: std::mem::take(word).into_bytes() };
    stemmer.plurals_and_participles();
    stemmer.final_y();
    stemmer.replace(&LONG_ENDINGS, 0);
    stemmer.replace(&ADJECTIVE_ENDINGS, 0);
    stemmer.remove_endings();
    stemmer.final_e_and_l();
    // Only ASCII bytes were changed.
    *word = String::from_utf8(stemmer.word).unwrap_or_default();
}

/// Step 2: the first ending that matches is replaced if the rest has a measure above zero.
const LONG_ENDINGS: [(&str, &str); 20] = [
    ("ational", "ate"),
    ("tional", "tion"),
    ("enci", "ence"),
    ("anci", "ance"),
    ("izer", "ize"),
    ("abli", "able"),
    ("alli", "al"),
    ("entli", "ent"),
    ("eli", "e"),
    ("ousli", "ous"),
    ("ization", "ize"),
    ("ation", "ate"),
    ("ator", "ate"),
    ("alism", "al"),
    ("iveness", "ive"),
    ("fulness", "ful"),
    ("ousness", "ous"),
    ("aliti", "al"),
    ("iviti", "ive"),
    ("biliti", "ble"),
];

/// Step 3.
const ADJECTIVE_ENDINGS: [(&str, &str); 7] = [
    ("icate", "ic"),
    ("ative", ""),
    ("alize", "al"),
    ("iciti", "ic"),
    ("ical", "ic"),
    ("ful", ""),
    ("ness", ""),
];

/// Step 4: removed if the rest has a measure above one.
const REMOVED_ENDINGS: [&str; 18] = [
    "ement", "ance", "ence", "able", "ible", "ment", "ant", "ent", "ism", "ate", "iti", "ous", "ive", "ize",
    "al", "er", "ic", "ou",
];

struct Stemmer {
    word: Vec<u8>,
}

impl Stemmer {
    fn is_consonant(&self, place: usize) -> bool {
        match self.word[place] {
            b'a' | b'e' | b'i' | b'o' | b'u' => false,
            b'y' => place == 0 || !self.is_consonant(place - 1),
            _ => true,
        }
    }

    /// How many times a vowel is followed by a consonant in the first letters.
    fn measure(&self, letters: usize) -> usize {
        (1..letters).filter(|&place| self.is_consonant(place) && !self.is_consonant(place - 1)).count()
    }

    fn has_vowel(&self, letters: usize) -> bool {
        (0..letters).any(|place| !self.is_consonant(place))
    }

    fn ends_with_double_consonant(&self) -> bool {
        let length = self.word.len();
        length >= 2 && self.word[length - 1] == self.word[length - 2] && self.is_consonant(length - 1)
    }

    /// Consonant, vowel, consonant at the end, and the last one is not w, x or y.
    fn ends_short(&self, letters: usize) -> bool {
        letters >= 3
            && self.is_consonant(letters - 3)
            && !self.is_consonant(letters - 2)
            && self.is_consonant(letters - 1)
            && !matches!(self.word[letters - 1], b'w' | b'x' | b'y')
    }

    /// How many letters are left without this ending, if the word has it.
    fn without(&self, ending: &str) -> Option<usize> {
        self.word.ends_with(ending.as_bytes()).then(|| self.word.len() - ending.len())
    }

    fn put(&mut self, letters: usize, ending: &str) {
        self.word.truncate(letters);
        self.word.extend_from_slice(ending.as_bytes());
    }

    fn plurals_and_participles(&mut self) {
        if let Some(rest) = self.without("sses").or_else(|| self.without("ies")) {
            self.word.truncate(rest + if self.word[rest] == b's' { 2 } else { 1 });
        } else if self.without("ss").is_none()
            && let Some(rest) = self.without("s")
        {
            self.word.truncate(rest);
        }
        if let Some(rest) = self.without("eed") {
            if self.measure(rest) > 0 {
                self.word.truncate(rest + 2);
            }
            return;
        }
        let rest = self.without("ed").or_else(|| self.without("ing"));
        let Some(rest) = rest.filter(|rest| self.has_vowel(*rest)) else { return };
        self.word.truncate(rest);
        if ["at", "bl", "iz"].iter().any(|ending| self.without(ending).is_some()) {
            self.word.push(b'e');
        } else if self.ends_with_double_consonant() && !matches!(self.word.last(), Some(b'l' | b's' | b'z')) {
            self.word.pop();
        } else if self.measure(self.word.len()) == 1 && self.ends_short(self.word.len()) {
            self.word.push(b'e');
        }
    }

    fn final_y(&mut self) {
        // After a consonant, so that "deploys" and "deployment" have one stem.
        if let Some(rest) = self.without("y").filter(|rest| *rest > 1 && self.is_consonant(*rest - 1)) {
            self.put(rest, "i");
        }
    }

    fn replace(&mut self, endings: &[(&str, &str)], above: usize) {
        for (ending, replacement) in endings {
            if let Some(rest) = self.without(ending) {
                if self.measure(rest) > above {
                    self.put(rest, replacement);
                }
                return;
            }
        }
    }

    fn remove_endings(&mut self) {
        if let Some(rest) = self.without("ion") {
            if self.measure(rest) > 1 && matches!(self.word.get(rest.wrapping_sub(1)), Some(b's' | b't')) {
                self.word.truncate(rest);
            }
            return;
        }
        for ending in REMOVED_ENDINGS {
            if let Some(rest) = self.without(ending) {
                if self.measure(rest) > 1 {
                    self.word.truncate(rest);
                }
                return;
            }
        }
    }

    fn final_e_and_l(&mut self) {
        if let Some(rest) = self.without("e") {
            let measure = self.measure(rest);
            if measure > 1 || (measure == 1 && !self.ends_short(rest)) {
                self.word.truncate(rest);
            }
        }
        if self.without("ll").is_some() && self.measure(self.word.len()) > 1 {
            self.word.pop();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_of_one_family_have_one_stem() {
        for (word, expected) in [
            ("caresses", "caress"),
            ("ponies", "poni"),
            ("cats", "cat"),
            ("agreed", "agre"),
            ("plastered", "plaster"),
            ("motoring", "motor"),
            ("sing", "sing"),
            ("conflated", "conflat"),
            ("hopping", "hop"),
            ("filing", "file"),
            ("happy", "happi"),
            ("relational", "relat"),
            ("conditional", "condit"),
            ("authentication", "authent"),
            ("authenticate", "authent"),
            ("formalize", "formal"),
            ("hopefulness", "hope"),
            ("adjustment", "adjust"),
            ("adoption", "adopt"),
            ("effective", "effect"),
            ("rate", "rate"),
            ("controlling", "control"),
            ("retries", "retri"),
            ("retry", "retri"),
            ("deployment", "deploy"),
            ("deploys", "deploy"),
            ("is", "is"),
            ("ed", "ed"),
            ("sky", "ski"),
            ("sha256", "sha256"),
            ("für", "für"),
        ] {
            let mut stemmed = word.to_owned();
            stem(&mut stemmed);
            assert_eq!(stemmed, expected, "{word}");
        }
    }

    #[test]
    fn every_short_word_has_a_stem() {
        // All words of three letters of this alphabet, with endings that many rules know.
        let letters = ["a", "b", "e", "i", "l", "s", "t", "y"];
        for first in letters {
            for second in letters {
                for ending in ["", "ed", "ing", "ion", "ational", "s", "ies", "eed", "e", "ll", "y"] {
                    let mut word = format!("{first}{second}{ending}");
                    stem(&mut word);
                    assert!(!word.is_empty(), "{first}{second}{ending}");
                }
            }
        }
    }
}
