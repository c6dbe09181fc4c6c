//! Memory: levels are scopes with rules, and no record is lost between them.

use std::collections::BTreeSet;

use super::*;
use crate::entry::Query;
use crate::memory::{
    Batch, BatchReason, Compact, Content, Define, Drain, Lens, LevelRules, Promote, Recall, Recalled,
    Relevance, Remember, Remembered, SEED_LEVELS, Usefulness,
};
use crate::scope::{
    AccessRule, AccessRules, CreateScope, DeleteScope, Effect, Policies, SetScope, Visibility,
};
use crate::search::IndexLocation;
use crate::store::{BookkeepingRow, Key};

on_every_engine![
    levels_of_the_seed_are_scopes_with_its_thresholds,
    levels_can_be_redefined_and_never_form_a_cycle,
    a_record_is_an_entry_with_id_content_tags_and_time,
    the_same_text_is_one_record,
    keys_outside_of_the_patterns_do_not_belong_to_a_level,
    recall_filters_by_tags_time_pattern_and_words_before_the_limit,
    decay_changes_the_score_and_writes_nothing,
    feedback_is_a_moving_average,
    lenses_choose_levels_time_and_number,
    working_memory_moves_on_at_five_records_or_after_two_minutes,
    a_level_takes_only_what_its_rules_allow,
    draining_continues_until_nothing_is_left,
    what_a_level_does_not_take_stays_and_is_not_offered_again,
    records_with_the_same_key_replace_each_other_nowhere,
    promoted_records_move_together,
    a_session_that_ends_leaves_its_working_memory,
    a_stale_session_leaves_its_working_memory,
    a_kill_before_the_records_of_a_session_have_moved_loses_nothing,
    a_level_is_compacted_at_nine_tenths_of_its_tokens,
    a_summary_replaces_its_records_which_stay_in_history,
    summaries_of_episodes_become_skills,
    deleted_records_are_gone_together,
    a_level_that_is_missing_loses_no_record,
    policies_of_a_target_that_refuse_a_record_keep_it_where_it_is,
    moves_by_rule_ask_no_caller_and_moves_by_call_do,
    a_level_that_the_caller_may_not_use_is_left_out,
    the_map_shows_levels_edges_and_missing_parts,
    other_programs_may_write_into_a_level,
    a_brief_has_the_best_records_for_the_claimed_item,
];

fn in_level(level: &str, text: &str) -> Remember {
    Remember { level: Some(level.to_owned()), ..Remember::text(text) }
}

fn by(session: &str, remember: Remember) -> Remember {
    Remember { actor: Actor::session(session), ..remember }
}

fn relevant(relevance: f64, remember: Remember) -> Remember {
    Remember { relevance: Some(Relevance::new(relevance).unwrap()), ..remember }
}

fn tagged(tags: &[&str], remember: Remember) -> Remember {
    Remember { tags: owned(tags), ..remember }
}

fn define(fixture: &Fixture, name: &str, rules: LevelRules) {
    let define = Define { name: name.to_owned(), rules, session: None };
    fixture.board.memories().define(&define).unwrap();
}

fn next(levels: &[&str]) -> LevelRules {
    LevelRules { next: owned(levels), ..LevelRules::default() }
}

fn seed(fixture: &Fixture) {
    fixture.board.memories().define_seed(None).unwrap();
}

fn remember(fixture: &Fixture, request: &Remember) -> Remembered {
    fixture.board.memories().remember(request).unwrap()
}

fn drain(fixture: &Fixture, level: &str) -> crate::memory::Drained {
    let drain = Drain { level: Some(level.to_owned()), ..Drain::default() };
    fixture.board.memories().drain(&drain).unwrap()
}

/// The texts of a level, sorted.
fn texts(fixture: &Fixture, level: &str) -> Vec<String> {
    let recall = Recall { levels: owned(&[level]), limit: Some(100_000), ..Recall::default() };
    let mut texts: Vec<_> = fixture
        .board
        .memories()
        .recall(&recall, &IndexLocation::Memory)
        .unwrap()
        .records
        .into_iter()
        .map(|record| record.text)
        .collect();
    texts.sort_unstable();
    texts
}

fn found(fixture: &Fixture, recall: &Recall) -> Vec<String> {
    let Recalled { records, .. } = fixture.board.memories().recall(recall, &IndexLocation::Memory).unwrap();
    records.into_iter().map(|record| record.text).collect()
}

