//! Sessions: registering, ending, resolving.

use super::*;
use crate::agent::{AgentFilter, ListedAgent, ResolvedBy};
use crate::id::session_id_from_hint;
use crate::work::Block;

on_every_engine![
    session_registers_with_the_given_fields,
    same_session_hint_resumes_the_session_and_updates_given_fields,
    session_hint_reactivates_an_ended_or_stale_session,
    delegate_inherits_missing_fields_from_its_parent,
    generated_name_is_unique_and_kept_when_the_session_is_resumed,
    configured_name_is_unique_among_live_agents,
    delegates_without_names_are_numbered_from_the_second_on,
    parent_has_to_be_another_live_session,
    name_is_required_and_text_is_filtered,
    ending_a_session_releases_its_work,
    ending_a_session_ends_its_delegates_in_the_same_process,
    ending_a_session_again_changes_nothing,
    agents_are_listed_under_their_parents,
    list_and_details_agree_on_processes,
    list_checks_no_process_of_an_ended_session,
    a_process_that_does_not_run_is_refused,
    ended_session_cannot_act,
    another_process_is_watched_only_for_a_session_whose_own_is_gone,
    a_session_is_found_by_id_prefix_name_or_hint,
    the_sessions_of_a_process_are_found,
    verb_of_a_session_counts_as_a_sign_of_life,
];

fn hinted(hint: &str) -> Register {
    Register { session_hint: Some(hint.to_owned()), ..Register::named("Ivy") }
}

