//! The commands of the original proposal work by their own names.

use crate::scratch::Scratch;
use testkit::process::RunToEnd as _;

#[test]
fn the_session_of_the_original_proposal_runs_as_it_is_written_there() {
    let scratch = Scratch::new();
    let session = scratch.json(["register", "--name", "Ivy", "--session-id", "abc"])["session_id"].clone();
    for (id, status) in [("collab-issue-77", "available"), ("collab-pr-56", "available")] {
        let created = scratch.json(["work", "create", id, "--title", id]);
        assert_eq!(created["status"], status);
    }
    let run = |line: &str| {
        let mut command = scratch.command(line.split(' ').chain(["--json"]));
        let output = command.env("BLACKBOARD_SESSION_ID", session.as_str().unwrap()).run_to_end();
        crate::scratch::Output::of(output).success().json()
    };
    assert_eq!(run("heartbeat --progress 2/3")["progress"], "2/3");
    assert_eq!(run("tasks list")["count"], 2);
    assert_eq!(run("tasks claim collab-issue-77")["claimed"], true);
    assert_eq!(run("tasks list")["count"], 1, "only what is available");
    assert_eq!(run("tasks list --status claimed")["count"], 1, "unless one asks for something else");
    assert_eq!(run("tasks list --all")["count"], 2);
    assert_eq!(run("tasks release collab-issue-77")["released"], true);
    assert_eq!(run("tasks claim --task collab-pr-56")["claimed"], true);
    assert_eq!(run("complete --task collab-pr-56 --summary ready")["status"], "completed");
    assert_eq!(run("deregister")["status"], "completed");
}

#[test]
fn help_of_the_program_does_not_list_aliases_but_each_explains_itself() {
    let scratch = Scratch::new();
    let help = scratch.run(["--help"]).success().stdout;
    assert!(!help.contains("tasks"), "{help}");
    for alias in
        ["register", "heartbeat", "deregister", "complete", "tasks list", "tasks claim", "tasks release"]
    {
        let help = scratch.run(alias.split(' ').chain(["--help"])).success().stdout;
        assert!(help.contains(&format!("Usage: blackboard {alias}")), "{help}");
    }
}
