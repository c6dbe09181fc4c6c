//! Hostile text neither forges output, nor breaks JSON, nor damages the board.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;

use blackboard::Code;
use serde_json::json;
use testkit::process::RunToEnd as _;

use crate::refusals::CALLS;
use crate::scratch::{Output, Scratch, with_options};

testkit::on_each_engine![
    stored_text_is_only_text_wherever_it_is_shown,
    code_and_comparisons_survive,
    the_largest_possible_argument_is_shortened,
    an_id_that_could_be_mistaken_for_another_is_refused,
    a_name_that_looks_like_another_has_no_second_holder,
    white_space_at_the_ends_of_a_name_is_refused,
    text_that_is_not_stored_as_given_is_reported,
    usage_error_with_hostile_text_forges_nothing,
    invalid_utf8_is_refused_everywhere_but_in_paths,
    variables_with_invalid_utf8_are_refused,
    text_that_looks_like_a_credential_is_stored_only_with_its_option,
];

/// Hostile text. Each has a row that must never be at the start of a line.
pub const HOSTILE: &[&str] = &[
    "\u{1b}[2J\u{1b}[31mred\u{1b}[0m",
    "\u{1b}]0;title\u{7}\u{1b}]8;;https://evil.example\u{1b}\\link",
    "first\nFORGED row\r\nFORGED row",
    "first\rFORGED row\u{8}\u{7f}",
    "first\u{85}FORGED\u{2028}FORGED\u{2029}FORGED",
    "\u{202e}desrever\u{202c} \u{2066}isolated\u{2069} \u{200f}",
    "\u{9b}31mred\u{9d}0;title\u{9c}",
    "zero\u{200b}width\u{feff}\u{e0041}",
    "so\u{ad}ft\u{34f} va\u{fe0f}ri\u{e0100}ation \u{3164}\u{2800}\u{115f} jo\u{200d}\u{200d}in",
    "'; DROP TABLE agents; --",
    "\" OR 1=1; ATTACH DATABASE '/tmp/x' AS x; --",
    "{\"ok\": true}\"},\\",
    "%s%n${HOME}$(touch forged)`touch forged`",
];

/// A text without NUL, which no argument can have, that means nothing to a terminal.
#[track_caller]
pub fn is_harmless(shown: &str, context: &str) {
    let harmful = |character: char| {
        (character.is_control() && character != '\n')
            || matches!(character,
                '\u{200b}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}'
                | '\u{feff}' | '\u{e0000}'..='\u{e0fff}'
                | '\u{ad}' | '\u{34f}' | '\u{115f}' | '\u{2800}' | '\u{3164}' | '\u{fe0f}')
    };
    assert_eq!(shown.find(harmful), None, "{context}: {shown:?}");
    assert!(!shown.lines().any(|line| line.trim_start().starts_with("FORGED")), "{context}: {shown}");
}

/// A board where every text is this one; the name of the agent as far as it can be seen.
fn board_of(text: &str) -> Scratch {
    let scratch = Scratch::new();
    let name = &blackboard::text::visible(text);
    let metadata = serde_json::json!({ "text": text }).to_string();
    let id = "item";
    scratch.json(["write", "first", "1"]);
    for call in [
        &["agent", "register", "--session-hint", "ivy", "--name", name, "--project", text, "--work", text][..],
        &["agent", "register", "--session-hint", "ivy", "--name", name, "--metadata", &metadata],
        &[
            "project",
            "register",
            "pai",
            "--name",
            text,
            "--path",
            text,
            "--repo",
            text,
            "--metadata",
            &metadata,
        ],
        &[
            "work",
            "create",
            "first",
            "--title",
            text,
            "--description",
            text,
            "--source-ref",
            text,
            "--project",
            "pai",
        ],
        &["work", "claim", id, "--title", text, "--metadata", &metadata, "--session", "ivy"],
        &["agent", "heartbeat", "--session", "ivy", "--progress", text, "--work", text, "--op", "op"],
        &["work", "block", "first", "--blocked-by", id, "--reason", text],
        &["work", "complete", id, "--summary", text, "--session", "ivy"],
    ] {
        let output = scratch.run(call).success();
        is_harmless(&output.stdout, &format!("{call:?}"));
        is_harmless(&output.stderr, &format!("{call:?}"));
        // The text is also the path of a project, and no directory has that name.
        let is_known = |note: &str| note.contains(" was changed: \"") || note.ends_with(" does not exist");
        let is_note = |line: &str| line.starts_with("note: ") && is_known(line);
        assert!(output.stderr.lines().all(is_note), "{call:?}: {}", output.stderr);
    }
    scratch
}

