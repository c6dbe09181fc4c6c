//! Every example in the help of every command runs, on a board that is prepared for it. So do all commands of the README but
//! its loop (`process/readme.rs`).

use std::fmt::Write as _;
use std::path::Path;

use crate::machine::can;
use crate::scratch::{Output, Scratch, commands};
use testkit::process::RunToEnd as _;

testkit::on_each_engine![every_example_of_every_command_runs, commands_of_the_readme_run_in_their_order,];

/// What every example finds: a repository with a board, two sessions, work items, entries and scripts.
const BOARD: &str = r#"
git init -q . && git -c user.name=Ivy -c user.email=ivy@example.org commit -q --allow-empty -m "Start"
mkdir -p src docs tests .claude
for script in agent.sh deploy.sh; do printf '#!/bin/sh\n' > $script && chmod +x $script; done
echo '{"compare":[{"key":"counter","exists":true}],"then":[{"write":{"key":"b","value":1}}]}' > move.json
blackboard init
blackboard project register pai-collab --name "PAI Collab"
blackboard agent register --name Ivy --session-hint Ivy
blackboard agent register --name Oak --session-hint Oak
blackboard work create design-schema --title "Design the SQL schema" --project pai-collab
blackboard work create run-tests --title "Run the tests"
blackboard work create "Ship it"
blackboard write task:q3 '{"status":"done"}'
blackboard write task:q4 '{"status":"open"}' --tag finance
blackboard write result:log "All green"
blackboard write cache:a 1
blackboard write counter 8
"#;

/// Levels of memory with records.
const MEMORY: &str = "blackboard memory define; blackboard memory define notes; \
                      blackboard memory remember 'Use make ci' --key build --level semantic; \
                      blackboard memory remember 'CI needs Redis' --key k1 --level short-term; \
                      blackboard memory remember 'CI is slow' --key k2 --level short-term";

/// What a command needs in addition.
const PREPARATIONS: &[(&str, &str)] = &[
    ("status", TEST_REPORTS),
    ("spoke show", "blackboard status --export"),
    ("spoke validate", VALID_SPOKE),
    ("work create", "blackboard work delete design-schema; blackboard work delete ship-it"),
    ("work release", CLAIM),
    ("work reassign", CLAIM),
    ("work complete", CLAIM),
    ("work wait", COMPLETE),
    ("work unblock", "blackboard work block ship-it --blocked-by design-schema"),
    ("lock release", "blackboard lock acquire deploy"),
    ("file release", "blackboard file reserve 'src/store/**'"),
    ("guard remove", "blackboard guard install"),
    ("project remove", "blackboard work delete design-schema"),
    ("call", ANSWERED_CALL),
    ("protocol remove", "blackboard protocol define review 'review:{id}'"),
    ("scope set", SCOPE),
    ("scope show", SCOPE),
    ("scope delete", SCOPE),
    ("page list", "blackboard page map default"),
    ("page show", "blackboard page map default"),
    ("memory feedback", MEMORY),
    ("memory promote", MEMORY),
    ("memory drain", MEMORY),
    ("memory pending", MEMORY),
    ("memory compact", MEMORY),
    ("memory delete", MEMORY),
    ("setup remove", "blackboard setup claude --yes"),
    (
        "copy",
        "test -e .blackboard/local.db || { mkdir -p -m 700 .blackboard; blackboard init --db .blackboard/local.db; }",
    ),
    ("import", "blackboard render swarm-blackboard.md"),
    ("pull", HUB),
    ("registry", HUB),
    ("quota status", QUOTA),
    ("quota check", QUOTA),
    ("quota release", QUOTA),
    ("quota record", QUOTA),
    ("quota fold", QUOTA),
    ("quota history", QUOTA),
    ("quota set", QUOTA),
    ("export", QUOTA),
    ("work import", TRACKERS),
    ("serve", "trap 'blackboard serve --stop 2>/dev/null' EXIT"),
];

const TEST_REPORTS: &str = r#"echo '<testsuite><testcase name="a"/></testsuite>' > junit.xml
printf 'SF:a\nLF:8\nLH:7\nend_of_record\n' > lcov.info"#;

const VALID_SPOKE: &str = "blackboard spoke init --hub mellanon/pai-collab --maintainer ivy --license MIT \
--public-key 'ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIOnNv4kLw'";

