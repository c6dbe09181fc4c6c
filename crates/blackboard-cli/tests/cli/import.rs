use std::path::Path;

use blackboard::Code;
use serde_json::{Value, json};
use testkit::process::RunToEnd as _;

use crate::scratch::{Output, Scratch};
use crate::shapes::is_object;
use crate::transcript;

testkit::on_each_engine![
    human_output_matches_transcript,
    an_edit_of_a_rendered_file_is_imported,
    a_time_in_the_future_is_reported,
    files_of_every_dialect_are_imported_once,
    entries_of_an_export_are_imported_into_their_scopes,
    snapshot_is_imported_with_tags_and_metadata,
    a_thousand_hostile_entries_survive_rendering_and_importing,
    dry_run_creates_no_board,
    commands_of_the_page_for_network_ai_run_in_their_order,
    evicted_entries_are_named,
    what_is_left_out_of_an_entry_is_reported,
    reserved_scope_is_refused,
    report_of_a_refused_entry_is_not_ok,
    dry_run_shows_both_entries_of_a_key,
    policies_and_protocols_of_an_export_are_imported_first,
    scope_with_other_policies_is_refused_with_its_entries,
    scope_that_the_export_does_not_have_is_refused,
    directory_is_not_a_missing_file,
];

fn human_output_matches_transcript() {
    transcript::check("import");
}

fn fixture(dialect: &str) -> String {
    let path = format!("../blackboard/tests/fixtures/swarm/dialect-{dialect}.md");
    std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(path)).unwrap()
}

/// The keys with this outcome.
fn keys<'a>(report: &'a Value, outcome: &str) -> Vec<&'a str> {
    let entries = report["entries"].as_array().unwrap().iter();
    entries.filter(|entry| entry["outcome"] == outcome).map(|entry| entry["key"].as_str().unwrap()).collect()
}

fn files_of_every_dialect_are_imported_once() {
    for (dialect, created) in [("a", 3), ("b", 3), ("c", 2)] {
        let scratch = Scratch::new();
        std::fs::write(scratch.path().join("swarm-blackboard.md"), fixture(dialect)).unwrap();
        let call = ["import", "swarm-blackboard.md"];
        let planned = scratch.json(call.iter().chain(&["--dry-run"]));
        assert_eq!((&planned["dry_run"], &planned["created"]), (&json!(true), &json!(created)));
        assert_eq!(scratch.json(["list"]), json!([]));
        let report = scratch.json(call);
        is_object(&report, &["file", "format", "dialect", "created", "entries", "problems", "notes"]);
        assert_eq!(
            (&report["format"], &report["dialect"]),
            (&json!("markdown"), &json!(dialect.to_uppercase()))
        );
        assert_eq!(report["created"], created, "{report}");
        assert_eq!(keys(&report, "created"), keys(&planned, "created"));
        if dialect == "a" {
            assert_eq!(keys(&report, "skipped"), ["signal:data_analyst:ready", "lock:sap_connection"]);
            assert_eq!(report["entries"][4]["hint"], "blackboard lock acquire sap_connection");
            assert_eq!(report["notes"].as_array().unwrap().len(), 2);
            let entry = scratch.json(["read", "result:q4_analysis"]);
            assert_eq!(entry["source_agent"], "data_analyst");
            let imported = &entry["metadata"]["imported"];
            assert_eq!(imported["timestamp"], "2026-02-04T11:00:00.500Z");
            assert_eq!(imported["members"]["committed_from"], "chg_1a2b3c4d");
        }
        let again = scratch.json(call);
        assert_eq!((&again["created"], &again["unchanged"]), (&json!(0), &json!(created)), "{again}");
    }
}

