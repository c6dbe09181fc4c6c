use std::path::Path;
use std::process::Command;

use blackboard::Code;
use rustix::process::Signal;
use serde_json::{Value, json};
use testkit::process::RunToEnd as _;
use testkit::write_program;

use crate::hanging::HangingProgram;
use crate::scratch::{Output, Scratch};
use crate::shapes::is_object;
use crate::transcript;

testkit::on_each_engine![
    human_output_matches_transcript,
    each_form_is_imported_twice_with_changes_between,
    samples_of_the_real_forms_are_imported,
    a_dry_run_shows_a_diff_and_creates_no_board,
    a_claim_held_during_an_import_survives,
    issues_come_from_gh_and_no_other_program,
    a_gh_that_fails_hangs_or_prints_garbage_changes_nothing,
    an_older_gh_is_asked_without_dependencies,
    items_that_cannot_be_read_or_stored_are_reported,
    lists_of_two_projects_have_no_item_in_common,
    a_hidden_comment_changes_no_item_of_the_board,
    an_item_on_hold_stays_so_when_it_is_opened_again,
    items_that_were_closed_before_the_import_are_no_progress,
    a_deferred_issue_of_beads_cannot_be_claimed,
    cycles_and_repeated_ids_are_reported,
    a_comment_that_is_cut_off_creates_no_item,
    hints_fit_the_source,
];

fn human_output_matches_transcript() {
    transcript::check("work import");
}

/// How many items each file has.
const COUNT: usize = 300;

/// The state of one generated item.
struct Sample {
    number: usize,
    title: String,
    description: String,
    /// From 1 to 3.
    priority: Option<usize>,
    estimate: Option<usize>,
    labels: Vec<&'static str>,
    is_closed: bool,
    blocker: Option<usize>,
}

/// The items of a tracker: every seventh is closed, and every third is blocked by the one before it. Later, each field of some
/// items has another value, and where the form can say so none; some items are closed, some opened again, ten are new.
fn samples(is_later: bool) -> Vec<Sample> {
    let count = if is_later { COUNT + 10 } else { COUNT };
    let sample = |number: usize| {
        let changes = |remainder: usize| is_later && number % 10 == remainder;
        let is_removed = number.is_multiple_of(3);
        let replaced = |value: usize, new: usize| (!is_removed).then_some(if value == new { 1 } else { new });
        let (priority, estimate) = (number % 3 + 1, 5000);
        let blocker = match (number % 15, is_later) {
            (2, true) => None,
            (5, true) => Some(number - 2),
            (9, true) => Some(number - 1),
            _ => (number % 3 == 2).then(|| number - 1),
        };
        Sample {
            number,
            title: if changes(3) { format!("Renamed item {number}") } else { format!("Item {number}") },
            description: match changes(4) {
                true if is_removed => String::new(),
                true => format!("Other text of {number}"),
                false => format!("Text of {number}"),
            },
            priority: if changes(5) { replaced(priority, 3) } else { Some(priority) },
            estimate: if changes(6) { replaced(estimate, 9000) } else { Some(estimate) },
            labels: if changes(1) { vec!["y", "z"] } else { vec!["x"] },
            is_closed: number.is_multiple_of(7) != (is_later && number % 20 == 7),
            blocker,
        }
    };
    (1..=count).map(sample).collect()
}

/// A file of the form with these items.
fn file(form: &str, samples: &[Sample]) -> String {
    let lines = |line: fn(&Sample) -> String| samples.iter().map(line).collect::<Vec<_>>();
    match form {
        "github" => format!("[{}]", lines(github).join(",")),
        "jsonl" => lines(jsonl).join("\n"),
        "beads" => lines(beads).join("\n"),
        "tasks" => format!("tasks:\n{}", lines(task).join("")),
        "markdown" => format!("# Tasks\n\n{}", lines(markdown).join("")),
        other => panic!("{other}"),
    }
}

/// The labels, with those that mean the priority and the estimate.
fn all_labels(sample: &Sample) -> Vec<String> {
    let mut labels: Vec<_> = sample.labels.iter().map(ToString::to_string).collect();
    labels.extend(sample.priority.map(|priority| format!("P{priority}")));
    labels.extend(sample.estimate.map(|estimate| format!("tokens:{estimate}")));
    labels
}

