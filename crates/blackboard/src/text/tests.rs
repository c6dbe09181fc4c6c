use proptest::prelude::*;

use super::*;

fn field(text: &str) -> String {
    TextRules::default().field(text).unwrap()
}

#[test]
fn ordinary_text_stays_unchanged() {
    testkit::limit_test();
    for text in [
        "Fix the parser",
        "a < b",
        "x<y",
        "i <b",
        "if a < b && c > d { Vec<String> }",
        "if a<b && c>d",
        "if a<b && c==d",
        "while i<p || p>=0",
        "Vec<String>",
        "HashMap<K, V>",
        "Arc<Mutex<Option<Box<T>>>>",
        "impl Future<Output = ()> + Send",
        "impl Future<Output=u8>",
        "Option<Data> and collect::<Address>()",
        "fn parse<T>(x: &T) -> Result<T, E>",
        "<T>",
        "match x { 1 => 2, _ => 3 }",
        "a -> b <- c <=> d",
        "Ivy <ivy@example.org>",
        "Ivy (delegate)",
        "see <https://example.org/a?b=c>",
        "--db <file>",
        "{\"a\":{\"b\":1}}",
        "cost: $5, {5}",
        "an open {{ and an open ${",
        "use `cargo test` and ``x``",
        "'; DROP TABLE agents; --",
        "käse 🧀 👩‍👩‍👧 日本語",
        "50 % of 10\u{a0}MB",
        "Zoë ❤️ ☎︎ 1️⃣ 👩🏽‍💻 🏳️‍🌈 👁️‍🗨️",
        "می‌خواهم क्‍ष श्री‌राम",
    ] {
        assert_eq!(field(text), text);
    }
}

#[test]
fn markup_is_removed() {
    for (text, expected) in [
        ("<b>bold</b> move", "bold move"),
        ("<B>bold</B>", "bold"),
        ("a<br/>b<br />c<hr>", "abc"),
        ("<script>alert(1)</script>", "alert(1)"),
        ("x<Script>y", "xy"),
        ("<img src=x onerror=alert(1)>", ""),
        ("see <img src=x onerror=alert(1)", "see"),
        ("<svg/onload=alert(1)>", ""),
        ("x<Label onclick=alert(1)>y", "xy"),
        ("<b && onclick=alert(1)>y", "y"),
        ("<a\nhref='x'>link</a\n>", "link"),
        ("<!doctype html><!-- note -->text", "text"),
        ("a <!-- open", "a open"),
        ("end <script", "end"),
        ("end </div", "end"),
        ("<scr<script>ipt>alert(1)", "alert(1)"),
        ("<scr{{x}}ipt>y", "y"),
        ("<scr\u{0}ipt>y", "y"),
        ("<scr<!-- -->ipt>y", "y"),
        ("before ```rust\nlet x;\n``` after", "before [code block removed] after"),
        ("````\nx\n````", "[code block removed]"),
        ("a ```b``` c ```d", "a [code block removed] c d"),
        ("Hello {{name}}!", "Hello !"),
        ("{{{raw}}} text", "text"),
        ("run ${{ secrets.TOKEN }} now", "run now"),
        ("cd ${HOME}/bin", "cd /bin"),
        ("{{{x}}{y}}", "{y}}"),
        ("{${x}{y}}", ""),
    ] {
        assert_eq!(field(text), expected, "{text:?}");
    }
}

#[test]
fn text_rules_can_be_disabled() {
    let rules = TextRules { strip_code_blocks: false, strip_html_tags: false, ..TextRules::default() };
    assert_eq!(rules.field("<b>x</b> ```y``` {{z}}").unwrap(), "<b>x</b> ```y```");
}

#[test]
fn terminal_sequences_are_removed_completely() {
    for (text, expected) in [
        ("\u{1b}[31mred\u{1b}[0m", "red"),
        ("\u{9b}1;31mred", "red"),
        ("\u{1b}]0;title\u{7}text", "text"),
        ("\u{1b}]8;;http://x\u{1b}\\link\u{1b}]8;;\u{1b}\\", "link"),
        ("\u{9d}0;title\u{9c}text", "text"),
        ("\u{1b}]0;never closed\nnext line", "next line"),
        ("\u{1b}(B\u{1b}cx", "x"),
        ("\u{1b}\u{1b}[2Jx", "x"),
        ("x\u{1b}", "x"),
        ("a\r\nb\tc\u{2028}d\u{85}e", "a b c d e"),
        ("\u{202e}gpj\u{202c}.exe\u{200f}\u{061c}\u{2066}", "gpj.exe"),
        ("\u{feff}a\u{200b}b\u{e0041}\u{e007f}c\u{8}", "abc"),
        ("  a   b  ", "a b"),
    ] {
        assert_eq!(field(text), expected, "{text:?}");
    }
}

