//! Every table on terminals of 40, 80 and 120 columns and in a pipe, from one board with long, wide and combined
//! characters; and lists of a large board.
//!
//! The files are `snapshots/tables/COMMAND.txt`; `BLACKBOARD_WRITE_SNAPSHOTS=1` writes them again.

use std::fmt::Write as _;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use blackboard::Board;
use blackboard::agent::{Heartbeat, Register};
use blackboard::clock::{Clock as _, FixedClock, SystemClock};
use blackboard::entry::{Actor, Value, Write};
use blackboard::file::Reserve;
use blackboard::lock::Acquire;
use blackboard::memory::Remember;
use blackboard::page::{Grouping, MapScope};
use blackboard::project::RegisterProject;
use blackboard::scope::{CreateScope, Eviction, Policies, Visibility};
use blackboard::work::{Claim, Create, Priority};
use testkit::engine::Engine;
use testkit::process::RunToEnd as _;
use unicode_width::UnicodeWidthStr;

use crate::scratch::{Output, Scratch, show_on_terminal};
use crate::transcript::normalized;

testkit::on_each_engine![
    setup_status_looks_the_same_at_every_width,
    no_table_is_wider_than_its_terminal,
    piped_tables_shorten_nothing_and_have_no_trailing_spaces,
    lists_of_a_large_board_show_50_rows_on_a_terminal_and_all_in_a_pipe,
];

const WIDTHS: [u16; 3] = [40, 80, 120];

/// What is typed, and longer than the narrowest terminal is wide.
const LONG_ID: &str = "gh:mellanon/pai-collab-with-a-long-repository-name#1077";

/// No process has this id: it is above the largest of Linux.
const GONE_PID: u32 = 4_999_999;

/// A board that was used over two hours. Ages are in the middle of their minute, so that a test may take its time.
fn board() -> Scratch {
    let scratch = Scratch::new();
    let start = SystemClock.now().minus(minutes(130) + Duration::from_secs(20));
    let clock = Arc::new(FixedClock::at(&start.to_string()).unwrap());
    let board = scratch.board_at(clock.clone());
    fill(&board, &clock);
    drop(board);
    scratch.change_agents(|agent, _| {
        if agent.agent_name == "gone-84a6" {
            agent.pid = Some(GONE_PID);
        }
    });
    scratch
}

fn create_scopes(scratch: &Scratch) {
    let board = scratch.board();
    let persistent = Policies { visibility: Visibility::Persistent, ..Policies::default() };
    let limited = Policies {
        ttl: Some(Duration::from_hours(24)),
        max_entries: Some(100_000),
        eviction: Eviction::Refuse,
        ..Policies::default()
    };
    for (name, policies) in [("cache", limited), ("plans of 設計", persistent)] {
        board.scopes().create(&CreateScope::new(name, policies)).unwrap();
    }
}

fn map_scopes(scratch: &Scratch) {
    let board = scratch.board();
    for (scope, grouping) in [("default", Grouping::Tag), ("plans of 設計", Grouping::Prefix)] {
        let write = Write::new("design:a", value("1").unwrap());
        board.scope(scope).write(&write).unwrap();
        let request = MapScope { grouping: Some(grouping), ..MapScope::of(scope) };
        board.pages().map(&request).unwrap();
    }
}

fn value(json: &str) -> Result<Value, blackboard::Error> {
    Value::parse(json, 1024)
}

fn minutes(count: u64) -> Duration {
    Duration::from_mins(count)
}

fn register(board: &Board, name: &str, work: Option<&str>, parent: Option<&str>, project: &str) -> String {
    let register = Register {
        session_hint: Some(format!("tables {name}")),
        // It always runs.
        pid: (name != "gone-84a6").then_some(1),
        project: Some(project.to_owned()),
        work: work.map(str::to_owned),
        parent: parent.map(str::to_owned),
        shares_process: true,
        ..Register::named(name)
    };
    board.agents().register(&register).unwrap().agent.session_id
}