fn github(sample: &Sample) -> String {
    let url = |number: usize| format!("https://github.com/o/r/issues/{number}");
    let blockers: Vec<_> =
        sample.blocker.iter().map(|number| json!({"number": number, "url": url(*number)})).collect();
    let labels: Vec<_> = all_labels(sample).into_iter().map(|name| json!({"name": name})).collect();
    json!({
        "number": sample.number, "title": sample.title, "body": sample.description,
        "state": if sample.is_closed { "CLOSED" } else { "OPEN" }, "url": url(sample.number),
        "labels": labels, "blockedBy": blockers,
    })
    .to_string()
}

fn jsonl(sample: &Sample) -> String {
    let blockers: Vec<_> = sample.blocker.iter().map(|number| format!("item-{number}")).collect();
    json!({
        "id": format!("item-{}", sample.number), "title": sample.title, "description": sample.description,
        "status": if sample.is_closed { "done" } else { "open" }, "estimate": sample.estimate,
        "priority": sample.priority.map(|priority| format!("P{priority}")), "labels": sample.labels,
        "blocked_by": blockers,
    })
    .to_string()
}

fn beads(sample: &Sample) -> String {
    let id = |number: usize| format!("bd-{number}");
    let blockers: Vec<_> = sample
        .blocker
        .iter()
        .map(|number| json!({"issue_id": id(sample.number), "depends_on_id": id(*number), "type": "blocks"}))
        .collect();
    json!({
        "id": id(sample.number), "title": sample.title, "description": sample.description, "issue_type": "task",
        "status": if sample.is_closed { "closed" } else { "open" }, "labels": all_labels(sample),
        "priority": sample.priority.filter(|_| !sample.number.is_multiple_of(2)), "dependencies": blockers,
    })
    .to_string()
}

fn task(sample: &Sample) -> String {
    let status = if sample.is_closed { "completed" } else { "available" };
    let line = |name: &str, value: Option<String>| {
        value.map(|value| format!("    {name}: {value}\n")).unwrap_or_default()
    };
    format!(
        "  - id: \"task-{}\"\n    source: \"local\"\n    title: \"{}\"\n    description: \"{}\"\n    status: {status}\n    \
         labels: {:?}\n{}{}{}",
        sample.number,
        sample.title,
        sample.description,
        sample.labels,
        line("priority", sample.priority.map(|priority| format!("P{priority}"))),
        line("blockedBy", sample.blocker.map(|number| format!("\"task-{number}\""))),
        line("estimatedTokens", sample.estimate.map(|estimate| estimate.to_string())),
    )
}

fn markdown(sample: &Sample) -> String {
    let mark = if sample.is_closed { 'x' } else { ' ' };
    let mut fields = json!({"id": format!("line-{}", sample.number), "labels": sample.labels});
    if let Some(priority) = sample.priority {
        fields["priority"] = json!(format!("P{priority}"));
    }
    if let Some(estimate) = sample.estimate {
        fields["estimate"] = json!(estimate);
    }
    if let Some(number) = sample.blocker {
        fields["blocked_by"] = json!([format!("line-{number}")]);
    }
    format!("- [{mark}] {} <!-- blackboard {fields} -->\n  {}\n", sample.title, sample.description)
}

fn counts(report: &Value) -> [u64; 6] {
    ["created", "updated", "completed", "reopened", "unchanged", "skipped"]
        .map(|name| report[name].as_u64().unwrap())
}

