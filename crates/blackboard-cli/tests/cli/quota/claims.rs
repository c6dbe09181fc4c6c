//! Claims of work items within the quota.

use std::fs::{self, OpenOptions};

use blackboard::Code;
use blackboard::work::{Claim, Complete, Create};
use serde_json::{Value, json};
use testkit::process::RunToEnd as _;

use super::{break_ledger, hooks_have_read, with_quota, write_config};
use crate::mcp::client::{Client, Generation};
use crate::scratch::{Output, Scratch};

testkit::on_each_engine![
    with_warn_a_claim_that_does_not_fit_succeeds_and_is_reported,
    with_deny_a_claim_that_does_not_fit_is_refused_and_the_item_stays_available,
    an_item_without_an_estimate_reserves_nothing,
    with_deny_next_skips_items_that_do_not_fit,
    with_deny_next_reports_that_none_fits,
    with_deny_a_session_claims_up_to_its_cap,
    with_deny_as_many_agents_claim_as_may_be_active,
    with_warn_caps_are_reported,
    an_item_that_cannot_be_claimed_is_refused_for_that_reason_first,
    the_holder_of_an_item_claims_it_again_in_a_full_quota,
    a_holder_without_a_reservation_gets_one_when_it_claims_again,
    release_and_complete_end_the_reservation,
    the_end_of_a_session_ends_its_reservations,
    status_has_what_an_item_used_and_an_estimate_from_similar_ones,
    an_estimate_is_from_up_to_50_of_the_500_items_that_were_completed_last,
    an_estimate_has_thousands,
    an_imported_estimate_is_reserved,
    a_claim_that_creates_its_item_is_checked,
    with_deny_run_does_not_start_a_command_whose_item_does_not_fit,
    mcp_claims_respect_the_quota,
    with_warn_a_claim_succeeds_without_a_readable_ledger,
    with_deny_a_claim_needs_a_readable_ledger,
    with_deny_a_claim_needs_a_valid_quota,
    with_warn_a_claim_does_not_need_a_valid_quota,
    a_mistake_in_the_configuration_refuses_claims,
    with_deny_a_claim_counts_what_hooks_have_read,
    with_deny_a_claim_does_not_wait_for_a_process_that_counts,
    a_claim_of_a_session_without_a_known_provider_has_to_fit_with_each,
    a_claim_gets_the_tokens_of_a_session_that_ended_on_another_board,
    without_a_quota_a_claim_has_nothing_of_it,
];

/// A home with a quota of one provider: 100,000 tokens in 5 hours, of which 20,000 are kept. Ivy and Oak are sessions.
fn enforcing(enforce: &str) -> Scratch {
    with_caps(enforce, "{}")
}

/// The same with caps of agents.
fn with_caps(enforce: &str, caps: &str) -> Scratch {
    let scratch = with_quota(&format!(
        r#"{{"enforce": "{enforce}", "providers": {{"a": {{"windows": {{"5h": {{"budget": 100000}}}},
            "reservation": {{"operator": 20000, "agents": {caps}}}}}}}}}"#
    ));
    register(&scratch, "Ivy");
    register(&scratch, "Oak");
    scratch
}

fn register(scratch: &Scratch, name: &str) {
    scratch.json(["agent", "register", "--name", name, "--session-hint", name]);
}

fn create(scratch: &Scratch, id: &str, estimate: &str) {
    scratch.json(["work", "create", id, "--title", "Item", "--estimate", estimate]);
}

fn claim(scratch: &Scratch, id: &str, session: &str) -> Output {
    scratch.run(["work", "claim", id, "--session", session, "--json"])
}

fn status_of(scratch: &Scratch, id: &str) -> Value {
    scratch.json(["work", "status", id])["status"].clone()
}

fn provider(scratch: &Scratch) -> Value {
    scratch.json(["quota", "status"])["providers"][0].clone()
}

fn reserved(scratch: &Scratch) -> Value {
    provider(scratch)["windows"][0]["reserved"].clone()
}

/// The items with a reservation, the newest one first, and their tokens.
fn reservations(scratch: &Scratch) -> Vec<(String, u64)> {
    let listed = provider(scratch)["reservations"].clone();
    let listed = listed.as_array().unwrap().iter();
    listed.map(|one| (one["item"].as_str().unwrap().to_owned(), one["tokens"].as_u64().unwrap())).collect()
}

