//! What a server refuses, and what it is refused for.

use std::time::Duration;

use blackboard::Code;
use blackboard::agent::Register;
use blackboard::entry::Query;
use blackboard::file::Reserve;
use blackboard::lock::Acquire;
use blackboard::store::redis::Redis;
use blackboard::work::{Claim, ClaimNext, Create, WorkFilter};
use testkit::redis::RedisServer;

use crate::{impatient, open, try_open, value, write};

fn code(url: &str) -> Code {
    let opened = try_open(url, &impatient());
    opened.err().map(|error| error.code()).unwrap()
}

#[test]
fn flushed_scripts_are_loaded_again() {
    let Some(server) = RedisServer::start(&[]) else { return };
    let board = open(&server.url("a"));
    for round in 0..3 {
        server.command(&["SCRIPT", "FLUSH"]);
        write(&board, "x", round).unwrap();
        server.command(&["SCRIPT", "FLUSH"]);
        assert_eq!(value(&board, "x"), Some(round));
    }
}

#[test]
fn board_that_was_deleted_is_reported_and_never_created_by_a_commit() {
    let Some(server) = RedisServer::start(&[]) else { return };
    let board = open(&server.url("a"));
    write(&board, "x", 1).unwrap();
    let seen = board.revision().unwrap();
    let waiting = {
        let board = board.clone();
        std::thread::spawn(move || board.wait(seen, Duration::from_mins(1)))
    };
    server.command(&["FLUSHALL"]);
    assert_eq!(waiting.join().unwrap().unwrap_err().code(), Code::BoardNotFound);
    assert_eq!(write(&board, "x", 2).unwrap_err().code(), Code::BoardNotFound);
    assert_eq!(board.check_still_there().unwrap_err().code(), Code::BoardNotFound);
    assert_eq!(server.command(&["DBSIZE"]), ":0\r\n", "nothing was created");
    // Another board of the same name is not this one.
    let other = open(&server.url("a"));
    assert_eq!(write(&board, "x", 2).unwrap_err().code(), Code::BoardNotFound);
    assert_eq!(value(&other, "x"), None);
}

#[test]
fn boards_of_one_server_are_separate() {
    let Some(server) = RedisServer::start(&[]) else { return };
    let (a, b) = (open(&server.url("a")), open(&server.url("b")));
    write(&a, "x", 1).unwrap();
    assert_eq!((value(&a, "x"), value(&b, "x")), (Some(1), None));
    assert!(Redis::open_existing(server.url("c").parse().unwrap(), &impatient()).unwrap().is_none());
}

#[test]
fn full_server_refuses_a_commit_completely_and_still_reads() {
    let Some(server) = RedisServer::start(&[]) else { return };
    let board = open(&server.url("a"));
    write(&board, "x", 1).unwrap();
    let before = (board.revision().unwrap(), server.command(&["HLEN", "bb:{a}:rows"]));
    server.command(&["CONFIG", "SET", "maxmemory", "1"]);
    assert_eq!(write(&board, "x", 2).unwrap_err().code(), Code::ServerFull);
    assert_eq!(value(&board, "x"), Some(1));
    assert_eq!((board.revision().unwrap(), server.command(&["HLEN", "bb:{a}:rows"])), before);
    server.command(&["CONFIG", "SET", "maxmemory", "0"]);
    write(&board, "x", 3).unwrap();
}

