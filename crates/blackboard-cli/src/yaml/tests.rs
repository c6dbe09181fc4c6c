use std::collections::BTreeMap;

use testkit::limit_test;

use super::*;

/// Texts that a reader of YAML 1.1 or 1.2 takes for something else if they are not quoted.
const AMBIGUOUS: &[&str] = &[
    "",
    " ",
    "no",
    "Off",
    "y",
    "true",
    "null",
    "~",
    "1e3",
    "0o7",
    "017",
    "1_000",
    "12:30",
    "12:30:45.5",
    "0x1f",
    ".inf",
    "2026-01-02",
    "2026-01-02T03:04:05Z",
    "=",
    "<<",
    "- a",
    "a: b",
    "a #b",
    "#",
    "&a",
    "*a",
    "!a",
    "|",
    ">",
    "%a",
    "@a",
    "`a",
    "'",
    "\"",
    "\\",
    "---",
    "...",
    "? a",
    "{}",
    "[]",
    " a",
    "a ",
    "\ta",
    "a\nb",
    "a\r\nb",
    "\u{85}",
    "\u{2028}",
    "\u{2029}",
    "\u{feff}",
    "\u{1b}[2J",
    "\u{0}",
    "\u{7f}",
    "\u{fffe}",
    "\u{1f9c0}",
    "käse",
    "e\u{301}",
    "\u{202e}",
];

#[test]
fn every_text_that_is_written_is_read_back() {
    let written: BTreeMap<String, Vec<&str>> =
        AMBIGUOUS.iter().map(|text| ((*text).to_owned(), vec![*text, "x"])).collect();
    let yaml = write(&written).expect("texts can be written");
    let root = tree(&yaml).unwrap_or_else(|error| panic!("{error}\n{yaml}"));
    assert_eq!(root.entries().len(), AMBIGUOUS.len());
    for ((key, value), expected) in root.entries().iter().zip(written.keys()) {
        let texts = value.items().map(|items| items.iter().map(Node::text).collect::<Vec<_>>());
        assert_eq!((&key.text, texts), (expected, Some(vec![Some(expected.as_str()), Some("x")])), "{yaml}");
    }
}

#[test]
fn texts_are_quoted_and_numbers_are_not() {
    #[derive(Serialize)]
    struct Written {
        word: &'static str,
        count: u64,
        coverage: f64,
        done: bool,
        none: Option<u8>,
        list: Vec<&'static str>,
        empty: Vec<u8>,
    }
    let value = Written {
        word: "no",
        count: 3,
        coverage: 91.5,
        done: false,
        none: None,
        list: vec!["a", "it's"],
        empty: vec![],
    };
    let expected = "word: 'no'\ncount: 3\ncoverage: 91.5\ndone: false\nnone: null\nlist:\n  - 'a'\n  - \"it's\"\nempty: []\n";
    assert_eq!(write(&value).as_deref(), Ok(expected));
}

#[test]
fn an_error_has_its_line_and_column() {
    for (text, line, column, message) in [
        ("name: a\ncount: [\n", 2, 8, "unclosed bracket"),
        ("name: a\nname: b\n", 2, 1, "the key name occurs twice"),
        ("<<: {name: a}\ncount: 3\n", 1, 1, "merge keys"),
        ("name: \u{1b}[2J\n", 1, 7, ""),
        ("a: b: c\n", 1, 5, ""),
        ("? [a]\n: b\n", 1, 3, "a key has to be a scalar"),
    ] {
        let error = tree(text).expect_err(text);
        assert_eq!((error.line, error.column), (line, column), "{text}: {error}");
        assert!(error.message.contains(message) && !error.message.contains('\u{1b}'), "{text}: {error}");
    }
}

#[test]
fn a_second_document_is_refused_where_it_begins() {
    testkit::limit_test();
    for (rest, line) in [("---\nfoo: 1\n", 4), ("---\n", 4), ("...\n---\nfoo: 1\n", 5), ("# a\n--- b\n", 5)] {
        let error = tree(&format!("---\nname: a\ncount: 1\n{rest}")).expect_err(rest);
        assert_eq!((error.line, error.column), (line, 1), "{rest}: {error}");
        assert!(error.message.contains("a second document begins here"), "{rest}: {error}");
    }
    for rest in ["", "...\n", "...\n# a comment\n", "# a comment\n"] {
        let text = format!("---\nname: a\ncount: 1\n{rest}");
        let root = tree(&text).unwrap_or_else(|error| panic!("{error}: {text}"));
        assert_eq!((root.entries().len(), root.get("name").and_then(Node::text)), (2, Some("a")), "{text}");
    }
}

