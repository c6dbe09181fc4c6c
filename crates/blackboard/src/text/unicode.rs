//! Tables from the Unicode Character Database, version 16.0, as sorted ranges of characters.
//!
//! The tests compare the tables of properties with those of `regex-syntax`, which are generated from the same database.

/// `Default_Ignorable_Code_Point` of `DerivedCoreProperties.txt`: characters that are not displayed.
#[rustfmt::skip]
pub(super) const DEFAULT_IGNORABLE: &[(char, char)] = &[
    ('\u{ad}', '\u{ad}'), ('\u{34f}', '\u{34f}'), ('\u{61c}', '\u{61c}'), ('\u{115f}', '\u{1160}'),
    ('\u{17b4}', '\u{17b5}'), ('\u{180b}', '\u{180f}'), ('\u{200b}', '\u{200f}'), ('\u{202a}', '\u{202e}'),
    ('\u{2060}', '\u{206f}'), ('\u{3164}', '\u{3164}'), ('\u{fe00}', '\u{fe0f}'), ('\u{feff}', '\u{feff}'),
    ('\u{ffa0}', '\u{ffa0}'), ('\u{fff0}', '\u{fff8}'), ('\u{1bca0}', '\u{1bca3}'),
    ('\u{1d173}', '\u{1d17a}'), ('\u{e0000}', '\u{e0fff}'),
];

/// Characters without that property that are displayed as blank space anyway: the braille pattern without dots, the
/// blanks of Egyptian hieroglyphs, the Khitan filler, the null notehead.
pub(super) const BLANK: &[(char, char)] = &[
    ('\u{2800}', '\u{2800}'),
    ('\u{13441}', '\u{13442}'),
    ('\u{16fe4}', '\u{16fe4}'),
    ('\u{1d159}', '\u{1d159}'),
];

/// `Extended_Pictographic` of `emoji-data.txt`: the characters that begin an emoji.
#[rustfmt::skip]
pub(super) const PICTOGRAPHIC: &[(char, char)] = &[
    ('\u{a9}', '\u{a9}'), ('\u{ae}', '\u{ae}'), ('\u{203c}', '\u{203c}'), ('\u{2049}', '\u{2049}'),
    ('\u{2122}', '\u{2122}'), ('\u{2139}', '\u{2139}'), ('\u{2194}', '\u{2199}'), ('\u{21a9}', '\u{21aa}'),
    ('\u{231a}', '\u{231b}'), ('\u{2328}', '\u{2328}'), ('\u{2388}', '\u{2388}'), ('\u{23cf}', '\u{23cf}'),
    ('\u{23e9}', '\u{23f3}'), ('\u{23f8}', '\u{23fa}'), ('\u{24c2}', '\u{24c2}'), ('\u{25aa}', '\u{25ab}'),
    ('\u{25b6}', '\u{25b6}'), ('\u{25c0}', '\u{25c0}'), ('\u{25fb}', '\u{25fe}'), ('\u{2600}', '\u{2605}'),
    ('\u{2607}', '\u{2612}'), ('\u{2614}', '\u{2685}'), ('\u{2690}', '\u{2705}'), ('\u{2708}', '\u{2712}'),
    ('\u{2714}', '\u{2714}'), ('\u{2716}', '\u{2716}'), ('\u{271d}', '\u{271d}'), ('\u{2721}', '\u{2721}'),
    ('\u{2728}', '\u{2728}'), ('\u{2733}', '\u{2734}'), ('\u{2744}', '\u{2744}'), ('\u{2747}', '\u{2747}'),
    ('\u{274c}', '\u{274c}'), ('\u{274e}', '\u{274e}'), ('\u{2753}', '\u{2755}'), ('\u{2757}', '\u{2757}'),
    ('\u{2763}', '\u{2767}'), ('\u{2795}', '\u{2797}'), ('\u{27a1}', '\u{27a1}'), ('\u{27b0}', '\u{27b0}'),
    ('\u{27bf}', '\u{27bf}'), ('\u{2934}', '\u{2935}'), ('\u{2b05}', '\u{2b07}'), ('\u{2b1b}', '\u{2b1c}'),
    ('\u{2b50}', '\u{2b50}'), ('\u{2b55}', '\u{2b55}'), ('\u{3030}', '\u{3030}'), ('\u{303d}', '\u{303d}'),
    ('\u{3297}', '\u{3297}'), ('\u{3299}', '\u{3299}'), ('\u{1f000}', '\u{1f0ff}'),
    ('\u{1f10d}', '\u{1f10f}'), ('\u{1f12f}', '\u{1f12f}'), ('\u{1f16c}', '\u{1f171}'),
    ('\u{1f17e}', '\u{1f17f}'), ('\u{1f18e}', '\u{1f18e}'), ('\u{1f191}', '\u{1f19a}'),
    ('\u{1f1ad}', '\u{1f1e5}'), ('\u{1f201}', '\u{1f20f}'), ('\u{1f21a}', '\u{1f21a}'),
    ('\u{1f22f}', '\u{1f22f}'), ('\u{1f232}', '\u{1f23a}'), ('\u{1f23c}', '\u{1f23f}'),
    ('\u{1f249}', '\u{1f3fa}'), ('\u{1f400}', '\u{1f53d}'), ('\u{1f546}', '\u{1f64f}'),
    ('\u{1f680}', '\u{1f6ff}'), ('\u{1f774}', '\u{1f77f}'), ('\u{1f7d5}', '\u{1f7ff}'),
    ('\u{1f80c}', '\u{1f80f}'), ('\u{1f848}', '\u{1f84f}'), ('\u{1f85a}', '\u{1f85f}'),
    ('\u{1f888}', '\u{1f88f}'), ('\u{1f8ae}', '\u{1f8ff}'), ('\u{1f90c}', '\u{1f93a}'),
    ('\u{1f93c}', '\u{1f945}'), ('\u{1f947}', '\u{1faff}'), ('\u{1fc00}', '\u{1fffd}'),
];

/// Whether a character is in one of the ranges.
pub(super) fn contains(ranges: &[(char, char)], character: char) -> bool {
    let at = ranges.partition_point(|&(_, last)| last < character);
    ranges.get(at).is_some_and(|&(first, _)| first <= character)
}

#[cfg(test)]
mod tests {
    use regex_syntax::hir::{Class, HirKind};

    use super::*;

    /// The ranges of a property, from an independent database.
    fn known(property: &str) -> Vec<(char, char)> {
        let parsed = regex_syntax::parse(&format!("\\p{{{property}}}")).unwrap();
        let HirKind::Class(Class::Unicode(class)) = parsed.into_kind() else { panic!("{property}") };
        class.ranges().iter().map(|range| (range.start(), range.end())).collect()
    }

    #[test]
    fn tables_equal_the_properties_of_unicode() {
        assert_eq!(DEFAULT_IGNORABLE, known("Default_Ignorable_Code_Point"));
        assert_eq!(PICTOGRAPHIC, known("Extended_Pictographic"));
    }

    #[test]
    fn table_contains_exactly_its_ranges() {
        for table in [DEFAULT_IGNORABLE, BLANK, PICTOGRAPHIC] {
            let members: usize = (char::MIN..=char::MAX).filter(|&each| contains(table, each)).count();
            let expected: usize = table.iter().map(|&(first, last)| (first..=last).count()).sum();
            assert_eq!(members, expected);
            assert!(table.iter().all(|&(first, last)| contains(table, first) && contains(table, last)));
        }
    }
}
