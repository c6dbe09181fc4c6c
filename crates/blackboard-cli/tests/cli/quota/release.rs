use blackboard::Code;

use super::configured;
use crate::shapes::is_object;
use crate::transcript;

testkit::on_each_engine![human_output_matches_transcript, json_has_the_number_of_reservations,];

fn human_output_matches_transcript() {
    transcript::check("quota release");
}

fn json_has_the_number_of_reservations() {
    let scratch = configured();
    scratch.run(["agent", "register", "--name", "Ivy"]).success();
    for _ in 0..2 {
        scratch.json(["quota", "check", "--tokens", "7", "--reserve", "--session", "Ivy"]);
    }
    let released = scratch.json(["quota", "release", "--session", "Ivy"]);
    is_object(&released, &["released"]);
    assert_eq!(released["released"], 2);
    assert_eq!(scratch.json(["quota", "release", "--session", "Ivy"])["released"], 0);
    scratch.run(["quota", "release", "--json"]).refused(Code::NoSession);
}