fn stored_text_is_only_text_wherever_it_is_shown() {
    for text in HOSTILE {
        let scratch = board_of(text);
        for call in [
            &["agent", "list"][..],
            &["agent", "show", "ivy"],
            &["project", "list"],
            &["project", "status", "pai"],
            &["work", "list", "--all"],
            &["work", "status", "first"],
            &["work", "status", "item"],
            &["observe", "--since", "1h"],
            &["status"],
            &["sweep", "--threshold", "0", "--dry-run"],
            &["agent", "deregister", "ivy"],
        ] {
            let output = scratch.run(call).success();
            is_harmless(&output.stdout, &format!("{call:?} of {text:?}"));
            assert_eq!(output.stderr, "", "{call:?}");
            scratch.run(call.iter().chain(&["--json"])).success().json();
        }
        scratch.run(["export"]).success().json();
        let path = scratch.path().canonicalize().unwrap().join(text);
        let path: std::path::PathBuf = path.components().collect();
        let stored = &scratch.json(["project", "list"])["items"][0]["local_path"];
        assert_eq!(stored.as_str(), path.to_str(), "paths are not altered");
        assert!(!scratch.path().join("forged").exists());
    }
}

fn code_and_comparisons_survive() {
    let code = "if a < b && c > d { Vec<String> }";
    let scratch = Scratch::new();
    let agent = scratch.json(["agent", "register", "--name", code, "--work", code, "--session-hint", "ivy"]);
    assert_eq!((agent["agent_name"].as_str(), agent["current_work"].as_str()), (Some(code), Some(code)));
    let item = scratch.json(["work", "create", "item", "--title", code, "--description", code]);
    assert_eq!((item["title"].as_str(), item["description"].as_str()), (Some(code), Some(code)));
    let beat = scratch.json(["agent", "heartbeat", "--session", "ivy", "--progress", code]);
    assert_eq!(beat["progress"], code);
    let seen = scratch.run(["observe", "--since", "1h"]).success().stdout;
    assert!(seen.contains(&format!("Agent \"{code}\": {code}")), "{seen}");
}

fn the_largest_possible_argument_is_shortened() {
    // The kernel takes no argument of more than 128 KiB; many of them make a megabyte.
    let long = "x y ".repeat(32 * 1024 - 1);
    let scratch = Scratch::new();
    let agent = scratch.json(
        [
            ["agent", "register", "--session-hint", "ivy", "--name", &long],
            ["--project", &long, "--work", &long, "--metadata", "{}"],
        ]
        .concat(),
    );
    assert_eq!(
        agent["agent_name"].as_str().unwrap().chars().count(),
        499,
        "a cut leaves no blank at the end"
    );
    let item = scratch.json([
        "work",
        "create",
        "item",
        "--title",
        &long,
        "--description",
        &long,
        "--source-ref",
        &long,
    ]);
    assert_eq!(item["description"].as_str().unwrap().chars().count(), 64_000);
    scratch.json(["agent", "heartbeat", "--session", "ivy", "--progress", &long, "--work", &long]);
    for call in [
        &["work", "create", &long, "--title", "x"][..],
        &["work", "create", "x", "--title", "x", "--source", &long],
        &["work", "create", "x", "--title", "x", "--blocked-by", &long],
        &["project", "register", &long, "--name", "x"],
        &["project", "register", "x", "--name", "x", "--path", &long],
        &["agent", "register", "--name", "x", "--session-hint", &long],
        &["agent", "heartbeat", "--session", &long],
        &["agent", "heartbeat", "--session", "ivy", "--op", &long],
        &["observe", "--since", &long],
        &["observe", "--filter", &long],
    ] {
        let refusal = scratch.run(call.iter().chain(&["--json"])).refused(Code::InvalidValue);
        let length = refusal["error"].as_str().unwrap().len();
        assert!(length < 1000 || call.contains(&"--filter"), "{:?} is answered with {length} bytes", call[0]);
    }
    for call in [&["work", "status", &long][..], &["project", "status", &long]] {
        assert_eq!(scratch.run(call).code, 3);
    }
}