#[test]
fn full_server_still_ends_what_was_begun() {
    let Some(server) = RedisServer::start(&[]) else { return };
    let (board, scope) = (open(&server.url("a")), "team");
    let [ivy, oak] =
        ["Ivy", "Oak"].map(|name| board.agents().register(&Register::named(name)).unwrap().agent.session_id);
    for key in ["x", "y", "y2", "z"] {
        write(&board, key, 1).unwrap();
    }
    for id in ["held", "held by Oak", "unwanted"] {
        board.work().create(&Create::new(id, "Item")).unwrap();
    }
    board.work().claim(&Claim::of("held", &ivy)).unwrap();
    board.work().claim(&Claim::of("held by Oak", &oak)).unwrap();
    board.locks().acquire(&Acquire::of("lock", &ivy)).unwrap();
    board.files().reserve(&Reserve::of("/w", &["a.rs"], &ivy)).unwrap();
    server.command(&["CONFIG", "SET", "maxmemory", "1"]);
    server.command(&["SCRIPT", "FLUSH"]);
    let full = |error: blackboard::Error, advice: &str| {
        assert_eq!(error.code(), Code::ServerFull, "{error}");
        let hint = error.hint().and_then(|hint| hint.advice()).unwrap_or_default();
        assert!(hint.contains(advice), "{hint}");
    };
    full(write(&board, "new", 1).unwrap_err(), "raise maxmemory of the server; entries and items can still");
    full(board.work().claim(&Claim::of("unwanted", &ivy)).unwrap_err(), "raise maxmemory");
    // An erasure writes the log again, which needs as much memory as the log has.
    full(board.scope(scope).purge("z").unwrap_err(), "by the size of the event log");
    assert_eq!(value(&board, "z"), Some(1));

    board.scope(scope).delete("x").unwrap();
    assert_eq!(board.scope(scope).clear("y*").unwrap().keys.len(), 2);
    board.work().release(&blackboard::work::Release::of("held", &ivy)).unwrap();
    board.work().delete("unwanted", false, None).unwrap();
    board.locks().release(&blackboard::lock::Release::of("lock", &ivy)).unwrap();
    board.files().release(&blackboard::file::Release::all(&ivy)).unwrap();
    board.agents().deregister(&oak).unwrap();
    board.prune().unwrap();
    assert_eq!((value(&board, "x"), value(&board, "y")), (None, None));
    let items = board.export().unwrap().work_items;
    assert!(items.iter().all(|item| item.claimed_by.is_none()) && items.len() == 2, "{items:?}");
    // What is ended already adds nothing.
    let events = crate::log(&board).len();
    board.locks().release(&blackboard::lock::Release::of("lock", &ivy)).unwrap();
    assert_eq!(board.scope(scope).delete("x").unwrap_err().code(), Code::EntryNotFound);
    assert_eq!(crate::log(&board).len(), events);
}

#[test]
fn server_that_evicts_data_is_refused() {
    let settings = [("maxmemory", "100mb"), ("maxmemory-policy", "allkeys-lru")];
    let Some(server) = RedisServer::start(&settings) else { return };
    assert_eq!(code(&server.url("a")), Code::ServerUnsuitable);
    server.command(&["CONFIG", "SET", "maxmemory-policy", "volatile-lru"]);
    open(&server.url("a"));
}

#[test]
fn keys_of_another_program_are_refused_and_stay() {
    let Some(server) = RedisServer::start(&[]) else { return };
    for (board, command) in [
        ("a", &["SET", "bb:{a}:rows", "1"][..]),
        ("b", &["HSET", "bb:{b}:rows", "x", "1"]),
        ("c", &["SET", "bb:{c}:index", "1"]),
        ("d", &["LPUSH", "bb:{d}:log", "1"]),
        ("e", &["HSET", "bb:{e}:rows", "!", "something"]),
    ] {
        server.command(command);
        assert_eq!(code(&server.url(board)), Code::ForeignDatabase, "{command:?}");
    }
    // The index of a board that exists is replaced by something else: nothing of a commit is applied.
    let board = open(&server.url("f"));
    write(&board, "x", 1).unwrap();
    server.command(&["SET", "bb:{f}:index", "1"]);
    let before = server.command(&["XLEN", "bb:{f}:log"]);
    assert_eq!(write(&board, "y", 1).unwrap_err().code(), Code::ForeignDatabase);
    assert_eq!(server.command(&["XLEN", "bb:{f}:log"]), before);
}

