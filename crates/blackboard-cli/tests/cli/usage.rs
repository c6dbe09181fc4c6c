//! Help, and usage errors.

use std::collections::BTreeSet;
use std::path::Path;

use blackboard::Code;

use crate::scratch::Scratch;

#[test]
fn program_help_shows_everyday_commands_and_names_the_others() {
    let scratch = Scratch::new();
    let help = scratch.run(["--help"]).success().stdout;
    assert!(help.starts_with("Coordinate coding agents that work at the same time\n"), "{help}");
    assert!(help.contains("\nGetting started:\n  demo           Watch four agents"), "{help}");
    assert!(help.lines().count() < 50 && help.lines().all(|line| line.chars().count() <= 80), "{help}");
    assert!(topics(&help).contains(&"environment") && help.contains("`blackboard help --all`"), "{help}");
    for call in [&["help"][..], &["-h"], &["--help", "work"]] {
        assert_eq!(scratch.run(call).success().stdout, help, "{call:?}");
    }
}

#[test]
fn help_all_prints_one_line_for_each_command() {
    let scratch = Scratch::new();
    let all = scratch.run(["help", "--all"]).success().stdout;
    for (line, command) in all.lines().zip(crate::scratch::commands()) {
        let help = scratch.run(command.split(' ').chain(["-h"])).success().stdout;
        let (name, summary) = line.split_once("  ").unwrap();
        assert_eq!((name, Some(summary.trim())), (command.as_str(), help.lines().next()));
    }
    assert!(all.contains("\nwork reassign "), "{all}");
}

#[test]
fn every_help_fits_80_columns() {
    let scratch = Scratch::new();
    let nouns = ["agent", "work", "lock", "file", "project", "protocol", "guard", "tasks"].map(str::to_owned);
    for command in crate::scratch::commands().into_iter().chain(nouns) {
        for option in ["--help", "-h"] {
            let help = scratch.run(command.split(' ').chain([option])).success().stdout;
            let long = help.lines().find(|line| line.chars().count() > 80);
            assert_eq!(long, None, "{command} {option}");
        }
    }
    let page = scratch.run(["help"]).success().stdout;
    for topic in topics(&page).into_iter().chain(["--all"]) {
        let help = scratch.run(["help", topic]).success().stdout;
        assert!(help.lines().all(|line| line.chars().count() <= 80), "{help}");
    }
}

/// The topics that the page of the program names.
fn topics(page: &str) -> Vec<&str> {
    let named = page.split("`blackboard help ").skip(1).filter_map(|rest| rest.split('`').next());
    named.filter(|word| !["COMMAND", "--all"].contains(word)).collect()
}

#[test]
fn help_of_an_unknown_command_suggests_the_nearest() {
    let scratch = Scratch::new();
    for (call, expected) in [
        (&["help", "versoin"][..], "version"),
        (&["help", "work", "clam"], "work claim"),
        (&["work", "clam"], "work claim"),
        (&["wrok", "claim"], "work claim"),
        (&["wrok"], "work"),
        (&["task", "list"], "work list"),
        (&["lock", "aquire"], "lock acquire"),
        (&["help", "exit"], "help exit-codes"),
    ] {
        let output = scratch.run(call);
        assert_eq!((output.code, output.stdout.as_str()), (2, ""), "{call:?}");
        let hint = format!("\nhint: did you mean: blackboard {expected}\n");
        assert!(output.stderr.starts_with("error: unknown command"), "{output:?}");
        assert!(output.stderr.ends_with(&hint) && output.stderr.lines().count() == 2, "{output:?}");
    }
    assert_eq!(scratch.run(["edit"]).code, 2, "the name is reserved");
    assert_eq!(scratch.run(["work", "edit"]).code, 2, "the name is reserved");
}

#[test]
fn a_command_explains_itself_with_examples_last() {
    let scratch = Scratch::new();
    let help = scratch.run(["completions", "--help"]).success().stdout;
    assert!(help.contains("Usage: blackboard completions [OPTIONS] <SHELL>"), "{help}");
    assert!(help.find("Global options:") < help.find("Examples:\n  blackboard completions bash"), "{help}");
    assert_eq!(scratch.run(["help", "completions"]).success().stdout, help);
    assert!(!scratch.run(["completions", "-h"]).success().stdout.contains("Examples"));
}

#[test]
fn call_without_a_command_prints_help_as_a_usage_error() {
    let output = Scratch::new().run([""; 0]);
    assert_eq!((output.code, output.stdout.as_str()), (2, ""));
    assert!(output.stderr.contains("Usage: blackboard"), "{output:?}");
}

