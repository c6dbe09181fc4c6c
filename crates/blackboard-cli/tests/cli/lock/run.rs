use blackboard::Code;
use serde_json::Value;
use testkit::process::RunToEnd as _;

use crate::scratch::{Output, Scratch};
use crate::transcript;

testkit::on_each_engine![
    human_output_matches_transcript,
    lock_run_sets_the_fence_and_its_own_session,
    a_refused_run_leaves_no_session_and_no_event,
    existing_session_holds_the_lock_and_stays_active,
    the_exit_code_is_that_of_the_command,
    lock_run_reports_a_lock_that_was_lost_meanwhile,
];

fn human_output_matches_transcript() {
    transcript::check("lock run");
}

fn lock_run_sets_the_fence_and_its_own_session() {
    let scratch = Scratch::new();
    let script = "echo $BLACKBOARD_FENCE $BLACKBOARD_LOCK_FENCE; blackboard lock list --json; \
                  blackboard agent show --json";
    let ran = scratch.run(["lock", "run", "deploy", "--name", "Nightly", "--", "sh", "-c", script]).success();
    let mut lines = ran.stdout.lines();
    assert_eq!(lines.next(), Some("lock:deploy=2 2"));
    let mut json = || serde_json::from_str::<Value>(lines.next().unwrap()).unwrap();
    let (locks, agent) = (json(), json());
    assert_eq!(locks["items"][0]["agent_name"], "Nightly");
    assert_eq!(
        (&agent["session_id"], &agent["status"]),
        (&locks["items"][0]["session_id"], &"active".into())
    );
    // Both are gone with it.
    assert_eq!(scratch.json(["lock", "list"])["count"], 0);
    assert_eq!(scratch.json(["agent", "list"])["count"], 0);
}

fn a_refused_run_leaves_no_session_and_no_event() {
    let scratch = Scratch::new();
    scratch.json(["agent", "register", "--name", "Ivy", "--session-hint", "ivy"]);
    scratch.json(["lock", "acquire", "deploy", "--session", "ivy"]);
    let state = || {
        let agents = scratch.json(["agent", "list", "--all"])["count"].clone();
        (agents, scratch.json(["status"])["revision"].clone())
    };
    let before = state();
    for (wait, code) in [(&[][..], Code::Held), (&["--wait", "20ms"], Code::TimedOut)] {
        let call = ["lock", "run", "deploy", "--json"].iter().chain(wait).chain(&["--", "echo", "ran"]);
        scratch.run(call).refused(code);
        assert_eq!(state(), before, "{code}");
    }
}

fn existing_session_holds_the_lock_and_stays_active() {
    let scratch = Scratch::new();
    let ivy = scratch.json(["agent", "register", "--name", "Ivy", "--session-hint", "ivy"]);
    let call = ["lock", "run", "deploy", "--session", "ivy", "--", "sh", "-c", "blackboard lock list --json"];
    let locks = scratch.run(call).success().json();
    assert_eq!(locks["items"][0]["session_id"], ivy["session_id"]);
    assert_eq!(scratch.json(["lock", "list"])["count"], 0);
    assert_eq!(scratch.json(["agent", "show", "ivy"])["status"], "active");
    // A lock that the session holds excludes other commands of the same session, too.
    let fence = scratch.json(["lock", "acquire", "deploy", "--session", "ivy"])["fence"].clone();
    let call = ["lock", "run", "deploy", "--session", "ivy", "--json", "--", "echo", "ran"];
    assert_eq!(scratch.run(call).refused(Code::Held)["fence"], fence);
    assert_eq!(scratch.json(["lock", "list"])["count"], 1);
}

fn the_exit_code_is_that_of_the_command() {
    let scratch = Scratch::new();
    for (script, code) in [("exit 0", 0), ("exit 3", 3), ("exit 255", 255), ("kill -9 $$", 137)] {
        let ran = scratch.run(["lock", "run", "deploy", "--json", "--", "sh", "-c", script]);
        assert_eq!((ran.code, ran.stdout.as_str(), ran.stderr.as_str()), (code, "", ""), "{script}");
    }
    std::fs::write(scratch.path().join("no-program"), "").unwrap();
    for (program, code) in [("no-such-program", 127), ("./no-program", 126)] {
        let ran = scratch.run(["lock", "run", "deploy", "--", program]);
        assert_eq!((ran.code, ran.stdout.as_str()), (code, ""), "{ran:?}");
        assert!(ran.stderr.starts_with(&format!("error: {program} cannot be started")), "{ran:?}");
        let ran = scratch.run(["lock", "run", "deploy", "--json", "--", program]);
        assert_eq!((ran.code, &ran.json()["ok"], &ran.json()["code"]), (code, &false.into(), &"io".into()));
        assert_eq!(scratch.json(["lock", "list"])["count"], 0, "the lock is free again");
        assert_eq!(scratch.json(["agent", "list"])["count"], 0);
    }
}

fn lock_run_reports_a_lock_that_was_lost_meanwhile() {
    let scratch = Scratch::new();
    scratch.json(["agent", "register", "--name", "Ivy", "--session-hint", "ivy"]);
    let release = "blackboard lock release deploy >/dev/null";
    let ran = scratch.run(["lock", "run", "deploy", "--", "sh", "-c", &format!("{release}; exit 3")]);
    assert_eq!((ran.code, ran.stdout.as_str()), (3, ""));
    assert!(
        ran.stderr.contains("lock deploy was lost while the command ran: no session holds it now"),
        "{ran:?}"
    );
    // It has expired, and another session holds it.
    let script = "until blackboard lock acquire deploy --session ivy >/dev/null 2>&1; do sleep 0.01; done";
    let mut command = scratch.command(["lock", "run", "deploy", "--ttl", "10ms", "--", "sh", "-c", script]);
    let ran = Output::of(command.run_to_end()).success();
    assert!(ran.stderr.contains("lock deploy is held by Ivy"), "{ran:?}");
    assert_eq!(scratch.json(["lock", "list"])["items"][0]["agent_name"], "Ivy");
}
