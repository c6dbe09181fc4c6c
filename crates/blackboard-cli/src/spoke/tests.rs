use super::phase::Phase;
use super::status::{AgentActivity, ClaimedItem, CurrentWork, GitStatus, ProjectName, TestResults};
use super::{Checked, Manifest, OperatorFile, StatusFile};

const MANIFEST: &str = "\
schemaVersion: \"1.0\"
name: pai-collab
hub: mellanon/pai-collab
project: pai-collab
maintainer: ivy-oak
license: MIT
identity:
  handle: ivy
  publicKey: ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIOn ivy
  fingerprint: SHA256:abc
security:
  reflexes: {signing: true, secretScanning: false}
status:
  test: cargo test
";

const SEED: &str = "\
schemaVersion: \"1.0\"
generatedAt: \"2026-02-03T16:00:00Z\"
project:
  name: \"pai-collab\"
  phase: \"building\"
agentActivity:
  activeAgents: 2
  lastActivity: \"2026-02-03T15:58:00Z\"
  currentWork:
    - agent: \"Ivy\"
      task: \"Designing local blackboard architecture\"
      project: \"pai-collab\"
recentProgress:
  - \"SQL schema designed with 5 tables and WAL mode\"
git:
  branch: \"main\"
  lastCommit: \"abc1234\"
  uncommittedChanges: true
tests:
  passing: 380
  failing: 0
  coverage: \"87%\"
";

const PROTOCOL: &str = "\
schemaVersion: \"1.0\"
generatedAt: 2026-02-03T16:00:00Z
generatedBy: blackboard 0.1.0
phase: harden
tests: {passing: 17, failing: 1}
git: {branch: main, lastCommit: 2026-02-03, dirty: false, behindRemote: 3}
";

/// The content of a valid file.
#[track_caller]
fn valid<T>(checked: Checked<T>) -> T {
    assert_eq!(lines(&checked), [""; 0]);
    checked.value.expect("a file without errors has a content")
}

fn lines<T>(checked: &Checked<T>) -> Vec<String> {
    checked.errors.iter().map(ToString::to_string).collect()
}

#[test]
fn a_manifest_is_read_with_everything_in_it() {
    let manifest = valid(Manifest::check(MANIFEST));
    assert_eq!((&*manifest.hub, &*manifest.license), ("mellanon/pai-collab", "MIT"));
    assert_eq!(manifest.identity.fingerprint.as_deref(), Some("SHA256:abc"));
    let reflexes = manifest.security.and_then(|security| security.reflexes).expect("reflexes");
    assert_eq!(
        (reflexes.signing, reflexes.secret_scanning, reflexes.content_filter),
        (Some(true), Some(false), None)
    );
    assert_eq!(manifest.status.and_then(|status| status.test).as_deref(), Some("cargo test"));
}

#[test]
fn all_errors_of_a_file_are_reported_with_their_places() {
    let text = "schemaVersion: 2\nname: [a]\nhub: nonsense\nproject:\nmaintainer: a b\nlicense: GPL-3.0\nidentity:\n  \
                handle: ivy\n  publicKey: rsa\nsecurity: {reflexes: {signing: yes}}\nextra: 1\n";
    let checked = Manifest::check(text);
    assert_eq!(
        lines(&checked),
        [
            "line 1, column 16: schemaVersion: unknown word 2; expected 1.0",
            "line 2, column 7: name: expected text, found a list",
            "line 3, column 6: hub: expected a repository as owner/repo, found \"nonsense\"",
            "line 4, column 8: project: required, but missing",
            "line 5, column 13: maintainer: expected a handle of letters, digits and hyphens, found \"a b\"",
            "line 6, column 10: license: unknown word GPL-3.0; expected MIT, Apache-2.0, BSD-2-Clause, BSD-3-Clause, \
             CC-BY-4.0, AGPL-3.0",
            "line 9, column 14: identity.publicKey: expected a public key that begins with ssh-ed25519",
            "line 10, column 32: security.reflexes.signing: expected true or false, found \"yes\"",
        ]
    );
    let notes: Vec<_> = checked.notes.iter().map(ToString::to_string).collect();
    assert_eq!(notes, ["line 11, column 1: extra: unknown key, ignored"]);
    for (text, message) in [
        ("", "line 1, column 1: the file is empty"),
        ("- a\n", "line 1, column 1: the file: expected a mapping, found a list"),
        ("a: b: c\n", "line 1, column 5: "),
    ] {
        let found = lines(&Manifest::check(text)).join("\n");
        assert!(found.starts_with(message), "{text}: {found}");
    }
}

#[test]
fn text_that_readers_of_other_versions_read_differently_has_a_note() {
    testkit::limit_test();
    for (text, note) in [
        ("yes", "name: a boolean to some readers: write it in quotes"),
        ("Off", "name: a boolean to some readers: write it in quotes"),
        ("1e3", "name: a number to some readers: write it in quotes"),
    ] {
        let manifest = |name: &str| {
            let lines = MANIFEST.lines().map(|line| if line.starts_with("name:") { name } else { line });
            Manifest::check(&lines.collect::<Vec<_>>().join("\n"))
        };
        let checked = manifest(&format!("name: {text}"));
        assert_eq!(checked.errors, [], "{text}");
        assert_eq!(
            checked.notes.iter().map(|note| note.message.as_str()).collect::<Vec<_>>(),
            [note],
            "{text}"
        );
        assert_eq!(manifest(&format!("name: '{text}'")).notes, [], "{text}");
    }
}