fn each_form_is_imported_twice_with_changes_between() {
    for form in ["github", "jsonl", "beads", "tasks", "markdown"] {
        let scratch = Scratch::new();
        let import = |samples: &[Sample]| {
            std::fs::write(scratch.path().join("items"), file(form, samples)).unwrap();
            let report = scratch.json(["work", "import", "--from", form, "items"]);
            is_object(&report, &["file", "from", "dry_run", "items", "problems"]);
            assert_eq!((&report["refused"], &report["problems"]), (&json!(0), &json!([])), "{form}");
            report
        };
        let [before, later] = [samples(false), samples(true)];
        let open = |samples: &[Sample]| samples.iter().filter(|sample| !sample.is_closed).count();
        let created = open(&before) as u64;
        let skipped = COUNT as u64 - created;
        assert_eq!(counts(&import(&before)), [created, 0, 0, 0, 0, skipped], "{form}");
        let revision = scratch.json(["export"])["revision"].clone();
        assert_eq!(counts(&import(&before)), [0, 0, 0, 0, created, skipped], "{form}");
        assert_eq!(scratch.json(["export"])["revision"], revision, "{form}: no event");

        let report = import(&later);
        assert!(report["completed"].as_u64().unwrap() > 0, "{form}");
        let items = report["items"].as_array().unwrap().iter();
        let changes: Vec<_> = items.filter_map(|item| item["changes"].as_array()).flatten().collect();
        for field in ["title", "description", "priority", "estimate", "labels", "blocked_by"] {
            let of_field = || changes.iter().filter(|change| change["field"] == field);
            assert!(of_field().count() > 5, "{form}: {field}");
            // A blocker is also added and removed, an estimate and a description removed.
            let is_empty = |value: &Value| value.is_null() || *value == json!([]);
            if matches!(field, "description" | "estimate" | "blocked_by") {
                assert!(of_field().any(|change| is_empty(&change["new"])), "{form}: {field}");
            }
        }
        let again = import(&later);
        let nothing = ["created", "updated", "completed", "reopened", "closing"];
        assert!(nothing.iter().all(|name| again[name] == 0), "{form}: {again}");
        // The board is as a new board that gets the later file alone.
        let other = Scratch::new();
        std::fs::write(other.path().join("items"), file(form, &later)).unwrap();
        other.json(["work", "import", "--from", form, "items"]);
        let shown = shown_items(&scratch);
        assert_eq!(shown.len(), open(&later), "{form}");
        assert_eq!(shown, shown_items(&other), "{form}");
    }
}

/// The open items by id, with what an import may change.
fn shown_items(scratch: &Scratch) -> Vec<Value> {
    let items = scratch.json(["work", "list", "--limit", "1000"])["items"].take();
    let fields = ["item_id", "title", "description", "status", "priority", "open_blockers"];
    let mut shown: Vec<_> = items
        .as_array()
        .unwrap()
        .iter()
        .map(|item| {
            let mut shown: Vec<_> = fields.iter().map(|field| item[field].clone()).collect();
            shown.extend(["labels", "estimate"].map(|member| item["metadata"][member].clone()));
            Value::from(shown)
        })
        .collect();
    shown.sort_by_key(Value::to_string);
    shown
}

fn samples_of_the_real_forms_are_imported() {
    let scratch = Scratch::new();
    for (form, file, created, skipped) in [
        ("github", "github.json", 2, 1),
        ("beads", "beads.jsonl", 2, 2),
        ("tasks", "tasks.yaml", 3, 0),
        ("markdown", "tasks.md", 4, 1),
    ] {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/trackers").join(file);
        let report = scratch.json(["work", "import", "--from", form, path.to_str().unwrap()]);
        assert_eq!((&report["created"], &report["skipped"]), (&json!(created), &json!(skipped)), "{report}");
    }
    let issue = scratch.json(["work", "status", "gh:mellanon/pai-collab#78"]);
    assert_eq!(
        (&issue["source"], &issue["source_ref"]),
        (&json!("github"), &json!("mellanon/pai-collab#78"))
    );
    assert_eq!(issue["metadata"]["outside"]["from"], "github");
    assert_eq!(issue["open_blockers"], json!(["gh:mellanon/pai-collab#77", "gh:other/repo#5"]));
    let task = scratch.json(["work", "status", "local-test-run"]);
    assert_eq!((&task["status"], &task["metadata"]["estimate"]), (&json!("blocked"), &json!(5000)));
    let shown = scratch.run(["work", "status", "bd-a1b2"]).success().stdout;
    for line in [
        "Source:   beads:bd-a1b2 (gh-9)",
        "Imported: from beads",
        "Labels:   auth, tokens:20k",
        "Estimate: 20,000 tokens",
    ] {
        assert!(shown.contains(line), "{line}: {shown}");
    }
}

