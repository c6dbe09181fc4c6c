use blackboard::Code;

use super::repository;
use crate::shapes::is_object;
use crate::transcript;

testkit::on_each_engine![human_output_matches_transcript, json_has_the_other_holders,];

fn human_output_matches_transcript() {
    transcript::check("file check");
}

fn json_has_the_other_holders() {
    let scratch = repository();
    scratch.json(["agent", "register", "--name", "Ivy", "--session-hint", "ivy", "--work", "The engine"]);
    scratch.json(["file", "reserve", "src/", "--note", "rewriting", "--ttl", "1h", "--session", "ivy"]);
    let free = scratch.json(["file", "check", "docs/cli.md", "README.md"]);
    is_object(&free, &["free", "paths"]);
    assert_eq!((&free["free"], &free["paths"][1]["path"]), (&true.into(), &"README.md".into()));
    assert_eq!(scratch.json(["file", "check", "src/lib.rs", "--session", "ivy"])["free"], true);
    let own = scratch.run(["file", "check", "src/lib.rs", "README.md", "--session", "ivy"]).success().stdout;
    assert_eq!(own, "Not reserved by another session.\nReserved by you: src/lib.rs\n");
    let own = scratch.json(["file", "check", "src/lib.rs", "README.md", "--session", "ivy"]);
    let is_own = |path: usize| own["paths"][path]["reserved_by_you"].as_bool();
    assert_eq!((is_own(0), is_own(1)), (Some(true), Some(false)), "{own}");
    let refusal = scratch.run(["file", "check", "README.md", "src/lib.rs", "--json"]).refused(Code::Held);
    assert_eq!((&refusal["path"], &refusal["pattern"]), (&"src/lib.rs".into(), &"src/**".into()));
    assert_eq!((&refusal["held_by_name"], &refusal["current_work"]), (&"Ivy".into(), &"The engine".into()));
    assert_eq!(refusal["note"], "rewriting");
    assert_eq!((&refusal["paths"][0]["free"], &refusal["paths"][1]["free"]), (&true.into(), &false.into()));
    let reservation = &refusal["paths"][1]["reserved_by"][0];
    assert_eq!(
        (&reservation["expires_at"], &reservation["since"]),
        (&refusal["expires_at"], &refusal["since"])
    );
}