fn session_registers_with_the_given_fields(fixture: &Fixture) {
    let mark = fixture.processes.start(4711);
    let request = Register {
        project: Some("pai".to_owned()),
        work: Some("Design".to_owned()),
        pid: Some(4711),
        metadata: Some(Metadata::parse(r#"{"a": 1}"#).unwrap()),
        ..Register::named("Ivy")
    };
    let registered = fixture.board.agents().register(&request).unwrap();
    assert!(!registered.resumed);
    let agent = registered.agent;
    assert_eq!(agent, fixture.agent(&agent.session_id));
    assert_eq!(agent.process, Some(mark));
    assert_eq!((agent.status, agent.pid, agent.ended_at), (AgentStatus::Active, Some(4711), None));
    assert_eq!((agent.revision, agent.joined), (fixture.id(1), fixture.id(1)));
    assert_eq!([agent.started_at, agent.last_seen_at, agent.last_beat_at], [fixture.now(); 3]);
    let event = &fixture.events()[0];
    assert_eq!(event.event_type, EventType::AgentRegistered);
    assert_eq!(event.summary, "Agent \"Ivy\" registered on project \"pai\"");
    assert_eq!(event.actor_id.as_ref(), Some(&agent.session_id));
    assert_eq!(event.target_id.as_ref(), Some(&agent.session_id));
    assert_eq!(event.target_type, Some(TargetType::Agent));
}

fn same_session_hint_resumes_the_session_and_updates_given_fields(fixture: &Fixture) {
    let first = fixture.register(&Register { work: Some("Design".to_owned()), ..hinted("terminal-1") });
    assert_eq!(first.session_id, session_id_from_hint("terminal-1"));
    fixture.pass(10);
    let (again, recorded) =
        fixture.events_of(|| fixture.board.agents().register(&hinted("terminal-1")).unwrap());
    assert!(again.resumed);
    assert!(recorded.is_empty(), "nothing that others see has changed");
    assert_eq!(
        again.agent,
        Agent { last_seen_at: fixture.now(), last_beat_at: fixture.now(), ..first.clone() }
    );
    let other = Register { project: Some("pai".to_owned()), ..hinted("terminal-1") };
    let (changed, recorded) = fixture.events_of(|| fixture.register(&other));
    assert_eq!(recorded, [EventType::AgentUpdated]);
    assert_eq!(changed.current_work.as_deref(), Some("Design"));
    assert_eq!(changed.joined, first.joined);
    assert_eq!(changed.started_at, first.started_at);
}

fn session_hint_reactivates_an_ended_or_stale_session(fixture: &Fixture) {
    let first = fixture.register(&hinted("terminal-1"));
    fixture.board.agents().deregister(&first.session_id).unwrap();
    fixture.pass(10);
    let (back, recorded) = fixture.events_of(|| fixture.register(&hinted("terminal-1")));
    assert_eq!(recorded, [EventType::AgentRegistered]);
    assert_eq!((back.status, back.ended_at), (AgentStatus::Active, None));
    assert_eq!((back.started_at, back.joined), (fixture.now(), fixture.id(3)));

    fixture.pass(301);
    assert_eq!(fixture.sweep().stale_agents.len(), 1);
    let (back, recorded) = fixture.events_of(|| fixture.register(&hinted("terminal-1")));
    assert_eq!(recorded, [EventType::AgentRecovered]);
    assert_eq!((back.status, back.ended_at), (AgentStatus::Active, None));
    assert_eq!(back.joined, fixture.id(3), "it is the same session, which was away for a while");
}

fn delegate_inherits_missing_fields_from_its_parent(fixture: &Fixture) {
    fixture.processes.start(10);
    fixture.processes.start(11);
    let parent = fixture.register(&Register {
        project: Some("pai".to_owned()),
        pid: Some(10),
        ..Register::named("Ivy")
    });
    let delegate = |request: Register| {
        fixture.register(&Register { parent: Some(parent.session_id.clone()), ..request })
    };
    let same = delegate(Register { pid: Some(10), ..Register::default() });
    assert_eq!(same.agent_name, "Ivy (delegate)");
    assert_eq!(same.project.as_deref(), Some("pai"));
    assert_eq!(same.parent_id, Some(parent.session_id.clone()));
    assert!(same.shares_process);
    let own =
        delegate(Register { pid: Some(11), project: Some("other".to_owned()), ..Register::named("Oak") });
    assert_eq!((own.agent_name.as_str(), own.project.as_deref()), ("Oak", Some("other")));
    assert!(!own.shares_process);
    assert!(!delegate(Register::default()).shares_process, "unknown without a PID");
    let recorded = delegate(Register { shares_process: true, ..Register::default() });
    assert!(recorded.shares_process, "the caller knows it without a PID");
    fixture.processes.start(10);
    let reused = delegate(Register { pid: Some(10), ..Register::default() });
    assert!(!reused.shares_process, "another process has that number now");
}

/// Two hints whose sessions have the same first four characters.
fn hints_with_one_prefix() -> [String; 2] {
    let mut seen = std::collections::BTreeMap::new();
    for number in 0.. {
        let hint = format!("claude:{number}");
        if let Some(other) = seen.insert(session_id_from_hint(&hint)[..4].to_owned(), hint.clone()) {
            return [other, hint];
        }
    }
    unreachable!("there are more hints than prefixes")
}

fn generated_name_is_unique_and_kept_when_the_session_is_resumed(fixture: &Fixture) {
    let generated = |hint: &str| Register {
        name_base: Some("claude".to_owned()),
        session_hint: Some(hint.to_owned()),
        ..Register::default()
    };
    let name_of = |hint: &str| fixture.register(&generated(hint)).agent_name;
    let end = |hint: &str| fixture.board.agents().deregister(&session_id_from_hint(hint)).unwrap();
    let [first, second] = hints_with_one_prefix();
    let name = |hint: &str, length: usize| format!("claude-{}", &session_id_from_hint(hint)[..length]);
    assert_eq!(name_of(&first), name(&first, 4));
    let longer = name_of(&second);
    assert!(longer.len() > name(&second, 4).len() && longer.starts_with(&name(&second, 4)), "{longer}");
    for hint in [&first, &second] {
        let before = fixture.agent(&session_id_from_hint(hint)).agent_name;
        assert_eq!(name_of(hint), before, "it is active");
        end(hint);
        assert_eq!(name_of(hint), before, "it is resumed");
    }
    // A name that another agent has meanwhile is not given a second time.
    end(&first);
    fixture.register(&Register::named(&name(&first, 4)));
    assert_eq!(name_of(&first), name(&first, 5));
    // A given name is kept as it is.
    for hint in ["terminal-1", "terminal-2"] {
        assert_eq!(
            fixture.register(&Register { name: Some("Ivy".to_owned()), ..generated(hint) }).agent_name,
            "Ivy"
        );
        assert_eq!(fixture.register(&generated(hint)).agent_name, "Ivy", "it is active");
    }
}

fn configured_name_is_unique_among_live_agents(fixture: &Fixture) {
    let register = |hint: &str, name: &str| {
        let request = Register {
            configured_name: Some(name.to_owned()),
            name_base: Some("claude".to_owned()),
            session_hint: Some(hint.to_owned()),
            ..Register::default()
        };
        fixture.register(&request).agent_name
    };
    let end = |hint: &str| fixture.board.agents().deregister(&session_id_from_hint(hint)).unwrap();
    let second = format!("Ivy-{}", &session_id_from_hint("b")[..4]);
    assert_eq!(register("a", "Ivy"), "Ivy");
    assert_eq!(register("b", "Ivy"), second);
    for (hint, name) in [("a", "Ivy"), ("b", second.as_str())] {
        assert_eq!(register(hint, "Ivy"), name, "it is active");
        end(hint);
        assert_eq!(register(hint, "Ivy"), name, "it is resumed");
    }
    end("a");
    assert_eq!(register("b", "Ivy"), second, "it keeps its name");
    assert_eq!(register("b", "Oak"), "Oak", "the configuration changed");
    // A name that is given by hand is kept as it is, and counts.
    assert_eq!(fixture.register(&Register::named("Oak")).agent_name, "Oak");
    assert_eq!(register("c", "Oak"), format!("Oak-{}", &session_id_from_hint("c")[..4]));
}

fn delegates_without_names_are_numbered_from_the_second_on(fixture: &Fixture) {
    let parents = [(); 2].map(|()| fixture.register(&Register::named("Ivy")).session_id);
    let delegate = |parent: usize, hint: &str| {
        let request = Register {
            parent: Some(parents[parent].clone()),
            session_hint: Some(hint.to_owned()),
            ..Register::default()
        };
        fixture.register(&request).agent_name
    };
    assert_eq!(delegate(0, "a"), "Ivy (delegate)");
    assert_eq!(delegate(0, "b"), "Ivy (delegate 2)");
    assert_eq!(delegate(1, "c"), "Ivy (delegate 3)", "names are unique on the board");
    fixture.board.agents().deregister(&session_id_from_hint("a")).unwrap();
    assert_eq!(delegate(0, "d"), "Ivy (delegate)", "the first one has ended");
    assert_eq!(delegate(0, "b"), "Ivy (delegate 2)");
    assert_eq!(delegate(0, "a"), "Ivy (delegate 4)", "its name is taken now");
}

fn parent_has_to_be_another_live_session(fixture: &Fixture) {
    let register = |hint: &str, parent: &str| {
        let parent = Some(parent.to_owned());
        fixture
            .board
            .agents()
            .register(&Register { parent, ..hinted(hint) })
            .map(|done| done.agent.session_id)
    };
    assert_eq!(code(register("a", "unknown")), Code::AgentNotFound);
    let a = fixture.register(&hinted("a")).session_id;
    let b = register("b", &a).unwrap();
    let c = register("c", &b).unwrap();
    for parent in [&a, &b, &c] {
        assert_eq!(code(register("a", parent)), Code::InvalidValue, "a would be its own ancestor");
    }
    register("c", &a).unwrap();
    fixture.board.agents().deregister(&b).unwrap();
    assert_eq!(code(register("d", &b)), Code::SessionEnded);
    fixture.pass(301);
    fixture.sweep();
    assert_eq!(code(register("d", &a)), Code::SessionStale);
}

fn name_is_required_and_text_is_filtered(fixture: &Fixture) {
    let register = |request: Register| fixture.board.agents().register(&request);
    assert_eq!(code(register(Register::default())), Code::InvalidValue);
    assert_eq!(code(register(Register::named("<b></b>"))), Code::InvalidValue);
    assert_eq!(code(register(hinted("two\nlines"))), Code::InvalidValue);
    let secret = format!("ghp_{}", "a1B2c3D4e5F6".repeat(3));
    assert_eq!(code(register(Register::named(&secret))), Code::SecretLooking);
    for name in ["I\u{1b}[31mvy", "Ivy\n", "I\u{fe0f}vy", "I\u{200d}vy"] {
        assert_eq!(code(register(Register::named(name))), Code::InvalidValue, "{name:?}");
    }
    assert!(fixture.events().is_empty());
    let agent = register(Register { project: Some(String::new()), ..Register::named("<b>Ivy</b>") }).unwrap();
    assert_eq!((agent.agent.agent_name.as_str(), agent.agent.project), ("Ivy", None));
}

fn ending_a_session_releases_its_work(fixture: &Fixture) {
    let session = fixture.session("Ivy");
    for id in ["x", "y", "done"] {
        fixture.item(id);
        fixture.claim(id, &session);
    }
    fixture.complete("done", &session);
    let block = Block { id: "y".to_owned(), blocked_by: owned(&["later"]), ..Block::default() };
    fixture.board.work().block(&block).unwrap();
    fixture.pass(47 * 60);
    let (ended, recorded) = fixture.events_of(|| fixture.board.agents().deregister(&session).unwrap());
    assert_eq!(recorded, [EventType::WorkReleased, EventType::WorkReleased, EventType::AgentDeregistered]);
    assert_eq!(ended.released, ["x", "y"]);
    assert_eq!((ended.duration_seconds, ended.already_ended), (47 * 60, false));
    let events = fixture.events();
    let [.., released, _, goodbye] = &events[..] else { panic!() };
    assert_eq!(released.summary, "Agent \"Ivy\" released \"Title of x\"");
    assert_eq!(goodbye.commit_id, released.commit_id, "all at once");
    let agent = fixture.agent(&session);
    assert_eq!((agent.status, agent.ended_at), (AgentStatus::Completed, Some(fixture.now())));
    assert_eq!(agent.current_work, None);
    assert_eq!(agent.revision, goodbye.id);
    for (id, status, holder) in [
        ("x", Status::Available, None),
        ("y", Status::Blocked, None),
        ("done", Status::Completed, Some(session.clone())),
    ] {
        let item = fixture.work(id);
        assert_eq!((item.status, item.claimed_by), (status, holder), "{id}");
    }
}

fn ending_a_session_ends_its_delegates_in_the_same_process(fixture: &Fixture) {
    fixture.processes.start(10);
    fixture.processes.start(11);
    let register = |parent: Option<&str>, pid| {
        let parent = parent.map(str::to_owned);
        fixture.register(&Register { parent, pid: Some(pid), ..Register::named("Ivy") }).session_id
    };
    let parent = register(None, 10);
    let inside = register(Some(&parent), 10);
    let outside = register(Some(&parent), 11);
    let below = register(Some(&inside), 10);
    fixture.item("x");
    fixture.claim("x", &below);
    let ended = fixture.board.agents().deregister(&parent).unwrap();
    assert_eq!(ended.delegates, [inside.as_str(), below.as_str()]);
    assert_eq!(ended.released, ["x"]);
    assert_eq!(fixture.agent(&inside).status, AgentStatus::Completed);
    assert_eq!(fixture.agent(&below).status, AgentStatus::Completed);
    assert_eq!(fixture.agent(&outside).status, AgentStatus::Active);
}

fn ending_a_session_again_changes_nothing(fixture: &Fixture) {
    let session = fixture.session("Ivy");
    fixture.pass(60);
    fixture.board.agents().deregister(&session).unwrap();
    fixture.pass(60);
    let (again, recorded) = fixture.events_of(|| fixture.board.agents().deregister(&session).unwrap());
    assert!(again.already_ended && recorded.is_empty());
    assert_eq!(again.duration_seconds, 60);
    assert_eq!(code(fixture.board.agents().deregister("unknown")), Code::AgentNotFound);
}

fn agents_are_listed_under_their_parents(fixture: &Fixture) {
    let register = |name: &str, parent: Option<&str>, project: &str| {
        fixture.pass(1);
        let request = Register {
            parent: parent.map(str::to_owned),
            project: Some(project.to_owned()),
            ..Register::named(name)
        };
        fixture.register(&request).session_id
    };
    let first = register("first", None, "p");
    register("second", None, "q");
    register("of first", Some(&first), "p");
    let ended = register("ended", None, "p");
    register("of ended", Some(&ended), "p");
    fixture.board.agents().deregister(&ended).unwrap();
    let list = |filter: &AgentFilter| {
        let agents = fixture.board.agents().list(filter).unwrap();
        agents
            .iter()
            .map(|listed| format!("{}{}", "+".repeat(listed.depth), listed.agent.agent_name))
            .collect::<Vec<_>>()
    };
    assert_eq!(list(&AgentFilter::default()), ["first", "+of first", "second", "of ended"]);
    let of_project = AgentFilter { project: Some("q".to_owned()), ..AgentFilter::default() };
    assert_eq!(list(&of_project), ["second"]);
    let all = AgentFilter { statuses: AgentStatus::ALL.to_vec(), project: None };
    assert_eq!(list(&all), ["first", "+of first", "second", "ended", "+of ended"]);
    let completed = AgentFilter { statuses: vec![AgentStatus::Completed], project: None };
    assert_eq!(list(&completed), ["ended"]);
}

fn list_and_details_agree_on_processes(fixture: &Fixture) {
    for (name, pid) in [("runs", 10), ("gone", 11), ("reused", 12)] {
        fixture.session_of_process(name, pid);
    }
    fixture.session("unknown");
    fixture.processes.end(11);
    fixture.processes.start(12);
    let listed = fixture.board.agents().list(&AgentFilter::default()).unwrap();
    let judged: Vec<_> = listed.iter().map(|row| (&*row.agent.agent_name, row.process)).collect();
    let expected = [("runs", "alive"), ("gone", "dead"), ("reused", "dead"), ("unknown", "unknown")];
    assert_eq!(judged, expected);
    for row in &listed {
        assert_eq!(fixture.board.agents().show(&row.agent.session_id).unwrap().process, row.process);
    }
    let names = |listed: &[ListedAgent]| -> Vec<_> {
        let agents = listed.iter().map(|row| (row.agent.agent_name.clone(), row.process));
        agents.filter(|(name, _)| name != "reader").collect()
    };
    assert_eq!(names(&fixture.board.status().unwrap().active_agents), names(&listed));
    let reader = fixture.session("reader");
    let mut in_brief = names(&fixture.board.brief(&reader).unwrap().agents);
    let overview = fixture.board.agents().overview(AgentStatus::ALL).unwrap().agents.into_iter();
    let mut in_overview: Vec<_> = overview.map(|seen| (seen.agent.agent_name, seen.process)).collect();
    in_overview.retain(|(name, _)| name != "reader");
    let mut expected = names(&listed);
    for agents in [&mut in_brief, &mut in_overview, &mut expected] {
        agents.sort_unstable();
    }
    assert_eq!((&in_brief, &in_overview), (&expected, &expected));
}

fn list_checks_no_process_of_an_ended_session(fixture: &Fixture) {
    let sessions = [("live", 10), ("completed", 11)].map(|(name, pid)| fixture.session_of_process(name, pid));
    for pid in [10, 11] {
        fixture.processes.end(pid);
    }
    fixture.board.agents().deregister(&sessions[1]).unwrap();
    let all = AgentFilter { statuses: AgentStatus::ALL.to_vec(), project: None };
    let listed = fixture.board.agents().list(&all).unwrap();
    let judged: Vec<_> = listed.iter().map(|row| (&*row.agent.agent_name, row.process)).collect();
    assert_eq!(judged, [("live", "dead"), ("completed", "unknown")]);
}

fn a_process_that_does_not_run_is_refused(fixture: &Fixture) {
    let request = Register { pid: Some(4711), ..Register::named("Ivy") };
    let refused = fixture.board.agents().register(&request).unwrap_err();
    assert_eq!((refused.code(), &refused.details().unwrap()["pid"]), (Code::InvalidValue, &4711.into()));
    assert_eq!(fixture.revision(), Revision::ZERO);
    fixture.processes.start(4711);
    assert_eq!(fixture.register(&request).pid, Some(4711));
}

fn ended_session_cannot_act(fixture: &Fixture) {
    let resolve = |text: &str| fixture.board.agents().resolve_to_act(text);
    let ivy = fixture.register(&hinted("terminal-1")).session_id;
    fixture.pass(301);
    fixture.sweep();
    for text in [&*ivy, &ivy[..8], "terminal-1"] {
        assert_eq!(resolve(text).unwrap().session_id, ivy, "a heartbeat brings a stale session back");
    }
    fixture.board.agents().deregister(&ivy).unwrap();
    for text in [&*ivy, &ivy[..8], "terminal-1"] {
        assert_eq!(code(resolve(text)), Code::SessionEnded, "{text}");
    }
    assert_eq!(code(resolve("unknown")), Code::AgentNotFound);
}

fn another_process_is_watched_only_for_a_session_whose_own_is_gone(fixture: &Fixture) {
    let watch = |session: &str, pid| fixture.board.agents().watch_instead(session, pid).unwrap();
    let ivy = fixture.session_of_process("Ivy", 10);
    let delegate = Register { parent: Some(ivy.clone()), pid: Some(10), ..Register::default() };
    let delegate = fixture.register(&delegate).session_id;
    let oak = fixture.session("Oak");
    fixture.processes.start(11);
    let (watched, recorded) = fixture.events_of(|| watch(&ivy, 11));
    assert!(!watched && recorded.is_empty(), "its process runs");
    fixture.processes.end(10);
    assert!(!watch(&ivy, 12), "that process does not run");
    assert!(!watch(&delegate, 11), "it shares the process of its parent");
    assert!(!watch(&oak, 11), "only the time decides about it");
    assert!(!watch("unknown", 11));
    fixture.pass(9);
    let (watched, recorded) = fixture.events_of(|| watch(&ivy, 11));
    assert_eq!((watched, &recorded[..]), (true, &[EventType::AgentUpdated][..]));
    let agent = fixture.agent(&ivy);
    assert_eq!((agent.pid, agent.last_beat_at), (Some(11), fixture.now()));
    fixture.pass(301);
    assert!(fixture.sweep().pids_verified.contains(&ivy));
    fixture.processes.end(11);
    fixture.pass(301);
    fixture.sweep();
    assert_eq!(fixture.agent(&ivy).status, AgentStatus::Stale);
    fixture.processes.start(13);
    assert!(!watch(&ivy, 13), "only a live session has a process");
}

fn a_session_is_found_by_id_prefix_name_or_hint(fixture: &Fixture) {
    let resolve = |text: &str| fixture.board.agents().resolve(text);
    let hinted = fixture.register(&hinted("terminal-1")).session_id;
    let counted = fixture.session("Ivy");
    assert_eq!(resolve(&counted).unwrap(), (counted.clone(), ResolvedBy::Id));
    assert_eq!(resolve("terminal-1").unwrap(), (hinted.clone(), ResolvedBy::Hint));
    assert_eq!(resolve(&hinted[..6]).unwrap(), (hinted.clone(), ResolvedBy::Prefix));
    assert_eq!(code(resolve(&hinted[..5])), Code::AgentNotFound);
    assert_eq!(resolve(&counted[..8]).unwrap(), (counted.clone(), ResolvedBy::Prefix));
    fixture.board.agents().deregister(&hinted).unwrap();
    assert_eq!(resolve("terminal-1").unwrap(), (hinted.clone(), ResolvedBy::Hint));
    let namesake = fixture.session("terminal-1");
    assert_eq!(
        resolve("terminal-1").unwrap(),
        (namesake.clone(), ResolvedBy::Name),
        "a live agent comes first"
    );
    fixture.board.agents().deregister(&namesake).unwrap();
    assert_eq!(resolve("Ivy").unwrap(), (counted.clone(), ResolvedBy::Name));
    let oak = fixture.session("Oak");
    assert_eq!(code(resolve(&counted[..8])), Code::AmbiguousSession);
    let other = fixture.session("Ivy");
    let refused = resolve("Ivy").unwrap_err();
    // The ids of this fixture differ in their last characters.
    let message = format!("\"Ivy\" matches 2 sessions: Ivy ({counted}), active; Ivy ({other}), active");
    assert_eq!((refused.code(), refused.to_string()), (Code::AmbiguousSession, message));
    fixture.board.agents().deregister(&other).unwrap();
    assert_eq!(resolve("Ivy").unwrap().0, counted, "an ended agent does not share its name");
    fixture.board.agents().deregister(&oak).unwrap();
    assert_eq!(resolve("Oak").unwrap(), (oak, ResolvedBy::Name), "no live agent has its name");
    fixture.pass(1);
    let newer = fixture.session("Oak");
    fixture.board.agents().deregister(&newer).unwrap();
    assert_eq!(resolve("Oak").unwrap().0, newer, "the one that was seen last");
    fixture.pass(1);
    let live = fixture.session("Oak");
    assert_eq!(resolve("Oak").unwrap().0, live, "a live agent comes first");
    assert_eq!(code(resolve("")), Code::InvalidValue);
}

fn the_sessions_of_a_process_are_found(fixture: &Fixture) {
    let ivy = fixture.session_of_process("Ivy", 10);
    fixture.session_of_process("Oak", 11);
    let found = |pid| -> Vec<String> {
        let agents = fixture.board.agents().of_process(pid).unwrap();
        agents.into_iter().map(|agent| agent.session_id).collect()
    };
    assert_eq!(found(10), [ivy.as_str()]);
    assert!(found(12).is_empty());
    fixture.processes.start(10);
    assert!(found(10).is_empty(), "the number belongs to another process now");
}

fn verb_of_a_session_counts_as_a_sign_of_life(fixture: &Fixture) {
    let session = fixture.session("Ivy");
    fixture.item("x");
    let registered = fixture.now();
    fixture.pass(4);
    fixture.claim("x", &session);
    assert_eq!(fixture.agent(&session).last_seen_at, registered, "not more often than every 5 s");
    fixture.pass(1);
    fixture.release("x", &session);
    let agent = fixture.agent(&session);
    assert_eq!((agent.last_seen_at, agent.last_beat_at), (fixture.now(), fixture.now()));
    assert_eq!(agent.current_work, None, "a released item is not worked on");
    // With a short threshold it is recorded sooner, so that the session is not swept meanwhile.
    let board = fixture.with_settings(|settings| settings.stale_threshold = Duration::from_secs(20));
    fixture.pass(3);
    board.work().claim(&Claim::of("x", &session)).unwrap();
    assert_eq!(fixture.agent(&session).last_seen_at, agent.last_seen_at);
    fixture.pass(1);
    board.work().claim(&Claim::of("x", &session)).unwrap();
    assert_eq!(fixture.agent(&session).last_seen_at, fixture.now());
}