fn a_dry_run_shows_a_diff_and_creates_no_board() {
    let scratch = Scratch::new();
    let write = |text: &str| std::fs::write(scratch.path().join("a.jsonl"), text).unwrap();
    write("{\"id\":\"a\",\"title\":\"A\"}\n{\"id\":\"b\",\"title\":\"B\"}");
    let before = scratch.contents();
    let call = ["work", "import", "--from", "jsonl", "a.jsonl"];
    let planned = scratch.json(call.iter().chain(&["--dry-run"]));
    assert_eq!((&planned["created"], &planned["dry_run"]), (&json!(2), &json!(true)));
    assert!(scratch.contents() == before);
    scratch.json(call);
    write(
        "{\"id\":\"a\",\"title\":\"New\",\"priority\":\"P1\",\"labels\":[\"x\"]}\n{\"id\":\"b\",\"title\":\"B\",\"closed\":true}",
    );
    let planned = scratch.json(call.iter().chain(&["--dry-run"]));
    let shown = scratch.run(call.iter().chain(&["--dry-run"])).success().stdout;
    assert_eq!(
        shown,
        "Would import: a.jsonl (1 updated, 1 completed; dry run, nothing is changed)\n  updated   a\n    title: \"A\" -> \"New\"\n    \
         priority: P2 -> P1\n    labels: none -> x\n  completed b  B\n"
    );
    assert_eq!(scratch.json(["work", "status", "a"])["title"], "A");
    let report = scratch.json(call);
    assert_eq!(report["items"], planned["items"]);
    assert_eq!(scratch.json(["work", "status", "b"])["status"], "completed");
}

fn a_claim_held_during_an_import_survives() {
    let scratch = Scratch::new();
    scratch.json(["agent", "register", "--name", "Ivy", "--session-hint", "ivy"]);
    let import = |text: &str| {
        std::fs::write(scratch.path().join("a.md"), text).unwrap();
        scratch.json(["work", "import", "--from", "markdown", "a.md"])
    };
    let id = import("- [ ] Ship it\n- [ ] Rest\n")["items"][0]["item_id"].as_str().unwrap().to_owned();
    assert!(id.starts_with("md:") && id.ends_with(":ship-it"), "{id}");
    let claimed = scratch.json(["work", "claim", &id, "--session", "ivy"]);
    let report = import("- [x] Ship it\n  Now with a description.\n- [x] Rest\n");
    assert_eq!((&report["closing"], &report["completed"]), (&json!(1), &json!(1)), "{report}");
    assert!(report["items"][0]["held_by"].as_str().unwrap().starts_with("Ivy ("), "{report}");
    let item = scratch.json(["work", "status", &id]);
    for field in ["claimed_by", "fence", "claimed_at", "status"] {
        assert_eq!(item[field], claimed[field], "{field}");
    }
    assert_eq!(item["description"], "Now with a description.");
    let seen = scratch.json(["observe", "--session", "ivy", "--others"]);
    let mut events = seen["items"].as_array().unwrap().iter();
    assert!(
        events.any(|event| event["summary"].as_str().unwrap().contains("is closed at its source")),
        "{seen}"
    );
    let fence = claimed["fence"].to_string();
    let released = scratch.json(["work", "release", &id, "--session", "ivy", "--fence", &fence]);
    assert_eq!((&released["completed"], &released["status"]), (&json!(true), &json!("completed")));
}

/// The call, with a `gh` of these lines on the path.
fn with_gh(scratch: &Scratch, script: &str, call: &[&str]) -> Output {
    let directory = scratch.path().join("bin");
    std::fs::create_dir_all(&directory).unwrap();
    write_program(&directory.join("gh"), &format!("#!/bin/sh\n{script}\n"));
    let path = format!("{}:{}", directory.display(), std::env::var("PATH").unwrap_or_default());
    let mut command: Command =
        scratch.command(["work", "import", "--from", "github", "--json"].iter().chain(call));
    Output::of(command.env("PATH", path).run_to_end())
}

