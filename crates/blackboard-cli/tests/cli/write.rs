use blackboard::Code;
use serde_json::json;
use testkit::process::RunToEnd as _;

use crate::scratch::{Output, Scratch};
use crate::shapes::is_object;
use crate::transcript;

testkit::on_each_engine![
    human_output_matches_transcript,
    json_has_the_revision_to_compare_with,
    value_is_stored_as_json_or_as_a_string,
    misspelled_option_does_not_become_the_value,
    a_large_value_comes_through_a_pipe_and_a_larger_one_is_refused_without_reading_it_all,
    the_limit_can_be_configured,
    text_of_a_file_loses_only_the_line_break_at_its_end,
    empty_standard_input_never_replaces_a_value,
    invalid_utf8_is_refused_and_creates_nothing,
    author_comes_from_the_option_the_session_or_is_cli,
    write_with_an_idempotency_key_is_applied_once,
    text_after_two_dashes_is_a_value_and_is_returned_unchanged,
    ttl_can_be_a_fraction_of_a_second_and_not_negative,
    metadata_is_an_empty_object_by_default,
];

fn human_output_matches_transcript() {
    transcript::check("write");
}

fn json_has_the_revision_to_compare_with() {
    let scratch = Scratch::new();
    let written = scratch.json(["write", "counter", "1"]);
    is_object(&written, &["scope", "key", "version", "revision", "created", "expires_at", "fence"]);
    assert_eq!((&written["created"], &written["version"]), (&json!(true), &json!(1)));
    let revision = written["revision"].to_string();
    let next = scratch.json(["write", "counter", "2", "--if-revision", &revision]);
    assert_eq!((&next["created"], &next["version"]), (&json!(false), &json!(2)));
    // The second writer gets the current revision.
    let late = scratch.run(["write", "counter", "3", "--if-revision", &revision, "--json"]);
    let refusal = late.refused(Code::Conflict);
    assert_eq!((&refusal["revision"], &refusal["key"]), (&next["revision"], &json!("counter")));
    // Zero means that there is none.
    scratch.json(["write", "new", "1", "--if-revision", "0"]);
    scratch.run(["write", "new", "1", "--if-revision", "0", "--json"]).refused(Code::Conflict);
}

fn value_is_stored_as_json_or_as_a_string() {
    let scratch = Scratch::new();
    for (given, stored) in [
        ("42", "42"),
        ("-5", "-5"),
        ("-1.50e3", "-1.50e3"),
        ("-text", "\"-text\""),
        ("--", "\"--\""),
        ("null", "null"),
        ("plain text", "\"plain text\""),
        ("", "\"\""),
        ("{broken", "\"{broken\""),
        (
            " {\"b\": 1.0, \"a\": 123456789012345678901234567890} ",
            "{\"b\": 1.0, \"a\": 123456789012345678901234567890}",
        ),
    ] {
        // A double dash is clap's own: what follows it is a value.
        let call =
            if given == "--" { vec!["write", "--", "key", given] } else { vec!["write", "key", given] };
        scratch.run(call).success();
        let read = scratch.run(["read", "key", "--value"]).success();
        assert_eq!(read.stdout, format!("{stored}\n"), "{given:?}");
    }
    scratch.run(["write", "key", "42", "--string"]).success();
    assert_eq!(scratch.run(["read", "key", "--value"]).stdout, "\"42\"\n");
}

fn misspelled_option_does_not_become_the_value() {
    let scratch = Scratch::new();
    for call in [
        &["write", "key", "--fle=new.json"][..],
        &["write", "key", "--strng"],
        &["write", "key", "1", "--tll", "5"],
        &["append", "key", "--fle=new.json"],
    ] {
        let refusal = scratch.run(call.iter().chain(&["--json"])).refused(Code::Usage);
        assert!(refusal["error"].as_str().unwrap().contains("--"), "{refusal}");
    }
    // An option in the place of the value is an option.
    scratch.run(["write", "key", "--json"]).refused(Code::Usage);
    scratch.run(["write", "key", "--ttl", "5", "-3"]).success();
    scratch.run(["write", "key", "--strng", "--string"]).success();
    assert_eq!(scratch.run(["read", "key", "--value"]).stdout, "\"--strng\"\n");
    scratch.run(["write", "--", "key", "--- a line ---"]).success();
}