fn with_warn_a_claim_that_does_not_fit_succeeds_and_is_reported() {
    let scratch = enforcing("warn");
    create(&scratch, "small", "30k");
    create(&scratch, "large", "51k");
    let small = scratch.run(["work", "claim", "small", "--session", "Ivy"]).success();
    assert_eq!(small.stderr, "", "it fits");
    assert_eq!(reservations(&scratch), [("small".to_owned(), 30_000)]);
    let shown = scratch.run(["work", "claim", "large", "--session", "Ivy"]).success();
    assert_eq!(
        shown.stderr,
        "note: the estimate of 51,000 tokens does not fit into the quota of a: the 5h window has 50,000 of 100,000 tokens left for \
         agents (20,000 are kept for you, the operator)\n"
    );
    assert!(shown.stdout.starts_with("Claimed work item: large\n"), "{shown:?}");
    assert_eq!(reserved(&scratch), 30_000, "what does not fit is not reserved");
    scratch.json(["work", "release", "large", "--session", "Ivy"]);
    let answer = claim(&scratch, "large", "Oak").success();
    assert_eq!(answer.stderr, "", "JSON has it");
    let claimed = answer.json();
    assert_eq!((&claimed["claimed"], &claimed["claimed_by_name"]), (&json!(true), &json!("Oak")));
    let quota = &claimed["quota"];
    assert_eq!((&quota["fits"], &quota["tokens"]), (&json!(false), &json!(51_000)));
    assert_eq!((&quota["available"], &quota["reason"]["kind"]), (&json!(50_000), &json!("window")));
    let again = claim(&scratch, "large", "Oak").success().json();
    assert_eq!((&again["already_held"], &again["quota"]["fits"]), (&json!(true), &json!(false)));
    create(&scratch, "third", "50k");
    let third = scratch.json(["work", "claim", "--next", "--session", "Oak"]);
    assert_eq!((&third["item_id"], &third["quota"]["fits"]), (&json!("third"), &json!(true)));
    assert_eq!(reserved(&scratch), 80_000);
}

fn with_deny_a_claim_that_does_not_fit_is_refused_and_the_item_stays_available() {
    let scratch = enforcing("deny");
    create(&scratch, "small", "30k");
    create(&scratch, "large", "51k");
    create(&scratch, "never", "81k");
    let claimed = claim(&scratch, "small", "Ivy").success().json();
    assert_eq!((&claimed["quota"]["fits"], &claimed["quota"]["tokens"]), (&json!(true), &json!(30_000)));
    let refusal = claim(&scratch, "large", "Oak").refused(Code::QuotaExceeded);
    assert_eq!(
        refusal["error"],
        "cannot claim large: the estimate of 51,000 tokens does not fit into the quota of a: the 5h window has 50,000 of 100,000 \
         tokens left for agents (20,000 are kept for you, the operator)"
    );
    assert_eq!(
        (&refusal["provider"], &refusal["tokens"], &refusal["available"]),
        (&json!("a"), &json!(51_000), &json!(50_000))
    );
    assert_eq!((&refusal["reason"]["kind"], &refusal["reason"]["window"]), (&json!("window"), &json!("5h")));
    assert!(refusal["fits_at"].is_string(), "when the reservation of Ivy expires: {refusal}");
    let hint = refusal["hint"].as_str().unwrap();
    assert!(hint.starts_with("it fits in ") && hint.ends_with(", if nothing else is used"), "{hint}");
    let shown = scratch.run(["work", "claim", "large", "--session", "Oak"]);
    assert_eq!((shown.code, shown.stdout.as_str()), (4, ""), "{shown:?}");
    assert!(shown.stderr.contains("cannot claim large") && shown.stderr.contains("it fits in"), "{shown:?}");
    assert_eq!(status_of(&scratch, "large"), "available");
    assert_eq!(reservations(&scratch), [("small".to_owned(), 30_000)]);
    let never = claim(&scratch, "never", "Oak").refused(Code::QuotaExceeded);
    assert_eq!(never["fits_at"], Value::Null);
    assert_eq!(never["hint"], "it does not fit at any time: split the item, or change its estimate");
    scratch.json(["work", "edit", "large", "--estimate", "50k"]);
    claim(&scratch, "large", "Oak").success();
    assert_eq!(reserved(&scratch), 80_000);
}

fn an_item_without_an_estimate_reserves_nothing() {
    let scratch = enforcing("deny");
    scratch.json(["work", "create", "free", "--title", "Free"]);
    let claimed = claim(&scratch, "free", "Ivy").success().json();
    assert_eq!((&claimed["quota"]["fits"], &claimed["quota"]["tokens"]), (&json!(true), &json!(0)));
    assert!(reservations(&scratch).is_empty());
    scratch.json(["quota", "record", "--input-tokens", "79999"]);
    scratch.json(["work", "create", "more", "--title", "More"]);
    claim(&scratch, "more", "Ivy").success();
    scratch.json(["quota", "record", "--input-tokens", "1"]);
    scratch.json(["work", "create", "last", "--title", "Last"]);
    for call in ["last", "--next"] {
        let refusal = claim(&scratch, call, "Ivy").refused(Code::QuotaExceeded);
        let error = refusal["error"].as_str().unwrap();
        assert!(
            error.starts_with("cannot claim last: the quota of a is used up: the 5h window has 0"),
            "{error}"
        );
    }
}

