use super::*;

const CAPS: &str = r#"{"providers": {"a": {"windows": {"5h": {"budget": 1000}},
    "reservation": {"operator": 200, "agents": {"maxConcurrent": 2, "maxPerAgent": 500}}}}}"#;
const TTL: Duration = Duration::from_mins(30);

fn by(session: &str, tokens: u64) -> TokenRequest {
    TokenRequest {
        board: Some("b".to_owned()),
        session: Some(session.to_owned()),
        agent: Some(session.to_owned()),
        ..TokenRequest::new("a", tokens)
    }
}

#[test]
fn what_is_kept_for_the_operator_does_not_fit() {
    let stage = Stage::new(CAPS);
    assert!(stage.ledger.check(&TokenRequest::new("a", 800)).unwrap().fits);
    let check = stage.ledger.check(&TokenRequest::new("a", 801)).unwrap();
    assert_eq!((check.fits, check.available, check.fits_at), (false, Some(800), None));
    let reason = check.reason.unwrap().to_string();
    assert_eq!(
        reason,
        "the 5h window has 800 of 1,000 tokens left for agents (200 are kept for you, the operator)"
    );
}

#[test]
fn a_reservation_of_no_tokens_is_an_active_agent_and_is_not_listed() {
    testkit::limit_test();
    let stage = Stage::new(CAPS);
    stage.ledger.reserve(&by("s1", 0), TTL).unwrap();
    stage.ledger.reserve(&by("s2", 5), TTL).unwrap();
    let provider = stage.ledger.status().unwrap().providers.remove(0);
    let sessions: Vec<_> = provider.reservations.iter().map(|held| held.session.as_str()).collect();
    assert_eq!((sessions, provider.load.active_agents), (vec!["s2"], 2));
}

#[test]
fn a_refusal_names_when_the_tokens_fit() {
    let stage = Stage::with_windows(&[("1h", 1_000), ("5h", 1_500)]);
    stage.record("1", stage.now(), 600);
    stage.advance(10);
    stage.record("2", stage.now(), 300);
    let fits_at = |tokens| stage.ledger.check(&TokenRequest::new("a", tokens)).unwrap().fits_at;
    let at = |text: &str| Some(text.parse().unwrap());
    assert_eq!(fits_at(100), None, "it fits now");
    assert_eq!(fits_at(500), at("2026-02-03T16:31:00Z"));
    assert_eq!(fits_at(601), at("2026-02-03T20:31:00Z"), "the longer window decides");
    assert_eq!(fits_at(1_001), None, "it never fits");
    stage.ledger.reserve(&TokenRequest::new("a", 100), TTL).unwrap();
    assert_eq!(fits_at(100), at("2026-02-03T16:10:00Z"), "the reservation expires first");
}

#[test]
fn as_many_reservations_succeed_as_fit_together() {
    let stage = Stage::with_windows(&[("5h", 1_000)]);
    let reserved: Vec<_> =
        (0..50).map(|_| stage.ledger.reserve(&TokenRequest::new("a", 90), TTL).unwrap()).collect();
    assert_eq!(reserved.iter().filter(|one| one.check.fits && one.reservation.is_some()).count(), 11);
    assert_eq!(stage.ledger.reservations().unwrap().len(), 11);
    stage.advance(30);
    assert_eq!(stage.ledger.reservations().unwrap().len(), 0, "they have expired");
    assert!(stage.ledger.reserve(&TokenRequest::new("a", 1_000), TTL).unwrap().check.fits);
}

#[test]
fn reservations_are_released_by_id_by_session_and_when_sessions_end() {
    let stage = Stage::with_windows(&[("5h", 1_000)]);
    let reserve =
        |session: &str| stage.ledger.reserve(&by(session, 100), TTL).unwrap().reservation.unwrap().id;
    let (first, _, _, _) = (reserve("s1"), reserve("s1"), reserve("s2"), reserve("s3"));
    assert!(stage.ledger.release(&first).unwrap());
    assert!(!stage.ledger.release(&first).unwrap());
    assert_eq!(stage.ledger.release_session("b", "s1").unwrap(), 1);
    assert_eq!(stage.ledger.release_session("other", "s2").unwrap(), 0);
    assert_eq!(stage.ledger.release_ended(|board, session| board == "b" && session == "s2").unwrap(), 1);
    let left = stage.ledger.reservations().unwrap();
    assert_eq!(left.iter().map(|one| one.session.as_str()).collect::<Vec<_>>(), ["s3"]);
}

#[test]
fn usage_of_the_session_reduces_its_reservations() {
    let stage = Stage::with_windows(&[("5h", 1_000)]);
    let used = |id: &str, session: &str, input| {
        let usage = Usage { input, ..Usage::default() };
        let record = Record::new(id, "a", stage.now(), usage);
        stage
            .ledger
            .record(&[Record { board: Some("b".into()), session: Some(session.into()), ..record }])
            .unwrap();
    };
    let lefts = || -> Vec<u64> { stage.ledger.reservations().unwrap().iter().map(|one| one.left).collect() };
    stage.ledger.reserve(&by("s1", 100), TTL).unwrap();
    stage.advance(1);
    used("1", "s2", 50);
    assert_eq!(lefts(), [100], "another session");
    used("2", "s1", 130);
    assert_eq!(lefts(), [0]);
    stage.ledger.reserve(&by("s1", 100), TTL).unwrap();
    assert_eq!(lefts(), [0, 100], "earlier usage does not reduce a later reservation");
    stage.advance(1);
    used("3", "s1", 60);
    assert_eq!(lefts(), [0, 40]);
    let window = stage.ledger.status().unwrap().providers[0].windows[0].clone();
    assert_eq!((window.used, window.reserved, window.remaining), (240, 40, 720));
}