#[test]
fn usage_error_is_printed_on_stderr() {
    for (call, expected) in [
        (&["versoin"][..], "did you mean: blackboard version"),
        (&["version", "--jsno"], "'--json'"),
        (&["completions"], "<SHELL>"),
        (&["--db"], "--db <PATH>"),
        (&["version", "extra"], "Usage: blackboard version"),
    ] {
        let output = Scratch::new().run(call);
        assert_eq!((output.code, output.stdout.as_str()), (2, ""), "{call:?}");
        assert!(output.stderr.starts_with("error: ") && output.stderr.contains(expected), "{output:?}");
    }
}

#[test]
fn usage_error_is_an_object_in_json() {
    for (call, error, hint) in [
        (&["versoin", "--json"][..], "unknown command 'versoin'", "did you mean: blackboard version"),
        (&["--json"], "a command is missing", "run `blackboard --help`"),
        (&["help", "--json"], "help has no JSON form", "leave out --json"),
        (&["--json", "--help"], "help has no JSON form", "leave out --json"),
        (&["help", "work", "claim", "--json"], "help has no JSON form", "leave out --json"),
        (&["work", "claim", "--help", "--json"], "help has no JSON form", "leave out --json"),
        (
            &["version", "--json", "--port"],
            "unexpected argument '--port' found",
            "run `blackboard version --help`",
        ),
        (
            &["completions", "--json"],
            "the following required arguments were not provided: <SHELL>",
            "run `blackboard completions --help`",
        ),
    ] {
        let output = Scratch::new().run(call);
        assert_eq!((output.code, output.stderr.as_str()), (2, ""), "{call:?}");
        let json = output.json();
        assert_eq!(json["ok"], false);
        assert_eq!(json["code"], "usage");
        assert_eq!((json["error"].as_str(), json["hint"].as_str()), (Some(error), Some(hint)));
        assert!(json["timestamp"].is_string());
    }
}

#[cfg(unix)]
#[test]
fn invalid_utf8_is_a_usage_error() {
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt;

    let bytes = OsStr::from_bytes(b"\xff\xfe");
    for call in [&[bytes][..], &["version".as_ref(), bytes], &["completions".as_ref(), bytes]] {
        let output = Scratch::new().run(call);
        assert_eq!((output.code, output.stdout.as_str()), (2, ""), "{call:?}");
        assert!(output.stderr.starts_with("error: "), "{output:?}");
    }
    Scratch::new().run(["--db".as_ref(), bytes, "version".as_ref()]).success();
}

#[test]
fn a_wrong_value_points_to_the_help_of_its_command() {
    let output = Scratch::new().run(["work", "list", "--limit", "0", "--json"]);
    assert_eq!(output.refused(blackboard::Code::Usage)["hint"], "run `blackboard work list --help`");
}

#[test]
fn options_that_would_mean_nothing_are_refused() {
    let scratch = Scratch::new();
    for call in [
        &["work", "claim", "item", "--description", "x"][..],
        &["work", "claim", "item", "--priority", "P1"],
        &["work", "claim", "--next", "--title", "x"],
        &["work", "claim", "--next", "--description", "x"],
        &["work", "claim", "--next", "--source", "x"],
        &["work", "claim", "--next", "--source-ref", "x"],
        &["work", "claim", "--next", "--blocked-by", "x"],
        &["work", "claim", "--next", "--metadata", "{}"],
        &["work", "claim", "item", "--next"],
        &["work", "create", "item", "--id", "item", "--title", "x"],
        &["work", "list", "--all", "--status", "blocked"],
        &["agent", "heartbeat", "--milestone"],
        &["agent", "register", "--name", "x", "--shell", "--json"],
        &["agent", "register", "--name", "x", "--pid", "0"],
        &["work", "status", ""],
        &["project", "status", ""],
    ] {
        assert_eq!(scratch.run(call).code, 2, "{call:?}");
    }
}

#[test]
fn text_may_begin_with_a_dash() {
    let scratch = Scratch::new();
    for call in [
        &["agent", "register", "--session-hint", "ivy", "--name", "-Ivy-", "--work", "- the schema"][..],
        &["agent", "heartbeat", "--session", "ivy", "--progress", "-50%", "--work", "-"],
        &["project", "register", "pai", "--name", "--PAI--"],
        &["work", "create", "item", "--title", "--json prints twice", "--description", "- one\n- two"],
        &["work", "block", "item", "--blocked-by", "other", "--reason", "-- waits --"],
        &["work", "claim", "mine", "--title", "-v is ignored", "--session", "ivy"],
        &["work", "complete", "mine", "--session", "ivy", "--summary", "-1 bug"],
    ] {
        scratch.run(call).success();
    }
    assert_eq!(scratch.json(["work", "status", "item"])["title"], "--json prints twice");
}