/// A tracker in each form, and a `gh` that knows no issue.
const TRACKERS: &str = r#"mkdir -p .beads bin && printf '#!/bin/sh\necho []\n' > bin/gh && chmod +x bin/gh
PATH=$PWD/bin:$PATH
echo '{"id":"bd-1","title":"One"}' | tee .beads/issues.jsonl > items.jsonl
echo '- [ ] One' > TODO.md"#;

const CLAIM: &str = "blackboard work claim design-schema";

const ANSWERED_CALL: &str = r#"blackboard write request:run:compliance:7 '{"contract":"q4"}' --scope agent:ivy
blackboard write result:run:compliance:7 '"fine"' --scope agent:ivy"#;

/// A hub with one project that has a copy of its spoke.
const HUB: &str = r#"mkdir -p hub/projects/signal/.collab
printf '## Active Projects\n| Project | Maintainer |\n|---|---|\n| signal | ivy |\n' > hub/REGISTRY.md
printf 'name: signal\nmaintainer: ivy\n' > hub/projects/signal/PROJECT.yaml
printf "schemaVersion: '1.0'\ngeneratedAt: 2026-02-03T16:00:00Z\nproject: {name: signal, phase: building}\n" \
    > hub/projects/signal/.collab/status.yaml"#;

const QUOTA: &str = r#"blackboard quota init
echo '{"id":"msg_7","usage":{"input":1}}' > usage.jsonl"#;

const SCOPE: &str = "blackboard scope create cache --ttl 1h --max-entries 1000";

const COMPLETE: &str = "blackboard work claim design-schema && blackboard work complete design-schema";

/// Examples that run differently here: what an example begins with, the line to run, and its exit code.
const DIFFERENT: &[(&str, &str, i32)] = &[
    // No write comes after the revision.
    ("blackboard wait counter --after", "", 6),
    // No agent answers.
    (
        "blackboard call compliance '{\"contract\":\"q4\"}' --timeout",
        "blackboard call compliance '{\"contract\":\"q4\"}' --timeout 10ms",
        6,
    ),
    ("git log | blackboard call", "git log | blackboard call review - --string --timeout 10ms --raw", 6),
    // It runs until it is stopped, and the usual port may be taken.
    (
        "blackboard serve",
        "blackboard serve --port 0 > address & server=$!\n\
         until grep -q http address; do kill -0 $server || exit 1; sleep 0.05; done\n\
         kill $server; wait $server; true",
        0,
    ),
    ("blackboard serve --background", "blackboard serve --background --port 0", 0),
    ("blackboard serve --status", "blackboard serve --background --port 0 && blackboard serve --status", 0),
    ("blackboard serve --stop", "blackboard serve --background --port 0 && blackboard serve --stop", 0),
    // It runs until it is stopped.
    (
        "blackboard render swarm-blackboard.md --follow",
        "blackboard render swarm-blackboard.md --follow > shown & follower=$!\n\
         until grep -q Rendered shown; do kill -0 $follower || exit 1; sleep 0.05; done\n\
         kill $follower; wait $follower",
        0,
    ),
    // There is no such server.
    (
        "blackboard copy .blackboard/local.db 'redis://",
        "blackboard copy .blackboard/local.db copy.db --seal && blackboard copy copy.db again.db",
        0,
    ),
    // No test uses the network.
    ("blackboard pull --hub mellanon/pai-collab", "blackboard pull --hub mellanon/pai-collab --offline", 1),
    // The story takes half a minute at the pace of a reader.
    ("blackboard demo", "blackboard demo --pace 10", 0),
];

fn every_example_of_every_command_runs() {
    if !can("examples in help", "git", &["--version"]) {
        return;
    }
    let template = Scratch::new();
    let prepared = template.shell(&format!("set -e{BOARD}")).run_to_end();
    assert!(prepared.status.success(), "{prepared:?}");
    let has_jq = can("examples in help", "jq", &["--version"]);
    let mut count = 0;
    for command in commands() {
        let help = template.run(command.split(' ').chain(["--help"])).success().stdout;
        let (_, examples) = help.split_once("\nExamples:\n").unwrap_or_else(|| panic!("{command}: {help}"));
        // A line that sets a variable or creates a directory belongs to the next one.
        let mut before = String::new();
        for example in examples.lines().map(str::trim) {
            assert!(example.chars().count() <= 76, "{example}");
            if ["revision=$(", "fence=$(", "mkdir -p "].iter().any(|begins| example.starts_with(begins)) {
                before = format!("{example}\n");
                continue;
            }
            assert!(example.contains(&format!("blackboard {command}")), "{command}: {example}");
            if has_jq || !format!("{before}{example}").contains("jq ") {
                run(&template, &command, &before, example);
            }
            before.clear();
            count += 1;
        }
    }
    assert!(count > 100, "{count} examples");
}

