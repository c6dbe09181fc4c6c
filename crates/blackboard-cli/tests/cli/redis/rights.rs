//! A user of the server who may only read.

use blackboard::Code;
use testkit::process::RunToEnd as _;

use super::Shared;
use crate::scratch::Output;

#[test]
fn reading_commands_work_for_a_user_who_may_not_write() {
    let Some(shared) = Shared::new() else { return };
    shared.json(&["agent", "register", "--name", "Ivy", "--session-hint", "ivy"]);
    shared.json(&["work", "claim", "x", "--title", "Item", "--session", "Ivy"]);
    shared.json(&["write", "key", "7"]);
    let rules = "+multi +exec +time +hmget +hget +zrangebylex +zrevrangebylex +zlexcount +zcard +xrange +xrevrange +xread \
                 +evalsha +script|load +info";
    let mut user = vec!["ACL", "SETUSER", "reader", "on", ">secret", "~bb:{team}:*", "-@all"];
    user.extend(rules.split_ascii_whitespace());
    assert_eq!(shared.server.command(&user), "+OK\r\n");
    let run = |call: &[&str]| {
        let mut command = shared.command(call);
        command.env("BLACKBOARD_DB", shared.url().replacen("://", "://reader@", 1));
        Output::of(command.env("BLACKBOARD_REDIS_PASSWORD", "secret").run_to_end())
    };
    let before = shared.server.command(&["HLEN", "bb:{team}:rows"]);
    for call in [
        &["read", "key"][..],
        &["list"],
        &["query"],
        &["history", "key"],
        &["snapshot"],
        &["observe"],
        &["observe", "--since", "1h"],
        &["observe", "--session", "Ivy"],
        &["status"],
        &["work", "list"],
        &["work", "status", "x"],
        &["agent", "list"],
        &["agent", "show", "Ivy"],
        &["lock", "list"],
        &["file", "list"],
        &["export"],
        &["sweep", "--dry-run"],
    ] {
        run(call).success();
    }
    let status = run(&["status"]);
    assert!(status.stdout.contains("Size:     unknown"), "its size is not known: {status:?}");
    let human = run(&["read", "key"]);
    assert!(human.stderr.contains("read-only"), "{human:?}");
    for call in [
        &["write", "key", "8", "--json"][..],
        &["delete", "key", "--json"],
        &["work", "release", "x", "--session", "Ivy", "--json"],
        &["agent", "register", "--name", "Oak", "--json"],
    ] {
        run(call).refused(Code::AccessDenied);
    }
    assert_eq!(shared.server.command(&["HLEN", "bb:{team}:rows"]), before);
}