#[test]
fn global_option_can_be_repeated_and_the_last_one_is_used() {
    let scratch = Scratch::new();
    let twice = ["--json", "--allow-secret-looking", "--db", "one.db"];
    let status = ["status", "--json", "--allow-secret-looking", "--db", "two.db"];
    let answer = scratch.run(twice.iter().chain(&status)).success().json();
    assert!(answer["database"].as_str().unwrap().ends_with("/two.db"), "{answer}");
}

#[test]
fn usage_error_shortens_a_long_argument() {
    let scratch = Scratch::new();
    let long = "x".repeat(70_000);
    for (call, code) in [
        (&["work", "create", "item", "--title", "x", "--metadata", &long][..], Code::InvalidValue),
        (&["agent", "register", "--name", "x", "--metadata", &long], Code::InvalidValue),
        (&["work", "complete", "item", "--fence", &long], Code::Usage),
        (&["work", "list", "--status", &long], Code::Usage),
        (&["work", &long], Code::Usage),
    ] {
        let plain = scratch.run(call);
        assert!(plain.code == 2 && plain.stderr.len() < 1500, "{}: {} bytes", call[1], plain.stderr.len());
        let json = scratch.run(call.iter().chain(&["--json"]));
        json.refused(code);
        assert!(json.stdout.len() < 1500, "{}: {} bytes", call[1], json.stdout.len());
    }
}

#[test]
fn invalid_fence_is_explained() {
    let output = Scratch::new().run(["work", "release", "item", "--fence", "null"]);
    assert!(output.stderr.contains("use the number printed by `work claim` or `lock acquire`"), "{output:?}");
}

#[test]
fn lists_may_have_spaces_and_names_any_case() {
    let scratch = Scratch::new();
    scratch.json(["work", "create", "item", "--title", "x", "--priority", "p1", "--blocked-by", "a, b ,c"]);
    let waits_for = || scratch.json(["work", "status", "item"])["open_blockers"].clone();
    assert_eq!(waits_for(), serde_json::json!(["a", "b", "c"]));
    scratch.json(["work", "unblock", "item", "--blocked-by", "a, b"]);
    scratch.json(["work", "block", "item", "--blocked-by", " d, c"]);
    assert_eq!(waits_for(), serde_json::json!(["c", "d"]));
    let found = ["work", "list", "--status", "Available, BLOCKED", "--priority", "p1"];
    assert_eq!(scratch.json(found)["count"], 1);
    assert_eq!(scratch.json(["agent", "list", "--status", "Active, idle"])["count"], 0);
}

#[test]
fn empty_list_reports_what_it_leaves_out() {
    let scratch = Scratch::new();
    scratch.run(["init"]).success();
    for (call, expected) in [
        (&["work", "list"][..], "No open work items. Add one: blackboard work create ID --title TEXT\n"),
        (&["work", "list", "--all"], "No work items.\n"),
        (&["work", "list", "--status", "claimed"], "No work item matches.\n"),
        (&["agent", "list"], "No active agents. Use --all to include stale and completed ones.\n"),
        (&["agent", "list", "--all"], "No agents.\n"),
    ] {
        assert_eq!(scratch.run(call).success().stdout, expected, "{call:?}");
    }
}

/// The variables that source files in a directory read by name, and all that begin with the name of the program.
fn find_variables(directory: &Path, names: &mut BTreeSet<String>) {
    for found in std::fs::read_dir(directory).unwrap() {
        let path = found.unwrap().path();
        if path.is_dir() {
            find_variables(&path, names);
        }
        if path.extension().is_none_or(|extension| extension != "rs") {
            continue;
        }
        let source = std::fs::read_to_string(&path).unwrap();
        let code = source.split("#[cfg(test)]").next().unwrap();
        for read in ["env::var(\"", "env::var_os(\""] {
            let variables = code.split(read).skip(1).filter_map(|rest| rest.split('"').next());
            names.extend(variables.map(str::to_owned));
        }
        if path.ends_with("environment.rs") {
            let ours = code.split('"').filter(|text| text.starts_with("BLACKBOARD_"));
            names.extend(ours.map(str::to_owned));
        }
    }
}

