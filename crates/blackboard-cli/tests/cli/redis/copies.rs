//! Copies of a board whose server refuses something.

use blackboard::Code;
use testkit::process::RunToEnd as _;

use super::Shared;
use crate::scratch::Output;

#[test]
fn board_of_a_full_server_is_sealed_moved_away_and_opened_again() {
    let Some(shared) = Shared::new() else { return };
    shared.json(&["write", "key", "7"]);
    shared.server.command(&["CONFIG", "SET", "maxmemory", "1"]);
    let (from, target) = (shared.url(), shared.scratch.path().join("moved.db"));
    let to = target.to_str().unwrap();
    shared.json(&["copy", &from, to, "--seal"]);
    let moved = shared.scratch.run(["read", "key", "--json", "--db", to]).success().json();
    assert_eq!(moved["value"], 7);
    let sealed = shared.run(&["delete", "key", "--json"]);
    sealed.refused(Code::BoardSealed);
    assert_eq!(shared.json(&["copy", "--unseal", &from])["unsealed"], true);
    shared.json(&["delete", "key"]);
}

#[test]
fn target_of_a_copy_whose_source_cannot_be_sealed_is_named_with_the_next_step() {
    const RULES: &str = "+multi +exec +time +hmget +hget +zrangebylex +zrevrangebylex +zlexcount +zcard +xrange +xrevrange \
                         +xread +evalsha +script|load +info +copy +pexpire +unlink";
    let Some(shared) = Shared::new() else { return };
    shared.json(&["write", "key", "7"]);
    let mut user = vec!["ACL", "SETUSER", "reader", "on", ">pass", "~bb:{team}:*", "-@all"];
    user.extend(RULES.split_ascii_whitespace());
    assert_eq!(shared.server.command(&user), "+OK\r\n");
    let from = shared.url().replacen("://", "://reader@", 1);
    let to = shared.scratch.path().join("moved.db").display().to_string();
    let copy = |more: &[&str]| {
        let mut command = shared.command(&["copy", &from, &to]);
        command.args(more).env("BLACKBOARD_REDIS_PASSWORD", "pass");
        Output::of(command.run_to_end())
    };
    let refused = copy(&["--seal"]);
    assert!(refused.code != 0, "{refused:?}");
    assert!(refused.stderr.contains("denies this user the command hset"), "{refused:?}");
    let next = "is an empty copy that cannot be used. To copy again: blackboard copy ";
    assert!(refused.stderr.contains(next) && refused.stderr.contains("--seal --replace"), "{refused:?}");
    copy(&["--json"]).refused(Code::BeingCopied);
    copy(&["--replace"]).success();
}
