//! Which keys a pattern matches, compared with the answers of Python.

use proptest::prelude::*;

use super::*;

/// The keys that each pattern of [`PATTERNS`] is matched against.
#[rustfmt::skip]
const KEYS: &[&str] = &[
    "", "a", "b", "c", "ä", "-", "!", "]", "[", "^", "\\", "*", "?", ":", "\n", "ab", "ba", "ac", "a-",
    "-a", "a:b", "a:c", "abc", "aab", "abab", "a]", "[a", "[a]", "[!", "!a", "^a", "b]", "a\nb", "äb",
    "a:b:c", "ccc", "bbb", "cab", "a-c", "[a-c]",
];

/// Each pattern, and which of the [`KEYS`] it matches: bit `n` is key `n`. Some are written by hand, the others are
/// random. The numbers are `sum(1 << n for n, key in enumerate(KEYS) if fnmatch.fnmatchcase(key, pattern))` of Python
/// 3.11.
#[rustfmt::skip]
#[expect(clippy::unreadable_literal, reason = "a set of bits, not read as a number")]
const PATTERNS: &[(&str, u64)] = &[
    ("", 0x1), ("*", 0xffffffffff), ("?", 0x7ffe), ("**", 0xffffffffff), ("*?", 0xfffffffffe),
    ("?*", 0xfffffffffe), ("??", 0x2f60f8000), ("a*", 0x4503f68002), ("*a", 0x64090002),
    ("a*b", 0x101908000), ("*a*", 0xe56fff8002), ("a*b*", 0x501d08000), ("a?b", 0x100900000), ("[a]", 0x2),
    ("[ab]", 0x6), ("[!a]", 0x7ffc), ("[!ab]*", 0xaa7c087ff8), ("[a-c]", 0xe), ("[!a-c]", 0x7ff0),
    ("[c-a]", 0x0), ("[!c-a]", 0x7ffe), ("[]", 0x0), ("[]a]", 0x82), ("[!]", 0x0), ("[!]a]", 0x7f7c),
    ("[", 0x100), ("[a", 0x4000000), ("[!", 0x10000000), ("a[", 0x0), ("[[]", 0x100), ("[[]a", 0x4000000),
    ("[*]", 0x800), ("[?]", 0x1000), ("[a-]", 0x22), ("[-a]", 0x22), ("[!-a]", 0x7fdc), ("[a-c-]", 0x2e),
    ("[a-c-b]", 0x2e), ("[b-a!c]", 0x7ff6), ("[b-a!-c]", 0x7fd6), ("[c-a^b]", 0x204), ("[^a]", 0x202),
    ("[!^a]", 0x7dfc), ("[\\]", 0x400), ("[a\\]", 0x402), ("[a-b]*[b-c]", 0x5501f28000),
    ("*[!:]", 0xffffffdffe), ("*:*", 0x400302000), ("*:*:*", 0x400000000), ("a:[b-c]", 0x300000),
    ("[ä]*", 0x200000010), ("[b-ä]", 0x1c), ("[!a-ä]", 0x7fe0), ("?b", 0x200008000), ("[--a]", 0x37a2),
    ("[+--]", 0x20), ("[]-a]", 0x282), ("[a-b-c]", 0x2e), ("[!!]", 0x7fbe), ("[!!-a]", 0x401c),
    ("[!a-]", 0x7fdc), ("[a-c!]", 0x4e), ("[&&]", 0x0), ("[~|a]*", 0x4503f68002),
    ("[a-cc-a]*", 0x7d83f7800e), ("*-*", 0xc0000c0020), ("*]", 0x808a000080), ("*[[]*", 0x801c000100),
    ("[!]-c]", 0x7d70), ("[c-ab-a]", 0x0), ("[!c-ab-a]", 0x7ffe), ("[b-ac-d]", 0x8), ("*\n*", 0x100004000),
    ("*a*b*", 0x2501d08000), ("*a*a*", 0x1800000), ("c-ab", 0x0), ("b!aä?ab-", 0x0), ("b[b-a", 0x0),
    ("b[a-a[ac", 0x0), ("b]", 0x80000000), (":*", 0x2000), ("ac", 0x20000), ("^*", 0x40000200),
    ("!a", 0x20000000), ("*[", 0x100), ("!*a", 0x20000000), ("b*]", 0x80000000), ("[ä-bbb]", 0x4),
    ("[[a-]a", 0x4080000), ("?-", 0x40000), ("[-:c:*a]", 0x282a), ("!?", 0x20000000), ("[a[-ä[]", 0x79e),
    ("*!", 0x10000040), ("a[![]", 0x2068000), ("ab", 0x8000), ("[-b^c[a]", 0x32e), ("[*a", 0x4000000),
    ("!a*", 0x20000000), ("**b", 0x3301908004), ("-*a", 0x80000), ("*ä", 0x10), ("a**", 0x4503f68002),
    ("[-ac]a", 0x80000), ("?]", 0x82000000), ("-[^aa]", 0x80000), ("[?", 0x14000000), ("a?", 0x2068000),
    ("?bb", 0x1000000000), ("?a", 0x64090000), ("[!?]-?", 0x4000000000), ("b[]-]", 0x80000000),
    ("*[[]a", 0x4000000), ("^a", 0x40000000), ("-*", 0x80020), ("*^", 0x200), ("[-äb??]", 0x1034),
    ("a[-b*^*]", 0x48000), ("ba", 0x10000), ("?!", 0x10000000), ("]*", 0x80), ("[a[ä:c]]", 0x2000000),
    ("*?b", 0x3301908000), ("a[:]?", 0x300000), ("*:", 0x2000), ("*[äc*ä]", 0x4c00620818),
    ("b*?", 0x1080010000), ("[ba-ba^]", 0x206), ("a-", 0x40000), ("*[[-[ä]", 0x110), ("b*", 0x1080010004),
    ("[-ä:?a]", 0x3032), ("a-?", 0x4000000000), ("?]*", 0x82000000), ("-?", 0x80000), ("[*[ä]", 0x910),
    ("a*?", 0x4503f68000), ("[ä]b", 0x200000000), ("*ab", 0x2001808000), ("[-:[!]", 0x2160),
    ("[[a]a", 0x4000000), ("b?", 0x80010000), ("ä**", 0x200000010), ("[[a?^-]*", 0xc55ffe9322),
    ("?*a", 0x64090000), ("*b]", 0x80000000), ("cab", 0x2000000000), ("[!-]!", 0x10000000),
    ("a]", 0x2000000), ("c*", 0x2800000008), ("*-", 0x40020), ("c[cäb]*", 0x800000000),
    ("ca**", 0x2000000000), ("ac***", 0x20000), ("*?[?bb]", 0x3301908000), ("[ä]", 0x10),
    ("[*", 0x801c000100), ("[[-b[[]", 0x786), ("*[a", 0x4000000), ("[-]", 0x20), ("[[b?b]?]", 0x8000000),
    ("[a]?*?", 0x4501f00000), ("[**", 0x801c000100), ("[-a[]", 0x122), ("c[-a]*?", 0x2000000000),
    ("^a*", 0x40000000), ("*[[-]", 0x40120), ("[bbb]", 0x4), ("*b", 0x3301908004), ("[b-]", 0x24),
    ("[?cab*b]", 0x180e), ("[b:ää:]", 0x2014), ("[[-^--]", 0x7a0), ("b*a", 0x10000), ("ba**", 0x10000),
    ("?*]", 0x808a000000), ("a]*", 0x2000000), ("[a[]*", 0xc51ff68102), ("!*", 0x20000040),
    ("ab**", 0x1408000), ("[ba[]a", 0x4010000), ("[b?a]bc", 0x400000), ("?*:*", 0x400300000),
    ("[ä^a[a]?", 0x256068000), ("?a?", 0x2008800000), ("**b?", 0x1080410000), ("[-[*:]", 0x2920),
    ("[![a-]", 0x7edc), ("[[ä^]a", 0x44000000), ("c??", 0x2800000000), ("[![*b:]b", 0x200008000),
    ("[!c-a-]", 0x7fde), ("a*-*", 0x4000040000), ("a-*", 0x4000040000), ("äb", 0x200000000),
    ("?:*", 0x400300000), ("[]b?a]ab", 0x800000), ("[aa]", 0x2), ("?c", 0x20000), ("bbb", 0x1000000000),
    ("[bb]a", 0x10000), ("c*b", 0x2000000000), ("*?-", 0x40000), ("[aabb]", 0x6), ("^?", 0x40000000),
    ("a:c", 0x200000), ("[b[]a]", 0x8000000), ("[]-*^b*]", 0xa04), ("^*a", 0x40000000), ("*[ä]", 0x10),
    ("*cc?", 0x800000000), ("*[*]", 0x800), ("[]?]", 0x1080), ("?:b", 0x100000), ("*[!", 0x10000000),
    ("[a*a]", 0x802), ("[![]b", 0x200008000), ("?a]", 0x8000000), ("?b*", 0x1201408000),
    ("[ääb?[]a", 0x4010000), ("a*[[b]", 0x101908000), ("[ac[!]", 0x14a), ("[[b[]", 0x104),
    ("[a*", 0x800c000000), ("[[a-^a]", 0x102), ("ä*b", 0x200000000), ("*[??", 0x8000000),
    ("[?[^ä]?", 0x254000000), ("*?c", 0x4c00620000), ("?!*", 0x10000000), ("bb[]-[b]", 0x1000000000),
    ("aa?", 0x800000), ("*c", 0x4c00620008), ("*?bc", 0x400000), ("b?b", 0x1000000000), ("[]ä*^ä]", 0xa90),
    ("[b!]", 0x44), ("[-*^^-]", 0xa20), ("b[!c]", 0x80010000), ("[b]", 0x4), ("[[-a-^]c", 0x20000),
    ("*[-:]?", 0x4400380000), ("[c[ä?]", 0x1118), ("[]!?b-]", 0x10e4), ("[a]-", 0x40000),
    ("?[a-]*", 0xe06c8d0000), ("[[b]", 0x104), ("[b!?c]", 0x104c), ("[]:[[]", 0x2180), ("[!b!]", 0x7fba),
    ("[[b^a!]", 0x346), ("a*]", 0x2000000), ("a?c", 0x4000600000), ("?-*", 0x4000040000), ("[ba[]", 0x106),
    ("[^aa[?ä]", 0x1312), ("?b?", 0x1000400000), ("[ä*]", 0x810), ("[[a^[b]", 0x306), ("[]*]", 0x880),
    ("?[[:a]", 0x64090000), ("?ab", 0x2000800000), ("a?ab", 0x1000000), ("a???", 0x1000000),
    ("*ä**", 0x200000010), ("*[*", 0x801c000100), ("aab", 0x800000), ("*äb", 0x200000000), ("[^]", 0x200),
    ("*a]", 0xa000000), ("[:]", 0x2000), ("?ab*", 0x2000800000), ("[-?c]", 0x1028), ("??b", 0x3100900000),
    ("b**", 0x1080010004), ("[!b]b", 0x200008000), ("a?a*", 0x1000000), ("[ä-*ab]", 0x6), ("*[[]", 0x100),
    ("[c[b]", 0x10c), ("[[-ä*]", 0xf9e), ("?[aa[b^]", 0x264098000), ("[?[!-[]*", 0x803c083960),
    ("[[?c-]?", 0x14080000), ("[]]", 0x80), ("ä*", 0x200000010), ("[]a-]", 0xa2), ("abc", 0x400000),
    ("[[b!]a", 0x24010000), ("[!ä*]?", 0xf60f8000), ("*[a]b", 0x2001808000), ("[c]", 0x8),
    ("**c", 0x4c00620008), ("**:", 0x2000), ("[ä^[b!?]", 0x1354), ("[ä^^]", 0x210), ("[]c?[^[]", 0x1388),
    ("cc*", 0x800000000), ("ab?", 0x400000), ("[^ca-c*]", 0xa0e),
];