fn a_large_value_comes_through_a_pipe_and_a_larger_one_is_refused_without_reading_it_all() {
    let scratch = Scratch::new();
    let largest = format!("\"{}\"", "x".repeat(1024 * 1024 - 2));
    // The line break at the end is not a part of it.
    assert_eq!(piped(&scratch, &["write", "large", "-"], format!("{largest}\n").as_bytes()).code, 0);
    assert_eq!(scratch.run(["read", "large", "--value"]).success().stdout, format!("{largest}\n"));
    let refusal = piped(&scratch, &["write", "large", "-", "--json"], format!("{largest}1").as_bytes());
    refusal.refused(Code::InvalidValue);
    let larger = format!("\"x{}", &largest[1..]);
    let refusal = piped(&scratch, &["write", "large", "-", "--json"], larger.as_bytes());
    assert_eq!(refusal.refused(Code::InvalidValue)["allowed_bytes"], 1024 * 1024);
    let endless = scratch.run(["write", "large", "--file", "/dev/zero", "--json"]);
    assert!(endless.refused(Code::InvalidValue)["error"].as_str().unwrap().contains("more than"));
}

fn the_limit_can_be_configured() {
    let scratch = Scratch::new();
    let home = scratch.path().join(".pai/blackboard");
    std::fs::create_dir_all(&home).unwrap();
    std::fs::write(home.join("config.json"), r#"{"limits": {"maxValueBytes": 1024}}"#).unwrap();
    scratch.run(["write", "key", &"x".repeat(1022)]).success();
    scratch.run(["write", "key", &"x".repeat(1023), "--json"]).refused(Code::InvalidValue);
    std::fs::write(home.join("config.json"), r#"{"limits": {"maxValueBytes": 2097152}}"#).unwrap();
    let large = format!("[{}1]", "1,".repeat(1024 * 1000));
    assert_eq!(piped(&scratch, &["write", "key", "-"], large.as_bytes()).code, 0);
    assert_eq!(scratch.run(["read", "key", "--value"]).stdout, format!("{large}\n"));
}

fn text_of_a_file_loses_only_the_line_break_at_its_end() {
    let scratch = Scratch::new();
    for (content, stored) in [
        ("one\ntwo\n", r#""one\ntwo""#),
        ("one\n\n", r#""one\n""#),
        ("one\r\n", r#""one""#),
        ("one", r#""one""#),
        ("{\"a\":\n 1}\n", "{\"a\":\n 1}"),
    ] {
        std::fs::write(scratch.path().join("file"), content).unwrap();
        scratch.run(["write", "key", "--file", "file"]).success();
        assert_eq!(scratch.run(["read", "key", "--value"]).stdout, format!("{stored}\n"), "{content:?}");
    }
    // In human output it is on one line.
    assert_eq!(scratch.json(["read", "key"])["value"], json!({"a": 1}));
}

fn empty_standard_input_never_replaces_a_value() {
    let scratch = Scratch::new();
    scratch.json(["write", "key", "1"]);
    for call in [&["write", "key", "-", "--json"][..], &["append", "key", "--file", "-", "--json"]] {
        for input in [&b""[..], b"\n"] {
            let refusal = piped(&scratch, call, input).refused(Code::InvalidValue);
            assert_eq!(refusal["error"], "standard input is empty", "{call:?}");
        }
    }
    assert_eq!(scratch.json(["read", "key"])["value"], 1);
    piped(&scratch, &["write", "key", "-"], b"\"\"").success();
    assert_eq!(scratch.json(["read", "key"])["value"], "");
}

fn invalid_utf8_is_refused_and_creates_nothing() {
    let scratch = Scratch::new();
    let before = scratch.contents();
    let refusal = piped(&scratch, &["write", "key", "-", "--json"], b"\"\xff\xfe\"");
    assert_eq!(refusal.refused(Code::InvalidValue)["error"], "standard input is not text in UTF-8");
    let bytes = std::os::unix::ffi::OsStringExt::from_vec(vec![b'a', 0xff]);
    let bytes: std::ffi::OsString = bytes;
    for call in [["write".into(), bytes.clone(), "1".into()], ["write".into(), "key".into(), bytes.clone()]] {
        let output = scratch.run(call);
        assert_eq!((output.code, output.stdout.as_str()), (2, ""));
    }
    assert!(scratch.contents() == before);
}

fn author_comes_from_the_option_the_session_or_is_cli() {
    let scratch = Scratch::new();
    let session = scratch.json(["agent", "register", "--name", "Ivy"])["session_id"].clone();
    let session = session.as_str().unwrap();
    let author = |arguments: &[&str], variable: Option<&str>| {
        let mut command = scratch.command(["write", "key", "1"].iter().chain(arguments));
        command.envs(variable.map(|session| ("BLACKBOARD_SESSION_ID", session)));
        Output::of(command.run_to_end()).success();
        scratch.json(["read", "key"])["source_agent"].clone()
    };
    assert_eq!(author(&[], None), "cli");
    assert_eq!(author(&[], Some(session)), "Ivy");
    assert_eq!(author(&["--session", session], None), "Ivy");
    assert_eq!(author(&["--agent", "analyst"], Some(session)), "analyst");
}

fn write_with_an_idempotency_key_is_applied_once() {
    let scratch = Scratch::new();
    let call = ["write", "key", "1", "--op", "first"];
    let first = scratch.json(call);
    scratch.json(["write", "key", "2"]);
    let again = scratch.json(call);
    assert_eq!(first["revision"], again["revision"]);
    assert_eq!(scratch.run(["read", "key", "--value"]).stdout, "2\n");
    // Without a name it counts twice.
    let twice = ["write", "other", "1"];
    assert_ne!(scratch.json(twice)["version"], scratch.json(twice)["version"]);
}

/// Runs the program with this on its standard input. It may stop reading when it has seen enough.
fn piped(scratch: &Scratch, call: &[&str], input: &[u8]) -> Output {
    Output::fed(&mut scratch.command(call), input)
}

fn text_after_two_dashes_is_a_value_and_is_returned_unchanged() {
    let scratch = Scratch::new();
    scratch.run(["write", "key", "--ttl-ish", "--json"]).refused(blackboard::Code::Usage);
    scratch.run(["write", "key", "--", "--ttl-ish"]).success();
    assert_eq!(scratch.run(["read", "key", "--raw"]).success().stdout, "--ttl-ish\n");
    assert_eq!(scratch.run(["wait", "key", "--raw"]).success().stdout, "--ttl-ish\n");
    assert_eq!(scratch.run(["read", "key", "--value"]).success().stdout, "\"--ttl-ish\"\n");
    scratch.run(["write", "key", r#"{"a": "b"}"#]).success();
    assert_eq!(scratch.run(["read", "key", "--raw"]).success().stdout, "{\"a\": \"b\"}\n");
}

fn ttl_can_be_a_fraction_of_a_second_and_not_negative() {
    let scratch = Scratch::new();
    let written = scratch.json(["write", "key", "1", "--ttl", "86400.5"]);
    assert_eq!(written["ok"], true, "{written}");
    assert_eq!(scratch.json(["read", "key"])["ttl"], 86400.5);
    scratch.run(["write", "short", "1", "--ttl", "0.5"]).success();
    scratch.run(["agent", "register", "--name", "Ivy", "--session-hint", "ivy"]).success();
    for call in [
        &["write", "key", "1", "--ttl", "-5s"][..],
        &["lock", "acquire", "deploy", "--ttl", "-5s", "--session", "ivy"],
        &["file", "reserve", "src/", "--ttl", "-5s", "--session", "ivy"],
        &["wait", "missing", "--timeout", "-5s"],
        &["observe", "--since", "-5s"],
    ] {
        let output = scratch.run(call);
        assert_eq!(output.code, 2, "{call:?}: {output:?}");
        assert!(output.stderr.contains("\"-5s\" is negative"), "{call:?}: {}", output.stderr);
        assert!(output.stderr.contains("1h30m"), "it has examples: {}", output.stderr);
    }
    let nonsense = scratch.run(["write", "key", "1", "--ttl", "soon"]);
    assert!(nonsense.stderr.contains("\"soon\" is not a duration"), "{nonsense:?}");
}

fn metadata_is_an_empty_object_by_default() {
    let scratch = Scratch::new();
    scratch.run(["write", "key", "1"]).success();
    scratch.run(["work", "create", "a", "--title", "A"]).success();
    scratch.run(["project", "register", "p", "--name", "P"]).success();
    scratch.run(["agent", "register", "--name", "Ivy", "--session-hint", "ivy"]).success();
    let empty = serde_json::json!({});
    assert_eq!(scratch.json(["read", "key"])["metadata"], empty);
    assert_eq!(scratch.json(["snapshot"])["key"]["metadata"], empty);
    for call in [&["work", "list"][..], &["project", "list"], &["agent", "list"], &["query"]] {
        assert_eq!(scratch.json(call)["items"][0]["metadata"], empty, "{call:?}");
    }
    let observed = scratch.json(["observe", "--since", "1d"]);
    assert!(
        observed["items"].as_array().unwrap().iter().all(|event| event["metadata"].is_object()),
        "{observed}"
    );
}