fn levels_of_the_seed_are_scopes_with_its_thresholds(fixture: &Fixture) {
    let (defined, events) = fixture.events_of(|| fixture.board.memories().define_seed(None).unwrap());
    assert_eq!(events, vec![EventType::ScopeCreated; SEED_LEVELS.len()]);
    assert!(defined.levels.iter().all(|level| level.changed && level.missing.is_empty()));
    let levels = fixture.board.memories().levels().unwrap();
    let mut names: Vec<_> = levels.iter().map(|level| level.level.as_str()).collect();
    let mut expected = SEED_LEVELS.to_vec();
    names.sort_unstable();
    expected.sort_unstable();
    assert_eq!(names, expected);
    let rules = |name: &str| levels.iter().find(|level| level.level == name).unwrap().rules.clone();
    let seconds = |seconds| Some(Duration::from_secs(seconds));
    let working = rules("working");
    assert_eq!((working.ttl, working.tokens, working.half_life), (seconds(3600), Some(8000), None));
    let short = rules("short-term");
    assert_eq!((short.ttl, short.max_entries), (seconds(3600), Some(100)));
    let taking = |name: &str| {
        let rules = rules(name);
        (rules.takes_at, rules.takes_after, rules.min_relevance.map(Relevance::value))
    };
    assert_eq!(taking("short-term"), (Some(5), seconds(120), None));
    assert_eq!(taking("episodic"), (Some(10), seconds(600), Some(0.3)));
    assert_eq!(taking("semantic"), (Some(15), seconds(900), Some(0.5)));
    assert_eq!(taking("procedural"), (Some(20), seconds(1800), None));
    assert_eq!(rules("episodic").without_tags, ["reflection", "semantic", "knowledge", "skill"]);
    assert_eq!(rules("semantic").without_tags, ["ephemeral", "procedural", "skill", "action"]);
    assert!(rules("procedural").by_summary);
    // A level is a scope: its policies and its events are those of a scope, and an export has its rules.
    let shown = fixture.board.scopes().show("memory:working").unwrap();
    assert_eq!(shown.policies.level, Some(working));
    assert_eq!(fixture.board.export().unwrap().scopes.len(), SEED_LEVELS.len());
    let (again, events) = fixture.events_of(|| fixture.board.memories().define_seed(None).unwrap());
    assert!(again.levels.iter().all(|level| !level.changed));
    assert_eq!(events, []);
}

fn levels_can_be_redefined_and_never_form_a_cycle(fixture: &Fixture) {
    seed(fixture);
    define(fixture, "working", next(&["episodic"]));
    assert!(!fixture.board.memories().define_seed(None).unwrap().levels[0].changed);
    let refused = |name: &str, rules| {
        let define = Define { name: name.to_owned(), rules, session: None };
        code(fixture.board.memories().define(&define))
    };
    assert_eq!(refused("procedural", next(&["working"])), Code::DependencyCycle);
    assert_eq!(refused("procedural", next(&["procedural"])), Code::DependencyCycle);
    let at_end = LevelRules { at_end: Some("episodic".to_owned()), ..LevelRules::default() };
    assert_eq!(refused("procedural", at_end), Code::DependencyCycle);
    assert_eq!(refused("a b", next(&[])), Code::InvalidValue);
    // A scope that has policies keeps them, and `scope set` keeps the rules.
    fixture
        .board
        .scopes()
        .set(&SetScope { max_entries: Some(Some(9)), ..SetScope::of("memory:working") })
        .unwrap();
    define(fixture, "working", next(&["semantic"]));
    let shown = fixture.board.scopes().show("memory:working").unwrap();
    assert_eq!((shown.policies.max_entries, shown.policies.level), (Some(9), Some(next(&["semantic"]))));
}