#[test]
fn pattern_matches_like_python_fnmatch() {
    testkit::limit_test();
    for (pattern, expected) in PATTERNS {
        let glob = Glob::new(pattern);
        for (index, key) in KEYS.iter().enumerate() {
            assert_eq!(glob.matches(key), expected >> index & 1 == 1, "{pattern:?} on {key:?}: {glob:?}");
        }
    }
}

#[test]
fn hostile_pattern_costs_at_most_its_length_times_the_key() {
    testkit::limit_test();
    let pattern = "*a".repeat(511) + "*b";
    let key = "a".repeat(1024);
    for _ in 0..20 {
        assert!(!Glob::new(&pattern).matches(&key));
    }
    assert!(Glob::new(&pattern).matches(&(key.clone() + "b")));
    assert!(Glob::new(&"*".repeat(1024)).matches(&key));
    assert!(!Glob::new(&("*".to_owned() + &"[!b]".repeat(250) + "c")).matches(&key));
}

#[test]
fn literal_prefix_ends_at_the_first_wildcard() {
    testkit::limit_test();
    for (pattern, prefix, is_literal) in [
        ("", "", true),
        ("task:1", "task:1", true),
        ("task:*", "task:", false),
        ("*", "", false),
        ("task[:]1", "task:1", true),
        ("task[*", "task[", false),
        ("task[", "task[", true),
        ("ä[*]ö?", "ä*ö", false),
        ("a[ab]", "a", false),
        ("a[!b]", "a", false),
    ] {
        let glob = Glob::new(pattern);
        assert_eq!((glob.literal_prefix(), glob.is_literal(), glob.as_str()), (prefix, is_literal, pattern));
    }
}

