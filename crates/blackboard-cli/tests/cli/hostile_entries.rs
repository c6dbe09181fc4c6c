//! Hostile entries are returned unchanged, and forge no output.

use blackboard::Code;
use serde_json::{Value, json};

use crate::hostile_text::{HOSTILE, is_harmless};
use crate::scratch::{Output, Scratch};

testkit::on_each_engine![
    a_hostile_value_is_only_a_value,
    hostile_json_comes_back_byte_for_byte,
    depth_has_a_bound_and_needs_no_stack,
    large_value_is_shown_completely_and_shortened_in_a_table_on_a_terminal,
    a_name_that_could_be_mistaken_for_another_is_refused,
    hostile_transaction_is_a_usage_error_and_forges_nothing,
];

/// Commands with human output of entries.
const SHOWING: &[&[&str]] = &[
    &["read", "key"],
    &["read", "list"],
    &["list"],
    &["list", "--long"],
    &["snapshot"],
    &["query"],
    &["history", "key"],
    &["clear", "*", "--dry-run"],
    &["observe", "--since", "1h"],
    &["txn", "--file", "read.json"],
];

fn a_hostile_value_is_only_a_value() {
    for text in HOSTILE {
        let scratch = Scratch::new();
        let metadata = json!({ "text": text }).to_string();
        std::fs::write(scratch.path().join("read.json"), r#"{"then":[{"read":{"key":"key"}}]}"#).unwrap();
        for call in [
            &["write", "key", text, "--agent", "analyst", "--metadata", &metadata][..],
            &["append", "list", text],
            &["write", "key", text, "--string", "--agent", "analyst"],
        ] {
            let output = scratch.run(call).success();
            is_harmless(&output.stdout, &format!("{call:?}"));
        }
        for call in SHOWING {
            let output = scratch.run(*call).success();
            is_harmless(&output.stdout, &format!("{call:?} of {text:?}"));
            assert_eq!(output.stderr, "", "{call:?}");
            scratch.run(call.iter().chain(&["--json"])).success().json();
        }
        assert_eq!(scratch.json(["read", "key", "--value"]), *text);
        assert_eq!(scratch.json(["read", "list", "--value"]), json!([text]));
        assert!(!scratch.path().join("forged").exists());
    }
}

/// The same JSON; every character of it that is not ASCII is hidden.
fn hidden_escaped(json: &str) -> String {
    let escaped = json.chars().map(|character| {
        if matches!(character, ' '..='~') {
            return character.to_string();
        }
        let mut buffer = [0; 2];
        let units = character.encode_utf16(&mut buffer).iter().map(|unit| format!("\\u{unit:04x}"));
        units.collect::<Vec<_>>().concat()
    });
    escaped.collect()
}

fn hostile_json_comes_back_byte_for_byte() {
    let scratch = Scratch::new();
    for value in [
        "\"\u{9b}31mred\u{7f}\u{202e}desrever\u{2028}\u{e0041}\"",
        "{\n  \"b\": [1.0,\r\n\t-0e-0],\n  \"a\": 123456789012345678901234567890.10\n}",
        r#"{"a": "\u001b[31m\n\u0000", "a": "twice"}"#,
        r#""\ud83d\ude00""#,
        "[1e999, 1E+2]",
    ] {
        assert_eq!(written(&scratch, "key", value.as_bytes()).code, 0, "{value}");
        let bare = scratch.run(["read", "key", "--value"]).success().stdout;
        assert_eq!(bare, format!("{value}\n"));
        for call in [&["read", "key"][..], &["snapshot"], &["list", "--long"], &["history", "key"]] {
            is_harmless(&scratch.run(call).success().stdout, value);
        }
        // On one line, with hidden characters escaped, and otherwise the same text.
        let on_one_line = hidden_escaped(&value.replace(['\n', '\r', '\t'], " "));
        let answer = scratch.run(["read", "key", "--json"]).success().stdout;
        assert_eq!(answer.lines().count(), 1);
        assert!(answer.replace('\t', " ").contains(&format!("\"value\":{on_one_line},")), "{answer:?}");
    }
}

fn depth_has_a_bound_and_needs_no_stack() {
    let scratch = Scratch::new();
    let deep = |depth: usize| format!("{}{}", "[".repeat(depth), "]".repeat(depth));
    assert_eq!(written(&scratch, "deepest", deep(128).as_bytes()).code, 0);
    assert_eq!(scratch.run(["read", "deepest", "--value"]).success().stdout, format!("{}\n", deep(128)));
    for call in [&["read", "deepest"][..], &["snapshot"], &["list", "--long", "--json"], &["query", "--json"]]
    {
        scratch.run(call).success();
    }
    for depth in [129, 400_000] {
        let output = written(&scratch, "deeper", deep(depth).as_bytes());
        assert_eq!(output.refused(Code::InvalidValue)["ok"], false);
    }
    let output = written(&scratch, "unclosed", "[".repeat(400_000).as_bytes());
    assert_eq!(output.code, 0, "what is no JSON is a string");
}

fn large_value_is_shown_completely_and_shortened_in_a_table_on_a_terminal() {
    let scratch = Scratch::new();
    let large = format!("\"{}\"", "漢".repeat(349_524));
    assert_eq!(written(&scratch, "large", large.as_bytes()).code, 0);
    assert!(scratch.run(["read", "large"]).success().stdout.contains(&large));
    for call in [&["list", "--long"][..], &["query"], &["history", "large"]] {
        let shown = scratch.on_terminal(80, call);
        assert!(shown.contains("漢漢…") && shown.len() < 1000, "{call:?}");
        assert!(scratch.run(call).success().stdout.contains(&large), "{call:?}");
    }
}

fn a_name_that_could_be_mistaken_for_another_is_refused() {
    let scratch = Scratch::new();
    for name in ["a\nb", "a\u{1b}[0m", "a\u{202e}b", "a\u{200b}", "\t", "a\u{2028}b", "", &"x".repeat(1025)] {
        for call in [
            &["write", name, "1"][..],
            &["read", name],
            &["delete", name],
            &["append", name, "1"],
            &["increment", name],
            &["history", name],
            &["clear", name],
            &["purge", name],
            &["purge", name, "--dry-run"],
            &["write", "key", "1", "--scope", name],
            &["list", "--scope", name],
            &["write", "key", "1", "--tag", name],
            &["query", name],
        ] {
            let output = scratch.run(call);
            assert_eq!((output.code, output.stdout.as_str()), (2, ""), "{call:?}");
            is_harmless(&output.stderr, &format!("{call:?}"));
            assert!(output.stderr.len() < 1000, "{call:?}");
        }
    }
    assert_eq!(scratch.json(["list"]), json!([]));
}

fn hostile_transaction_is_a_usage_error_and_forges_nothing() {
    let scratch = Scratch::new();
    for text in HOSTILE {
        for transaction in [
            json!({ (*text): 1 }),
            json!({"then": [{ (*text): {} }]}),
            json!({"then": [{"write": {"key": text, (*text): 1}}]}),
            json!({"compare": [{"key": text}]}),
            json!({"then": [{"write": {"key": "a", "value": 1, "ttl": text}}]}),
            json!(text),
        ] {
            std::fs::write(scratch.path().join("file"), transaction.to_string()).unwrap();
            let output = scratch.run(["txn", "--file", "file"]);
            assert_eq!((output.code, output.stdout.as_str()), (2, ""), "{transaction}");
            is_harmless(&output.stderr, &transaction.to_string());
            let refusal = scratch.run(["txn", "--file", "file", "--json"]).refused(Code::InvalidValue);
            assert_ne!(refusal["error"], Value::Null);
        }
    }
}

/// Writes through a pipe: arguments cannot be that large.
fn written(scratch: &Scratch, key: &str, value: &[u8]) -> Output {
    Output::fed(&mut scratch.command(["write", key, "-", "--json"]), value)
}
