//! Which patterns of paths are accepted, and what they match and overlap.

use proptest::prelude::*;

use super::*;

fn pattern(text: &str) -> PathPattern {
    PathPattern::parse(text).unwrap()
}

#[test]
fn a_pattern_has_one_text() {
    for (text, expected) in [
        ("src/lib.rs", "src/lib.rs"),
        ("src/", "src/**"),
        ("src/**/", "src/**"),
        ("**/**/x", "**/x"),
        ("a/**/**/**/b", "a/**/b"),
        ("a/*/*/b", "a/*/*/b"),
        ("a/a/b", "a/a/b"),
        ("**/", "**"),
        (" käse 🧀/…", " käse 🧀/…"),
        (".github/..a/a..", ".github/..a/a.."),
    ] {
        assert_eq!(pattern(text).as_str(), expected);
        assert_eq!(pattern(expected), pattern(text));
    }
}

#[test]
fn ambiguous_or_slow_pattern_is_refused_with_advice() {
    testkit::limit_test();
    let longest = [&*"x".repeat(255); 4].join("/") + "y";
    assert_eq!(longest.len(), MAX_BYTES);
    let segments = |count: usize| vec!["x"; count].join("/");
    let wildcards = |count: usize| "*x".repeat(count);
    for allowed in [
        [&*"x".repeat(255); 4].join("/"),
        "ä".repeat(MAX_SEGMENT_CHARACTERS),
        segments(MAX_SEGMENTS),
        wildcards(MAX_WILDCARDS),
        "?".repeat(MAX_SEGMENT_CHARACTERS),
    ] {
        assert!(PathPattern::parse(&allowed).is_ok(), "{allowed}");
    }
    let (long, long_directory) = (longest.clone() + "x", longest[1..].to_owned() + "/");
    for (text, part) in [
        ("", "is empty"),
        ("/", "begins with \"/\""),
        ("/etc/passwd", "begins with \"/\""),
        ("src\\lib.rs", "contains \"\\\""),
        ("src/[id].tsx", "contains '['"),
        ("a]", "contains ']'"),
        ("*.{rs,toml}", "contains '{'"),
        ("a}", "contains '}'"),
        ("a\nb", "control or invisible"),
        ("a\u{202e}b", "control or invisible"),
        ("a//b", "nothing between"),
        ("a//", "nothing between"),
        ("./a", "segment \".\""),
        ("a/../b", "segment \"..\""),
        ("..", "segment \"..\""),
        ("src/**.rs", "beside other characters"),
        ("***", "beside other characters"),
        (&long, "has 1025 bytes; 1024 are allowed"),
        (&long_directory, "has 1026 bytes"),
        (&"x".repeat(256), "a segment of the pattern has 256 characters; 255 are allowed"),
        (&segments(MAX_SEGMENTS + 1), "has 65 segments; 64 are allowed"),
        (&format!("src/{}/b", wildcards(9)), "has 9 wildcards \"*\"; 8 are allowed"),
    ] {
        let error = PathPattern::parse(text).unwrap_err();
        assert_eq!(error.code(), Code::InvalidValue);
        assert!(error.to_string().contains(part), "{error}\nexpected: {part}");
        assert!(error.to_string().len() < 1000 && !hides(&error.to_string()), "{error}");
        assert!(error.hint().is_some(), "{error}");
    }
    let error = PathPattern::parse("app/[id]/{a}.tsx").unwrap_err();
    assert!(error.hint().unwrap().advice().unwrap().ends_with("write \"app/?id?/?a?.tsx\""), "{error:?}");
}

#[test]
fn pattern_matches_only_its_paths() {
    for (text, about, not_about) in [
        (
            "src/lib.rs",
            "src/lib.rs",
            "src lib.rs src/lib.rsx src/lib.rs/x x/src/lib.rs src/LIB.rs src/lib_rs",
        ),
        ("*", "a .a a.b ... ä", "a/b . .."),
        ("?", "a ä 🧀", "ab a/b ."),
        ("*.rs", "a.rs .rs a.b.rs", "a.rs/b src/a.rs a.rsx"),
        ("a*b*c", "abc aXbXc abbcc abcbc", "ab abX a/b/c abcX"),
        ("src/*", "src/a src/.b", "src src/a/b src/ src/. src/.."),
        ("src/**", "src/a src/a/b src/a/b/c", "src src/ x/src/a srcs/a src/a/../b src//a"),
        ("src/", "src/a src/a/b", "src src/"),
        ("**", "a a/b a/b/c", "/a a/ . a/./b a//b"),
        ("**/x", "x a/x a/b/x x/x", "x/a ax a/xb"),
        ("a/**/b", "a/b a/x/b a/x/y/b a/b/b", "a b ab a/b/c x/a/b"),
        ("**/a/**/b/*", "a/b/c x/a/b/c a/x/b/c x/y/a/x/y/b/c a/b/b/c", "a/b b/a/c a/b/c/d"),
        ("a/*/c", "a/b/c", "a/c a/b/b/c"),
    ] {
        let parsed = pattern(text);
        for path in about.split(' ') {
            assert!(parsed.matches(path), "{text} on {path}");
        }
        for path in not_about.split(' ') {
            assert!(!parsed.matches(path), "{text} on {path}");
        }
        assert!(!parsed.matches(""));
    }
}