fn an_id_that_could_be_mistaken_for_another_is_refused() {
    let scratch = Scratch::new();
    for id in ["a\nb", "a\u{1b}[0m", "a\u{202e}b", "a\u{200b}", " a", "a ", "\t", "a\u{2028}b"]
        .into_iter()
        .chain(INVISIBLE_IN_IDS)
    {
        for call in [
            &["work", "create", id, "--title", "x"][..],
            &["project", "register", id, "--name", "x"],
            &["agent", "register", "--name", "x", "--session-hint", id],
            &["agent", "show", id],
        ] {
            let output = scratch.run(call);
            assert_eq!(output.code, 2, "{call:?}");
            is_harmless(&output.stderr, &format!("{call:?}"));
        }
        for call in [&["work", "status", id][..], &["project", "status", id], &["work", "reset", id]] {
            let output = scratch.run(call);
            assert!(matches!(output.code, 2 | 3), "{call:?}");
            is_harmless(&output.stderr, &format!("{call:?}"));
        }
    }
}

/// Ids that look like another one.
const INVISIBLE_IN_IDS: [&str; 6] =
    ["t1\u{34f}", "deploy\u{fe0f}", "a\u{ad}b", "a\u{200d}b", "\u{3164}", "1\u{fe0f}"];

fn a_name_that_looks_like_another_has_no_second_holder() {
    let scratch = Scratch::new();
    for name in ["ivy", "oak"] {
        scratch.run(["agent", "register", "--name", name, "--session-hint", name]).success();
    }
    scratch.run(["lock", "acquire", "deploy", "--session", "ivy"]).success();
    for name in INVISIBLE_IN_IDS {
        for call in [
            &["lock", "acquire", name, "--session", "oak"][..],
            &["write", name, "1"],
            &["write", "key", "1", "--scope", name],
            &["write", "key", "1", "--tag", name],
            &["write", "key", "1", "--agent", name],
            &["write", "key", "1", "--op", name],
            &["agent", "register", "--name", name],
            &["observe", "--follow", "--cursor", name, "--timeout", "1s"],
        ] {
            let output = scratch.run(call);
            assert_eq!(output.code, 2, "{call:?}: {output:?}");
            is_harmless(&output.stderr, &format!("{call:?}"));
        }
    }
    assert_eq!(scratch.json(["lock", "list"])["count"], 1);
}

fn white_space_at_the_ends_of_a_name_is_refused() {
    let scratch = Scratch::new();
    for name in ["ivy", "oak"] {
        scratch.run(["agent", "register", "--name", name, "--session-hint", name]).success();
    }
    scratch.run(["lock", "acquire", "deploy", "--session", "ivy"]).success();
    for name in ["deploy ", " deploy", "\u{a0}deploy"] {
        for call in [
            &["lock", "acquire", name, "--session", "oak"][..],
            &["lock", "run", name, "--", "true"],
            &["write", name, "1"],
            &["write", "key", "1", "--scope", name],
            &["work", "create", "--id", name, "--title", "An item"],
        ] {
            let refused = scratch.run(call);
            assert_eq!(refused.code, 2, "{call:?}: {refused:?}");
            assert!(refused.stderr.contains(" begins or ends with white space: \""), "{call:?}: {refused:?}");
        }
    }
    let refused = scratch.run(["lock", "acquire", "deploy ", "--session", "oak"]);
    assert!(refused.stderr.contains("hint: write \"deploy\"; "), "{refused:?}");
    assert_eq!(scratch.json(["lock", "list"])["count"], 1);
}