#[test]
fn invisible_characters_are_removed_unless_they_belong_to_letters_or_emoji() {
    for (text, expected) in [
        ("de\u{ad}ploy\u{fe0f}", "deploy"),
        ("a\u{34f}b\u{115f}c\u{3164}d\u{ffa0}e\u{2800}f\u{17b4}g\u{180b}h\u{2065}i", "abcdefghi"),
        ("x\u{e0100}\u{e01ef}y\u{1bca0}z\u{1d173}\u{1d159}", "xyz"),
        ("❤\u{fe0f}\u{fe0f}\u{fe0e}", "❤\u{fe0f}"),
        ("1\u{fe0f}2", "12"),
        ("a\u{200d}\u{200d}\u{200c}b", "a\u{200c}b"),
        ("\u{200d}a \u{200c} b\u{200d}", "a b"),
        ("x\u{200d}\u{3164} y\u{200c}\u{115f}", "x y"),
        ("a\u{200d}\u{1160}b\u{200c}\u{ffa0}\u{200d}c\u{200d}\u{13441}", "ab\u{200d}c"),
        ("👩\u{200d}", "👩"),
        ("👩\u{200c}💻", "👩💻"),
        ("a\u{200d}💻", "a💻"),
        ("🏴\u{e0067}\u{e0062}\u{e007f}", "🏴"),
    ] {
        assert_eq!(field(text), expected, "{text:?}");
        assert_eq!(
            TextRules::default().description(text).unwrap(),
            expected.replace("a b", "a  b"),
            "{text:?}"
        );
        assert!(hides(text), "{text:?}");
    }
    for ignorable in
        (char::MIN..=char::MAX).filter(|&each| unicode::contains(unicode::DEFAULT_IGNORABLE, each))
    {
        assert_eq!(field(&format!("a {ignorable} b")), "a b", "{ignorable:?}");
        assert!(check_id("work item", &format!("t1{ignorable}")).is_err(), "{ignorable:?}");
        assert!(check_name(&format!("Ivy{ignorable}")).is_err(), "{ignorable:?}");
        let shown = escape_for_terminal(&format!("a {ignorable} b")).into_owned();
        assert_eq!(shown, format!("a {} b", ignorable.escape_default()));
    }
}

#[test]
fn changes_to_a_text_are_reported() {
    testkit::limit_test();
    let rules = TextRules {
        max_field_length: 10,
        max_summary_length: 20,
        max_description_length: 30,
        ..TextRules::default()
    };
    for (kind, text, shortened, filtered) in [
        (Kind::Field, "short", false, false),
        (Kind::Field, " a\nb\t\u{2028} c  ", false, false),
        (Kind::Field, "0123456789", false, false),
        (Kind::Field, "0123456789 ", false, false),
        (Kind::Field, "0123456789a", true, false),
        (Kind::Field, "<b>a</b>", false, true),
        (Kind::Field, "a\u{200b}", false, true),
        (Kind::Field, "a\u{1b}[31m", false, true),
        (Kind::Field, "```x```", true, true),
        (Kind::Field, &"x".repeat(200), true, false),
        (Kind::Summary, "0123456789a", false, false),
        (Kind::Summary, "0123456789 0123456789", true, false),
        (Kind::Description, "a\r\nb", false, false),
        (Kind::Description, "<b>\u{0}", false, true),
        (Kind::Description, &"x".repeat(31), true, false),
    ] {
        let mut cleaner = Cleaner::new(&rules);
        let clean = cleaner.clean("title", kind, text).unwrap();
        let named = |changed: bool| if changed { vec!["title".to_owned()] } else { Vec::new() };
        let stored =
            named(filtered).into_iter().map(|field| StoredText { field, text: clean.clone() }).collect();
        let changes = cleaner.changes();
        let given = changes.lengths.iter().map(|lengths| (lengths.field.clone(), lengths.given));
        let length = text.chars().count();
        let expected: Vec<_> = named(shortened).into_iter().map(|field| (field, length)).collect();
        assert_eq!(given.collect::<Vec<_>>(), expected, "{kind:?} {text:?}");
        let lengths = changes.lengths.clone();
        let expected =
            TextChanges { shortened: named(shortened), lengths, filtered: named(filtered), stored };
        assert_eq!(changes, expected, "{kind:?} {text:?}");
    }
    let many = |names: &[&str]| names.iter().map(|&name| name.to_owned()).collect::<Vec<_>>();
    let changes =
        TextChanges { shortened: many(&["a", "b", "c"]), filtered: many(&["d"]), ..TextChanges::default() };
    assert_eq!(
        changes.sentence().unwrap(),
        "the a, the b and the c are longer than the limit and were shortened; markup, template markers or invisible \
         characters were removed from the d"
    );
    let mut cleaner = Cleaner::new(&rules);
    cleaner.clean("title", Kind::Summary, "Fix <div> and {{ x }}").unwrap();
    cleaner.clean("note", Kind::Field, "a\u{200b}b").unwrap();
    assert_eq!(
        cleaner.changes().sentence().unwrap(),
        "title was changed: \"Fix and\"; note was changed: \"ab\" \
         (markup, template markers or invisible characters were removed)"
    );
    assert_eq!(TextChanges::default().sentence(), None);
}

