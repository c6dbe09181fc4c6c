//! Shell scripts for the `swarm-blackboard` script run unchanged with these commands.

use crate::scratch::{Output, Scratch};
use testkit::process::{RunToEnd as _, wait_for};

testkit::on_each_engine![
    workflows_of_the_script_run_unchanged,
    counter_with_a_compared_revision_counts_every_write,
];

/// The example workflows of its documentation, with `blackboard` for `python blackboard.py`.
const WORKFLOWS: &str = r#"
set -u

# Orchestrator creates task
blackboard write "task:analyze_q4" '{"status":"pending","for":"data_analyst"}'

# Data analyst picks up
blackboard write "task:analyze_q4" '{"status":"in_progress","agent":"data_analyst"}'

# Data analyst completes
blackboard write "result:analyze_q4" '{"summary":"Q4 revenue up 15%"}'
blackboard write "task:analyze_q4" '{"status":"completed","result_key":"result:analyze_q4"}'

# Agent announces availability (60s TTL)
blackboard write "signal:data_analyst" '{"status":"available"}' --ttl 60 --agent data_analyst

# Other agents check status
blackboard read "signal:data_analyst"

# Later: check cache first
result=$(blackboard read "cache:monthly_metrics")
if [ "$result" != "null" ]; then
  echo "Using cached data"
else
  echo "Need to recompute"
fi

# Cache expensive computation (1 hour TTL)
blackboard write "cache:monthly_metrics" '{"revenue":1250000,"costs":800000}' --ttl 3600

result=$(blackboard read "cache:monthly_metrics")
if [ "$result" != "null" ]; then
  echo "Using cached data"
else
  echo "Need to recompute"
fi

blackboard list
blackboard delete "task:analyze_q4"
blackboard delete "task:analyze_q4" || echo "Not there"
"#;

fn workflows_of_the_script_run_unchanged() {
    let scratch = Scratch::new();
    let output = Output::of(scratch.shell(WORKFLOWS).run_to_end()).success();
    let said = |text: &str| output.stdout.matches(text).count();
    assert_eq!(said("Written: task:analyze_q4 (version "), 3, "{output:?}");
    assert_eq!(said("Written: "), 6);
    assert_eq!((said("Need to recompute\n"), said("Using cached data\n")), (1, 1));
    // The first read finds nothing, the second one what was written meanwhile.
    assert!(output.stdout.find("Need to recompute") < output.stdout.find("Using cached data"));
    assert!(output.stdout.contains("Source:    data_analyst\n"));
    for key in ["cache:monthly_metrics [TTL: 3", "signal:data_analyst [TTL: ", "result:analyze_q4\n"] {
        assert!(output.stdout.contains(&format!("\n{key}")), "{key}: {output:?}");
    }
    assert_eq!((said("Deleted: task:analyze_q4\n"), said("Not there\n")), (1, 1));
    assert_eq!(scratch.json(["read", "result:analyze_q4"])["value"]["summary"], "Q4 revenue up 15%");
    assert_eq!(scratch.json(["read", "cache:monthly_metrics"])["ttl"], 3600);
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