fn entries_of_an_export_are_imported_into_their_scopes() {
    let scratch = Scratch::new();
    scratch.json(["agent", "register", "--name", "Ivy", "--session-hint", "ivy"]);
    scratch.json(["write", "a", "1", "--scope", "one", "--tag", "x"]);
    scratch.json(["write", "b", "2", "--scope", "two", "--agent", "Oak"]);
    scratch.json(["lock", "acquire", "deploy", "--session", "ivy"]);
    for export in [&["export"][..], &["export", "--json"], &["export", "--pretty"]] {
        let exported = scratch.run(export).success().stdout;
        let other = Scratch::new();
        let import = |arguments: &[&str]| {
            let call = ["import", "-", "--json"].iter().chain(arguments);
            Output::fed(&mut other.command(call), exported.clone()).success().json()
        };
        let one = import(&["--scope", "one"]);
        assert_eq!((keys(&one, "created"), one["entries"].as_array().unwrap().len()), (vec!["a"], 1));
        let report = import(&[]);
        assert_eq!((keys(&report, "created"), keys(&report, "unchanged")), (vec!["b"], vec!["a"]));
        assert_eq!(keys(&report, "skipped"), ["deploy"]);
        assert_eq!(other.json(["read", "a", "--scope", "one"])["tags"], json!(["x"]));
        assert_eq!(other.json(["read", "b", "--scope", "two"])["source_agent"], "Oak");
        // On its own board, it changes nothing.
        let own = Output::fed(&mut scratch.command(["import", "-", "--json"]), exported).success().json();
        assert_eq!((keys(&own, "unchanged"), &own["updated"]), (vec!["a", "b"], &json!(0)));
    }
}

