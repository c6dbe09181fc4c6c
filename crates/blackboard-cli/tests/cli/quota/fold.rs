use super::{configured, hooks_have_read};

testkit::on_each_engine![what_hooks_have_read_is_counted];

fn what_hooks_have_read_is_counted() {
    let scratch = configured();
    let spool = hooks_have_read(&scratch, 7);
    let folded = scratch.run(["quota", "fold"]).success();
    assert_eq!((folded.stdout.as_str(), folded.stderr.as_str()), ("", ""));
    assert!(!spool.exists());
    assert_eq!(scratch.json(["quota", "status"])["providers"][0]["windows"][0]["used"], 7);
}