#[test]
fn a_credential_in_escaped_json_is_refused() {
    testkit::limit_test();
    let secret = format!("p_{}", "a1B2c3D4e5F6".repeat(3));
    let rules = TextRules::default();
    for json in [
        format!(r#"{{"a": "gh\u0070{}"}}"#, &secret[1..]),
        format!(r#""g\u0068{secret}""#),
        format!(r#""{{\"a\": \"gh\\u0070{}\"}}""#, &secret[1..]),
    ] {
        assert_eq!(rules.check_json([json.as_str()]).unwrap_err().code(), Code::SecretLooking, "{json}");
    }
    rules.check_json([r#"{"a": "gh\u0070_ is a prefix", "b": "C:\\users"}"#]).unwrap();
}

#[test]
fn a_field_is_cut_by_characters() {
    testkit::limit_test();
    assert_eq!(field(&"é".repeat(501)), "é".repeat(500));
    assert_eq!(field(&format!("{} b", "a".repeat(499))), "a".repeat(499));
    // The cut must not turn a comparison into markup that the next write would remove.
    let once = field(&format!("{} x<b && c> d", "a".repeat(490)));
    assert_eq!(field(&once), once);
}

#[test]
fn a_description_keeps_its_lines_and_its_markup() {
    testkit::limit_test();
    let rules = TextRules { max_description_length: 40, ..TextRules::default() };
    let text = "# Title\n\n\t```rust\n<b>{{x}}</b>\n```";
    assert_eq!(rules.description(text).unwrap(), text);
    assert_eq!(rules.description("a\r\nb\u{1b}[2Jc\u{202e}\u{0}").unwrap(), "a\nbc");
    assert_eq!(rules.description(&"é".repeat(100)).unwrap(), "é".repeat(40));
}

#[test]
fn unclosed_openings_cost_no_more_than_other_text() {
    testkit::limit_test();
    // Nothing is timed: with quadratic passes this test would take minutes.
    let length = 1 << 17;
    let rules = TextRules { max_field_length: length, ..TextRules::default() };
    for piece in [
        "<",
        "{{",
        "${",
        "```",
        "<b ",
        "<b && ",
        "<scr{{>}}",
        "\u{1b}]",
        "{{<!--",
        "-sk-ant-",
        "-eyJ",
        "-MTE",
        "-pat",
        "password=",
        "password=1a",
        "authorization: bearer ",
    ] {
        let text = piece.repeat(length / piece.len());
        let clean = rules.field(&text).unwrap();
        assert_eq!(rules.field(&clean).unwrap(), clean);
        rules.description(&text).unwrap();
    }
}

#[test]
fn text_nested_deeper_than_the_rounds_is_cleaned() {
    let nested = (0..50).fold("<script>".to_owned(), |inner, _| format!("<scr{inner}ipt>"));
    assert!(!field(&nested).contains('<'));
}

#[test]
fn a_refused_secret_is_not_repeated() {
    testkit::limit_test();
    let secret = format!("ghp_{}", "a1B2c3D4e5F6".repeat(3));
    let rules = TextRules::default();
    for text in [
        format!("use {secret} here"),
        // Half of it would remain after the cut.
        format!("{} {secret}", "a".repeat(480)),
        // Two halves that the filter joins.
        format!("{}<b></b>{}", &secret[..20], &secret[20..]),
    ] {
        let error = rules.field(&text).unwrap_err();
        assert_eq!(error.code(), Code::SecretLooking);
        assert_eq!(error.hint(), Some(&Hint::AllowSecret));
        assert!(!format!("{error:?}").contains(&secret[..12]));
    }
    assert_eq!(rules.description(&secret).unwrap_err().code(), Code::SecretLooking);
    let allowed = TextRules { allow_secret_looking: true, ..rules };
    assert_eq!(allowed.field(&secret).unwrap(), secret);
}

#[test]
fn ids_are_bounded_and_never_altered() {
    testkit::limit_test();
    for id in ["a", "gh:owner/repo#78", "local:fix tests", "日本語", "'; DROP TABLE", &"é".repeat(200)] {
        check_id("work item", id).unwrap();
    }
    for (id, shown) in [
        ("", "work item is empty"),
        (" a", "white space: \" a\""),
        ("a\u{a0}", "white space"),
        ("a\nb", r#""a\nb""#),
        ("\u{1b}[2J", r#""\u{1b}[2J""#),
        ("a\u{202e}b", r#""a\u{202e}b""#),
        (&"x".repeat(201), "longer than 200 characters"),
    ] {
        let error = check_id("work item", id).unwrap_err();
        assert_eq!(error.code(), Code::InvalidValue);
        assert!(error.to_string().contains(shown), "{error}");
        assert!(!error.to_string().contains(control::forges));
    }
}

/// Text that mixes everything that the filter knows.
fn hostile_text() -> impl Strategy<Value = String> {
    let marker = prop::sample::select(vec![
        "<",
        ">",
        "</",
        "/>",
        "<!--",
        "-->",
        "{{",
        "}}",
        "${",
        "{",
        "}",
        "$",
        "`",
        "```",
        "=",
        " ",
        "&&",
        "\n",
        "\u{1b}[",
        "\u{1b}]",
        "\u{7}",
        "m",
        "\u{202e}",
        "\u{feff}",
        "\u{e0041}",
        "\u{fe0f}",
        "\u{200d}",
        "\u{200c}",
        "\u{20e3}",
        "\u{ad}",
        "\u{115f}",
        "\u{1160}",
        "\u{3164}",
        "\u{ffa0}",
        "1",
        "❤",
        "\u{9b}",
        "script",
        "scr",
        "ipt",
        "b",
        "img",
        "Data",
        "x",
        "é",
        "👩‍👩‍👧",
        "\u{a0}",
        "on=1",
    ]);
    let piece = prop_oneof![8 => marker.prop_map(str::to_owned), 1 => any::<String>()];
    prop::collection::vec(piece, 0..60).prop_map(|pieces| pieces.concat())
}

proptest! {
    #[test]
    fn filtered_field_is_clean_and_filtering_is_idempotent(text in hostile_text(), limit in 0_usize..120) {
        testkit::limit_test();
        let rules = TextRules { max_field_length: limit, ..TextRules::default() };
        let clean = rules.field(&text).unwrap();
        prop_assert_eq!(&rules.field(&clean).unwrap(), &clean);
        prop_assert!(clean.chars().count() <= limit);
        prop_assert!(!hides(&clean), "{:?}", clean);
        prop_assert_eq!(clean.trim(), &clean);
        prop_assert!(!clean.contains("  ") && !clean.contains("```") && !clean.contains("<!--"));
        for (open, close) in [("{{", "}}"), ("${", "}")] {
            let enclosed = clean.split_once(open).is_some_and(|(_, after)| after.contains(close));
            prop_assert!(!enclosed, "{:?}", clean);
        }
        for element in filter::ELEMENTS {
            let tags = [format!("<{element}>"), format!("</{element}>")];
            prop_assert!(!tags.iter().any(|tag| clean.contains(tag)), "{:?}", clean);
        }
        prop_assert!(!clean.to_lowercase().contains("<script>"));
    }

    #[test]
    fn a_filtered_description_forges_nothing(text in hostile_text()) {
        testkit::limit_test();
        let clean = TextRules::default().description(&text).unwrap();
        prop_assert_eq!(&TextRules::default().description(&clean).unwrap(), &clean);
        prop_assert!(!hides(&clean.replace(['\n', '\t'], " ")), "{:?}", clean);
    }

    #[test]
    fn escaped_text_is_one_line_and_loses_nothing_visible(text in hostile_text()) {
        testkit::limit_test();
        let escaped = escape_for_terminal(&text);
        prop_assert!(!hides(&escaped), "{:?}", escaped);
        prop_assert!(escaped.chars().count() >= text.chars().count());
    }

    // No element is spelled with these letters alone.
    #[test]
    fn comparisons_and_generics_stay_unchanged(text in "[K-Nk-nXx0-9<>=&|]{1,5}( [K-Nk-nXx0-9<>=&|]{1,5}){0,20}") {
        testkit::limit_test();
        prop_assert_eq!(field(&text), text);
    }
}

#[test]
fn the_list_of_elements_is_sorted() {
    assert!(filter::ELEMENTS.is_sorted());
}