fn issues_come_from_gh_and_no_other_program() {
    let scratch = Scratch::new();
    std::fs::write(scratch.path().join("issues.json"), file("github", &samples(false))).unwrap();
    let script = "echo \"$@\" > asked; cat issues.json";
    let report = with_gh(&scratch, script, &["--repo", "o/r", "--limit", "1000"]).success().json();
    assert_eq!((&report["file"], report["created"].as_u64().unwrap() > 200), (&json!("o/r"), true));
    let asked = std::fs::read_to_string(scratch.path().join("asked")).unwrap();
    assert_eq!(
        asked.trim(),
        "issue list --state all --limit 1000 --json number,title,body,state,labels,url,blockedBy --repo o/r"
    );
    let item = scratch.json(["work", "status", "gh:o/r#2"]);
    assert_eq!((&item["priority"], &item["source_ref"]), (&json!("P3"), &json!("o/r#2")));
    // The repository of the current directory is found by gh itself.
    let report = with_gh(&scratch, script, &["--repo", "."]).success().json();
    assert_eq!((&report["created"], &report["updated"]), (&json!(0), &json!(0)));
    assert!(!std::fs::read_to_string(scratch.path().join("asked")).unwrap().contains("--repo"));
    let limited = with_gh(&scratch, script, &["--repo", "o/r", "--limit", "300"]).success().json();
    assert!(limited["problems"][0]["problem"].as_str().unwrap().contains("--limit"), "{limited}");
    for repository in ["--web", "o", "o/r;x", "../o/r"] {
        let call = format!("--repo={repository}");
        with_gh(&scratch, "exit 99", &[&call]).refused(Code::InvalidValue);
    }
}

fn a_gh_that_fails_hangs_or_prints_garbage_changes_nothing() {
    let scratch = Scratch::new();
    scratch.json(["work", "create", "item", "--title", "Item"]);
    let revision = scratch.json(["export"])["revision"].clone();
    let call = &["--repo", "o/r", "--timeout", "5m"][..];
    for (script, call, code, error) in [
        (
            "echo 'gh: not logged in' >&2; exit 4",
            call,
            Code::Io,
            "gh failed (exit code 4): gh: not logged in",
        ),
        ("kill -9 $$", call, Code::Io, "gh failed (a signal): it printed no reason"),
        ("printf '\\033[31mred' >&2; exit 1", call, Code::Io, "gh failed (exit code 1): "),
        // It ignores that its output is closed, and so do its children.
        (
            "sleep 1000 & sleep 1000",
            &["--repo", "o/r", "--timeout", "100ms"],
            Code::TimedOut,
            "gh did not end within ",
        ),
        ("echo '<html>Sorry</html>'", call, Code::Io, "gh printed no list of GitHub issues: "),
        ("echo '{\"message\":\"Bad credentials\"}'", call, Code::Io, "gh printed no list of GitHub issues: "),
        ("printf '\\377\\376'", call, Code::Io, "gh printed no list of GitHub issues: "),
        ("printf '['; yes '[' | head -c 1000000", call, Code::Io, "gh printed no list of GitHub issues: "),
        ("true", call, Code::Io, "gh printed no list of GitHub issues: "),
    ] {
        let refused = with_gh(&scratch, script, call).refused(code);
        let message = refused["error"].as_str().unwrap();
        assert!(message.starts_with(error) && !message.contains('\u{1b}'), "{script}: {message}");
        assert!(!refused["hint"].as_str().unwrap().contains("a file has"), "{script}: {refused}");
    }
    let mut without = scratch.command(["work", "import", "--from", "github", "--repo", "o/r", "--json"]);
    let refused = Output::of(without.env("PATH", "/none").run_to_end()).refused(Code::Io);
    assert_eq!(refused["error"], "gh cannot be started");
    assert_eq!(scratch.json(["export"])["revision"], revision);
}

#[test]
fn an_interrupted_import_ends_gh_and_changes_nothing() {
    let scratch = Scratch::new();
    scratch.json(["work", "create", "item", "--title", "Item"]);
    let revision = scratch.json(["export"])["revision"].clone();
    let gh = HangingProgram::new(&scratch, "gh");
    let path = format!("{}:{}", gh.directory.display(), std::env::var("PATH").unwrap_or_default());
    for sent in [Signal::INT, Signal::TERM] {
        let mut call = scratch.command(["work", "import", "--from", "github", "--repo", "o/r"]);
        let ended = gh.interrupt(call.env("PATH", &path), sent);
        assert_eq!((ended.code, ended.stdout.as_str(), ended.stderr.as_str()), (130, "", ""), "{sent:?}");
    }
    assert_eq!(scratch.json(["export"])["revision"], revision);
}