#[test]
fn a_used_reservation_does_not_grow_back() {
    let stage = Stage::with_windows(&[("5h", 10_000), ("7d", 10_000)]);
    let day = Duration::from_hours(24);
    stage.ledger.reserve(&by("s1", 100), day).unwrap();
    let lefts = || -> Vec<u64> { stage.ledger.reservations().unwrap().iter().map(|one| one.left).collect() };
    let used = |id: &str, input| {
        let usage = Usage { input, ..Usage::default() };
        let record = Record::new(id, "a", stage.now(), usage);
        let of = Record { board: Some("b".into()), session: Some("s1".into()), ..record };
        stage.ledger.record(&[of]).unwrap();
    };
    stage.advance(1);
    used("1", 100);
    assert_eq!(lefts(), [0]);
    stage.advance(8 * 60);
    used("2", 1);
    assert_eq!(stage.rows("SELECT count(*) FROM buckets WHERE width = 60"), 1, "the minute was folded");
    assert_eq!(lefts(), [0]);
    // A newer one is used first, and what is more than that does not come back with its end.
    let newer = stage.ledger.reserve(&by("s1", 50), day).unwrap().reservation.unwrap();
    stage.advance(1);
    used("3", 60);
    assert_eq!(lefts(), [0, 0]);
    assert!(stage.ledger.release(&newer.id).unwrap());
    assert_eq!((lefts(), stage.rows("SELECT count(*) FROM reservation_usage")), (vec![0], 1));
    assert_eq!(stage.ledger.release_session("b", "s1").unwrap(), 1);
    assert_eq!(stage.rows("SELECT count(*) FROM reservation_usage"), 0);
}

#[test]
fn tokens_of_which_the_number_is_not_known_do_not_fit_into_a_full_window() {
    let stage = Stage::with_windows(&[("5h", 1_000)]);
    let unknown = TokenRequest::new("a", 0);
    stage.record("1", stage.now(), 999);
    assert!(stage.ledger.check(&unknown).unwrap().fits);
    stage.record("2", stage.now(), 1);
    let check = stage.ledger.check(&unknown).unwrap();
    assert_eq!((check.fits, check.tokens, check.available), (false, 0, Some(0)));
    assert!(matches!(check.reason, Some(Reason::Window { .. })), "{check:?}");
    assert_eq!(check.fits_at, Some("2026-02-03T20:31:00Z".parse().unwrap()));
    assert!(!stage.ledger.reserve_for_claim(&by("s1", 0), TTL).unwrap().check.fits);
}

#[test]
fn caps_of_agents_apply_to_sessions() {
    let stage = Stage::new(CAPS);
    assert!(stage.ledger.reserve(&by("s1", 300), TTL).unwrap().check.fits);
    let over = stage.ledger.reserve(&by("s1", 201), TTL).unwrap().check;
    assert_eq!(over.reason, Some(Reason::Session { cap: 500, used: 0, reserved: 300 }));
    assert!(stage.ledger.reserve(&by("s2", 100), TTL).unwrap().check.fits);
    let third = stage.ledger.check(&by("s3", 1)).unwrap();
    assert_eq!(third.reason, Some(Reason::Agents { cap: 2, active: 2 }));
    assert!(stage.ledger.check(&by("s2", 1)).unwrap().fits, "it is one of the two");
}

#[test]
fn a_session_uses_the_provider_of_its_newest_record_or_the_default_one_or_any() {
    const PROVIDERS: &str = r#""providers": {"a": {}, "b": {}, "c": {}}"#;
    let mut stage = Stage::new(&format!("{{{PROVIDERS}}}"));
    let of = |stage: &Stage| stage.ledger.providers_of_session("b", "s").unwrap();
    assert_eq!(of(&stage), ["a", "b", "c"]);
    stage.reopen(&format!(r#"{{"defaultProvider": "b", {PROVIDERS}}}"#));
    assert_eq!(of(&stage), ["b"]);
    assert_eq!(stage.ledger.provider_for(None, None).unwrap(), "b");
    let record = Record::new("1", "c", stage.now(), Usage { input: 1, ..Usage::default() });
    let record = Record { board: Some("b".into()), session: Some("s".into()), ..record };
    stage.ledger.record(&[record]).unwrap();
    assert_eq!(of(&stage), ["c"]);
    assert_eq!(Stage::with_windows(&[("5h", 1)]).ledger.providers_of_session("b", "s").unwrap(), ["a"]);
}

#[test]
fn the_provider_is_named_or_that_of_the_model_or_the_only_one() {
    let stage = Stage::new(r#"{"providers": {"a": {}, "b": {}}, "models": {"gpt*": "b"}}"#);
    let provider = |provider, model| stage.ledger.provider_for(provider, model).ok();
    assert_eq!(provider(Some("a"), Some("gpt-5")).as_deref(), Some("a"));
    assert_eq!(provider(None, Some("gpt-5")).as_deref(), Some("b"));
    assert_eq!(provider(None, Some("other")), None);
    assert_eq!(provider(None, None), None);
    assert_eq!(provider(Some("c"), None), None);
    let only = Stage::with_windows(&[("5h", 1)]);
    assert_eq!(only.ledger.provider_for(None, Some("anything")).unwrap(), "a");
}