#[test]
fn patterns_overlap_when_one_path_matches_both() {
    for (one, two, expected) in [
        ("src/**", "src/store/**", true),
        ("src/**", "src", false),
        ("src/**", "srcs/**", false),
        ("src/*.rs", "src/lib.*", true),
        ("src/*.rs", "src/**/*.toml", false),
        ("**/a", "a/**", true),
        ("**/a/b", "b/a/**", true),
        ("*/b", "a/*", true),
        ("*/b/*", "*/*/b/*", false),
        ("a*", "*b", true),
        ("a?", "?b", true),
        ("a?", "??b", false),
        ("ab*ba", "aba", false),
        ("ab*ba", "ab*a", true),
        ("**", "x", true),
        ("**/x/**", "**/y/**", true),
        ("a/**/b", "a/*/c", false),
        ("a/**/b", "a/*/?", true),
        // Only `..` matches both, and it is not a name.
        (".?", "?.", false),
        (".?/**", "?./a", false),
        (".*", "*.", true),
        (".*", "?", false),
    ] {
        let (one, two) = (pattern(one), pattern(two));
        assert_eq!(one.overlaps(&two), expected, "{one} and {two}");
        assert_eq!(two.overlaps(&one), expected, "{two} and {one}");
    }
}

#[test]
fn a_path_without_wildcards_means_everything_below_it() {
    testkit::limit_test();
    for (one, two, expected) in [
        ("lib", "lib/a.rs", true),
        ("lib", "lib/**", true),
        ("lib", "lib/*/b/*.rs", true),
        // A wildcard does not stand for a name of the path.
        ("lib/a", "lib/*/b", false),
        ("lib/a", "**/b", false),
        ("README", "**/*.py", false),
        ("lib", "lib", true),
        ("lib", "libs/a.rs", false),
        ("lib/a", "*", false),
        ("lib/a", "src/**", false),
        // Only a path can become a directory.
        ("li?", "lib/a.rs", false),
    ] {
        let (one, two) = (pattern(one), pattern(two));
        assert_eq!(one.conflicts_with(&two), expected, "{one} and {two}");
        assert_eq!(two.conflicts_with(&one), expected, "{two} and {one}");
    }
    for (text, path, expected) in [
        ("lib", "lib/a.rs", true),
        ("lib", "lib", true),
        ("lib/**", "lib", true),
        ("lib/a.rs", "lib", true),
        ("lib", "library", false),
        ("lib", "lib/../a", false),
        ("lib/*.rs", "src", false),
        ("**/*.md", "main.c", false),
        ("**/README.md", "main.c", false),
        ("src/**/*.rs", "src/b.toml", false),
        ("src/**/*.rs", "src/a.rs", true),
        ("*/x.md", "main.c", false),
        ("src/**/*.rs", "src", true),
    ] {
        assert_eq!(pattern(text).covers(path), expected, "{text} and {path}");
    }
}

/// Every text of at most `length` of these characters.
fn texts(alphabet: &[char], length: usize) -> Vec<String> {
    let mut all = vec![String::new()];
    let mut start = 0;
    for _ in 0..length {
        let end = all.len();
        for index in start..end {
            for character in alphabet {
                let text = format!("{}{character}", all[index]);
                all.push(text);
            }
        }
        start = end;
    }
    all
}

/// Each character of a shortest common path matches a character of one of the patterns. So seven characters are
/// enough for two patterns of four that both have wildcards. A pattern without wildcards matches only itself.
#[test]
fn all_small_patterns_overlap_exactly_when_a_small_path_matches_both() {
    for literals in [['a', 'b'], ['a', '.']] {
        let [first, second] = literals;
        let paths = texts(&[first, second, '/'], 7);
        let about: Vec<(PathPattern, Vec<u64>)> = texts(&[first, second, '*', '?', '/'], 4)
            .iter()
            .filter_map(|text| PathPattern::parse(text).ok())
            .map(|pattern| {
                let mut set = vec![0_u64; paths.len().div_ceil(64)];
                for (index, _) in paths.iter().enumerate().filter(|(_, path)| pattern.matches(path)) {
                    set[index / 64] |= 1 << (index % 64);
                }
                (pattern, set)
            })
            .collect();
        assert!(about.len() > 300, "{}", about.len());
        for (one, ours) in &about {
            assert!(ours.iter().any(|&bits| bits != 0), "{one} is about nothing");
            for (two, theirs) in &about {
                let common = ours.iter().zip(theirs).any(|(ours, theirs)| ours & theirs != 0);
                assert_eq!(one.overlaps(two), common, "{one} and {two}");
            }
        }
    }
}

