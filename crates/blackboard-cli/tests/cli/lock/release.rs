use blackboard::Code;

use crate::scratch::Scratch;
use crate::shapes::is_object;
use crate::transcript;

testkit::on_each_engine![human_output_matches_transcript, json_tells_whether_a_lock_was_released,];

fn human_output_matches_transcript() {
    transcript::check("lock release");
}

fn json_tells_whether_a_lock_was_released() {
    let scratch = Scratch::new();
    scratch.json(["agent", "register", "--name", "Ivy", "--session-hint", "ivy"]);
    scratch.json(["lock", "acquire", "deploy", "--session", "ivy"]);
    let call = ["lock", "release", "deploy", "--session", "ivy", "--fence", "2"];
    let released = scratch.json(call);
    is_object(&released, &["name", "released", "fence", "held_seconds", "released_by"]);
    assert_eq!((&released["released"], &released["fence"]), (&true.into(), &2.into()));
    let again = scratch.json(call);
    assert_eq!((&again["released"], again["fence"].is_null()), (&false.into(), true));
    scratch.json(["lock", "acquire", "deploy", "--session", "ivy"]);
    let refusal = scratch.run(call.iter().chain(&["--json"])).refused(Code::StaleFence);
    assert_eq!(refusal["fence"], 4);
}