fn snapshot_is_imported_with_tags_and_metadata() {
    let scratch = Scratch::new();
    scratch.json(["write", "a", "[1, 2]", "--tag", "x", "--metadata", r#"{"n":1}"#, "--ttl", "1h"]);
    let snapshot = scratch.run(["snapshot"]).success().stdout;
    let other = Scratch::new();
    let import = |arguments: &[&str]| {
        Output::fed(&mut other.command(["import", "-", "--json"].iter().chain(arguments)), snapshot.clone())
            .success()
            .json()
    };
    assert_eq!(import(&["--scope", "team"])["created"], 1);
    let entry = other.json(["read", "a", "--scope", "team"]);
    let original = scratch.json(["read", "a"]);
    for field in ["value", "tags", "source_agent", "expires_at"] {
        assert_eq!(entry[field], original[field], "{field}");
    }
    assert_eq!((&entry["metadata"]["n"], entry["metadata"]["imported"].is_object()), (&json!(1), true));
    assert_eq!(import(&["--scope", "team"])["unchanged"], 1);
}

/// A snapshot of a thousand entries whose keys and values look like parts of the file.
fn hostile_snapshot() -> Value {
    const PARTS: [&str; 10] = [
        "### a",
        "## Knowledge Cache",
        "<!-- blackboard:end entries -->",
        "<!-- blackboard:begin entries -->",
        "```json",
        "task:a | b",
        "{\"key\":1}",
        "signal:`x` <script>",
        "käse 🧀 &lt;x",
        "trace:-->",
    ];
    let mut entries = serde_json::Map::new();
    for index in 0..1_000 {
        let [key, text, more] = [index, index / 10, index / 100].map(|place| PARTS[place % PARTS.len()]);
        let value = match index % 5 {
            0 => json!(format!("{text}\n{more}\n```\n\n### {key}\n")),
            1 => json!({ text: [more, null, 1.5, true], "status": "a\nb | c", "\u{202e}": "\u{9b}31m" }),
            2 => json!(u64::MAX - index as u64),
            3 => json!(format!("\r\n{text}\r{more}\u{2028}\u{0}")),
            _ => json!([{ "value": text, "key": key, "ttl": more }]),
        };
        let entry = json!({
            "key": format!("{key} {index}"), "value": value, "source_agent": format!("Oak | {index} #"),
            "timestamp": "2026-02-03T15:30:00.123Z", "ttl": null, "tags": [], "metadata": {},
        });
        entries.insert(format!("{key} {index}"), entry);
    }
    entries.into()
}

fn a_thousand_hostile_entries_survive_rendering_and_importing() {
    let scratch = Scratch::new();
    std::fs::write(scratch.path().join("snapshot.json"), hostile_snapshot().to_string()).unwrap();
    let report = scratch.json(["import", "snapshot.json"]);
    assert_eq!((&report["created"], &report["refused"]), (&json!(1_000), &json!(0)));
    for dialect in ["A", "B", "C"] {
        scratch.json(["render", "board.md", "--dialect", dialect]);
        let report = scratch.json(["import", "board.md", "--scope", dialect]);
        assert_eq!((&report["created"], &report["dialect"]), (&json!(1_000), &json!(dialect)));
        let [ours, theirs] = ["default", dialect].map(|scope| scratch.json(["snapshot", "--scope", scope]));
        for (key, entry) in ours.as_object().unwrap() {
            let theirs = &theirs[key];
            assert_eq!(
                (&theirs["value"], &theirs["source_agent"]),
                (&entry["value"], &entry["source_agent"]),
                "{key}"
            );
            let written = |entry: &Value| entry["metadata"]["imported"]["timestamp"].clone();
            assert_eq!(
                (written(theirs), written(entry)),
                (json!("2026-02-03T15:30:00.123Z"), written(theirs))
            );
        }
        std::fs::remove_file(scratch.path().join("board.md")).unwrap();
    }
}

fn dry_run_creates_no_board() {
    let scratch = Scratch::new();
    std::fs::write(scratch.path().join("a.md"), fixture("c")).unwrap();
    let before = scratch.contents();
    assert_eq!(scratch.json(["import", "a.md", "--dry-run"])["created"], 2);
    assert!(scratch.contents() == before);
}

/// A Markdown file with these entries, which all have the value 1.
fn markdown(keys: &[&str]) -> String {
    let entry =
        |key: &&str| format!("### {key}\n{{\"key\":\"{key}\",\"value\":1,\"source_agent\":\"oak\"}}\n");
    format!("# Swarm Blackboard\n## Knowledge Cache\n{}", keys.iter().map(entry).collect::<String>())
}

fn evicted_entries_are_named() {
    let scratch = Scratch::new();
    scratch.json(["scope", "create", "cache", "--max-entries", "2"]);
    scratch.json(["write", "old", "1", "--scope", "cache"]);
    std::fs::write(scratch.path().join("a.md"), markdown(&["a", "b", "c"])).unwrap();
    let call = ["import", "a.md", "--scope", "cache"];
    let planned = scratch.run(call.iter().chain(&["--dry-run"])).success().stdout;
    assert!(planned.contains("(3 created, 2 evicted; dry run, nothing is changed)"), "{planned}");
    let planned = scratch.json(call.iter().chain(&["--dry-run"]));
    let report = scratch.json(call);
    assert_eq!((&report["created"], &report["evicted"]), (&json!(3), &json!(2)), "{report}");
    let evicted: Vec<_> =
        report["entries"].as_array().unwrap().iter().map(|entry| &entry["evicted"]).collect();
    assert_eq!(evicted, [&Value::Null, &json!("old"), &json!("a")]);
    assert_eq!((&planned["entries"], &planned["evicted"]), (&report["entries"], &report["evicted"]));
    assert_eq!(scratch.json(["list", "--scope", "cache"]), json!(["b", "c"]));
    let again = scratch.run(call).success().stdout;
    // Each entry of the file evicts the next one, which is then created again.
    assert!(again.contains("(3 created, 3 evicted)"), "{again}");
    assert!(again.contains("created   a in scope cache, evicts b\n"), "{again}");
}

fn what_is_left_out_of_an_entry_is_reported() {
    let scratch = Scratch::new();
    let entry =
        r#"{"a":{"key":"a","value":1,"source_agent":7,"timestamp":"2026-02-04T10:00:00Z","ttl":1e300}}"#;
    std::fs::write(scratch.path().join("a.json"), entry).unwrap();
    let report = scratch.json(["import", "a.json"]);
    let problems: Vec<_> =
        report["problems"].as_array().unwrap().iter().map(|one| one["problem"].as_str().unwrap()).collect();
    assert_eq!(
        problems,
        [
            "entry \"a\": its author is not a text; it is left out",
            "entry \"a\": its TTL is too long; it expires at 9999-12-30T00:00:00.000Z, the last time that can be stored",
        ]
    );
    let printed = scratch.run(["import", "a.json"]).success().stdout;
    assert!(problems.iter().all(|problem| printed.contains(problem)), "{printed}");
}

fn reserved_scope_is_refused() {
    let scratch = Scratch::new();
    std::fs::write(scratch.path().join("a.md"), markdown(&["a"])).unwrap();
    for scope in ["locks", "files"] {
        let refused = scratch.run(["import", "a.md", "--scope", scope, "--json"]).refused(Code::InvalidValue);
        assert!(refused["error"].as_str().unwrap().contains("is reserved for"), "{refused}");
    }
}

fn report_of_a_refused_entry_is_not_ok() {
    let scratch = Scratch::new();
    std::fs::write(scratch.path().join("a.md"), markdown(&["task:*", "b"])).unwrap();
    for (options, ok, code) in [(&["--json"][..], false, 4), (&["--escape-keys", "--json"], true, 0)] {
        let output = scratch.run(["import", "a.md"].iter().chain(options));
        let report: Value = serde_json::from_str(&output.stdout).unwrap();
        assert_eq!((&report["ok"], output.code), (&json!(ok), code), "{report}");
    }
}

fn dry_run_shows_both_entries_of_a_key() {
    let scratch = Scratch::new();
    let long = format!("[\"{}\"]", "long ".repeat(300));
    for (key, value) in
        [("newer", r#"{"status":"open"}"#), ("older", "1"), ("large", long.as_str()), ("same", "1")]
    {
        scratch.json(["write", key, value, "--agent", "Ivy"]);
    }
    let entry = |key: &str, value: &str, author: &str, time: &str| {
        format!(r#""{key}": {{"value": {value}, "source_agent": "{author}", "timestamp": "{time}"}}"#)
    };
    let file = [
        entry("newer", r#"{"status":"done"}"#, "Oak", "2020-01-01T00:00:00Z"),
        entry("older", "1", "Oak", "2020-01-01T00:00:00Z"),
        entry("large", "2", "Ivy", "2020-01-01T00:00:00Z"),
        entry("same", "1", "Ivy", "2020-01-01T00:00:00Z"),
        entry("new", "1", "Ivy", "2020-01-01T00:00:00Z"),
    ];
    std::fs::write(scratch.path().join("a.json"), format!("{{{}}}", file.join(","))).unwrap();
    let call = ["import", "a.json", "--keep", "theirs"];
    let kept = scratch.json(["import", "a.json", "--dry-run"]);
    let older = kept["entries"].as_array().unwrap().iter().find(|entry| entry["key"] == "older").unwrap();
    assert_eq!((&older["outcome"], &older["differs"]), (&json!("kept"), &json!(["author"])));
    let planned = scratch.json(call.iter().chain(&["--dry-run"]));
    let planned_of =
        |key: &str| planned["entries"].as_array().unwrap().iter().find(|entry| entry["key"] == key).unwrap();
    let newer = planned_of("newer");
    assert_eq!((&newer["outcome"], &newer["differs"]), (&json!("updated"), &json!(["author", "value"])));
    assert_eq!(
        (&newer["ours"]["value"], &newer["theirs"]["value"]),
        (&json!({"status":"open"}), &json!({"status": "done"}))
    );
    assert_eq!((&newer["ours"]["author"], &newer["theirs"]["author"]), (&json!("Ivy"), &json!("Oak")));
    assert_eq!(newer["theirs"]["timestamp"], "2020-01-01T00:00:00.000Z");
    let large = planned_of("large");
    assert_eq!((&large["ours"]["shortened"], &large["theirs"]["shortened"]), (&json!(true), &json!(false)));
    assert!(large["ours"]["value"].as_str().unwrap().starts_with("[\"long long "), "{large}");
    assert!(planned_of("same")["ours"].is_null() && planned_of("new")["theirs"].is_null());
    let printed = scratch.run(call.iter().chain(&["--dry-run"])).success().stdout;
    let expected = "  updated   newer: author, value\n    ours:   {\"status\":\"open\"} (Ivy, ";
    assert!(printed.contains(expected), "{printed}");
    assert!(printed.contains("    theirs: {\"status\":\"done\"} (Oak, "), "{printed}");
    assert!(printed.lines().skip(1).all(|line| line.chars().count() <= 80), "{printed}");
    // The import reports the same.
    assert_eq!(scratch.json(call)["entries"], planned["entries"]);
}

/// An export with a protocol, a scope for Ivy that requires it, and a scope that ends with a session.
fn export_with_policies() -> (Scratch, String) {
    let scratch = Scratch::new();
    scratch.json(["agent", "register", "--name", "Ivy", "--session-hint", "ivy"]);
    scratch.json(["work", "create", "build", "--title", "Build"]);
    let schema = r#"{"type": "object", "required": ["verdict"]}"#;
    scratch.json(["protocol", "define", "review", "review:{id}", "--schema", schema, "--summary", "Reviews"]);
    scratch.json(["protocol", "define", "other", "other:{id}"]);
    let rule = ["--validate-protocol", "review:*=review", "--max-entries", "9", "--ttl", "1h"];
    let private = ["scope", "create", "private", "--visibility", "shared", "--member", "Ivy"];
    scratch.json(private.iter().chain(&rule));
    scratch.json(["scope", "create", "mine", "--visibility", "local", "--session", "ivy"]);
    scratch.json(["scope", "create", "building", "--work-item", "build"]);
    for (scope, key, value) in [
        ("private", "review:1", r#"{"verdict": "good"}"#),
        ("mine", "a", "1"),
        ("building", "b", "1"),
        ("open", "c", "1"),
    ] {
        scratch.json(["write", key, value, "--scope", scope]);
    }
    let export = scratch.run(["export"]).success().stdout;
    (scratch, export)
}

/// What became of the definitions of a file.
fn definitions(report: &Value) -> Vec<(&str, &str)> {
    let definitions = report["definitions"].as_array().unwrap().iter();
    definitions.map(|each| (each["name"].as_str().unwrap(), each["outcome"].as_str().unwrap())).collect()
}

fn policies_and_protocols_of_an_export_are_imported_first() {
    let (source, export) = export_with_policies();
    let target = Scratch::new();
    std::fs::write(target.path().join("export.json"), &export).unwrap();
    let planned = target.json(["import", "export.json", "--dry-run"]);
    assert_eq!(target.json(["scope", "list"])["items"], json!([]));
    let report = target.json(["import", "export.json"]);
    let expected = [
        ("other", "created"),
        ("review", "created"),
        ("building", "skipped"),
        ("mine", "skipped"),
        ("private", "created"),
    ];
    assert_eq!(definitions(&report), expected);
    assert_eq!((keys(&report, "created"), keys(&report, "skipped")), (vec!["c", "review:1"], vec!["b", "a"]));
    assert_eq!(report["not_imported"]["agents"], 1);
    assert_eq!(report["not_imported"]["work_items"], 1);
    assert!(report["not_imported"]["events"].as_u64() > Some(5), "{report}");
    for field in ["definitions", "entries", "not_imported"] {
        assert_eq!(planned[field], report[field], "{field}");
    }
    let [ours, theirs] = [&source, &target].map(|board| board.json(["scope", "show", "private"]));
    for field in ["visibility", "members", "validation", "max_entries", "ttl", "entries"] {
        assert_eq!(theirs[field], ours[field], "{field}");
    }
    target.json(["agent", "register", "--name", "Oak", "--session-hint", "oak"]);
    target.run(["read", "review:1", "--scope", "private", "--as", "oak", "--json"]).refused(Code::NotAllowed);
    target.run(["write", "review:2", "1", "--scope", "private", "--json"]).refused(Code::InvalidValue);
    // A second import changes nothing, and nothing changes on the board of the export.
    let again = target.json(["import", "export.json"]);
    assert_eq!((keys(&again, "unchanged"), &again["created"]), (vec!["c", "review:1"], &json!(0)));
    let own = Output::fed(&mut source.command(["import", "-", "--json"]), export.clone()).success().json();
    assert!(definitions(&own).iter().all(|(_, outcome)| *outcome == "unchanged"), "{own}");
    assert_eq!(own["unchanged"], 4);
    let printed = target.run(["import", "export.json"]).success().stdout;
    assert!(printed.contains("  skipped   policies of scope mine: the scope ends with"), "{printed}");
    assert!(printed.contains("  not imported: agents (1), events ("), "{printed}");
    // One scope has the protocols that its rules name.
    let alone = Scratch::new();
    let exported = source.run(["export", "--scope", "private"]).success().stdout;
    for (file, options) in [(&exported, &[][..]), (&export, &["--scope", "private"])] {
        let call = ["import", "-", "--json"].iter().chain(options);
        let report = Output::fed(&mut alone.command(call), file.clone()).success().json();
        let names: Vec<_> = definitions(&report).iter().map(|(name, _)| *name).collect();
        assert_eq!(names, ["review", "private"], "{report}");
        assert_eq!(report["entries"].as_array().unwrap().len(), 1, "{report}");
    }
}

fn scope_with_other_policies_is_refused_with_its_entries() {
    let (_, export) = export_with_policies();
    let target = Scratch::new();
    target.json(["scope", "create", "private", "--max-entries", "5"]);
    let import = |options: &[&str]| {
        let call = ["import", "-", "--json"].iter().chain(options);
        let output = Output::fed(&mut target.command(call), export.clone());
        (output.code, serde_json::from_str::<Value>(&output.stdout).unwrap())
    };
    for options in [&["--dry-run"][..], &[], &["--keep", "theirs"]] {
        let (code, report) = import(options);
        assert_eq!((code, &report["ok"]), (4, &json!(false)), "{report}");
        assert_eq!(definitions(&report).last(), Some(&("private", "refused")));
        assert_eq!(keys(&report, "refused"), ["review:1"]);
        assert_eq!(report["definitions"][4]["code"], "already_exists");
        assert_eq!(target.json(["list", "--scope", "private"]), json!([]));
    }
    let (code, report) = import(&["--keep", "ours"]);
    assert_eq!((code, definitions(&report).last()), (0, Some(&("private", "kept"))), "{report}");
    assert_eq!(target.json(["list", "--scope", "private"]), json!(["review:1"]));
    assert_eq!(target.json(["scope", "show", "private"])["max_entries"], 5);
    // A policy of a later version is not ignored.
    let later = export.replace(r#""max_entries":9"#, r#""max_entries":9,"quorum":2"#);
    assert_ne!(later, export);
    let output = Output::fed(&mut Scratch::new().command(["import", "-", "--json"]), later);
    assert!(output.stdout.contains("unknown field `quorum`"), "{output:?}");
    assert_eq!(output.code, 4);
}

fn scope_that_the_export_does_not_have_is_refused() {
    let (_, export) = export_with_policies();
    let target = Scratch::new();
    let call = ["import", "-", "--scope", "privat", "--json"];
    let refused = Output::fed(&mut target.command(call), export).refused(Code::ScopeNotFound);
    assert_eq!(refused["error"], "the file has no scope privat");
    assert_eq!(refused["hint"], "its scopes: building, mine, open, private");
}

fn directory_is_not_a_missing_file() {
    let scratch = Scratch::new();
    for call in [&["import", "."][..], &["protocol", "define", "x", "x:{id}", "--schema", "."]] {
        let refused = scratch.run(call.iter().chain(&["--json"])).refused(Code::InvalidValue);
        assert_eq!(refused["error"], ". is a directory, not a file");
    }
}

fn commands_of_the_page_for_network_ai_run_in_their_order() {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/from-network-ai.md");
    let page = std::fs::read_to_string(page).unwrap();
    let blocks = page.split("```bash\n").skip(1).map(|rest| rest.split("```").next().unwrap());
    let script = blocks.fold("set -e\n".to_owned(), |script, block| script + block);
    assert_eq!(script.matches("\nblackboard ").count(), 8, "{script}");
    let scratch = Scratch::new();
    std::fs::write(scratch.path().join("swarm-blackboard.md"), fixture("c")).unwrap();
    let output = Output::of(scratch.shell(&script).run_to_end()).success();
    assert!(output.stdout.contains("Rendered: swarm-blackboard.md (2 entries, "), "{output:?}");
    assert!(output.stdout.ends_with("Deleted: task:analyze_q4\n"), "{output:?}");
}

fn an_edit_of_a_rendered_file_is_imported() {
    for dialect in ["A", "B", "C"] {
        let scratch = Scratch::new();
        scratch.json(["write", "a", "\"old\"", "--ttl", "1h"]);
        scratch.json(["write", "b", "\"same\""]);
        let render = ["render", "f.md", "--dialect", dialect];
        scratch.json(render);
        let file = scratch.path().join("f.md");
        let edited = std::fs::read_to_string(&file).unwrap().replace("\"old\"", "\"new\"");
        std::fs::write(&file, edited).unwrap();
        let report = scratch.json(["import", "f.md"]);
        assert_eq!(
            (keys(&report, "updated"), keys(&report, "unchanged")),
            (vec!["a"], vec!["b"]),
            "{report}"
        );
        assert_eq!(scratch.json(["read", "a"])["value"], "new");
        scratch.json(render);
        assert!(std::fs::read_to_string(&file).unwrap().contains("\"new\""));
        assert_eq!(scratch.json(["import", "f.md"])["unchanged"], 2);
    }
}

fn a_time_in_the_future_is_reported() {
    let scratch = Scratch::new();
    let entry =
        r#"{"a":{"key":"a","value":1,"source_agent":"ivy","timestamp":"2999-01-01T00:00:00Z","ttl":60}}"#;
    let import =
        || Output::fed(&mut scratch.command(["import", "-", "--json"]), entry.to_owned()).success().json();
    let report = import();
    let problem = "entry \"a\": its time, 2999-01-01T00:00:00.000Z, is in the future; it is left out";
    assert_eq!(report["problems"], json!([{"line": 1, "problem": problem}]));
    scratch.json(["write", "a", "2"]);
    assert_eq!(keys(&import(), "kept"), ["a"]);
}
