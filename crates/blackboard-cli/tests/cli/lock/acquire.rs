use blackboard::Code;

use crate::scratch::Scratch;
use crate::shapes::{LOCK, is_object};
use crate::transcript;

testkit::on_each_engine![human_output_matches_transcript, json_has_the_fence_of_the_lock,];

fn human_output_matches_transcript() {
    transcript::check("lock acquire");
}

fn json_has_the_fence_of_the_lock() {
    let scratch = Scratch::new();
    scratch.json(["agent", "register", "--name", "Ivy", "--session-hint", "ivy"]);
    scratch.json(["agent", "register", "--name", "Oak", "--session-hint", "oak"]);
    let call = ["lock", "acquire", "deploy", "--session", "ivy", "--note", "release 1.2", "--ttl", "10m"];
    let taken = scratch.json(call);
    is_object(&taken, LOCK);
    assert_eq!((taken["acquired"].as_bool(), taken["already_held"].as_bool()), (Some(true), Some(false)));
    assert_eq!((&taken["fence"], &taken["note"]), (&3.into(), &"release 1.2".into()));
    // Only a given TTL starts again.
    for call in [&call[..5], &call] {
        let again = scratch.json(call);
        assert_eq!((again["acquired"].as_bool(), again["already_held"].as_bool()), (Some(false), Some(true)));
        assert_eq!((&again["fence"], &again["since"]), (&taken["fence"], &taken["since"]));
        assert_eq!(again["expires_at"] == taken["expires_at"], call.len() == 5);
    }
    // Another session gets the holder, with and without waiting.
    for (wait, code) in [(&[][..], Code::Held), (&["--wait", "10ms"], Code::TimedOut)] {
        let call = ["lock", "acquire", "deploy", "--session", "oak", "--json"];
        let refusal = scratch.run(call.iter().chain(wait)).refused(code);
        assert_eq!((&refusal["held_by"], &refusal["held_by_name"]), (&taken["session_id"], &"Ivy".into()));
        assert_eq!((&refusal["since"], &refusal["fence"]), (&taken["since"], &taken["fence"]));
    }
}