proptest! {
    #[test]
    fn every_match_begins_with_the_prefix_and_a_literal_matches_itself(
        pattern in r"[ab:]{0,3}[ab:*?\[\]!-]{0,6}",
        key in r"[ab:\[\]!-]{0,8}",
    ) {
        testkit::limit_test();
        let glob = Glob::new(&pattern);
        if glob.matches(&key) {
            prop_assert!(key.starts_with(glob.literal_prefix()));
        }
        if glob.is_literal() {
            prop_assert!(glob.matches(glob.literal_prefix()));
            prop_assert_eq!(glob.matches(&key), key == glob.literal_prefix());
        }
    }

    #[test]
    fn stars_match_like_exhaustive_search(pattern in "[ab*]{0,10}", key in "[ab]{0,10}") {
        prop_assert_eq!(Glob::new(&pattern).matches(&key), tried(&pattern, &key));
    }
}

/// Matches stars and literals by trying everything.
fn tried(pattern: &str, key: &str) -> bool {
    testkit::limit_test();
    let mut characters = pattern.chars();
    match characters.next() {
        None => key.is_empty(),
        Some('*') => key
            .char_indices()
            .map(|(at, _)| at)
            .chain([key.len()])
            .any(|at| tried(characters.as_str(), &key[at..])),
        Some(character) => key.strip_prefix(character).is_some_and(|rest| tried(characters.as_str(), rest)),
    }
}