#[test]
fn board_without_its_index_or_its_log_is_damaged_and_not_empty() {
    let Some(server) = RedisServer::start(&[]) else { return };
    let board = open(&server.url("a"));
    let ivy = board.agents().register(&Register::named("Ivy")).unwrap().agent.session_id;
    board.work().create(&Create::new("x", "Item")).unwrap();
    write(&board, "x", 1).unwrap();
    let (seen, next) = (board.revision().unwrap(), ClaimNext { session: ivy, ..ClaimNext::default() });
    for (key, aside, what) in
        [("bb:{a}:index", "bb:{a}:i2", "index"), ("bb:{a}:log", "bb:{a}:l2", "event log")]
    {
        server.command(&["RENAME", key, aside]);
        let is_damaged = |error: blackboard::Error| {
            let text = error.to_string();
            assert_eq!(error.code(), Code::Corrupt, "{text}");
            assert!(text.contains("is damaged") && text.contains(what) && error.hint().is_some(), "{text}");
        };
        is_damaged(write(&board, "x", 2).unwrap_err());
        is_damaged(write(&open(&server.url("a")), "new", 1).unwrap_err());
        if key.ends_with("index") {
            is_damaged(board.export().unwrap_err());
            is_damaged(board.status().unwrap_err());
            is_damaged(board.work().list(&WorkFilter::default()).unwrap_err());
            is_damaged(board.work().claim_next(&next).unwrap_err());
            is_damaged(board.scope("team").list(&Query::default()).unwrap_err());
        } else {
            let observed = board.events().observe(&blackboard::event::Since::Revision(seen), &[]);
            let read =
                observed.and_then(|observed| board.events().next(&observed, blackboard::Revision::ZERO, 10));
            is_damaged(read.unwrap_err());
        }
        assert_eq!(server.command(&["EXISTS", key]), ":0\r\n", "nothing was created");
        server.command(&["RENAME", aside, key]);
        assert_eq!(board.revision().unwrap(), seen);
    }
    write(&board, "x", 2).unwrap();
    // A board of an earlier program does not say that its index is never empty.
    let old = open(&server.url("old"));
    server.command(&["HDEL", "bb:{old}:rows", "i"]);
    server.command(&["DEL", "bb:{old}:index"]);
    write(&old, "x", 1).unwrap();
    assert_eq!(value(&old, "x"), Some(1));
}

#[test]
fn keys_that_a_lost_board_left_are_named_with_the_way_to_delete_them() {
    let Some(server) = RedisServer::start(&[]) else { return };
    write(&open(&server.url("a")), "x", 1).unwrap();
    server.command(&["DEL", "bb:{a}:rows"]);
    let error = try_open(&server.url("a"), &impatient()).err().unwrap();
    assert_eq!(error.code(), Code::ForeignDatabase, "{error}");
    let advice = error.hint().and_then(blackboard::Hint::advice).unwrap();
    assert!(advice.ends_with("redis-cli DEL 'bb:{a}:index' 'bb:{a}:log'"), "{advice}");
    server.command(&["DEL", "bb:{a}:index", "bb:{a}:log"]);
    write(&open(&server.url("a")), "x", 1).unwrap();
}

#[test]
fn state_that_cannot_be_read_is_damage_and_not_another_program() {
    let Some(server) = RedisServer::start(&[]) else { return };
    let board = open(&server.url("a"));
    write(&board, "x", 1).unwrap();
    server.command(&["HSET", "bb:{a}:rows", "!", "1 half of a state"]);
    assert_eq!(code(&server.url("a")), Code::Corrupt);
    assert_eq!(write(&board, "x", 2).unwrap_err().code(), Code::Corrupt);
    assert_eq!(board.scope("team").read("x").unwrap_err().code(), Code::Corrupt);
}

#[test]
fn server_without_a_command_is_named_with_it() {
    let directory = testkit::tempdir().unwrap();
    let file = directory.path().join("redis.conf");
    std::fs::write(&file, "rename-command EVALSHA hidden\n").unwrap();
    let Some(server) = RedisServer::start_with_file(&file, &[]) else { return };
    let error = try_open(&server.url("a"), &impatient()).err().unwrap();
    assert_eq!(error.code(), Code::ServerUnsuitable, "{error}");
    assert!(error.to_string().contains("does not have the command EVALSHA"), "{error}");
    assert!(error.hint().and_then(blackboard::Hint::advice).unwrap().contains("docs/redis.md"), "{error:?}");
}

#[test]
fn board_of_a_newer_program_is_refused() {
    let Some(server) = RedisServer::start(&[]) else { return };
    let board = open(&server.url("a"));
    write(&board, "x", 1).unwrap();
    server.command(&["HSET", "bb:{a}:rows", "!", "2 something else"]);
    assert_eq!(write(&board, "x", 2).unwrap_err().code(), Code::NewerSchema);
    assert_eq!(code(&server.url("a")), Code::NewerSchema);
}

#[test]
fn wrong_login_and_missing_rights_are_named_without_the_password() {
    let Some(server) = RedisServer::start(&[("requirepass", "right")]) else { return };
    let url = |login: &str| server.url("a").replacen("://", &format!("://{login}"), 1);
    for (login, expected) in [("", "password"), (":wrong@", "password"), ("ivy:wrong@", "password")] {
        let error = try_open(&url(login), &impatient()).err().unwrap();
        assert_eq!(error.code(), Code::AccessDenied, "{login}");
        let text = format!("{error} {error:?}");
        assert!(text.contains(expected) && !text.contains("wrong"), "{text}");
    }
    let board = open(&url(":right@"));
    write(&board, "x", 1).unwrap();
}