fn an_older_gh_is_asked_without_dependencies() {
    let scratch = Scratch::new();
    let issue = r#"[{"number":1,"title":"One","body":"","state":"OPEN","labels":[],"url":"https://github.com/o/r/issues/1"}]"#;
    let script = format!(
        "case \"$*\" in *blockedBy*) echo 'Unknown JSON field: \"blockedBy\"' >&2; exit 1;; *) echo '{issue}';; esac"
    );
    let report = with_gh(&scratch, &script, &["--repo", "o/r"]).success().json();
    assert_eq!(report["created"], 1);
}

fn items_that_cannot_be_read_or_stored_are_reported() {
    let scratch = Scratch::new();
    let key = ["AKIA", "IOSFODNN7EXAMPLE"].concat();
    let secret = format!(r#"{{"id":"key","title":"{key}"}}"#);
    let lines = [
        r#"{"id":"a","title":"A <script>alert(1)</script>\u001b[31m"}"#,
        "nonsense",
        &secret,
        r#"{"id":"b,c","title":"B"}"#,
    ];
    std::fs::write(scratch.path().join("a.jsonl"), lines.join("\n")).unwrap();
    let output = scratch.run(["work", "import", "--from", "jsonl", "a.jsonl", "--json"]);
    assert_eq!(output.code, i32::from(Code::Conflict.exit_code()));
    let report = output.json();
    assert_eq!(report["ok"], false);
    assert_eq!(
        [&report["created"], &report["refused"], &report["unread"]],
        [&json!(1), &json!(2), &json!(1)]
    );
    assert_eq!(report["problems"][0]["line"], 2);
    assert_eq!(report["items"][1]["code"], "secret_looking");
    let title = scratch.json(["work", "status", "a"])["title"].clone();
    assert!(!title.as_str().unwrap().contains(['<', '\u{1b}']), "{title}");
    for (form, text) in [("tasks", "tasks: {"), ("github", "nonsense")] {
        std::fs::write(scratch.path().join("b"), text).unwrap();
        scratch.run(["work", "import", "--from", form, "b", "--json"]).refused(Code::InvalidValue);
    }
    for call in [
        &["--from", "jsonl"][..],
        &["--from", "jsonl", "--repo", "o/r"],
        &["--from", "github", "a", "--repo", "o/r"],
    ] {
        assert_eq!(scratch.run(["work", "import"].iter().chain(call)).code, 2, "{call:?}");
    }
}

fn lists_of_two_projects_have_no_item_in_common() {
    let scratch = Scratch::new();
    let import = |directory: &str, file: &str, project: &str| {
        let mut command =
            scratch.command(["work", "import", "--from", "markdown", file, "-P", project, "--json"]);
        let directory = scratch.path().join(directory);
        Output::of(command.current_dir(directory).run_to_end()).success().json()
    };
    for (project, mark) in [("pa", ' '), ("pb", 'x')] {
        scratch.json(["project", "register", project, "--name", project]);
        let root = scratch.path().join(project);
        std::fs::create_dir_all(root.join("docs")).unwrap();
        assert!(Command::new("git").args(["init", "-q"]).arg(&root).run_to_end().status.success());
        let text = format!(
            "- [{mark}] Update README\n- [ ] Fix the login\n- [ ] Fix the login 2\n- [ ] Fix the login\n"
        );
        std::fs::write(root.join("TODO.md"), text).unwrap();
    }
    let first = import("pa", "TODO.md", "pa");
    assert_eq!((&first["created"], &first["skipped"]), (&json!(4), &json!(0)), "{first}");
    let second = import("pb", "TODO.md", "pb");
    assert_eq!((&second["created"], &second["skipped"]), (&json!(3), &json!(1)), "{second}");
    let readme = first["items"][0]["item_id"].as_str().unwrap();
    let item = scratch.json(["work", "status", readme]);
    assert_eq!((&item["status"], &item["project_id"]), (&json!("available"), &json!("pa")));
    // The same list from another directory is the same list.
    assert_eq!(import("pa/docs", "../TODO.md", "pa")["unchanged"], 4);
    assert_eq!(import(".", "pa/TODO.md", "pa")["unchanged"], 4);
}

fn a_hidden_comment_changes_no_item_of_the_board() {
    let scratch = Scratch::new();
    scratch.json(["work", "create", "prod-release", "--title", "Release", "-p", "P1"]);
    let before = scratch.json(["work", "status", "prod-release"]);
    let comment = r#"<!-- blackboard {"id":"prod-release","priority":"P3"} -->"#;
    std::fs::write(scratch.path().join("a.md"), format!("- [x] harmless {comment}\n- [ ] Other\n")).unwrap();
    let call = ["work", "import", "--from", "markdown", "a.md"];
    let output = scratch.run(call.iter().chain(&["--json"]));
    assert_eq!(output.code, i32::from(Code::Conflict.exit_code()));
    let report = output.json();
    assert_eq!((&report["created"], &report["refused"]), (&json!(1), &json!(1)), "{report}");
    let refused = &report["items"][0];
    assert_eq!(refused["code"], "already_exists");
    assert!(
        refused["reason"].as_str().unwrap().ends_with("may not change its title, priority, closed state")
    );
    assert_eq!(scratch.json(["work", "status", "prod-release"])["revision"], before["revision"]);
    assert!(scratch.run(call).stdout.contains("repeat the import with --adopt"));
    let adopted = scratch.json(call.iter().chain(&["--adopt"]));
    assert_eq!((&adopted["completed"], &adopted["refused"]), (&json!(1), &json!(0)), "{adopted}");
    let item = scratch.json(["work", "status", "prod-release"]);
    assert_eq!((&item["title"], &item["priority"]), (&json!("harmless"), &json!("P3")));
}

fn an_item_on_hold_stays_so_when_it_is_opened_again() {
    let scratch = Scratch::new();
    scratch.json(["agent", "register", "--name", "Ivy", "--session-hint", "ivy"]);
    let import = |status: &str| {
        let line = json!({"id": "x", "title": "X", "status": status}).to_string();
        std::fs::write(scratch.path().join("x.jsonl"), line).unwrap();
        scratch.json(["work", "import", "--from", "jsonl", "x.jsonl"])
    };
    import("open");
    for _ in 0..3 {
        scratch.json(["work", "claim", "x", "--session", "ivy"]);
        scratch.json(["work", "release", "x", "--session", "ivy", "--failed"]);
    }
    import("closed");
    assert_eq!(import("open")["reopened"], 1);
    assert_eq!(scratch.json(["work", "status", "x"])["status"], "blocked");
    scratch.run(["work", "claim", "x", "--session", "ivy", "--json"]).refused(Code::WorkBlocked);
}

/// Imports these lines.
fn import_lines(scratch: &Scratch, form: &str, lines: &str, more: &[&str]) -> Output {
    std::fs::write(scratch.path().join("lines"), lines).unwrap();
    scratch.run(["work", "import", "--from", form, "lines"].iter().chain(more))
}

fn items_that_were_closed_before_the_import_are_no_progress() {
    let scratch = Scratch::new();
    scratch.json(["agent", "register", "--name", "Ivy", "--session-hint", "ivy"]);
    let lines = |status: &str| {
        format!(
            "{{\"id\":\"old\",\"title\":\"Old\",\"status\":\"closed\"}}\n\
             {{\"id\":\"new\",\"title\":\"New\",\"status\":\"{status}\"}}\n"
        )
    };
    let options = ["--all", "--session", "ivy", "--json"];
    assert_eq!(import_lines(&scratch, "jsonl", &lines("open"), &options).success().json()["created"], 2);
    assert_eq!(scratch.json(["work", "status", "old"])["status"], "completed");
    assert_eq!(import_lines(&scratch, "jsonl", &lines("closed"), &options).success().json()["completed"], 1);
    let shown = scratch.run(["status", "--export", "--stdout", "--all-projects"]).success().stdout;
    assert!(shown.contains("Completed: New") && !shown.contains("Completed: Old"), "{shown}");
    let progress = scratch.run(["export", "--format", "yaml", "--what", "progress"]).success().stdout;
    assert!(progress.contains("task: 'new'") && !progress.contains("task: 'old'"), "{progress}");
    // Completed here again, it is progress.
    scratch.json(["work", "reset", "old"]);
    scratch.json(["work", "claim", "old", "--session", "ivy"]);
    scratch.json(["work", "complete", "old", "--session", "ivy"]);
    let shown = scratch.run(["status", "--export", "--stdout", "--all-projects"]).success().stdout;
    assert!(shown.contains("Completed: Old"), "{shown}");
}

fn a_deferred_issue_of_beads_cannot_be_claimed() {
    let scratch = Scratch::new();
    scratch.json(["agent", "register", "--name", "Ivy", "--session-hint", "ivy"]);
    let import = |status: &str| {
        let line = json!({"id": "bd-1", "title": "Later", "status": status}).to_string();
        import_lines(&scratch, "beads", &line, &["--json"]).success().json()
    };
    let status = || scratch.json(["work", "status", "bd-1"]);
    assert_eq!(import("deferred")["created"], 1);
    assert_eq!((&status()["status"], &status()["on_hold"]), (&json!("blocked"), &json!("deferred in beads")));
    scratch.run(["work", "claim", "bd-1", "--session", "ivy", "--json"]).refused(Code::WorkBlocked);
    assert_eq!(import("deferred")["unchanged"], 1);
    assert_eq!(import("open")["updated"], 1);
    assert_eq!(status()["status"], "available");
    assert_eq!(import("deferred")["updated"], 1);
    assert_eq!(status()["status"], "blocked");
    // What is decided on the board stays.
    scratch.json(["work", "unblock", "bd-1"]);
    assert_eq!(import("deferred")["unchanged"], 1);
    assert_eq!(status()["status"], "available");
    assert_eq!(import("in_progress")["updated"], 1);
    scratch.json(["work", "claim", "bd-1", "--session", "ivy"]);
    assert_eq!(import("deferred")["unchanged"], 1);
    assert_eq!(status()["status"], "claimed");
}

fn cycles_and_repeated_ids_are_reported() {
    let scratch = Scratch::new();
    let lines = "{\"id\":\"k1\",\"title\":\"First\"}\n\
                 {\"id\":\"k4\",\"title\":\"Four\",\"depends_on\":[\"k4\"]}\n\
                 {\"id\":\"k1\",\"title\":\"Again\"}\n";
    let shown = import_lines(&scratch, "jsonl", lines, &[]).success().stdout;
    for line in [
        "    note: it is not blocked by itself: a dependency cycle\n",
        "  line 1: it is skipped, because line 3 has the same id k1 again\n",
    ] {
        assert!(shown.contains(line), "{shown}");
    }
    assert_eq!(scratch.json(["work", "status", "k4"])["status"], "available");
    assert_eq!(scratch.json(["work", "status", "k1"])["title"], "Again");
    let issues = r#"[{"number": 7, "title": "Seven"}, {"title": "None"}]"#;
    let shown = import_lines(&scratch, "github", issues, &[]);
    assert!(shown.stdout.contains("  #7: it has no url\n  issue 2: it has no number\n"), "{shown:?}");
}

fn a_comment_that_is_cut_off_creates_no_item() {
    let scratch = Scratch::new();
    for end in ["", "\r\n"] {
        let text = format!("- [ ] one{end}\n- [ ] two <!-- blackboard {{\"id\":\"tw{end}");
        let output = import_lines(&scratch, "markdown", &text, &["--json"]);
        assert_eq!(output.code, i32::from(Code::Conflict.exit_code()));
        let report = output.json();
        assert_eq!(report["problems"][0]["place"], if end.is_empty() { "line 2" } else { "line 3" });
        assert_eq!(scratch.json(["work", "list"])["count"], 1);
    }
    // The same text in the file of an export stays exact.
    scratch.json(["work", "create", "tabby", "--title", "T", "--description", "all:\n\tmake \\t"]);
    scratch.run(["work", "export", "--to", "markdown", "-o", "t.md"]).success();
    let report = scratch.json(["work", "import", "--from", "markdown", "--adopt", "t.md"]);
    assert_eq!(report["unread"], 0);
    assert_eq!(scratch.json(["work", "status", "tabby"])["description"], "all:\n\tmake \\t");
}

fn hints_fit_the_source() {
    let scratch = Scratch::new();
    let refused = scratch.run(["work", "import", "--from", "github", "--json"]).refused(Code::Usage);
    assert!(refused["error"].as_str().unwrap().contains("--repo"), "{refused}");
    let call = ["work", "import", "--from", "markdown", "/dev/zero", "--json"];
    let refused = scratch.run(call).refused(Code::InvalidValue);
    assert!(refused["hint"].as_str().unwrap().contains("several files"), "{refused}");
}