fn a_record_is_an_entry_with_id_content_tags_and_time(fixture: &Fixture) {
    seed(fixture);
    let ivy = fixture.session("Ivy");
    let request =
        relevant(0.8, tagged(&["trap"], by(&ivy, Remember::text("Do not edit\u{200b} schema.sql"))));
    let (remembered, events) = fixture.events_of(|| remember(fixture, &request));
    assert_eq!(events, [EventType::EntryWritten]);
    assert!(remembered.key.starts_with("memory_record:"), "{}", remembered.key);
    assert_eq!((remembered.level.as_str(), remembered.created, remembered.written), ("working", true, true));
    assert_eq!(remembered.text.filtered, ["text"]);
    let entry = fixture.board.scope("memory:working").entry(&remembered.key).unwrap().unwrap();
    assert_eq!(entry.value.as_str(), "\"Do not edit schema.sql\"");
    assert_eq!((entry.revision, entry.updated_by.as_str()), (remembered.revision, "Ivy"));
    assert_eq!(entry.tags, [format!("session:{ivy}"), "trap".to_owned()]);
    let record = fixture
        .board
        .memories()
        .recall(&Recall::default(), &IndexLocation::Memory)
        .unwrap()
        .records
        .remove(0);
    assert_eq!((record.tags, record.remembered_by.as_str()), (owned(&["trap"]), "Ivy"));
    assert_eq!((record.remembered_at, record.parts.relevance), (fixture.now(), 0.8));
    // JSON is stored as it is; without a session, the level is short-term.
    let json = Remember { content: Content::Json(json(r#"{"cmd": "make"}"#)), ..Remember::text("") };
    let remembered = remember(fixture, &json);
    assert_eq!(remembered.level, "short-term");
    assert_eq!(texts(fixture, "short-term"), [r#"{"cmd": "make"}"#]);
    // Text is bounded, and credentials are refused.
    let long = remember(fixture, &Remember::text(&"long ".repeat(2_000)));
    assert_eq!(long.text.shortened, ["text"]);
    let token = format!("gh{}_{}", "p", "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8");
    assert_eq!(code(fixture.board.memories().remember(&Remember::text(&token))), Code::SecretLooking);
    assert_eq!(code(fixture.board.memories().remember(&Remember::text(" "))), Code::InvalidValue);
    let tag = tagged(&["session:x"], Remember::text("a"));
    assert_eq!(code(fixture.board.memories().remember(&tag)), Code::InvalidValue);
    assert_eq!(code(fixture.board.memories().remember(&in_level("none", "a"))), Code::ScopeNotFound);
}

fn the_same_text_is_one_record(fixture: &Fixture) {
    // The first call on a board creates the levels.
    let first = remember(fixture, &Remember::text("Use nextest"));
    assert_eq!(first.defined.len(), SEED_LEVELS.len());
    let (again, events) = fixture.events_of(|| remember(fixture, &Remember::text("Use nextest ")));
    assert_eq!((again.key, again.written, again.revision), (first.key.clone(), false, first.revision));
    assert_eq!(events, []);
    let more = remember(fixture, &relevant(0.9, tagged(&["tests"], Remember::text("Use nextest"))));
    assert_eq!((more.key, more.written, more.created, more.version), (first.key.clone(), true, false, 2));
    // The key of a caller names one record, and a new text is a new version of it.
    let key = |text: &str| Remember { key: Some("build".to_owned()), ..Remember::text(text) };
    assert_eq!(remember(fixture, &key("make")).version, 1);
    assert_eq!(remember(fixture, &key("cargo build")).version, 2);
    assert_eq!(texts(fixture, "short-term"), ["Use nextest", "cargo build"]);
    // A remembered answer is repeated.
    let op = |text: &str| Remember {
        actor: Actor { operation: Some("op-1".to_owned()), ..Actor::default() },
        ..Remember::text(text)
    };
    let first = remember(fixture, &op("once"));
    let (again, events) = fixture.events_of(|| remember(fixture, &op("once")));
    assert_eq!((again.key, again.revision, events), (first.key, first.revision, vec![]));
    assert_eq!(code(fixture.board.memories().remember(&op("twice"))), Code::InvalidValue);
}

fn keys_outside_of_the_patterns_do_not_belong_to_a_level(fixture: &Fixture) {
    let rules = LevelRules { patterns: owned(&["note:*", "plan:*"]), ..next(&["all"]) };
    define(fixture, "notes", rules);
    define(fixture, "all", LevelRules::default());
    let keyed = |key: &str| Remember { key: Some(key.to_owned()), ..in_level("notes", key) };
    remember(fixture, &keyed("note:1"));
    remember(fixture, &keyed("plan:1"));
    assert_eq!(code(fixture.board.memories().remember(&keyed("other"))), Code::InvalidValue);
    fixture.board.scope("memory:notes").write(&a_write("other", "1")).unwrap();
    assert_eq!(texts(fixture, "notes"), ["note:1", "plan:1"]);
    let drained = drain(fixture, "notes");
    assert_eq!((drained.moved, drained.left), (2, Some(1)));
    assert!(fixture.board.scope("memory:notes").entry("other").unwrap().is_some());
}

fn recall_filters_by_tags_time_pattern_and_words_before_the_limit(fixture: &Fixture) {
    define(fixture, "l", LevelRules::default());
    for number in 0..30 {
        remember(fixture, &relevant(1.0, tagged(&["noise"], in_level("l", &format!("noise {number}")))));
    }
    let keyed = |key: &str, remember| Remember { key: Some(key.to_owned()), ..remember };
    remember(fixture, &keyed("trap:1", tagged(&["trap", "db"], in_level("l", "The login test needs Redis"))));
    fixture.pass(100);
    let early = fixture.now();
    remember(fixture, &keyed("trap:2", tagged(&["trap"], in_level("l", "Releases are tagged"))));
    fixture.pass(100);
    let base = || Recall { limit: Some(5), ..Recall::default() };
    let words = |words: &str| Recall { words: Some(words.to_owned()), ..base() };
    for (recall, expected) in [
        (words("logins"), &["The login test needs Redis"][..]),
        (words("nothing"), &[]),
        (Recall { all_tags: owned(&["trap", "db"]), ..base() }, &["The login test needs Redis"]),
        (Recall { no_tags: owned(&["noise", "db"]), ..base() }, &["Releases are tagged"]),
        (Recall { any_tags: owned(&["db", "none"]), ..base() }, &["The login test needs Redis"]),
        (Recall { since: Some(early), ..base() }, &["Releases are tagged"]),
        (Recall { pattern: Some("trap:2*".to_owned()), ..base() }, &["Releases are tagged"]),
        (
            Recall { until: Some(early), all_tags: owned(&["trap"]), ..base() },
            &["The login test needs Redis"],
        ),
    ] {
        assert_eq!(found(fixture, &recall), expected, "{recall:?}");
    }
    let all = fixture.board.memories().recall(&base(), &IndexLocation::Memory).unwrap();
    assert_eq!((all.records.len(), all.total), (5, 32));
    let budget = Recall { tokens: Some(6), limit: Some(100), ..base() };
    let packed = fixture.board.memories().recall(&budget, &IndexLocation::Memory).unwrap();
    assert!(packed.tokens <= 6 && packed.records.len() == 2 && packed.total == 32, "{packed:?}");
    for wrong in [
        Recall { levels: owned(&["none"]), ..base() },
        Recall { all_tags: owned(&[""]), ..base() },
        Recall { pattern: Some(String::new()), ..base() },
        words(&"x".repeat(1_001)),
    ] {
        let code = code(fixture.board.memories().recall(&wrong, &IndexLocation::Memory));
        assert!(matches!(code, Code::InvalidValue | Code::ScopeNotFound), "{code}: {wrong:?}");
    }
}

fn decay_changes_the_score_and_writes_nothing(fixture: &Fixture) {
    let half_life = Some(Duration::from_mins(69));
    define(fixture, "l", LevelRules { half_life, ..LevelRules::default() });
    let key = remember(fixture, &relevant(1.0, in_level("l", "a"))).key;
    let stored = || fixture.board.scope("memory:l").entry(&key).unwrap().unwrap();
    let (before, revision) = (stored(), fixture.revision());
    let mut scores = Vec::new();
    for _ in 0..4 {
        let record = fixture
            .board
            .memories()
            .recall(&Recall::default(), &IndexLocation::Memory)
            .unwrap()
            .records
            .remove(0);
        scores.push((record.parts.age, record.score));
        fixture.pass(69 * 60);
    }
    assert_eq!(scores, [(1.0, 0.75), (0.5, 0.5), (0.25, 0.375), (0.125, 0.313)]);
    // The relevance that is left can be asked for.
    let least =
        |least: f64| Recall { min_relevance: Some(Relevance::new(least).unwrap()), ..Recall::default() };
    assert_eq!(found(fixture, &least(0.05)), ["a"]);
    assert_eq!(found(fixture, &least(0.1)), [""; 0]);
    fixture.board.memories().map().unwrap();
    fixture.board.memories().pending(None).unwrap();
    assert_eq!((stored(), fixture.revision()), (before, revision));
}

fn feedback_is_a_moving_average(fixture: &Fixture) {
    seed(fixture);
    let key = remember(fixture, &Remember::text("a")).key;
    let rate = |rating| {
        let rated = fixture.board.memories().feedback(&key, None, rating, &Actor::default()).unwrap();
        (rated.usefulness.value(), rated.ratings)
    };
    assert_eq!(rate(Usefulness::Useful), (0.55, 1));
    assert_eq!(rate(Usefulness::Useful), (0.595, 2));
    let (rated, events) = fixture.events_of(|| rate(Usefulness::Useless));
    assert_eq!((rated, events), ((0.536, 3), vec![EventType::EntryWritten]));
    remember(fixture, &Remember::text("b"));
    assert_eq!(found(fixture, &Recall::default()), ["a", "b"]);
    let missing = fixture.board.memories().feedback("none", None, Usefulness::Useful, &Actor::default());
    assert_eq!(code(missing), Code::EntryNotFound);
}

fn lenses_choose_levels_time_and_number(fixture: &Fixture) {
    seed(fixture);
    // Without edges, everything stays where it is.
    for level in SEED_LEVELS {
        define(fixture, level, LevelRules::default());
    }
    for level in SEED_LEVELS {
        for number in 0..30 {
            remember(fixture, &in_level(level, &format!("{level} {number}")));
        }
    }
    let ask = |lens| {
        let recall = Recall { lens: Some(lens), ..Recall::default() };
        let records = fixture.board.memories().recall(&recall, &IndexLocation::Memory).unwrap().records;
        let levels: BTreeSet<_> = records.iter().map(|record| record.level.clone()).collect();
        (records.len(), levels.into_iter().collect::<Vec<_>>())
    };
    assert_eq!(ask(Lens::Planning).0, 10);
    assert_eq!(ask(Lens::Skills), (5, owned(&["procedural"])));
    let (count, levels) = ask(Lens::Reflection);
    assert!(count == 20 && levels.iter().all(|level| ["short-term", "episodic"].contains(&level.as_str())));
    fixture.pass(3601);
    assert_eq!(ask(Lens::Planning).0, 0);
    assert_eq!(ask(Lens::Reflection).0, 20);
}

fn working_memory_moves_on_at_five_records_or_after_two_minutes(fixture: &Fixture) {
    seed(fixture);
    let ivy = fixture.session("Ivy");
    for number in 1..=4 {
        assert_eq!(remember(fixture, &by(&ivy, Remember::text(&format!("{number}")))).moved, []);
    }
    assert_eq!((texts(fixture, "working").len(), texts(fixture, "short-term").len()), (4, 0));
    let moved = remember(fixture, &by(&ivy, Remember::text("5"))).moved;
    assert_eq!((moved.len(), moved[0].moved, moved[0].to.as_str()), (1, 5, "short-term"));
    assert_eq!((texts(fixture, "working").len(), texts(fixture, "short-term").len()), (0, 5));
    remember(fixture, &by(&ivy, Remember::text("6")));
    fixture.pass(119);
    remember(fixture, &by(&ivy, Remember::text("7")));
    assert_eq!(texts(fixture, "working"), ["6", "7"]);
    fixture.pass(2);
    remember(fixture, &by(&ivy, Remember::text("8")));
    assert_eq!(texts(fixture, "working"), [""; 0]);
    assert_eq!(texts(fixture, "short-term").len(), 8);
    // What moved keeps its time and its author.
    let record = fixture
        .board
        .memories()
        .recall(&Recall { limit: Some(1), ..Recall::default() }, &IndexLocation::Memory);
    assert_eq!(record.unwrap().records[0].remembered_by, "Ivy");
}

fn a_level_takes_only_what_its_rules_allow(fixture: &Fixture) {
    seed(fixture);
    let record = |relevance, tags: &[&str], text: &str| {
        remember(fixture, &relevant(relevance, tagged(tags, in_level("short-term", text))));
    };
    record(0.2, &[], "weak");
    record(0.3, &[], "weak episode");
    record(0.5, &["semantic"], "fact");
    record(0.49, &["semantic"], "weak fact");
    record(0.9, &["skill"], "skill");
    record(0.9, &["reflection", "ephemeral"], "passing reflection");
    record(0.9, &["knowledge"], "knowledge");
    record(0.9, &["action"], "action");
    let drained = drain(fixture, "short-term");
    assert_eq!((drained.moved, drained.left), (4, Some(4)));
    assert_eq!(texts(fixture, "episodic"), ["action", "weak episode"]);
    assert_eq!(texts(fixture, "semantic"), ["fact", "knowledge"]);
    assert_eq!(texts(fixture, "short-term"), ["passing reflection", "skill", "weak", "weak fact"]);
}

fn draining_continues_until_nothing_is_left(fixture: &Fixture) {
    define(fixture, "a", next(&["b"]));
    define(fixture, "b", LevelRules::default());
    let write = |number: usize| a_write(&format!("memory_record:{number}"), &number.to_string());
    let records: Vec<_> = (0..1_203).map(write).collect();
    fixture.board.scope("memory:a").write_batch(&records).unwrap();
    let drained = drain(fixture, "a");
    assert_eq!((drained.moved, drained.left), (1_203, Some(0)));
    let moved =
        fixture.board.scope("memory:b").list(&Query { limit: Some(2_000), ..Query::default() }).unwrap();
    assert_eq!(moved.len(), 1_203);
}

fn what_a_level_does_not_take_stays_and_is_not_offered_again(fixture: &Fixture) {
    define(fixture, "a", next(&["b"]));
    let takes = LevelRules {
        takes_at: Some(2),
        min_relevance: Some(Relevance::new(0.5).unwrap()),
        ..LevelRules::default()
    };
    define(fixture, "b", takes);
    for text in ["weak 1", "weak 2"] {
        remember(fixture, &relevant(0.1, in_level("a", text)));
    }
    let cursor = || {
        let key = Key::BookkeepingRow("memory-cursor:a:b".into());
        fixture.read(|tx| tx.row::<BookkeepingRow>(&key)).unwrap().map(|row| row.value)
    };
    assert_eq!(cursor(), Some(fixture.revision().to_string()));
    // Two new ones are due, whatever stayed before.
    assert_eq!(remember(fixture, &relevant(0.9, in_level("a", "strong 1"))).moved, []);
    assert_eq!(remember(fixture, &relevant(0.9, in_level("a", "strong 2"))).moved[0].moved, 2);
    assert_eq!(texts(fixture, "a"), ["weak 1", "weak 2"]);
    // What is rated or written again is offered again.
    for text in ["weak 1", "weak 2"] {
        remember(fixture, &relevant(0.8, in_level("a", text)));
    }
    assert_eq!((texts(fixture, "a").len(), texts(fixture, "b").len()), (0, 4));
}

fn records_with_the_same_key_replace_each_other_nowhere(fixture: &Fixture) {
    define(fixture, "a", next(&["b"]));
    define(fixture, "b", LevelRules::default());
    let keyed = |level: &str, text: &str| Remember { key: Some("build".to_owned()), ..in_level(level, text) };
    remember(fixture, &keyed("b", "make"));
    remember(fixture, &keyed("a", "cargo build"));
    // The same text is one record, with the tags of both.
    remember(fixture, &tagged(&["x"], in_level("b", "same")));
    remember(fixture, &tagged(&["y"], in_level("a", "same")));
    assert_eq!(drain(fixture, "a").moved, 2);
    assert_eq!(texts(fixture, "b"), ["cargo build", "make", "same"]);
    let both = Recall { all_tags: owned(&["x", "y"]), ..Recall::default() };
    assert_eq!(found(fixture, &both), ["same"]);
}

fn promoted_records_move_together(fixture: &Fixture) {
    seed(fixture);
    let keys: Vec<_> = ["a", "b"]
        .iter()
        .map(|text| remember(fixture, &relevant(0.1, in_level("working", text))).key)
        .collect();
    let promote = |keys: &[String], from: Option<&str>, to: &str| {
        fixture.board.memories().promote(&Promote {
            keys: keys.to_vec(),
            from: from.map(str::to_owned),
            to: to.to_owned(),
            actor: Actor::default(),
        })
    };
    let with_missing = [keys.clone(), owned(&["none"])].concat();
    assert_eq!(code(promote(&with_missing, Some("working"), "collective")), Code::EntryNotFound);
    assert_eq!(code(promote(&with_missing, None, "collective")), Code::EntryNotFound);
    assert_eq!(code(promote(&keys, None, "nowhere")), Code::ScopeNotFound);
    assert_eq!(code(promote(&[], None, "collective")), Code::InvalidValue);
    assert_eq!(texts(fixture, "working"), ["a", "b"]);
    let (promoted, events) = fixture.events_of(|| promote(&keys, None, "collective").unwrap());
    assert_eq!((promoted.moved, events.len()), (2, 4));
    assert_eq!((texts(fixture, "working").len(), texts(fixture, "collective").len()), (0, 2));
    let again = promote(&keys, None, "collective").unwrap();
    assert_eq!((again.moved, again.already_there), (0, keys));
}

fn remember_three(fixture: &Fixture, session: &str) {
    remember(fixture, &relevant(0.9, by(session, Remember::text("important"))));
    remember(fixture, &relevant(0.2, by(session, Remember::text("small"))));
    remember(fixture, &by(session, in_level("short-term", "elsewhere")));
}

fn a_session_that_ends_leaves_its_working_memory(fixture: &Fixture) {
    seed(fixture);
    let (ivy, oak) = (fixture.session("Ivy"), fixture.session("Oak"));
    remember_three(fixture, &ivy);
    remember(fixture, &by(&oak, Remember::text("of Oak")));
    fixture.board.agents().deregister(&ivy).unwrap();
    // What is important is for all agents; the rest goes on as usual. Other sessions keep theirs.
    assert_eq!(texts(fixture, "working"), ["of Oak"]);
    assert_eq!(texts(fixture, "collective"), ["important"]);
    assert_eq!(texts(fixture, "short-term"), ["elsewhere", "small"]);
    // A session that has ended has no working memory: the record moves on by its age.
    remember(fixture, &by(&ivy, Remember::text("late")));
    assert_eq!(texts(fixture, "working"), ["late", "of Oak"]);
    fixture.pass(121);
    fixture.board.memories().drain(&Drain::default()).unwrap();
    assert_eq!(texts(fixture, "working"), [""; 0]);
}

fn a_stale_session_leaves_its_working_memory(fixture: &Fixture) {
    seed(fixture);
    let ivy = fixture.session("Ivy");
    remember_three(fixture, &ivy);
    fixture.pass(300);
    let swept = fixture.sweep();
    assert_eq!((swept.stale_agents.len(), swept.deleted_scopes.len()), (1, 0));
    assert_eq!(texts(fixture, "working"), [""; 0]);
    assert_eq!(texts(fixture, "collective"), ["important"]);
    // It may recover, and remembers again.
    fixture.beat(&ivy);
    remember(fixture, &by(&ivy, Remember::text("again")));
    assert_eq!(texts(fixture, "working"), ["again"]);
}

fn a_kill_before_the_records_of_a_session_have_moved_loses_nothing(fixture: &Fixture) {
    seed(fixture);
    let ivy = fixture.session("Ivy");
    remember_three(fixture, &ivy);
    // Only the commit that ends the session happens: its call was killed after that.
    let linked = Key::BookkeepingRow(format!("scopes:memory:{ivy}").into());
    let ended = Key::BookkeepingRow(format!("ended-scopes:memory:{ivy}").into());
    let row = fixture.read(|tx| tx.row::<BookkeepingRow>(&linked)).unwrap().unwrap();
    let Key::BookkeepingRow(name) = ended.clone() else { panic!() };
    fixture
        .commit(|tx| {
            let mut changes = Changes::new();
            // A row has to be read before it is written.
            assert!(tx.get(&ended)?.is_none() && tx.get(&linked)?.is_some());
            changes.remove(linked.clone());
            changes.put(BookkeepingRow { name: name.clone(), value: row.value.clone() });
            Ok(changes)
        })
        .unwrap();
    assert_eq!(texts(fixture, "working"), ["important", "small"]);
    fixture.sweep();
    assert_eq!(texts(fixture, "working"), [""; 0]);
    assert_eq!((texts(fixture, "collective").len(), texts(fixture, "short-term").len()), (1, 2));
    assert!(fixture.read(|tx| tx.row::<BookkeepingRow>(&ended)).unwrap().is_none());
}

fn a_level_is_compacted_at_nine_tenths_of_its_tokens(fixture: &Fixture) {
    define(fixture, "working", LevelRules { tokens: Some(8_000), ..LevelRules::default() });
    let text = |number: usize| format!("{number:04}{}", "x".repeat(2_396));
    for number in 0..8 {
        remember(fixture, &in_level("working", &text(number)));
    }
    fixture.pass(300);
    assert_eq!(fixture.board.memories().pending(None).unwrap().batches, []);
    remember(fixture, &in_level("working", &text(8)));
    let Batch { level, into, reason, records, tokens } =
        fixture.board.memories().pending(Some("working")).unwrap().batches.remove(0);
    assert_eq!((&*level, &*into, reason), ("working", "working", BatchReason::Tokens));
    // What is from the last five minutes stays.
    assert_eq!((records.len(), tokens), (8, 6_400));
    assert_eq!(code(fixture.board.memories().pending(Some("none"))), Code::ScopeNotFound);
}

fn a_summary_replaces_its_records_which_stay_in_history(fixture: &Fixture) {
    seed(fixture);
    let ivy = fixture.session("Ivy");
    let keys: Vec<_> = ["a failed", "b failed"]
        .iter()
        .map(|text| remember(fixture, &tagged(&["ci"], in_level("short-term", text))).key)
        .collect();
    let pending = fixture.board.memories().pending(None).unwrap();
    let compact = Compact {
        level: "short-term".to_owned(),
        summary: "a and b failed".to_owned(),
        of: keys.clone(),
        at: Some(pending.revision),
        actor: Actor::session(&ivy),
        ..Compact::default()
    };
    let missing = Compact { of: [keys.clone(), owned(&["none"])].concat(), ..compact.clone() };
    assert_eq!(code(fixture.board.memories().compact(&missing)), Code::EntryNotFound);
    let empty = Compact { summary: " ".to_owned(), ..compact.clone() };
    assert_eq!(code(fixture.board.memories().compact(&empty)), Code::InvalidValue);
    remember(fixture, &tagged(&["new"], in_level("short-term", "a failed")));
    assert_eq!(code(fixture.board.memories().compact(&compact)), Code::Conflict);
    assert_eq!(texts(fixture, "short-term").len(), 2);
    let compact = Compact { at: Some(fixture.revision()), ..compact };
    let (compacted, events) = fixture.events_of(|| fixture.board.memories().compact(&compact).unwrap());
    assert_eq!((compacted.replaced, events.len()), (2, 3));
    assert_eq!(texts(fixture, "short-term"), ["a and b failed"]);
    let record = fixture
        .board
        .memories()
        .recall(&Recall::default(), &IndexLocation::Memory)
        .unwrap()
        .records
        .remove(0);
    let mut sources = keys.clone();
    sources.sort_unstable();
    assert_eq!((record.summary_of, record.tags), (sources, owned(&["ci"])));
    let scope = fixture.board.scope("memory:short-term");
    for key in &keys {
        let versions = scope.history(key, 9).unwrap().versions;
        assert!(versions.iter().any(|version| version.entry.value.as_str().contains("failed")), "{key}");
    }
}

fn summaries_of_episodes_become_skills(fixture: &Fixture) {
    seed(fixture);
    for number in 0..20 {
        remember(fixture, &in_level("episodic", &format!("episode {number}")));
    }
    // They are never moved as they are.
    assert_eq!(drain(fixture, "episodic").moved, 0);
    let batch = fixture.board.memories().pending(None).unwrap().batches.remove(0);
    assert_eq!((&*batch.level, &*batch.into, batch.reason), ("episodic", "procedural", BatchReason::Next));
    assert_eq!(batch.records.len(), 20);
    let compact = Compact {
        level: batch.level,
        into: Some(batch.into),
        summary: "How to release: tag, then push".to_owned(),
        of: batch.records.into_iter().map(|record| record.key).collect(),
        ..Compact::default()
    };
    assert_eq!(fixture.board.memories().compact(&compact).unwrap().replaced, 20);
    assert_eq!(texts(fixture, "procedural"), ["How to release: tag, then push"]);
    assert_eq!(texts(fixture, "episodic"), [""; 0]);
    assert_eq!(fixture.board.memories().pending(None).unwrap().batches, []);
}

fn deleted_records_are_gone_together(fixture: &Fixture) {
    seed(fixture);
    let keys: Vec<_> = ["a", "b"].iter().map(|text| remember(fixture, &Remember::text(text)).key).collect();
    let delete = |keys: &[String], level| fixture.board.memories().delete(keys, level, &Actor::default());
    let with_missing = [keys.clone(), owned(&["none"])].concat();
    assert_eq!(code(delete(&with_missing, Some("short-term"))), Code::EntryNotFound);
    assert_eq!(texts(fixture, "short-term"), ["a", "b"]);
    assert_eq!(delete(&keys, None).unwrap().deleted, 2);
    assert_eq!(texts(fixture, "short-term"), [""; 0]);
    // A key in two levels has to be named with its level.
    remember(fixture, &in_level("semantic", "twice"));
    let key = [remember(fixture, &in_level("short-term", "twice")).key];
    assert_eq!(code(delete(&key, None)), Code::InvalidValue);
    assert_eq!(delete(&key, Some("semantic")).unwrap().deleted, 1);
}

fn a_level_that_is_missing_loses_no_record(fixture: &Fixture) {
    seed(fixture);
    let ivy = fixture.session("Ivy");
    remember_three(fixture, &ivy);
    for name in ["memory:short-term", "memory:collective"] {
        let delete = DeleteScope { name: name.to_owned(), entries: false, session: None };
        fixture.board.scopes().delete(&delete).unwrap();
    }
    assert_eq!(drain(fixture, "working").missing, ["short-term"]);
    fixture.board.agents().deregister(&ivy).unwrap();
    assert_eq!(texts(fixture, "working"), ["important", "small"]);
    // The level was deleted, and its records were not.
    define(fixture, "short-term", LevelRules::default());
    assert_eq!(texts(fixture, "short-term"), ["elsewhere"]);
    assert_eq!(drain(fixture, "working").moved, 2);
}

fn policies_of_a_target_that_refuse_a_record_keep_it_where_it_is(fixture: &Fixture) {
    let full =
        Policies { max_entries: Some(1), eviction: crate::scope::Eviction::Refuse, ..Policies::default() };
    fixture.board.scopes().create(&CreateScope::new("memory:b", full)).unwrap();
    define(fixture, "b", LevelRules::default());
    define(fixture, "a", LevelRules { session: true, ..next(&["b"]) });
    let ivy = fixture.session("Ivy");
    for text in ["1", "2", "3"] {
        remember(fixture, &by(&ivy, in_level("a", text)));
    }
    let drained = drain(fixture, "a");
    assert_eq!((drained.moved, drained.left, drained.edges[0].refused), (1, Some(2), 2));
    fixture.board.agents().deregister(&ivy).unwrap();
    assert_eq!((texts(fixture, "a").len(), texts(fixture, "b").len()), (2, 1));
}

/// A level that only Ivy may use.
fn private(fixture: &Fixture, name: &str) {
    let allow = AccessRules::new(vec![AccessRule::parse(Effect::Allow, "Ivy:*").unwrap()]);
    let set = SetScope { allow: Some(allow), ..SetScope::of(&format!("memory:{name}")) };
    fixture.board.scopes().set(&set).unwrap();
}

fn moves_by_rule_ask_no_caller_and_moves_by_call_do(fixture: &Fixture) {
    seed(fixture);
    private(fixture, "short-term");
    private(fixture, "collective");
    let (ivy, oak) = (fixture.session("Ivy"), fixture.session("Oak"));
    let as_oak = fixture.board.with_caller(Actor::session(&oak));
    as_oak.memories().remember(&relevant(0.9, by(&oak, Remember::text("of Oak")))).unwrap();
    let drain = Drain { level: Some("working".to_owned()), actor: Actor::session(&oak), ..Drain::default() };
    let drained = as_oak.memories().drain(&drain).unwrap();
    assert_eq!((drained.moved, drained.edges[0].refused), (0, 1));
    as_oak.agents().deregister(&oak).unwrap();
    assert_eq!(texts(fixture, "collective"), ["of Oak"]);
    let as_ivy = fixture.board.with_caller(Actor::session(&ivy));
    as_ivy.memories().remember(&by(&ivy, in_level("short-term", "of Ivy"))).unwrap();
}

fn a_level_that_the_caller_may_not_use_is_left_out(fixture: &Fixture) {
    seed(fixture);
    let members =
        Policies { visibility: Visibility::Shared, members: owned(&["Ivy"]), ..Policies::default() };
    fixture.board.scopes().create(&CreateScope::new("memory:secret", members)).unwrap();
    define(fixture, "secret", LevelRules::default());
    remember(fixture, &in_level("secret", "the hidden plan"));
    remember(fixture, &in_level("semantic", "the open plan"));
    let (ivy, oak) = (fixture.session("Ivy"), fixture.session("Oak"));
    let ask = |session: &str, recall: &Recall| {
        fixture.board.with_caller(Actor::session(session)).memories().recall(recall, &IndexLocation::Memory)
    };
    let plan = Recall { words: Some("plan".to_owned()), ..Recall::default() };
    assert_eq!(ask(&ivy, &plan).unwrap().total, 2);
    let of_oak = ask(&oak, &plan).unwrap();
    assert_eq!((of_oak.total, of_oak.records[0].text.as_str()), (1, "the open plan"));
    let named = Recall { levels: owned(&["secret"]), ..plan.clone() };
    assert_eq!(code(ask(&oak, &named)), Code::NotAllowed);
    let as_oak = fixture.board.with_caller(Actor::session(&oak));
    assert!(as_oak.memories().levels().unwrap().iter().all(|level| level.level != "secret"));
    assert!(as_oak.memories().map().unwrap().levels.iter().all(|level| level.level != "secret"));
    assert_eq!(code(as_oak.memories().pending(Some("secret"))), Code::NotAllowed);
    let refused = as_oak.memories().remember(&by(&oak, in_level("secret", "x")));
    assert_eq!(code(refused), Code::NotAllowed);
    // A private key in an open level is left out, too.
    let deny = AccessRules::new(vec![AccessRule::parse(Effect::Deny, "Oak:read:memory_record:*").unwrap()]);
    let set = SetScope { deny: Some(deny), ..SetScope::of("memory:semantic") };
    fixture.board.scopes().set(&set).unwrap();
    assert_eq!(ask(&oak, &plan).unwrap().total, 0);
}

fn the_map_shows_levels_edges_and_missing_parts(fixture: &Fixture) {
    define(fixture, "a", LevelRules { at_end: Some("gone".to_owned()), ..next(&["b", "skills"]) });
    define(fixture, "b", LevelRules::default());
    define(fixture, "skills", LevelRules { by_summary: true, ..LevelRules::default() });
    remember(fixture, &in_level("a", "123456"));
    remember(fixture, &in_level("a", "123"));
    let map = fixture.board.memories().map().unwrap();
    let levels: Vec<_> =
        map.levels.iter().map(|level| (&*level.level, level.records, level.tokens)).collect();
    assert_eq!(levels, [("a", 2, 3), ("b", 0, 0), ("skills", 0, 0)]);
    let edges: Vec<_> =
        map.edges.iter().map(|edge| (&*edge.from, &*edge.to, edge.by, edge.missing)).collect();
    let expected =
        [("a", "gone", "session end", true), ("a", "b", "move", false), ("a", "skills", "summary", false)];
    assert_eq!((edges.as_slice(), map.missing), (&expected[..], owned(&["gone"])));
}

fn other_programs_may_write_into_a_level(fixture: &Fixture) {
    seed(fixture);
    let strange = r#"{"relevance": 1e99, "usefulness": "x", "ratings": -1, "remembered_at": "3000-01-01", "summary_of": 4}"#;
    let write = Write { metadata: Some(Metadata::parse(strange).unwrap()), ..a_write("k", "[1, 2]") };
    let plain = a_write("plain", "\"text\"");
    fixture.board.scope("memory:short-term").write_batch(&[write, plain]).unwrap();
    let records =
        fixture.board.memories().recall(&Recall::default(), &IndexLocation::Memory).unwrap().records;
    let shown: Vec<_> = records
        .iter()
        .map(|record| (&*record.text, record.parts.relevance, record.parts.usefulness))
        .collect();
    assert_eq!(shown, [("[1, 2]", 1.0, 0.5), ("text", 0.5, 0.5)]);
    assert!(records.iter().all(|record| record.remembered_at <= fixture.now()));
    assert_eq!(drain(fixture, "short-term").moved, 2);
}

fn a_brief_has_the_best_records_for_the_claimed_item(fixture: &Fixture) {
    seed(fixture);
    let register = |name: &str, project: &str| {
        fixture.register(&Register { project: Some(project.to_owned()), ..Register::named(name) }).session_id
    };
    let (ivy, oak) = (register("Ivy", "p"), register("Oak", "q"));
    let known = |session: &str| {
        let brief = fixture.board.brief(session).unwrap();
        let known = fixture.board.memories().for_brief(&brief, &IndexLocation::Memory).unwrap()?;
        Some((known.records, known.best.into_iter().map(|record| record.text).collect::<Vec<_>>()))
    };
    assert_eq!(known(&ivy), None);
    for text in
        ["login needs Redis", "login is in auth.rs", "login has a trap", "login fails on Monday", "release"]
    {
        remember(fixture, &in_level("semantic", text));
    }
    // Collective memory seeds new sessions of the same project.
    remember(fixture, &by(&ivy, in_level("collective", "of project p")));
    assert_eq!(known(&ivy), Some((6, owned(&["of project p"]))));
    assert_eq!(known(&oak), Some((6, vec![])));
    fixture.board.work().create(&Create::new("a", "Fix the login")).unwrap();
    fixture.claim("a", &oak);
    let (records, best) = known(&oak).unwrap();
    assert_eq!((records, best.len()), (6, 3));
    assert!(best.iter().all(|text| text.contains("login")), "{best:?}");
}
