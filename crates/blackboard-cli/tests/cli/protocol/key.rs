use blackboard::Code;

use crate::scratch::Scratch;
use crate::shapes::is_object;
use crate::transcript;

testkit::on_each_engine![human_output_matches_transcript, json_has_the_key, unusable_values_are_refused,];

fn human_output_matches_transcript() {
    transcript::check("protocol key");
}

fn json_has_the_key() {
    let scratch = Scratch::new();
    let built = scratch.json(["protocol", "key", "AgentRun.request", "ns=a:b", "id=x=y"]);
    is_object(&built, &["protocol", "message", "template", "key"]);
    assert_eq!(built["key"], "request:run:a%3Ab:x=y");
}

fn unusable_values_are_refused() {
    let scratch = Scratch::new();
    let long = format!("id={}", "x".repeat(1024));
    for (arguments, code) in [
        (&["Task", "q4"][..], Code::Usage),
        (&["Task"], Code::InvalidValue),
        (&["Task", &long], Code::InvalidValue),
        (&["Task", "name=q4"], Code::InvalidValue),
        (&["AgentRun", "id=1"], Code::InvalidValue),
        (&["AgentRun.answer", "id=1"], Code::InvalidValue),
        (&["Unknown", "id=1"], Code::ProtocolNotFound),
    ] {
        let call = ["protocol", "key"].iter().chain(arguments).chain(&["--json"]);
        scratch.run(call).refused(code);
    }
}
