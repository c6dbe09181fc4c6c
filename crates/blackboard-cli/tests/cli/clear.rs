use blackboard::Code;
use serde_json::json;

use crate::scratch::Scratch;
use crate::shapes::is_object;
use crate::transcript;

testkit::on_each_engine![
    human_output_matches_transcript,
    clear_deletes_all_matching_entries_or_none,
    a_dry_run_is_refused_as_the_clear_is,
];

fn human_output_matches_transcript() {
    transcript::check("clear");
}

fn clear_deletes_all_matching_entries_or_none() {
    let scratch = Scratch::new();
    scratch.json(["agent", "register", "--name", "Ivy", "--session-hint", "ivy"]);
    scratch.json(["write", "cache:a", "1"]);
    scratch.json(["write", "cache:b", "1", "--lease", "--session", "ivy"]);
    scratch.json(["write", "result:a", "1"]);
    let would = scratch.json(["clear", "cache:*", "--dry-run", "--session", "ivy"]);
    is_object(&would, &["scope", "count", "keys", "dry_run"]);
    assert_eq!(would["keys"], json!(["cache:a", "cache:b"]));
    let refusal = scratch.run(["clear", "cache:*", "--json"]).refused(Code::Held);
    assert_eq!(refusal["held_by_name"], "Ivy");
    assert_eq!(scratch.json(["list"]), json!(["cache:a", "cache:b", "result:a"]));
    let cleared = scratch.json(["clear", "cache:*", "--session", "ivy"]);
    is_object(&cleared, &["scope", "count", "keys", "revision"]);
    assert_eq!((&cleared["keys"], cleared.get("dry_run")), (&would["keys"], None));
    assert_eq!(scratch.json(["list"]), json!(["result:a"]));
}

fn a_dry_run_is_refused_as_the_clear_is() {
    let scratch = Scratch::new();
    for name in ["ivy", "oak"] {
        scratch.json(["agent", "register", "--name", name, "--session-hint", name]);
    }
    scratch.json(["write", "lead:a", "1", "--lease", "--session", "ivy"]);
    scratch.json(["lock", "acquire", "deploy", "--session", "ivy"]);
    let cases: &[(&[&str], Code)] = &[
        (&["*", "--scope", "locks"], Code::InvalidValue),
        (&["lead:*", "--session", "oak"], Code::Held),
        (&["lead:*"], Code::Held),
        (&["none:*", "--fence", "lock:deploy=1"], Code::StaleFence),
        (&["none:*", "--agent", ""], Code::InvalidValue),
        (&[""], Code::InvalidValue),
    ];
    for (arguments, code) in cases {
        let clear = [&["clear"], *arguments, &["--json"]].concat();
        let dry_run = [&["clear", "--dry-run"], *arguments, &["--json"]].concat();
        let [refusal, refusal_of_dry_run] = [clear, dry_run].map(|call| scratch.run(call).refused(*code));
        for field in ["error", "hint", "held_by_name"] {
            assert_eq!(refusal.get(field), refusal_of_dry_run.get(field), "{arguments:?}: {field}");
        }
    }
    let would = scratch.json(["clear", "lead:*", "--dry-run", "--session", "ivy"]);
    assert_eq!(would["keys"], json!(["lead:a"]));
    assert_eq!(scratch.json(["list"]), json!(["lead:a"]), "a dry run changes nothing");
}