#[test]
fn hostile_patterns_are_compared_in_bounded_time() {
    testkit::limit_test();
    // Earlier versions stored such patterns.
    let pattern = |text: &str| PathPattern::parse_stored(text).unwrap();
    let (stars, others) = ("*a".repeat(511) + "*", "a*".repeat(511) + "b");
    assert!(pattern(&stars).overlaps(&pattern(&others)));
    assert!(!pattern(&(stars.clone() + "c")).overlaps(&pattern(&others)));
    assert!(!pattern(&stars).matches(&"b".repeat(4096)));

    let (deep, other) = ("**/a/".repeat(200) + "b", "a/**/".repeat(200) + "c");
    assert!(!pattern(&deep).overlaps(&pattern(&other)));
    assert!(!pattern(&deep).matches(&("a/".repeat(2000) + "c")));
    let (wild, other) = ("**/*a/".repeat(160) + "b", "a*/**/".repeat(160) + "c");
    assert!(!pattern(&wild).overlaps(&pattern(&other)));
}

#[test]
fn patterns_with_wildcards_are_compared_in_linear_time() {
    testkit::limit_test();
    let pattern = |text: &str| PathPattern::parse_stored(text).unwrap();
    for (one, two) in [
        ("*a".repeat(495) + "q001", "*a".repeat(495) + "q002"),
        ("*a".repeat(511) + "*", "a*".repeat(511) + "b"),
        ("**/*a/".repeat(160) + "b", "a*/**/".repeat(160) + "c"),
        ("a".repeat(1000) + "*", "*".to_owned() + &"a".repeat(1000)),
    ] {
        let steps = Steps::default();
        pattern(&one).overlaps_counted(&pattern(&two), &steps);
        let segments = one.split('/').count().min(two.split('/').count()) as u64;
        let most = (one.len() + two.len()) as u64 + segments * STEPS_OF_A_SEGMENT;
        assert!(steps.count() <= most, "{}: {one} and {two}", steps.count());
    }
}

/// A pattern that is made from a path by putting wildcards over parts of it.
fn generalised(path: &str, choices: &[u8]) -> String {
    let mut choices = choices.iter().copied().cycle();
    let mut choose = |below: u8| choices.next().map_or(0, |choice| choice % below);
    let mut names: Vec<String> = Vec::new();
    for name in path.split('/') {
        match choose(5) {
            0 => names.push("**".to_owned()),
            1 => names.push("*".to_owned()),
            2 => names.extend(["**".to_owned(), name.to_owned()]),
            _ => {
                let wild = name.chars().map(|character| match choose(4) {
                    0 => '?',
                    1 => '*',
                    _ => character,
                });
                let wild: String = wild.collect();
                // Two stars in a row would be another wildcard.
                names.push(wild.replace("***", "*").replace("**", "*"));
            }
        }
    }
    names.join("/")
}

proptest! {
    #[test]
    fn patterns_made_from_one_path_match_it_and_overlap(
        path in "[ab]{1,3}(/[abc]{1,4}){0,5}",
        ours in prop::collection::vec(any::<u8>(), 1..40),
        theirs in prop::collection::vec(any::<u8>(), 1..40),
    ) {
        testkit::limit_test();
        let (one, two) = (pattern(&generalised(&path, &ours)), pattern(&generalised(&path, &theirs)));
        prop_assert!(one.matches(&path), "{} on {}", one, path);
        prop_assert!(two.matches(&path), "{} on {}", two, path);
        prop_assert!(one.overlaps(&two) && two.overlaps(&one), "{} and {}", one, two);
    }

    #[test]
    fn pattern_without_wildcards_overlaps_what_matches_it(
        path in "[ab]{1,3}(/[ab]{1,3}){0,3}",
        text in r"([ab*?]{1,3}|\*\*)(/([ab?]{0,2}[ab*?]|\*\*)){0,3}",
    ) {
        testkit::limit_test();
        let Ok(other) = PathPattern::parse(&text) else { return Ok(()) };
        prop_assert_eq!(pattern(&path).overlaps(&other), other.matches(&path), "{} and {}", path, other);
    }
}

#[test]
fn a_stored_pattern_with_an_invisible_character_is_still_read() {
    assert!(PathPattern::parse("src/so\u{ad}ft.rs").is_err());
    let stored = PathPattern::parse_stored("src/so\u{ad}ft.rs").unwrap();
    assert!(stored.matches("src/so\u{ad}ft.rs"));
}