#[test]
fn help_environment_lists_every_variable_that_is_read() {
    let help = Scratch::new().run(["help", "environment"]).success().stdout;
    let mut names = BTreeSet::new();
    find_variables(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src"), &mut names);
    assert!(
        names.contains("TZ") && names.contains("COLUMNS") && names.contains("BLACKBOARD_DB"),
        "{names:?}"
    );
    // The crate that decides about colors reads these.
    names.extend(["NO_COLOR", "CLICOLOR_FORCE"].map(str::to_owned));
    for name in &names {
        let is_listed = help.lines().any(|line| line.split_whitespace().next() == Some(name));
        assert!(is_listed, "{name} is missing: {help}");
    }
}

#[test]
fn url_of_an_unknown_engine_is_refused() {
    let scratch = Scratch::new();
    let hint =
        scratch.run(["status", "--db", "ftp://board", "--json"]).refused(Code::InvalidValue)["hint"].clone();
    assert_eq!(hint, "name a file, a directory or a server: redis://host:port?board=NAME");
}

#[test]
fn command_of_a_hint_runs_with_the_options_of_the_refused_call() {
    let scratch = Scratch::new();
    let db = ["--db", "an other.db"];
    let with_db = |call: &[&str]| scratch.run(call.iter().chain(&db));
    with_db(&["agent", "register", "--name", "Ivy"]).success();
    with_db(&["agent", "register", "--name", "Oak"]).success();
    with_db(&["work", "create", "other", "--title", "Other"]).success();
    with_db(&["work", "claim", "item", "--title", "Item", "-s", "Ivy"]).success();
    let refused = with_db(&["work", "claim", "item", "-s", "Oak"]);
    let (_, command) = refused.stderr.split_once("hint: claim another item: ").unwrap();
    assert_eq!(command, "blackboard --db 'an other.db' work claim --next --session Oak\n");
    let json = with_db(&["work", "claim", "item", "-s", "Oak", "--json"]).refused(Code::AlreadyClaimed);
    assert_eq!(json["hint"], format!("claim another item: {}", command.trim_end()));
    let claimed =
        scratch.run(["--db", "an other.db", "work", "claim", "--next", "--session", "Oak"]).success();
    assert!(claimed.stdout.starts_with("Claimed work item: other\n"), "{claimed:?}");
}

/// A call with each option that takes a length of time.
const WITH_A_LENGTH: &[(&str, &[&str], &str)] = &[
    ("observe", &["--follow"], "timeout"),
    ("write", &["key", "1"], "ttl"),
    ("wait", &["key"], "timeout"),
    ("call", &["ns", "1"], "timeout"),
    ("work wait", &["item"], "timeout"),
    ("work import", &["--from", "github", "--repo", "o/r"], "timeout"),
    ("lock acquire", &["deploy", "--session", "ivy"], "wait"),
    ("lock acquire", &["deploy", "--session", "ivy"], "ttl"),
    ("lock run", &["deploy", "--session", "ivy"], "wait"),
    ("lock run", &["deploy", "--session", "ivy"], "ttl"),
    ("file reserve", &["a", "--session", "ivy"], "ttl"),
    ("scope create", &["cache"], "ttl"),
    ("scope set", &["cache"], "ttl"),
    ("sweep", &[], "threshold"),
    ("pull", &["--hub", "."], "timeout"),
    ("registry", &["--hub", "."], "timeout"),
    ("quota check", &["--tokens", "1", "--reserve"], "ttl"),
    ("quota check", &["--tokens", "1", "--wait"], "timeout"),
];

#[test]
fn every_length_of_time_has_the_same_forms_and_errors() {
    let scratch = Scratch::new();
    scratch.run(["agent", "register", "--name", "Ivy", "--session-hint", "ivy"]).success();
    scratch.run(["work", "create", "item", "--title", "Item"]).success();
    std::fs::create_dir(scratch.path().join("projects")).unwrap();
    for (command, arguments, option) in WITH_A_LENGTH {
        let with = |value: &str| {
            let last: &[&str] = if *command == "lock run" { &["--", "true"] } else { &[] };
            let option = format!("--{option}={value}");
            scratch.run(
                command
                    .split(' ')
                    .chain(arguments.iter().copied())
                    .chain([&*option])
                    .chain(last.iter().copied()),
            )
        };
        for (value, error) in [("soon", "\"soon\" is not a duration"), ("-5m", "\"-5m\" is negative")] {
            let output = with(value);
            let expected = format!(
                "error: {error}\nhint: write 500ms, 90s, 15m, 1h30m, 1.5h, 2d or 1w; a bare number, such as 90 or 0.5, \
                 is seconds\n"
            );
            assert_eq!((output.code, &*output.stderr), (2, &*expected), "{command} --{option} {value}");
        }
        // A wait that ends has the form; the others succeed.
        for value in ["1ms", "0.001", "0"] {
            let output = with(value);
            assert!(!output.stderr.contains("duration"), "{command} --{option} {value}: {output:?}");
        }
    }
    for value in ["5m", "300", "1h"] {
        scratch.run(["sweep", "--threshold", value]).success();
    }
    for command in crate::scratch::commands() {
        let help = scratch.run(command.split(' ').chain(["--help"])).success().stdout;
        assert!(!help.contains("<SECONDS>"), "{command} takes seconds only");
        let options = help.matches(" <DURATION>").count();
        let known = WITH_A_LENGTH.iter().filter(|(path, ..)| *path == command).count();
        assert_eq!(options, known, "{command}: an option is missing in WITH_A_LENGTH");
    }
}

/// What each short option means, wherever it exists.
const SHORT_OPTIONS: &[(&str, &[&str])] = &[
    ("a", &["all"]),
    ("f", &["follow"]),
    ("h", &["help"]),
    ("l", &["long"]),
    ("m", &["note", "progress", "reason", "summary"]),
    ("n", &["limit", "last"]),
    ("o", &["output"]),
    ("p", &["priority"]),
    ("P", &["project"]),
    ("r", &["raw"]),
    ("s", &["session"]),
    ("S", &["scope"]),
    ("t", &["title"]),
    ("y", &["yes"]),
];

#[test]
fn short_options_mean_the_same_everywhere() {
    let scratch = Scratch::new();
    let mut seen = std::collections::BTreeSet::new();
    for command in crate::scratch::commands() {
        let help = scratch.run(command.split(' ').chain(["--help"])).success().stdout;
        let (_, options) = help.split_once("\nOptions:\n").unwrap();
        for line in options.lines().map(str::trim_start) {
            let Some((short, long)) = line.strip_prefix('-').and_then(|rest| rest.split_once(", --")) else {
                // Every option with one of these names has its letter, except `--limit` where there is also `--last`.
                let long = line.strip_prefix("--").map(|rest| rest.split([' ', '\n']).next().unwrap());
                let has_short = |long: &str| SHORT_OPTIONS.iter().any(|(_, longs)| longs.contains(&long));
                let is_limit = command == "observe" && long == Some("limit");
                assert!(is_limit || !long.is_some_and(has_short), "{command}: {line}");
                continue;
            };
            let long = long.split(' ').next().unwrap();
            let known = SHORT_OPTIONS.iter().find(|(known, _)| *known == short);
            assert!(known.is_some_and(|(_, longs)| longs.contains(&long)), "{command}: {line}");
            seen.insert(short.to_owned());
        }
    }
    assert_eq!(seen.len(), SHORT_OPTIONS.len(), "{seen:?}");
}

#[test]
fn short_options_work_in_any_position() {
    let scratch = Scratch::new();
    scratch.json(["agent", "register", "--name", "Ivy", "--session-hint", "ivy"]);
    for call in [
        &["write", "key", "-s", "ivy", "1"][..],
        &["write", "-S", "team", "key", "2"],
        &["write", "key", "-3", "-s", "ivy"],
        &["append", "list", "-s", "ivy", "-text"],
        &["work", "claim", "item", "-t", "Item", "-p", "P1", "-s", "ivy"],
        &["agent", "heartbeat", "-s", "ivy", "-m", "-50%"],
        &["work", "complete", "item", "-s", "ivy", "-m", "Green"],
    ] {
        scratch.run(call).success();
    }
    assert_eq!(scratch.run(["read", "key", "-S", "team", "-r"]).stdout, "2\n");
    assert_eq!(scratch.json(["work", "status", "item"])["summary"], "Green");
}

#[test]
fn only_an_option_that_is_near_an_unknown_one_is_suggested() {
    let scratch = Scratch::new();
    let said = |call: &[&str]| {
        let output = scratch.run(call);
        assert_eq!(output.code, 2, "{output:?}");
        output.stderr
    };
    let unknown = said(&["write", "k", "1", "--as", "ivy"]);
    assert!(unknown.contains("'--as'") && !unknown.contains("--allow-secret-looking"), "{unknown}");
    let mistyped = said(&["write", "k", "1", "--sesion", "ivy"]);
    assert!(mistyped.contains("'--session'"), "{mistyped}");
}