fn fill(board: &Board, clock: &FixedClock) {
    for (id, name, path, repo) in [
        ("pai-collab", "PAI Collab Blackboard", "/home/ivy/pai-collab", "mellanon/pai-collab"),
        ("pai-secret-scanning", "漢字 scanning", "/home/ivy/a/long/path/to/pai-secret-scanning", ""),
    ] {
        let project = RegisterProject {
            id: id.to_owned(),
            name: Some(name.to_owned()),
            path: Some(path.to_owned()),
            repo: (!repo.is_empty()).then(|| repo.to_owned()),
            metadata: None,
            session: None,
        };
        board.projects().register(&project).unwrap();
    }
    let ivy = register(board, "Ivy", Some("Design local blackboard SQL schema"), None, "pai-collab");
    let codex = register(board, "codex-7749", None, None, "pai-collab");
    for (id, title, priority) in [
        ("design-schema", "Design local blackboard SQL schema", Priority::P1),
        ("review", "Review the schema", Priority::P2),
        ("post-proposal", "Post proposal to issue #78", Priority::P2),
        ("cjk", "設計書を書いて、全員に確認してもらい、それから実装を始める", Priority::P2),
        ("emoji", "Ship it 🚀🚀 with the family 👩\u{200d}👩\u{200d}👧 and a flag 🇩🇪 today", Priority::P3),
        (
            "combining",
            "Cafe\u{301} re\u{301}sume\u{301} nai\u{308}ve co\u{308}operation in the de\u{301}ja\u{300} vu",
            Priority::P3,
        ),
        (LONG_ID, "Draft response to change awareness discussion", Priority::P3),
    ] {
        let mut create = Create::new(id, title);
        create.priority = Some(priority);
        create.project = Some("pai-collab".to_owned());
        create.session = Some(ivy.clone());
        if id == "post-proposal" {
            create.blocked_by = vec!["design-schema".to_owned(), "review".to_owned()];
        }
        board.work().create(&create).unwrap();
    }
    let counter =
        |number: &str| board.scope("default").write(&Write::new("counter", value(number).unwrap())).unwrap();
    counter("7");
    board.scope("default").delete("counter").unwrap();
    clock.advance(minutes(83));
    board.work().claim(&Claim::of("design-schema", &ivy)).unwrap();
    let delegate =
        register(board, "Ivy (delegate)", Some("Run the test suite"), Some(&ivy), "pai-secret-scanning");
    register(board, "李雷-エージェント", Some("全部のテストを実行する"), None, "pai-collab");
    clock.advance(minutes(35));
    let metrics = Write {
        tags: vec!["finance".to_owned()],
        ttl: Some(minutes(60) + Duration::from_secs(40)),
        ..Write::new(
            "cache:monthly_metrics",
            value(r#"{"revenue":1250000,"costs":800000,"note":"the numbers of the quarter"}"#).unwrap(),
        )
    };
    let by_ivy = Actor::session(&ivy);
    board.scope("default").acting_as(by_ivy).write(&metrics).unwrap();
    board.scope("default").write(&Write::new("キー:漢字", value(r#""値 👩‍👩‍👧 e\u0301""#).unwrap())).unwrap();
    clock.advance(minutes(7));
    counter("9");
    let lock = |name: &str, session: &str, ttl, note: &str| {
        let acquire = Acquire { ttl, note: Some(note.to_owned()), ..Acquire::of(name, session) };
        board.locks().acquire(&acquire).unwrap();
    };
    lock("deploy", &ivy, Some(minutes(30) + Duration::from_secs(40)), "releasing 1.2");
    lock("migrations", &codex, None, "adding the column that the next release needs for 漢字");
    for (worktree, pattern, session, shared, note) in [
        ("/home/ivy/pai-collab", "src/store/**", &ivy, false, Some("rewriting the engine")),
        ("/home/ivy/pai-collab-docs", "docs/", &codex, true, None),
    ] {
        let reserve = Reserve {
            repository: "/home/ivy/pai-collab".to_owned(),
            shared,
            note: note.map(str::to_owned),
            ..Reserve::of(worktree, &[pattern], session)
        };
        board.files().reserve(&reserve).unwrap();
    }
    clock.advance(minutes(3));
    register(board, "gone-84a6", Some("Nothing any more"), None, "pai-collab");
    for session in [&ivy, &delegate, &codex] {
        let beat = Heartbeat {
            session: session.clone(),
            progress: (*session == ivy).then(|| "schema done, starting CLI".to_owned()),
            ..Heartbeat::default()
        };
        board.agents().heartbeat(&beat).unwrap();
    }
}

/// What a call prints at each width and in a pipe, below each other.
fn at_every_width(scratch: &Scratch, call: &[&str]) -> String {
    let mut text = String::new();
    for width in WIDTHS {
        write!(text, "# {width} columns\n{}\n", scratch.on_terminal(width, call)).unwrap();
    }
    text + "# piped\n" + &scratch.run(call).success().stdout
}

/// Compares what calls print with the file of this name.
fn check(scratch: &Scratch, name: &str, call: &[&str]) {
    let seen = at_every_width(scratch, call)
        .replace(&scratch.location(), "/home/ivy/.pai/blackboard/local.db")
        .replace(scratch.path().to_str().unwrap(), "/home/ivy");
    // A day may end between two events.
    let is_date = |line: &&str| line.trim_start().starts_with("20") && line.trim_end().ends_with(':');
    // Seconds pass.
    let seen = seen.split("[TTL: ").enumerate().map(|(index, part)| match (index, part.split_once("s]")) {
        (1.., Some((_, rest))) => format!("[TTL: 2860s]{rest}"),
        _ => part.to_owned(),
    });
    let seen = normalized(&seen.collect::<String>());
    let lines: Vec<&str> = seen.lines().filter(|line| !is_date(line)).chain([""]).collect();
    compare(name, &lines.join("\n"));
}

/// Compares a text with the file of this name.
#[track_caller]
fn compare(name: &str, seen: &str) {
    let directory = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/cli/snapshots/tables");
    let file = directory.join(name).with_extension("txt");
    if std::env::var_os("BLACKBOARD_WRITE_SNAPSHOTS").is_some() {
        if Engine::of_this_test() == Engine::Sqlite {
            std::fs::create_dir_all(&directory).unwrap();
            std::fs::write(&file, seen).unwrap();
        }
        return;
    }
    let stored = std::fs::read_to_string(&file).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
    let different = seen.lines().zip(stored.lines()).find(|(seen, stored)| seen != stored);
    assert!(
        seen == stored,
        "{} is not what happens; seen and stored: {different:#?}\n{seen}",
        file.display()
    );
}

/// On SQLite alone: a board on a server judges no PID that another program has written.
#[test]
fn tables_look_the_same_at_every_width() {
    for (name, call) in [
        ("agent-list", &["agent", "list"][..]),
        ("agent-show", &["agent", "show", "Ivy"]),
        ("work-list", &["work", "list"]),
        ("work-status", &["work", "status", "design-schema"]),
        ("project-list", &["project", "list"]),
        ("project-status", &["project", "status", "pai-collab"]),
        ("protocol-list", &["protocol", "list"]),
        ("protocol-show", &["protocol", "show", "AgentRun"]),
        ("protocol-check", &["protocol", "check", "result:run:compliance:7"]),
        ("lock-list", &["lock", "list"]),
        ("file-list", &["file", "list"]),
        ("history", &["history", "counter"]),
        ("query", &["query", "--limit", "2"]),
        ("search", &["search", "counter", "work", "--limit", "4"]),
        ("list", &["list"]),
        ("list-long", &["list", "--long"]),
        ("status", &["status"]),
        ("observe", &["observe", "--last", "8"]),
    ] {
        // Each has a new board, so that no age changes on a slow machine.
        check(&board(), name, call);
    }
    let scratch = board();
    create_scopes(&scratch);
    check(&scratch, "scope-list", &["scope", "list"]);
    map_scopes(&scratch);
    check(&scratch, "page-list", &["page", "list"]);
    let scratch = board();
    remember(&scratch);
    check(&scratch, "memory-list", &["memory", "list"]);
    check(&scratch, "memory-map", &["memory", "map"]);
    check(&scratch, "memory-recall", &["memory", "recall"]);
}

/// Records with long, wide and combined characters, an hour and a half old.
fn remember(scratch: &Scratch) {
    let start = SystemClock.now().minus(minutes(90) + Duration::from_secs(20));
    let board = scratch.board_at(Arc::new(FixedClock::at(&start.to_string()).unwrap()));
    for (level, key, text) in [
        ("semantic", None, "The login tests need a Redis server, which `make services` starts"),
        ("semantic", Some("build"), "漢字 👩‍👩‍👧 e\u{301}"),
        ("collective", Some(LONG_ID), "Releases are tagged"),
    ] {
        let remember = Remember {
            level: Some(level.to_owned()),
            key: key.map(str::to_owned),
            actor: Actor::author("codex-7749"),
            ..Remember::text(text)
        };
        board.memories().remember(&remember).unwrap();
    }
}

fn setup_status_looks_the_same_at_every_width() {
    let scratch = Scratch::new();
    for platform in [".claude", ".codex"] {
        std::fs::create_dir(scratch.path().join(platform)).unwrap();
    }
    // A home whose name has the same length on every machine.
    let command = || {
        let mut command = scratch.command(["setup", "status"]);
        command.env("HOME", "/proc/self/cwd");
        command
    };
    let mut seen = String::new();
    for width in WIDTHS {
        write!(seen, "# {width} columns\n{}\n", show_on_terminal(width, command())).unwrap();
    }
    let piped = Output::of(command().run_to_end()).success().stdout;
    compare("setup-status", &format!("{seen}# piped\n{piped}"));
}

/// How wide the lines are that contain none of these.
fn widest(text: &str, except: &[&str]) -> usize {
    let lines = text.lines().filter(|line| !except.iter().any(|text| line.contains(text)));
    lines.map(UnicodeWidthStr::width).max().unwrap_or(0)
}

fn no_table_is_wider_than_its_terminal() {
    let scratch = board();
    create_scopes(&scratch);
    map_scopes(&scratch);
    for call in [
        &["agent", "list"][..],
        &["work", "list"],
        &["project", "list"],
        &["protocol", "list"],
        &["scope", "list"],
        &["page", "list"],
        &["lock", "list"],
        &["file", "list"],
        &["history", "counter"],
        &["query"],
        &["list", "--long"],
    ] {
        for width in (30..130).step_by(9) {
            let shown = scratch.on_terminal(width, call);
            // A row with an id that is longer than the terminal has nothing else.
            let long = if width < 60 { &[LONG_ID][..] } else { &[] };
            assert!(widest(&shown, long) <= usize::from(width), "{call:?} at {width}:\n{shown}");
            assert!(call != ["work", "list"] || shown.contains(LONG_ID), "{shown}");
        }
    }
}

fn piped_tables_shorten_nothing_and_have_no_trailing_spaces() {
    let scratch = board();
    for call in [&["agent", "list"][..], &["work", "list"], &["lock", "list"], &["query"], &["file", "list"]]
    {
        let piped = scratch.run(call).success().stdout;
        assert!(!piped.contains('…') && !piped.contains('\u{1b}'), "{piped}");
        assert!(piped.lines().all(|line| line == line.trim_end()), "{piped}");
    }
}

fn lists_of_a_large_board_show_50_rows_on_a_terminal_and_all_in_a_pipe() {
    const ITEMS: usize = 5_000;
    const AGENTS: usize = 200;
    let scratch = Scratch::new();
    let board = scratch.board();
    for number in 0..AGENTS {
        let name = format!("agent-{number}-{}", "漢".repeat(number % 20));
        board
            .agents()
            .register(&Register { pid: Some(1), shares_process: true, ..Register::named(&name) })
            .unwrap();
    }
    for number in 0..ITEMS {
        let title =
            format!("Item {number} {} 🚀 {}", "全部".repeat(number % 30), "long ".repeat(number % 50));
        board.work().create(&Create::new(&format!("item-{number}"), &title)).unwrap();
    }
    let writes: Vec<_> =
        (0..60).map(|number| Write::new(&format!("key-{number}"), value("1").unwrap())).collect();
    board.scope("default").write_batch(&writes).unwrap();
    drop(board);
    for (call, total, header) in [
        (&["work", "list"][..], ITEMS, 1),
        (&["agent", "list"], AGENTS, 1),
        (&["list"], 60, 0),
        (&["list", "--long"], 60, 1),
    ] {
        let note = format!("Showing 50 of {total}. More: --limit N");
        for width in WIDTHS {
            let shown = scratch.on_terminal(width, call);
            assert_eq!(shown.lines().count(), header + 50 + 1, "{shown}");
            assert_eq!(shown.lines().last(), Some(note.as_str()));
            assert!(widest(&shown, &[&note]) <= usize::from(width), "{call:?} at {width}:\n{shown}");
        }
        let piped = scratch.run(call).success().stdout;
        assert_eq!(piped.lines().count(), header + total, "{call:?}");
        let more = scratch.on_terminal(80, call.iter().chain(&["--limit", "55"]));
        assert!(more.lines().count() >= header + 55, "{more}");
        let json = scratch.run(call.iter().chain(&["--json"])).success().json();
        let rows = json["items"].as_array().or(json.as_array()).unwrap();
        assert_eq!(rows.len(), total);
    }
    let events = scratch.on_terminal(120, ["observe", "--since", "1h"]);
    assert!(events.contains("\n50 events\nMore events follow. "), "{events}");
    let events = scratch.on_terminal(120, ["observe", "--last", "60"]);
    assert!(events.contains("\n60 events\n"), "{events}");
    // A glance stays one.
    let status = scratch.on_terminal(80, ["status"]);
    assert!(status.contains("… and 180 more") && widest(&status, &["Database"]) <= 80, "{status}");
}