#[test]
fn server_that_does_not_know_the_login_is_named_without_it() {
    let directory = testkit::tempdir().unwrap();
    let file = directory.path().join("redis.conf");
    std::fs::write(&file, "rename-command AUTH hidden-auth\n").unwrap();
    let Some(server) = RedisServer::start_with_file(&file, &[]) else { return };
    for login in [":s3cr3tpw@", "ivy:s3cr3tpw@"] {
        let url = server.url("a").replacen("://", &format!("://{login}"), 1);
        let error = try_open(&url, &impatient()).err().unwrap();
        assert_eq!(error.code(), Code::AccessDenied, "{error}");
        assert!(error.to_string().contains("does not accept a login"), "{error}");
        let text = format!("{error} {error:?}");
        assert!(!text.contains("s3cr") && !text.contains("ivy"), "{text}");
    }
    open(&server.url("a"));
}

#[test]
fn commands_of_the_documented_acl_are_enough_and_a_missing_one_is_named() {
    const RULES: &str = "+multi +exec +time +hmget +hget +hset +hdel +exists +zrangebylex +zrevrangebylex +zlexcount \
                         +zcard +zadd +zrem +xadd +xrange +xrevrange +xread +xtrim +evalsha +script|load +info";
    let Some(server) = RedisServer::start(&[]) else { return };
    let user = |rules: &str| {
        server.command(&["ACL", "DELUSER", "ivy"]);
        let mut command = vec!["ACL", "SETUSER", "ivy", "on", ">secret", "~bb:{a}:*", "-@all"];
        command.extend(rules.split_ascii_whitespace());
        assert_eq!(server.command(&command), "+OK\r\n");
        server.command(&["SCRIPT", "FLUSH"]);
    };
    let url = server.url("a").replacen("://", "://ivy:secret@", 1);
    let work = || -> blackboard::Result<()> {
        let board = try_open(&url, &impatient())?;
        write(&board, "x", 1)?;
        board.scope("team").delete("x")?;
        board.wait(board.revision()?, Duration::from_millis(10))?;
        board.prune()?;
        Ok(())
    };
    user(RULES);
    work().unwrap();
    let events = server.command(&["XLEN", "bb:{a}:log"]);
    let needed =
        ["+hmget", "+hset", "+hdel", "+zadd", "+zrem", "+xadd", "+xtrim", "+xread", "+evalsha", "+time"];
    for rule in needed {
        user(&RULES.replace(&format!("{rule} "), ""));
        let error = work().unwrap_err();
        assert_eq!(error.code(), Code::AccessDenied, "without {rule}: {error}");
        assert!(!error.to_string().contains("secret"));
        assert_eq!(server.command(&["XLEN", "bb:{a}:log"]), events, "nothing of a commit is applied");
    }
    // A commit that waits for replicas would be applied, and never be known to be.
    user(RULES);
    let error = try_open(&format!("{url}&replicas=1"), &impatient()).err().unwrap();
    assert!(error.code() == Code::AccessDenied && error.to_string().contains("wait"), "{error}");
    // A purge changes the log in several steps.
    for rules in [RULES.to_owned(), format!("{RULES} +del"), format!("{RULES} +rename")] {
        user(&rules);
        let board = try_open(&url, &impatient()).unwrap();
        write(&board, "secret", 1).unwrap();
        let events = server.command(&["XLEN", "bb:{a}:log"]);
        let error = board.scope("team").purge("secret").unwrap_err();
        assert_eq!(error.code(), Code::AccessDenied, "{error}");
        assert_eq!(server.command(&["XLEN", "bb:{a}:log"]), events, "nothing of it is applied");
        assert_eq!(value(&board, "secret"), Some(1));
    }
    user(&format!("{RULES} +del +rename"));
    try_open(&url, &impatient()).unwrap().scope("team").purge("secret").unwrap();
}