#[test]
fn a_version_without_quotes_is_accepted_with_a_note() {
    let checked = Manifest::check(&MANIFEST.replace("\"1.0\"", "1.0"));
    assert_eq!(checked.errors, []);
    assert!(checked.notes[0].message.contains("in quotes"), "{:?}", checked.notes);
}

#[test]
fn both_forms_of_a_status_are_valid() {
    let seed = valid(StatusFile::check(SEED));
    assert_eq!((seed.phase, seed.generated_by.as_deref()), (Some(Phase::Build), None));
    let git = seed.git.expect("git");
    assert_eq!((git.commit.as_deref(), git.last_commit, git.dirty), (Some("abc1234"), None, true));
    assert_eq!(seed.agent_activity.map(|activity| activity.active_agents), Some(2));
    let protocol = valid(StatusFile::check(PROTOCOL));
    assert_eq!((protocol.phase, protocol.project), (Some(Phase::Harden), None));
    let git = protocol.git.expect("git");
    assert_eq!((git.last_commit.as_deref(), git.behind_remote), (Some("2026-02-03"), 3));
}

#[test]
fn a_status_that_has_neither_form_says_what_the_protocol_requires() {
    let checked = StatusFile::check("schemaVersion: \"1.0\"\ngeneratedAt: yesterday\ntests: {passing: -1}\n");
    assert_eq!(
        lines(&checked),
        [
            "line 1, column 1: phase: required, but missing",
            "line 1, column 1: generatedBy: required, but missing",
            "line 1, column 1: git: required, but missing",
            "line 2, column 14: generatedAt: expected an ISO 8601 time with a zone, found \"yesterday\"",
            "line 3, column 8: tests.failing: required, but missing",
            "line 3, column 18: tests.passing: expected a whole number that is not negative, found \"-1\"",
        ]
    );
}

#[test]
fn a_written_status_is_read_back_and_is_in_both_forms() {
    let moment = "2026-02-03T16:00:00Z".parse().expect("a time");
    let status = StatusFile {
        generated_by: Some("blackboard 0.1.0".into()),
        phase: Some(Phase::Specify),
        project: Some(ProjectName { name: "no".into(), phase: Some(Phase::Specify) }),
        git: Some(GitStatus {
            branch: "1e3".into(),
            last_commit: Some("2026-02-03T17:00:00+01:00".into()),
            commit: Some("0123456789".into()),
            dirty: true,
            uncommitted_changes: true,
            behind_remote: 2,
            ahead_of_remote: 1,
        }),
        tests: Some(TestResults {
            passing: 3,
            failing: 1,
            skipped: Some(0),
            coverage: Some("87.5%".into()),
            reported_at: Some(moment),
        }),
        agent_activity: Some(AgentActivity {
            active_agents: 1,
            last_activity: Some(moment),
            claimed_items: 1,
            current_work: vec![CurrentWork { agent: "Ivy".into(), task: "12:30".into(), project: None }],
            claimed: vec![ClaimedItem {
                item: "a".into(),
                title: "~".into(),
                agent: None,
                since: Some(moment),
            }],
            ..AgentActivity::default()
        }),
        recent_progress: vec!["it's \"done\"".into(), "- a: b # c".into()],
        ..StatusFile::new(moment)
    };
    let text = status.write().expect("it can be written");
    assert_eq!(
        StatusFile::check(&text),
        Checked { value: Some(status), errors: vec![], notes: vec![] },
        "{text}"
    );
    assert!(text.contains("\nphase: 'specify'\nproject:\n  name: 'no'\n  phase: 'proposed'\n"), "{text}");
}

#[test]
fn an_operator_is_read_with_accounts_and_hubs() {
    let text = "schemaVersion: '1.0'\nhandle: ivy\nsigning: {publicKey: ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIOn}\n\
                identities:\n  - {provider: github, id: ivy, verified: true, verified_at: 2026-01-02}\n  - {provider: x}\n\
                skills: [rust, [x]]\navailability: away\nhives:\n  - mellanon/the-hive\n  - {hub: a/b}\n";
    let checked = OperatorFile::check(text);
    assert_eq!(
        lines(&checked),
        [
            "line 6, column 5: identities[1].id: required, but missing",
            "line 6, column 5: identities[1].verified: required, but missing",
            "line 7, column 16: skills[1]: expected text, found a list",
            "line 8, column 15: availability: unknown word away; expected open, busy, offline",
        ]
    );
    let operator = checked.value.expect("an operator");
    assert_eq!(
        (operator.identities.len(), operator.skills, operator.hives.len()),
        (1, vec!["rust".to_owned()], 2)
    );
}