fn text_that_is_not_stored_as_given_is_reported() {
    let scratch = Scratch::new();
    scratch.run(["agent", "register", "--name", "Ivy", "--session-hint", "ivy"]).success();
    let (title, summary) = ("t".repeat(600), "s".repeat(1_400));
    let created = scratch.json(["work", "create", "a", "--title", &title, "--description", "a\u{200b}b"]);
    assert_eq!((&created["shortened"], &created["filtered"]), (&json!(["title"]), &json!(["description"])));
    let human = scratch.run(["work", "claim", "b", "--title", &title, "--session", "ivy"]).success();
    assert_eq!(human.stderr, "note: title shortened from 600 to 500 characters\n");
    // Text within its limit is kept, and nothing is reported.
    let completed =
        scratch.run(["work", "complete", "b", "--summary", &summary, "--session", "ivy"]).success();
    assert_eq!(completed.stderr, "");
    let status = scratch.json(["work", "status", "b"]);
    assert_eq!((&status["summary"], status.get("shortened")), (&json!(summary), None));
    assert!(
        scratch.run(["work", "status", "b"]).success().stdout.contains(&format!("Summary:    {summary}"))
    );
    let progress = ["agent", "heartbeat", "--session", "ivy", "--progress", "see ```rust\nlet x;\n```"];
    assert_eq!(scratch.json(progress)["filtered"], json!(["progress"]));
    assert_eq!(
        scratch.run(progress).success().stderr,
        "note: progress was changed: \"see [code block removed]\" \
         (markup, template markers or invisible characters were removed)\n"
    );
    let created = scratch.run(["work", "create", "c", "--title", "Fix <div> and {{ x }}"]).success();
    assert_eq!(
        created.stderr,
        "note: title was changed: \"Fix and\" (markup, template markers or invisible characters were removed)\n"
    );
}

fn usage_error_with_hostile_text_forges_nothing() {
    let scratch = Scratch::new();
    for text in HOSTILE {
        for call in [
            &[*text][..],
            &["work", text],
            &["work", "list", "--status", text],
            &["status", text],
            &["observe", "--filter", text],
        ] {
            for force in ["0", "1"] {
                let output = scratch.command(call).env("CLICOLOR_FORCE", force).run_to_end();
                let output = Output::of(output);
                assert_eq!((output.code, output.stdout.as_str()), (2, ""), "{call:?}");
                let own = without_own_colors(&output.stderr);
                is_harmless(&own, &format!("{call:?}"));
            }
            scratch.run(call.iter().chain(&["--json"])).json();
        }
    }
}

/// Removes the sequences in which the program colors its own words, which no hostile text has.
fn without_own_colors(text: &str) -> String {
    let mut text = text.to_owned();
    for code in ["0", "1", "2", "4", "31", "32", "33", "36"] {
        text = text.replace(&format!("\u{1b}[{code}m"), "");
    }
    text
}

fn invalid_utf8_is_refused_everywhere_but_in_paths() {
    let scratch = Scratch::new();
    let bytes = OsStr::from_bytes(b"x\xff\xfe");
    for (command, arguments) in CALLS {
        let help = scratch.run(command.split(' ').chain(["--help"])).success().stdout;
        let options = help.lines().filter_map(|line| {
            let line = line.trim_start();
            // A short name may come first.
            let long = if line.get(2..4) == Some(", ") { &line[4..] } else { line };
            long.strip_prefix("--")
        });
        for option in options.filter(|option| option.contains('<')) {
            let option = format!("--{}", option.split(' ').next().unwrap());
            if matches!(option.as_str(), "--db" | "--output" | "--file" | "--allow-path") {
                continue;
            }
            let words = command.split(' ').chain(arguments.iter().copied()).map(OsString::from).collect();
            let output = scratch.run(with_options(words, [option.clone().into(), bytes.to_owned()]));
            assert_eq!((output.code, output.stdout.as_str()), (2, ""), "{command} {option}");
            assert!(output.stderr.starts_with("error: "), "{output:?}");
        }
    }
    // A path is bytes; the output shows them as far as they are UTF-8.
    let on_bytes = ["--db".as_ref(), bytes, "status".as_ref(), "--json".as_ref()];
    let status = scratch.run(on_bytes).success().json();
    assert!(status["database"].as_str().unwrap().ends_with("x\u{fffd}\u{fffd}"), "{status}");
    let register =
        ["--db".as_ref(), bytes, "agent".as_ref(), "register".as_ref(), "--name".as_ref(), "x".as_ref()];
    scratch.run(register).success();
    assert!(scratch.path().join(bytes).exists());
    let export = ["export".as_ref(), "--output".as_ref(), OsStr::from_bytes(b"y\xff")];
    scratch.run(export).success();
    assert!(scratch.path().join(OsStr::from_bytes(b"y\xff")).exists());
    let export = ["export".as_ref(), "--json".as_ref(), "--output".as_ref(), OsStr::from_bytes(b"y\xff")];
    scratch.run(export).success().json();
}