#[test]
fn nodes_know_where_they_are_and_what_they_can_be() {
    let text = "a: 1.0\nb:\n  - {c: \"no\", d: ~}\n  - &x yes\n  - *x\ne: !!str 12\nf: 007\n";
    let root = tree(text).expect("a tree");
    let at = |node: &Node| (node.line, node.column);
    let a = root.get("a").expect("a");
    assert_eq!(
        (at(a), a.text(), a.number(), a.count(), a.kind()),
        ((1, 4), Some("1.0"), Some(1.0), None, "a number")
    );
    let items = root.get("b").and_then(Node::items).expect("b");
    assert_eq!(at(&items[0]), (3, 5));
    let c = items[0].get("c").expect("c");
    assert_eq!((at(c), c.text(), c.boolean(), c.kind()), ((3, 9), Some("no"), None, "text"));
    assert!(items[0].get("d").expect("d").is_null());
    assert_eq!((items[1].text(), items[2].text(), at(&items[2])), (Some("yes"), Some("yes"), (5, 5)));
    assert_eq!(root.get("e").and_then(Node::count), None);
    assert_eq!(root.get("f").and_then(Node::count), None);
    assert!(tree("").expect("an empty file").is_null());
    assert!(tree("# nothing\n").expect("a comment").is_null());
}

#[test]
fn input_is_limited_in_bytes_levels_nodes_and_aliases() {
    limit_test();
    let deep_flow = "[".repeat(10_000);
    let deep_block = (0..200).map(|level| " ".repeat(level) + "a:\n").collect::<String>();
    let wide = format!("[{}]", "1,".repeat(60_000));
    let mut laughs = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n".to_owned();
    for level in 1..12 {
        let repeated = vec![format!("*a{}", level - 1); 10].join(", ");
        laughs.extend([format!("a{level}: &a{level} [{repeated}]\n")]);
    }
    // Few nodes and few bytes, whose copies would be gigabytes.
    let long_laughs = format!("a: &a {}\nb: [{}]\n", "x".repeat(180_000), "*a,".repeat(23_000));
    let long_keys = format!("a: &a {{{}: 1}}\nb: [{}]\n", "x".repeat(1000), "*a,".repeat(15_000));
    // An anchor may have the name of an earlier one.
    let nested_anchors = format!("{}{}{}", "&a [".repeat(30), "x".repeat(100_000), "]".repeat(30));
    let long = "x".repeat(Limits::FILE.bytes + 1);
    for (text, message) in [
        (&deep_flow, "recursion limit"),
        (&deep_block, "levels"),
        (&wide, "more than 50000 values"),
        (&laughs, "more than 50000 values"),
        (&long_laughs, "copy more than 1048576 bytes"),
        (&long_keys, "copy more than 1048576 bytes"),
        (&nested_anchors, "copy more than 1048576 bytes"),
        (&long, "more than 1048576 bytes"),
        (&"a: &a [*a]\n".to_owned(), "alias"),
        (&"a: *b\n".to_owned(), ""),
    ] {
        let start: String = text.chars().take(30).collect();
        let error = tree(text).expect_err(&start);
        assert!(error.message.contains(message), "{start}: {error}");
    }
}

#[test]
fn a_long_text_may_be_repeated_within_the_limit() {
    limit_test();
    let text = format!("a: &a {}\nb: [*a, *a]\n", "x".repeat(1000));
    let root = tree(&text).expect("three texts");
    let repeated = root.get("b").and_then(Node::items).expect("a list");
    assert!(repeated.iter().all(|each| each.text() == root.get("a").and_then(Node::text)));
    let limits = Limits { bytes: text.len(), ..Limits::FILE };
    let error = tree_within(&text, limits).expect_err("the copies are longer than the text");
    assert_eq!((error.line, error.column), (2, 5), "{error}");
}
