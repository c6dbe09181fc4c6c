use super::{configured, hooks_have_read};
use crate::shapes::is_object;
use crate::transcript;

testkit::on_each_engine![human_output_matches_transcript, what_hooks_have_read_is_counted];

fn human_output_matches_transcript() {
    transcript::check("quota fold");
}

fn what_hooks_have_read_is_counted() {
    let scratch = configured();
    let spool = hooks_have_read(&scratch, 7);
    let folded = scratch.run(["quota", "fold"]).success();
    assert_eq!((folded.stdout.as_str(), folded.stderr.as_str()), ("Counted 1 message\n", ""));
    assert!(!spool.exists());
    hooks_have_read(&scratch, 7);
    let again = scratch.json(["quota", "fold"]);
    is_object(&again, &["counted", "announced", "released"]);
    assert_eq!(again["counted"], 0, "it is known");
    assert_eq!(scratch.json(["quota", "status"])["providers"][0]["windows"][0]["used"], 7);
}