fn with_deny_next_skips_items_that_do_not_fit() {
    let scratch = enforcing("deny");
    for (id, estimate) in [("first", "81k"), ("second", "60k"), ("third", "40k"), ("fourth", "20k")] {
        create(&scratch, id, estimate);
    }
    let next = || scratch.json(["work", "claim", "--next", "--session", "Ivy"]);
    let claimed = next();
    assert_eq!((&claimed["item_id"], &claimed["quota"]["tokens"]), (&json!("second"), &json!(60_000)));
    assert_eq!(next()["item_id"], "fourth", "the first one that fits into 20,000 tokens");
    assert_eq!(
        reservations(&scratch),
        [("fourth".to_owned(), 20_000), ("second".to_owned(), 60_000)],
        "of the claimed items"
    );
    for skipped in ["first", "third"] {
        assert_eq!(status_of(&scratch, skipped), "available");
    }
    scratch.json(["work", "create", "free", "--title", "Free", "--priority", "P3"]);
    let call = ["work", "claim", "--next", "--session", "Ivy", "--json"];
    scratch.run(call).refused(Code::QuotaExceeded);
    scratch.json(["work", "complete", "fourth", "--session", "Ivy"]);
    assert_eq!(next()["item_id"], "free", "an item without an estimate fits");
}

fn with_deny_next_reports_that_none_fits() {
    let scratch = enforcing("deny");
    let next = || scratch.run(["work", "claim", "--next", "--session", "Ivy", "--json"]);
    next().refused(Code::NothingAvailable);
    create(&scratch, "first", "81k");
    let refusal = next().refused(Code::QuotaExceeded);
    assert_eq!(refusal["error"], "no available work item fits into 80000 tokens: 1 needs more");
    create(&scratch, "second", "90k");
    let refusal = next().refused(Code::QuotaExceeded);
    assert_eq!(refusal["error"], "no available work item fits into 80000 tokens: 2 need more");
    assert_eq!((&refusal["skipped"], &refusal["most_tokens"]), (&json!(2), &json!(80_000)));
    assert!(refusal["hint"].is_string(), "{refusal}");
    assert!(reservations(&scratch).is_empty());
    for item in ["first", "second"] {
        assert_eq!(status_of(&scratch, item), "available");
    }
}