#[test]
fn thread_that_may_not_wait_on_the_log_connects_less_and_less_often() {
    let Some(server) = RedisServer::start(&[]) else { return };
    let user = |rule: &str| server.command(&["ACL", "SETUSER", "ivy", "on", ">secret", "~*", "+@all", rule]);
    user("+xread");
    let url = server.url("a").replacen("://", "://ivy:secret@", 1);
    let board = try_open(&url, &impatient()).unwrap();
    let revision = write(&board, "x", 1).unwrap();
    user("-xread");
    let connections = || -> u64 {
        let info = server.command(&["INFO", "stats"]);
        let count = info.lines().find_map(|line| line.strip_prefix("total_connections_received:"));
        count.unwrap().trim().parse().unwrap()
    };
    let before = connections();
    // It looks for itself meanwhile.
    assert_eq!(board.wait(revision, Duration::from_secs(2)).unwrap(), revision);
    let made = connections() - before;
    assert!(made < 30, "{made} connections in 2 s");
}

#[test]
fn user_without_the_right_to_write_reads_the_board() {
    const RULES: &str = "+multi +exec +time +hmget +hget +zrangebylex +zrevrangebylex +zlexcount +zcard +xrange +xrevrange \
                         +xread +evalsha +script|load +info";
    let Some(server) = RedisServer::start(&[]) else { return };
    let owner = open(&server.url("a"));
    write(&owner, "x", 1).unwrap();
    let mut command = vec!["ACL", "SETUSER", "ivy", "on", ">secret", "~bb:{*}:*", "-@all"];
    command.extend(RULES.split_ascii_whitespace());
    assert_eq!(server.command(&command), "+OK\r\n");
    server.command(&["SCRIPT", "FLUSH"]);
    let address = |board: &str| -> blackboard::store::redis::Address {
        server.url(board).replacen("://", "://ivy:secret@", 1).parse().unwrap()
    };
    for open in [Redis::open_existing, Redis::open_to_read] {
        let store = open(address("a"), &impatient()).unwrap().unwrap();
        assert!(store.is_read_only());
        let clock = store.clock();
        let board = blackboard::Board::on(std::sync::Arc::new(store), clock);
        assert_eq!(value(&board, "x"), Some(1));
        assert_eq!(crate::log(&board).len(), 1);
        board.wait(board.revision().unwrap(), Duration::from_millis(10)).unwrap();
        assert!(board.try_sweep(None).stale_agents.is_empty());
    }
    let store = Redis::open_existing(address("a"), &impatient()).unwrap().unwrap();
    let clock = store.clock();
    let error = write(&blackboard::Board::on(std::sync::Arc::new(store), clock), "x", 2).unwrap_err();
    assert_eq!(error.code(), Code::AccessDenied, "{error}");
    assert!(error.to_string().contains("hset"), "{error}");
    assert!(Redis::open_existing(address("b"), &impatient()).unwrap().is_none());
    for board in ["a", "b"] {
        let error = Redis::open(address(board), &impatient()).err().unwrap();
        assert_eq!(error.code(), Code::AccessDenied, "{error}");
    }
    assert_eq!(
        server.command(&["DBSIZE"]),
        server.command(&["EXISTS", "bb:{a}:rows", "bb:{a}:index", "bb:{a}:log"])
    );
}

#[test]
fn server_that_does_not_answer_is_reported_and_used_again() {
    let Some(server) = RedisServer::start(&[]) else { return };
    let board = try_open(&server.url("a"), &impatient()).unwrap();
    server.signal(testkit::process::Signal::STOP);
    assert_eq!(write(&board, "x", 1).unwrap_err().code(), Code::ServerUnavailable);
    assert_eq!(code(&server.url("a")), Code::ServerUnavailable);
    server.signal(testkit::process::Signal::CONT);
    testkit::wait_until("a server that answers again", || write(&board, "x", 1).ok());
}

#[test]
fn what_is_no_redis_server_is_refused() {
    use std::io::Write as _;
    testkit::limit_test();
    let directory = testkit::tempdir().unwrap();
    let path = directory.path().join("socket");
    let listener = std::os::unix::net::UnixListener::bind(&path).unwrap();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let _ = stream.unwrap().write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n");
        }
    });
    let url = format!("redis+unix://{}", path.display());
    assert_eq!(code(&url), Code::ServerUnsuitable);
    assert_eq!(code("redis+unix:///nowhere/socket"), Code::ServerUnavailable);
    assert_eq!(code("redis://127.0.0.1:1"), Code::ServerUnavailable);
}
