//! Shell scripts for the `swarm-blackboard` script run unchanged with these commands.

use crate::scratch::{Output, Scratch};
use testkit::process::{RunToEnd as _, wait_for};

testkit::on_each_engine![
    workflows_of_the_script_run_unchanged,
    every_command_of_the_script_has_its_form,
    counter_with_a_compared_revision_counts_every_write,
];

/// The example workflows of its documentation, verbatim.
const WORKFLOWS: &str = r#"
# Orchestrator creates task
python blackboard.py write "task:analyze_q4" '{"status":"pending","for":"data_analyst"}'

# Data analyst picks up
python blackboard.py write "task:analyze_q4" '{"status":"in_progress","agent":"data_analyst"}'

# Data analyst completes
python blackboard.py write "result:analyze_q4" '{"summary":"Q4 revenue up 15%"}'
python blackboard.py write "task:analyze_q4" '{"status":"completed","result_key":"result:analyze_q4"}'

# Agent announces availability (60s TTL)
python blackboard.py write "signal:data_analyst" '{"status":"available"}' --ttl 60 --agent data_analyst

# Other agents check status
python blackboard.py read "signal:data_analyst"

# Cache expensive computation (1 hour TTL)
python blackboard.py write "cache:monthly_metrics" '{"revenue":1250000,"costs":800000}' --ttl 3600

# Later: check cache first
result=$(python blackboard.py read "cache:monthly_metrics")
if [ "$result" != "null" ]; then
  echo "Using cached data"
else
  echo "Need to recompute"
fi
"#;

/// The forms of its commands, verbatim but for the brackets around options.
const COMMANDS: &str = r"
python scripts/blackboard.py write KEY VALUE --ttl 60 --agent AGENT_ID
python scripts/blackboard.py read KEY
python scripts/blackboard.py list
python scripts/blackboard.py snapshot
python scripts/blackboard.py delete KEY
";

/// Runs commands of the script with `blackboard` in place of it.
fn run(scratch: &Scratch, script: &str) -> Output {
    let script = script.replace("python scripts/blackboard.py", "blackboard");
    let script = script.replace("python blackboard.py", "blackboard");
    Output::of(scratch.shell(&format!("set -u\n{script}")).run_to_end())
}

fn workflows_of_the_script_run_unchanged() {
    let scratch = Scratch::new();
    let output = run(&scratch, WORKFLOWS).success();
    let said = |text: &str| output.stdout.matches(text).count();
    assert_eq!(said("Written: task:analyze_q4 (version "), 3, "{output:?}");
    assert_eq!(said("Written: "), 6);
    assert_eq!((said("Need to recompute\n"), said("Using cached data\n")), (0, 1));
    assert!(output.stdout.contains("Source:    data_analyst\n"));
    let listed = run(&scratch, "blackboard list").success().stdout;
    for key in ["cache:monthly_metrics [TTL: 3", "signal:data_analyst [TTL: ", "result:analyze_q4\n"] {
        assert!(listed.contains(key), "{key}: {listed}");
    }
    assert_eq!(scratch.json(["read", "result:analyze_q4"])["value"]["summary"], "Q4 revenue up 15%");
    assert_eq!(scratch.json(["read", "cache:monthly_metrics"])["ttl"], 3600);
    let delete = r#"python blackboard.py delete "task:analyze_q4""#;
    assert_eq!(run(&scratch, delete).success().stdout, "Deleted: task:analyze_q4\n");
    assert_ne!(run(&scratch, delete).code, 0, "the key is gone");
    // The cache is empty the first time.
    scratch.json(["delete", "cache:monthly_metrics"]);
    let (_, check) = WORKFLOWS.split_once("# Later: check cache first").unwrap();
    assert!(run(&scratch, check).success().stdout.ends_with("Need to recompute\n"));
}

fn every_command_of_the_script_has_its_form() {
    let scratch = Scratch::new();
    scratch.json(["write", "other", "1"]);
    let output = run(&scratch, &format!("set -e{COMMANDS}")).success();
    let (written, rest) = output.stdout.split_once('\n').unwrap();
    assert!(written.starts_with("Written: KEY "), "{output:?}");
    for part in
        ["Key:       KEY\n", "Value:     \"VALUE\"\n", "Source:    AGENT_ID\n", "KEY [TTL: ", "other\n"]
    {
        assert!(rest.contains(part), "{part}: {output:?}");
    }
    assert!(rest.ends_with("\nDeleted: KEY\n"), "{output:?}");
    // The missing key prints `null`, which scripts compare with.
    let missing = run(&scratch, "python blackboard.py read KEY");
    assert_eq!((missing.stdout.as_str(), missing.code), ("null\n", 3));
}

fn counter_with_a_compared_revision_counts_every_write() {
    // How a shell counts without `increment`: read, add, write if the revision is unchanged.
    const COUNT: &str = r#"
        for round in 1 2 3 4 5; do
          while :; do
            entry=$(blackboard read counter --json)
            revision=$(printf '%s' "$entry" | sed 's/.*"revision":\([0-9]*\).*/\1/')
            value=$(printf '%s' "$entry" | sed 's/.*"value":\([0-9]*\).*/\1/')
            blackboard write counter $((value + 1)) --if-revision "$revision" >/dev/null 2>&1
            code=$?
            [ $code = 0 ] && break
            [ $code = 4 ] || exit 9
          done
        done"#;
    let scratch = Scratch::new();
    scratch.json(["write", "counter", "0"]);
    let counting: Vec<_> = (0..4).map(|_| scratch.shell(COUNT).spawn().unwrap()).collect();
    for mut child in counting {
        assert!(wait_for(&mut child).success());
    }
    assert_eq!(scratch.run(["read", "counter", "--value"]).stdout, "20\n");
    assert_eq!(scratch.json(["read", "counter"])["version"], 21);
}