fn with_deny_a_session_claims_up_to_its_cap() {
    let scratch = with_caps("deny", r#"{"maxPerAgent": 50000}"#);
    for id in ["one", "two", "three"] {
        create(&scratch, id, "30k");
    }
    create(&scratch, "small", "20k");
    claim(&scratch, "one", "Ivy").success();
    let refusal = claim(&scratch, "two", "Ivy").refused(Code::QuotaExceeded);
    assert_eq!(
        refusal["reason"],
        json!({"kind": "session", "cap": 50_000, "used": 0, "reserved": 30_000}),
        "{refusal}"
    );
    assert_eq!(
        refusal["hint"],
        "complete or release other items of this session, or continue in a new session"
    );
    let next = scratch.json(["work", "claim", "--next", "--session", "Ivy"]);
    assert_eq!(next["item_id"], "small", "the first one within the cap");
    let refusal = scratch.run(["work", "claim", "--next", "--session", "Ivy", "--json"]);
    assert_eq!(refusal.refused(Code::QuotaExceeded)["most_tokens"], 0);
    claim(&scratch, "two", "Oak").success();
    // What the session has used counts, too.
    scratch.json(["quota", "record", "--input-tokens", "60000", "--session", "Ivy"]);
    scratch.json(["work", "create", "free", "--title", "Free"]);
    for call in ["free", "--next"] {
        let refusal = claim(&scratch, call, "Ivy").refused(Code::QuotaExceeded);
        assert_eq!(refusal["reason"]["kind"], "session", "{refusal}");
    }
}

fn with_deny_as_many_agents_claim_as_may_be_active() {
    let scratch = with_caps("deny", r#"{"maxConcurrent": 1}"#);
    scratch.json(["work", "create", "one", "--title", "One"]);
    for id in ["two", "three"] {
        create(&scratch, id, "1k");
    }
    claim(&scratch, "one", "Ivy").success();
    for call in ["two", "--next"] {
        let refusal = claim(&scratch, call, "Oak").refused(Code::QuotaExceeded);
        assert_eq!(refusal["reason"], json!({"kind": "agents", "cap": 1, "active": 1}), "{refusal}");
        assert_eq!(refusal["hint"], "retry when another agent has ended");
    }
    claim(&scratch, "two", "Ivy").success();
    let ran = scratch.run(["run", "--work-item", "three", "--json", "--", "true"]);
    ran.refused(Code::QuotaExceeded);
    for id in ["one", "two"] {
        scratch.json(["work", "complete", id, "--session", "Ivy"]);
    }
    claim(&scratch, "--next", "Oak").success();
}

fn with_warn_caps_are_reported() {
    let scratch = with_caps("warn", r#"{"maxPerAgent": 50000, "maxConcurrent": 1}"#);
    create(&scratch, "one", "30k");
    create(&scratch, "two", "30k");
    create(&scratch, "three", "1k");
    claim(&scratch, "one", "Ivy").success();
    let second = claim(&scratch, "two", "Ivy").success().json();
    assert_eq!((&second["claimed"], &second["quota"]["reason"]["kind"]), (&json!(true), &json!("session")));
    let third = claim(&scratch, "--next", "Oak").success().json();
    assert_eq!((&third["item_id"], &third["quota"]["reason"]["kind"]), (&json!("three"), &json!("agents")));
}

fn an_item_that_cannot_be_claimed_is_refused_for_that_reason_first() {
    let scratch = enforcing("deny");
    create(&scratch, "held", "80k");
    create(&scratch, "done", "50k");
    scratch.json(["work", "create", "waiting", "-t", "Waiting", "--estimate", "1k", "--blocked-by", "later"]);
    claim(&scratch, "done", "Ivy").success();
    scratch.json(["work", "complete", "done", "--session", "Ivy"]);
    claim(&scratch, "held", "Ivy").success();
    let held = claim(&scratch, "held", "Oak").refused(Code::AlreadyClaimed);
    assert_eq!(held["held_by_name"], "Ivy", "it would not fit twice");
    claim(&scratch, "waiting", "Oak").refused(Code::WorkBlocked);
    claim(&scratch, "done", "Oak").refused(Code::AlreadyCompleted);
    claim(&scratch, "missing", "Oak").refused(Code::WorkNotFound);
    scratch.json(["work", "release", "held", "--session", "Ivy"]);
    assert!(reservations(&scratch).is_empty());
    claim(&scratch, "held", "Oak").success();
}

fn the_holder_of_an_item_claims_it_again_in_a_full_quota() {
    let scratch = enforcing("deny");
    create(&scratch, "one", "80k");
    claim(&scratch, "one", "Ivy").success();
    let again = claim(&scratch, "one", "Ivy").success().json();
    assert_eq!((&again["already_held"], again.get("quota")), (&json!(true), None));
    assert_eq!(reservations(&scratch), [("one".to_owned(), 80_000)]);
}

fn a_holder_without_a_reservation_gets_one_when_it_claims_again() {
    for enforce in ["warn", "deny"] {
        let scratch = enforcing(enforce);
        create(&scratch, "one", "30k");
        claim(&scratch, "one", "Ivy").success();
        scratch.json(["work", "reassign", "one", "--to", "Oak", "--session", "Ivy"]);
        assert_eq!(reserved(&scratch), 0);
        for fits in [Some(true), None] {
            let again = claim(&scratch, "one", "Oak").success().json();
            assert_eq!((&again["already_held"], again["quota"]["fits"].as_bool()), (&json!(true), fits));
            assert_eq!(reservations(&scratch), [("one".to_owned(), 30_000)], "{enforce}");
        }
        scratch.json(["work", "release", "one", "--session", "Oak"]);
        assert_eq!(reserved(&scratch), 0);
    }
}

fn release_and_complete_end_the_reservation() {
    for enforce in ["warn", "deny"] {
        let scratch = enforcing(enforce);
        create(&scratch, "one", "80k");
        for end in [
            &["work", "release", "one", "--session", "Ivy"][..],
            &["work", "reset", "one"],
            &["work", "complete", "one", "--session", "Ivy"],
        ] {
            claim(&scratch, "one", "Ivy").success();
            assert_eq!(reserved(&scratch), 80_000, "{enforce}: {end:?}");
            scratch.json(end);
            assert_eq!(reserved(&scratch), 0, "{enforce}: {end:?}");
        }
        create(&scratch, "two", "80k");
        claim(&scratch, "two", "Ivy").success();
        scratch.json(["work", "reassign", "two", "--to", "Oak", "--session", "Ivy"]);
        assert_eq!(reserved(&scratch), 0, "Oak has not asked for them");
    }
}

fn the_end_of_a_session_ends_its_reservations() {
    let scratch = enforcing("deny");
    create(&scratch, "one", "50k");
    create(&scratch, "two", "30k");
    claim(&scratch, "one", "Ivy").success();
    claim(&scratch, "two", "Ivy").success();
    assert_eq!(reserved(&scratch), 80_000);
    scratch.json(["agent", "deregister", "Ivy"]);
    assert_eq!(reserved(&scratch), 0);
    claim(&scratch, "one", "Oak").success();
    let script = "blackboard quota status --json";
    let ran = scratch.run(["run", "--work-item", "two", "--", "sh", "-c", script]).success();
    assert_eq!(ran.json()["providers"][0]["windows"][0]["reserved"], 80_000);
    assert_eq!(reservations(&scratch), [("one".to_owned(), 50_000)], "the session of the run has ended");
}

fn status_has_what_an_item_used_and_an_estimate_from_similar_ones() {
    let scratch = enforcing("warn");
    for (id, label, used) in
        [("a", "sql", "10000"), ("b", "sql,docs", "20000"), ("c", "sql", "30000"), ("d", "other", "700")]
    {
        scratch.json(["work", "create", id, "--title", "Item", "--label", label]);
        claim(&scratch, id, "Ivy").success();
        scratch.json(["quota", "record", "--input-tokens", used, "--session", "Ivy", "--item", id]);
        if id == "c" {
            let shown = scratch.run(["work", "status", "c"]).success().stdout;
            assert!(shown.contains("Used:       30k tokens\n"), "{shown}");
            assert!(!shown.contains("Estimate from similar"), "two are too few: {shown}");
            assert_eq!(scratch.json(["work", "status", "c"]).get("estimate_from_similar"), None);
        }
        let completed = scratch.json(["work", "complete", id, "--session", "Ivy"]);
        assert_eq!(completed["tokens_used"], used.parse::<u64>().unwrap());
    }
    let created = scratch.run(["work", "create", "new", "--title", "New", "--label", "sql"]).success();
    assert!(created.stderr.contains("Estimate from similar: 20k ± 10k (3 items)"), "{created:?}");
    let similar = json!({"tokens": 20_000, "deviation": 10_000, "items": 3});
    let status = scratch.json(["work", "status", "new"]);
    assert_eq!((&status["estimate_from_similar"], status.get("tokens_used")), (&similar, None));
    let shown = scratch.run(["work", "status", "new"]).success().stdout;
    assert!(shown.contains("\nEstimate from similar: 20k ± 10k (3 items)\n"), "{shown}");
    assert_eq!(claim(&scratch, "new", "Ivy").success().json()["estimate_from_similar"], similar);
    assert_eq!(scratch.json(["work", "status", "d"]).get("estimate_from_similar"), None, "another label");
}

fn an_estimate_is_from_up_to_50_of_the_500_items_that_were_completed_last() {
    let scratch = enforcing("warn");
    let board = scratch.board();
    let ivy = scratch.json(["agent", "show", "Ivy"])["session_id"].as_str().unwrap().to_owned();
    let complete = |id: String, label: &str| {
        let work = board.work();
        work.create(&Create { labels: vec![label.to_owned()], ..Create::new(&id, "Item") }).unwrap();
        work.claim(&Claim::of(&id, &ivy)).unwrap();
        work.complete(&Complete::of(&id, &ivy)).unwrap();
    };
    let lines = |items: std::ops::Range<usize>, input: u64| {
        let lines = items
            .map(|item| format!(r#"{{"id":"m{item}","item":"i{item}","usage":{{"input":{input}}}}}"#) + "\n");
        lines.collect::<String>()
    };
    (0..70).for_each(|number| complete(format!("i{number}"), "sql"));
    let input = lines(0..20, 90_000) + &lines(20..70, 1_000);
    Output::fed(&mut scratch.command(["quota", "record", "-"]), input).success();
    scratch.json(["work", "create", "new", "--title", "New", "--label", "sql"]);
    let estimate = || scratch.json(["work", "status", "new"]).get("estimate_from_similar").cloned();
    assert_eq!(estimate(), Some(json!({"tokens": 1_000, "deviation": 0, "items": 50})));
    (70..567).for_each(|number| complete(format!("i{number}"), "other"));
    assert_eq!(estimate().unwrap()["items"], 3);
    complete("i567".to_owned(), "other");
    assert_eq!(estimate(), None, "two of the 500 are too few");
}

fn an_estimate_has_thousands() {
    let scratch = enforcing("deny");
    let call = ["work", "create", "one", "--title", "One", "--estimated-tokens", "30k"];
    assert_eq!(scratch.json(call)["metadata"]["estimate"], 30_000);
    let shown = scratch.run(["work", "status", "one"]).success().stdout;
    assert!(shown.contains("Estimate: 30,000 tokens\n"), "{shown}");
    claim(&scratch, "one", "Ivy").success();
    assert_eq!(reserved(&scratch), 30_000);
    let wrong = scratch.run(["work", "create", "two", "--title", "Two", "--estimated-tokens", "many"]);
    assert_eq!(wrong.code, 2, "{wrong:?}");
    assert!(wrong.stderr.contains("expected a number of tokens"), "{wrong:?}");
}

fn an_imported_estimate_is_reserved() {
    let scratch = enforcing("deny");
    let lines = concat!(
        r#"{"id":"first","title":"First","estimate":81000}"#,
        "\n",
        r#"{"id":"second","title":"Second","estimatedTokens":7000}"#,
        "\n",
    );
    fs::write(scratch.path().join("tasks.jsonl"), lines).unwrap();
    scratch.json(["work", "import", "--from", "jsonl", "tasks.jsonl"]);
    let claimed = scratch.json(["work", "claim", "--next", "--session", "Ivy"]);
    assert_eq!((&claimed["title"], &claimed["quota"]["tokens"]), (&json!("Second"), &json!(7_000)));
    assert_eq!(reserved(&scratch), 7_000);
}

fn a_claim_that_creates_its_item_is_checked() {
    let scratch = enforcing("deny");
    let new = |estimate: &str| {
        let call = ["work", "claim", "new", "--title", "New", "--estimate", estimate];
        scratch.run([&call[..], &["--session", "Ivy", "--json"]].concat())
    };
    new("81k").refused(Code::QuotaExceeded);
    assert_eq!(scratch.run(["work", "status", "new", "--json"]).refused(Code::WorkNotFound)["ok"], false);
    assert_eq!(new("80k").success().json()["created"], true);
    assert_eq!(reservations(&scratch), [("new".to_owned(), 80_000)]);
}

fn with_deny_run_does_not_start_a_command_whose_item_does_not_fit() {
    let scratch = enforcing("deny");
    create(&scratch, "small", "80k");
    create(&scratch, "large", "81k");
    let sessions = || scratch.json(["agent", "list", "--all"])["count"].clone();
    let before = sessions();
    let refused = scratch.run(["run", "--work-item", "large", "--json", "--", "touch", "started"]);
    assert_eq!(refused.refused(Code::QuotaExceeded)["tokens"], 81_000);
    assert!(!scratch.path().join("started").exists());
    assert_eq!(sessions(), before, "a refusal leaves no session");
    assert_eq!((status_of(&scratch, "large"), reserved(&scratch)), (json!("available"), json!(0)));
    let script = "blackboard quota status --json";
    let ran = scratch.run(["run", "--name", "Elm", "--work-item", "small", "--", "sh", "-c", script]);
    let held = &ran.success().json()["providers"][0]["reservations"][0];
    assert_eq!((&held["item"], &held["agent"]), (&json!("small"), &json!("Elm")), "of its session: {held}");
    assert_eq!(reserved(&scratch), 0, "it ends with the command");
    let ivy = scratch.run(["quota", "check", "--tokens", "10", "--reserve", "--session", "Ivy", "--json"]);
    ivy.success();
    let mut delegate = scratch.command(["run", "--work-item", "small", "--json", "--", "true"]);
    let delegate = Output::of(delegate.env("BLACKBOARD_SESSION_ID", "Ivy").run_to_end());
    delegate.refused(Code::QuotaExceeded);
}

/// A client in the session of Ivy.
fn client(scratch: &Scratch) -> Client {
    let mut command = scratch.command(["mcp"]);
    command.env("BLACKBOARD_SESSION_ID", "Ivy");
    Client::speaking(Generation::Of2025, command)
}

fn mcp_claims_respect_the_quota() {
    let scratch = enforcing("deny");
    create(&scratch, "large", "81k");
    create(&scratch, "small", "50k");
    let mut ivy = client(&scratch);
    let refusal = ivy.refused("work_claim", json!({"id": "large"}), Code::QuotaExceeded);
    assert_eq!((&refusal["tokens"], &refusal["available"]), (&json!(81_000), &json!(80_000)));
    assert!(refusal["hint"].is_string(), "{refusal}");
    let claimed = ivy.call("work_claim", json!({"next": true}));
    assert_eq!((&claimed["item_id"], &claimed["quota"]["fits"]), (&json!("small"), &json!(true)));
    assert_eq!((&claimed["claimed_by_name"], reserved(&scratch)), (&json!("Ivy"), json!(50_000)));
    let none = ivy.refused("work_claim", json!({"next": true}), Code::QuotaExceeded);
    assert_eq!(none["skipped"], 1);
    ivy.call("work_update", json!({"action": "release", "id": "small", "fence": claimed["fence"]}));
    assert_eq!(reserved(&scratch), 0);
    let claimed = ivy.call("work_claim", json!({"id": "small"}));
    assert_eq!(reserved(&scratch), 50_000);
    ivy.call("work_update", json!({"action": "complete", "id": "small", "fence": claimed["fence"]}));
    assert_eq!((status_of(&scratch, "large"), reserved(&scratch)), (json!("available"), json!(0)));
    scratch.json(["quota", "set", "enforce", "warn"]);
    let claimed = client(&scratch).call("work_claim", json!({"id": "large"}));
    assert_eq!((&claimed["claimed"], &claimed["quota"]["fits"]), (&json!(true), &json!(false)));
}

fn with_warn_a_claim_succeeds_without_a_readable_ledger() {
    let scratch = enforcing("warn");
    create(&scratch, "one", "1k");
    create(&scratch, "two", "1k");
    break_ledger(&scratch);
    let shown = scratch.run(["work", "claim", "one", "--session", "Ivy"]).success();
    let file = scratch.path().canonicalize().unwrap().join(".pai/blackboard/quota.db");
    assert!(shown.stderr.starts_with("note: the token quota was not checked: "), "{shown:?}");
    assert!(shown.stderr.contains(file.to_str().unwrap()), "{shown:?}");
    let claimed = scratch.json(["work", "claim", "--next", "--session", "Ivy"]);
    assert_eq!(claimed["claimed"], true);
    assert!(claimed["quota"]["error"].as_str().unwrap().contains("quota.db"), "{claimed}");
    scratch.json(["work", "status", "one"]);
    scratch.json(["work", "release", "one", "--session", "Ivy"]);
    scratch.json(["work", "complete", "two", "--session", "Ivy"]);
    assert_eq!(fs::read_to_string(scratch.home_file("quota.db")).unwrap(), "no database");
}

fn with_deny_a_claim_needs_a_readable_ledger() {
    let scratch = enforcing("deny");
    create(&scratch, "one", "1k");
    break_ledger(&scratch);
    for call in ["one", "--next"] {
        let refused = claim(&scratch, call, "Ivy");
        assert_ne!(refused.code, 0, "{refused:?}");
        let error = refused.json()["error"].as_str().unwrap().to_owned();
        assert!(error.starts_with("the token ledger ") && error.contains("quota.db"), "{error}");
        assert_eq!(error.matches("quota.db").count(), 1, "{error}");
    }
    let ran = scratch.run(["run", "--work-item", "one", "--json", "--", "touch", "started"]);
    assert!(ran.code != 0 && !scratch.path().join("started").exists(), "{ran:?}");
    assert_eq!(status_of(&scratch, "one"), "available");
    assert_eq!(fs::read_to_string(scratch.home_file("quota.db")).unwrap(), "no database");
}

fn write_invalid_quota(scratch: &Scratch, enforce: &str) {
    write_config(scratch, &format!(r#"{{"quota": {{"enforce": "{enforce}", "provider": {{}}}}}}"#));
}

fn with_deny_a_claim_needs_a_valid_quota() {
    let scratch = enforcing("deny");
    create(&scratch, "one", "1k");
    write_invalid_quota(&scratch, "deny");
    for call in ["one", "--next"] {
        let refused = claim(&scratch, call, "Ivy").refused(Code::InvalidValue);
        assert!(refused["error"].as_str().unwrap().contains("unknown field `provider`"), "{refused}");
        assert!(refused["hint"].as_str().unwrap().contains("config.json"), "{refused}");
    }
    let ran = scratch.run(["run", "--work-item", "one", "--json", "--", "touch", "started"]);
    assert!(ran.code != 0 && !scratch.path().join("started").exists(), "{ran:?}");
    assert_eq!(status_of(&scratch, "one"), "available");
    let refused = scratch.run(["quota", "status", "--json"]).refused(Code::InvalidValue);
    assert!(refused["error"].as_str().unwrap().contains("unknown field `provider`"), "{refused}");
    let refused = scratch.run(["quota", "init", "--json"]).refused(Code::AlreadyExists);
    assert!(refused["error"].as_str().unwrap().contains("unknown field `provider`"), "{refused}");
}

fn with_warn_a_claim_does_not_need_a_valid_quota() {
    let scratch = enforcing("warn");
    create(&scratch, "one", "1k");
    write_invalid_quota(&scratch, "warn");
    let claimed = claim(&scratch, "one", "Ivy");
    assert_eq!(claimed.json()["claimed"], true, "{claimed:?}");
    assert!(claimed.stderr.contains("quota is ignored: unknown field `provider`"), "{claimed:?}");
}

fn a_mistake_in_the_configuration_refuses_claims() {
    let scratch = enforcing("deny");
    create(&scratch, "one", "1k");
    for (text, reason) in [
        (r#"{"quota": {"enforce": "deny", "providers": {"a": {}},,}}"#, "it is not valid JSON"),
        (r#"{"quota": {"enforce": "Deny", "providers": {"a": {}}}}"#, "enforce is not warn or deny"),
        (r#"{"quota": [{"enforce": "deny"}]}"#, "it must be an object"),
    ] {
        write_config(&scratch, text);
        for call in ["one", "--next"] {
            let refused = claim(&scratch, call, "Ivy").refused(Code::InvalidValue);
            assert!(refused["error"].as_str().unwrap().contains(reason), "{refused}");
        }
        let refused = scratch.run(["quota", "status", "--json"]).refused(Code::InvalidValue);
        assert!(refused["error"].as_str().unwrap().contains(reason), "{refused}");
    }
    write_config(&scratch, r#"{"fileGuard": "deny",}, // The quota is not configured."#);
    claim(&scratch, "one", "Ivy").success();
}

fn with_deny_a_claim_counts_what_hooks_have_read() {
    let scratch = enforcing("deny");
    create(&scratch, "one", "1k");
    let spool = hooks_have_read(&scratch, 80_000);
    claim(&scratch, "one", "Ivy").refused(Code::QuotaExceeded);
    assert!(!spool.exists());
}

fn with_deny_a_claim_does_not_wait_for_a_process_that_counts() {
    let scratch = enforcing("deny");
    create(&scratch, "one", "1k");
    create(&scratch, "two", "1k");
    scratch.json(["quota", "status"]);
    // A process that folds, and does not go on.
    let mut lock = OpenOptions::new();
    let lock = lock.create(true).truncate(false).write(true).open(scratch.home_file("quota-fold")).unwrap();
    lock.lock().unwrap();
    claim(&scratch, "two", "Ivy").success();
    let spool = hooks_have_read(&scratch, 80_000);
    for call in ["one", "--next"] {
        let refused = claim(&scratch, call, "Ivy").refused(Code::Busy);
        assert_eq!(
            (&refused["error"], &refused["hint"]),
            (&json!("another process is counting usage"), &json!("retry"))
        );
    }
    assert_eq!(status_of(&scratch, "one"), "available");
    assert!(spool.exists());
    drop(lock);
    claim(&scratch, "one", "Ivy").refused(Code::QuotaExceeded);
}

fn a_claim_of_a_session_without_a_known_provider_has_to_fit_with_each() {
    const PROVIDERS: &str = r#""providers": {"a": {"windows": {"5h": {"budget": 100}}}, "b": {}}"#;
    for enforce in ["warn", "deny"] {
        let scratch = with_quota(&format!(r#"{{"enforce": "{enforce}", {PROVIDERS}}}"#));
        register(&scratch, "Ivy");
        create(&scratch, "one", "900M");
        create(&scratch, "two", "60");
        for call in ["one", "two"] {
            let answer = claim(&scratch, call, "Ivy");
            match (enforce, call) {
                ("deny", "one") => {
                    let refusal = answer.refused(Code::QuotaExceeded);
                    assert_eq!((&refusal["provider"], &refusal["available"]), (&json!("a"), &json!(100)));
                }
                (_, "one") => assert_eq!(answer.success().json()["quota"]["fits"], false),
                _ => assert_eq!(answer.success().json()["quota"]["fits"], true),
            }
        }
        let providers = scratch.json(["quota", "status"])["providers"].clone();
        for provider in [0, 1] {
            let held = &providers[provider]["reservations"];
            assert_eq!((held.as_array().unwrap().len(), &held[0]["tokens"]), (1, &json!(60)), "{providers}");
        }
        scratch.json(["work", "release", "two", "--session", "Ivy"]);
        let held = |provider: usize| {
            scratch.json(["quota", "status"])["providers"][provider]["reservations"].clone()
        };
        assert_eq!([held(0), held(1)], [json!([]), json!([])]);
        // With a default, only that counts.
        write_config(
            &scratch,
            &format!(r#"{{"quota": {{"enforce": "{enforce}", "defaultProvider": "b", {PROVIDERS}}}}}"#),
        );
        if enforce == "deny" {
            let next = claim(&scratch, "--next", "Ivy").success().json();
            assert_eq!((&next["item_id"], &next["quota"]["provider"]), (&json!("one"), &json!("b")));
            assert_eq!((held(0), &held(1)[0]["tokens"]), (json!([]), &json!(900_000_000)));
        }
    }
}

fn a_claim_gets_the_tokens_of_a_session_that_ended_on_another_board() {
    let scratch = enforcing("deny");
    create(&scratch, "one", "50k");
    let directory = scratch.path().canonicalize().unwrap().join("other");
    fs::create_dir(&directory).unwrap();
    let file = directory.join("board.db");
    let other = |call: &[&str]| {
        let call = ["--db", file.to_str().unwrap()].into_iter().chain(call.iter().copied());
        scratch.run(call.chain(["--json"])).success().json()
    };
    let elm = other(&["agent", "register", "--name", "Elm", "--session-hint", "elm"])["session_id"].clone();
    let elm = elm.as_str().unwrap();
    other(&["work", "create", "large", "--title", "Large", "--estimate", "80k"]);
    other(&["work", "claim", "large", "--session", elm]);
    let refusal = claim(&scratch, "one", "Ivy").refused(Code::QuotaExceeded);
    assert_eq!(refusal["available"], 0, "Elm works");
    // As a sweep, or a hook without time, ends it.
    blackboard::Board::open(&file).unwrap().agents().deregister(elm).unwrap();
    claim(&scratch, "one", "Ivy").success();
    assert_eq!(reservations(&scratch), [("one".to_owned(), 50_000)]);
    // A board that was deleted has no sessions.
    scratch.json(["work", "release", "one", "--session", "Ivy"]);
    other(&["agent", "register", "--name", "Elm", "--session-hint", "elm"]);
    other(&["work", "claim", "large", "--session", elm]);
    claim(&scratch, "one", "Ivy").refused(Code::QuotaExceeded);
    fs::remove_file(&file).unwrap();
    assert_eq!(reserved(&scratch), 0, "status releases them");
}

fn without_a_quota_a_claim_has_nothing_of_it() {
    let scratch = Scratch::new();
    register(&scratch, "Ivy");
    create(&scratch, "one", "900M");
    create(&scratch, "two", "900M");
    let shown = scratch.run(["work", "claim", "one", "--session", "Ivy"]).success();
    assert!(!format!("{}{}", shown.stdout, shown.stderr).to_lowercase().contains("quota"), "{shown:?}");
    for claimed in [
        scratch.json(["work", "claim", "--next", "--session", "Ivy"]),
        scratch.json(["work", "status", "two"]),
        scratch.json(["work", "complete", "two", "--session", "Ivy"]),
    ] {
        for field in ["quota", "tokens_used", "estimate_from_similar"] {
            assert_eq!(claimed.get(field), None, "{claimed}");
        }
    }
    assert!(!scratch.home_file("quota.db").exists());
}