fn variables_with_invalid_utf8_are_refused() {
    let scratch = Scratch::new();
    for (name, call, code) in [
        // It is the id of no session.
        ("BLACKBOARD_SESSION_ID", &["agent", "heartbeat"][..], 3),
        ("BLACKBOARD_PID", &["agent", "register", "--name", "x"], 2),
        ("BLACKBOARD_SCOPE", &["list"], 2),
    ] {
        let mut command = scratch.command(call);
        let output = Output::of(command.env(name, OsStr::from_bytes(b"\xff")).run_to_end());
        assert_eq!(output.code, code, "{output:?}");
    }
    for name in ["BLACKBOARD_STALE_THRESHOLD", "COLUMNS", "NO_COLOR"] {
        let output = scratch.command(["status"]).env(name, OsStr::from_bytes(b"\xff")).run_to_end();
        Output::of(output).success();
    }
}

fn text_that_looks_like_a_credential_is_stored_only_with_its_option() {
    let token = format!("ghp_{}", "a1B2c3D4e5F6".repeat(3));
    let metadata = format!("{{\"token\": \"{token}\"}}");
    let escaped = metadata.replacen("ghp_", "gh\\u0070_", 1);
    let address = format!("https://{token}@github.com/owner/repo");
    let scratch = Scratch::new();
    scratch.run(["agent", "register", "--name", "Ivy", "--session-hint", "ivy"]).success();
    scratch.run(["work", "create", "item", "--title", "Item"]).success();
    for call in [
        &["agent", "register", "--name", &token][..],
        &["agent", "register", "--name", "x", "--work", &token],
        &["agent", "register", "--name", "x", "--metadata", &metadata],
        &["agent", "heartbeat", "--session", "ivy", "--progress", &token],
        &["agent", "heartbeat", "--session", "ivy", "--metadata", &metadata],
        &["project", "register", "new", "--name", &token],
        &["project", "register", "new", "--name", "New", "--repo", &address],
        &["project", "register", "new", "--name", "New", "--metadata", &metadata],
        &["work", "create", "new", "--title", &token],
        &["work", "create", "new", "--title", "x", "--description", &token],
        &["work", "create", "new", "--title", "x", "--source-ref", &address],
        &["work", "create", "new", "--title", "x", "--metadata", &metadata],
        &["work", "claim", "new", "--title", &token, "--session", "ivy"],
        &["work", "block", "item", "--blocked-by", "x", "--reason", &token],
        &["write", "key", &token],
        &["write", "key", &metadata],
        &["write", "key", "1", "--metadata", &metadata],
        &["write", "key", "1", "--tag", &token],
        &["write", "key", "1", "--agent", &token],
        &["append", "key", &token],
        &["lock", "acquire", &token, "--session", "ivy"],
        &["lock", "acquire", "deploy", "--note", &token, "--session", "ivy"],
        &["file", "reserve", &token, "--session", "ivy"],
        &["file", "reserve", "src/", "--note", &token, "--session", "ivy"],
        &["write", "key", "1", "--scope", &token],
        &["write", "key", "1", "--op", &token],
        &["write", "key", &escaped],
        &["write", "key", "1", "--metadata", &escaped],
        &["write", &token, "1"],
        &["observe", "--follow", "--cursor", &token, "--timeout", "1s"],
    ] {
        let refusal = scratch.run(call.iter().chain(&["--json"])).refused(Code::SecretLooking);
        assert!(refusal["hint"].as_str().unwrap().contains("--allow-secret-looking"), "{refusal}");
        assert!(!refusal.to_string().contains(&token), "the answer repeats it");
    }
    let exported = scratch.run(["export"]).success().stdout;
    assert!(!exported.contains(&token));
    let insisting = ["--allow-secret-looking", "work", "create", "new", "--title", &token];
    scratch.run(insisting).success();
    assert_eq!(scratch.json(["work", "status", "new"])["title"], token);
}
