use crate::scratch::Scratch;
use crate::shapes::{LOCK, is_list};
use crate::transcript;

testkit::on_each_engine![human_output_matches_transcript, json_has_a_list_of_locks,];

fn human_output_matches_transcript() {
    transcript::check("lock list");
}

fn json_has_a_list_of_locks() {
    let scratch = Scratch::new();
    scratch.json(["agent", "register", "--name", "Ivy", "--session-hint", "ivy"]);
    for name in ["migrations", "deploy"] {
        scratch.json(["lock", "acquire", name, "--session", "ivy"]);
    }
    let locks = scratch.json(["lock", "list"]);
    is_list(&locks, LOCK);
    assert_eq!(
        (&locks["items"][0]["name"], &locks["items"][1]["name"]),
        (&"deploy".into(), &"migrations".into())
    );
    // It is released when its session ends.
    scratch.json(["agent", "deregister", "ivy"]);
    assert_eq!(scratch.json(["lock", "list"])["count"], 0);
}