/// Runs an example in a copy of the prepared directory, on a copy of its board.
fn run(template: &Scratch, command: &str, before: &str, example: &str) {
    let scratch = Scratch::new();
    scratch.copy_served_board(template);
    let different = DIFFERENT.iter().rfind(|(begins, ..)| example.starts_with(begins));
    let line = different.map(|(_, line, _)| *line).filter(|line| !line.is_empty()).unwrap_or(example);
    let expected = different.map_or(0, |(.., code)| *code);
    let prepare = PREPARATIONS.iter().find(|(of, _)| *of == command).map_or("", |(_, lines)| *lines);
    let script = format!(
        "set -e\n\
         cp -a {}/. .\n\
         export BLACKBOARD_SESSION_ID=Ivy\n\
         exec 3>&1 >/dev/null\n\
         {prepare}\n\
         exec >&3 3>&-\n\
         set +e\n\
         {before}{line}\n",
        template.path().display()
    );
    let output = Output::of(scratch.shell(&script).run_to_end());
    assert_eq!(output.code, expected, "{example}: {output:?}");
    let failed = output.stderr.contains("error:") || output.stdout.contains("\"ok\":false");
    assert_eq!(failed, expected != 0, "{example}: {output:?}");
}

/// The block of commands in a section of the README.
fn commands_of_readme(section: &str) -> String {
    let readme = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../README.md");
    let readme = std::fs::read_to_string(readme).unwrap();
    let (_, section) = readme.split_once(&format!("\n## {section}\n\n```\n")).unwrap();
    let (block, _) = section.split_once("```").unwrap();
    block.to_owned()
}

fn commands_of_the_readme_run_in_their_order() {
    if !can("commands of the README", "git", &["--version"]) {
        return;
    }
    let scratch = Scratch::new();
    let prepare =
        "set -e\ngit init -q .\nmkdir -p src/store\nprintf '#!/bin/sh\\n' > deploy.sh\nchmod +x deploy.sh\n";
    let script = format!("{prepare}{}", commands_of_readme("By hand"));
    let output = Output::of(scratch.shell(&script).run_to_end());
    assert_eq!(output.code, 0, "{output:?}");
    assert!(!output.stderr.contains("error:"), "{output:?}");
    assert!(output.stdout.contains("Completed work item: design-schema"), "{output:?}");
}

/// What the README's commands that connect agents must do, as a shell checks it. They ask at a terminal, and a browser is
/// started by `xdg-open`.
const CONNECTED: &[(&str, &str)] = &[
    ("blackboard setup", "at_terminal y; grep -q '\"hook\", \"claude\"' .claude/settings.json"),
    (
        "blackboard serve --open",
        "$command --port 0 > address & server=$!\n\
         until test -s opened; do kill -0 $server; sleep 0.05; done\n\
         grep -q http \"$(cat opened)\"\n\
         kill $server; wait $server || true",
    ),
    ("blackboard setup remove", "at_terminal y; if grep -rq '\"hook\"' .claude; then exit 1; fi"),
];

#[test]
fn commands_of_the_readme_connect_agents() {
    if !can("commands of the README", "script", &["-qec", "true", "/dev/null"]) {
        return;
    }
    let scratch = Scratch::new();
    testkit::write_program(
        &scratch.path().join("xdg-open"),
        "#!/bin/sh\nprintf '%s' \"$1\" > opening\nmv opening opened\n",
    );
    let mut script = "set -e\nPATH=$PWD:$PATH\nmkdir .claude\n\
                      at_terminal() { printf '%s\\n' \"$1\" | script -qec \"$command\" /dev/null; }\n"
        .to_owned();
    let block = commands_of_readme("Connect your agents");
    let commands = block.lines().map(|line| line.split('#').next().unwrap_or_default().trim());
    let named: Vec<&str> = CONNECTED.iter().map(|(command, _)| *command).collect();
    assert_eq!(commands.collect::<Vec<_>>(), named);
    for (command, check) in CONNECTED {
        writeln!(script, "command='{command}'\n{check}\necho \"did $command\"").unwrap();
    }
    let output = Output::of(scratch.shell(&script).run_to_end());
    assert_eq!(output.code, 0, "{output:?}");
    for command in named {
        assert!(output.stdout.contains(&format!("did {command}\n")), "{output:?}");
    }
}
