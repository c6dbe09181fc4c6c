use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;
use std::process::Command;

use tempfile::TempDir;
use testkit::process::RunToEnd as _;

use super::keys::{ByProject, KEYS, Key, Kind, Unit, Written};
use super::*;

/// A home file and a project file. Neither exists at first.
struct Files {
    directory: TempDir,
}

impl Files {
    fn new() -> Files {
        Files { directory: testkit::tempdir().unwrap() }
    }

    fn home(&self) -> PathBuf {
        self.directory.path().join("home.json")
    }

    fn project(&self) -> PathBuf {
        self.directory.path().join("project.json")
    }

    fn load(&self) -> (Config, Vec<String>) {
        load(Some(&self.home()), Some(&self.project()), &Environment::default()).unwrap()
    }
}

fn from_home(content: impl AsRef<[u8]>) -> (Config, Vec<String>) {
    let files = Files::new();
    fs::write(files.home(), content).unwrap();
    files.load()
}

fn from_project(content: impl AsRef<[u8]>) -> (Config, Vec<String>) {
    let files = Files::new();
    fs::write(files.project(), content).unwrap();
    files.load()
}

fn key(path: &str) -> &'static Key {
    KEYS.iter().find(|key| key.path == path).unwrap()
}

#[test]
fn files_that_do_not_exist_leave_the_defaults_and_say_nothing() {
    assert_eq!(Files::new().load(), (Config::default(), vec![]));
    assert_eq!(load(None, None, &Environment::default()).unwrap(), (Config::default(), vec![]));
    let below_a_file = Files::new();
    fs::write(below_a_file.home(), "{}").unwrap();
    let (_, warnings) =
        load(Some(&below_a_file.home().join("config.json")), None, &Environment::default()).unwrap();
    assert_eq!(warnings, Vec::<String>::new());
}

#[test]
fn the_reference_configuration_of_the_seed_is_the_default() {
    let (config, warnings) = from_home(
        r#"// ~/.pai/blackboard/config.json
        {
          "schemaVersion": 1,
          "database": { "operatorPath": "~/.pai/blackboard/local.db", "projectDir": ".blackboard" },
          "heartbeat": { "intervalSeconds": 60, "staleThresholdSeconds": 300 },
          "sweep": {
            "pruneHeartbeatsAfterDays": 7, "pruneEventsAfterDays": 30, "pruneCompletedAgentsAfterDays": 1
          },
          "webServer": { "port": 3141, "host": "127.0.0.1" },
          "contentFilter": { "maxFieldLength": 500, "stripCodeBlocks": true, "stripHtmlTags": true }, /* the end */
        }"#,
    );
    assert_eq!(warnings, Vec::<String>::new());
    assert_eq!(config.database.operator_path.as_deref(), Some("~/.pai/blackboard/local.db".as_ref()));
    let defaults = Config::default();
    assert_eq!(Config { database: defaults.database.clone(), ..config }, defaults);
}

#[test]
fn every_key_can_be_set_in_the_home_file() {
    let (config, warnings) = from_home(
        r#"{
          "schemaVersion": 1,
          "database": {
            "operatorPath": "redis://board", "projectDir": ".board", "durability": "full",
            "allowNetworkFilesystem": true, "warnSizeMb": 1, "maxLogMb": 2
          },
          "heartbeat": { "intervalSeconds": 3, "staleThresholdSeconds": 4, "delegateStaleThresholdSeconds": 5 },
          "sweep": {
            "pruneHeartbeatsAfterDays": 6, "pruneEventsAfterDays": 7,
            "pruneCompletedAgentsAfterDays": 8, "pruneStaleAgentsAfterDays": 9
          },
          "limits": { "maxValueBytes": 2048 },
          "webServer": { "port": 10, "host": "::1" },
          "contentFilter": { "maxFieldLength": 20, "stripCodeBlocks": false, "stripHtmlTags": false },
          "agent": { "name": "Ivy" },
          "hub": { "url": "ivy/hub" },
          "export": { "redact": ["agents", "branch"] },
          "fileGuard": "deny",
          "quota": { "providers": { "a": { "windows": { "5h": { "budget": 9 } } } } },
          "notify": [{
            "command": ["/bin/x", "a b"], "events": ["work_*"], "minSeverity": "warning", "minInterval": "1m"
          }]
        }"#,
    );
    assert_eq!(warnings, Vec::<String>::new());
    let expected = Config {
        schema_version: 1,
        database: Database {
            operator_path: Some("redis://board".into()),
            project_directory: ".board".to_owned(),
            durability: Durability::Full,
            allow_network_filesystem: true,
            warn_size_mb: 1,
            max_log_mb: 2,
        },
        heartbeat: Heartbeat {
            interval: Duration::from_secs(3),
            stale_threshold: Duration::from_secs(4),
            delegate_stale_threshold: Duration::from_secs(5),
        },
        retention: Retention {
            heartbeats: 6 * DAY,
            events: 7 * DAY,
            completed_agents: 8 * DAY,
            stale_agents: 9 * DAY,
        },
        limits: Limits { max_value_bytes: 2048 },
        web_server: WebServer { port: 10, host: "::1".parse().unwrap() },
        content_filter: ContentFilter {
            max_field_length: 20,
            strip_code_blocks: false,
            strip_html_tags: false,
        },
        agent_name: Some("Ivy".to_owned()),
        redaction: Redaction { agents: true, branch: true, ..Redaction::default() },
        file_guard: FileGuard::Deny,
        hub_url: Some("ivy/hub".to_owned()),
        quota: blackboard::quota::Config::parse(
            r#"{"providers": {"a": {"windows": {"5h": {"budget": 9}}}}}"#,
        )
        .ok()
        .map(Box::new),
        invalid_quota: None,
        notify: vec![NotifyCommand {
            command: vec!["/bin/x".to_owned(), "a b".to_owned()],
            events: vec!["work_*".to_owned()],
            min_severity: blackboard::event::Severity::Warning,
            min_interval: Duration::from_mins(1),
        }],
    };
    assert_eq!(config, expected);
}

#[test]
fn notify_commands_have_defaults_and_bad_ones_are_ignored_with_the_reason() {
    let (config, warnings) = from_home(r#"{"notify": [{"command": ["x"]}]}"#);
    assert_eq!(warnings, Vec::<String>::new());
    let usual = &config.notify[0];
    assert_eq!((usual.events.len(), usual.min_interval), (0, Duration::from_secs(5)));
    for (entry, problem) in [
        ("{}", "missing field `command`"),
        (r#"{"command": []}"#, "command is empty"),
        (r#"{"command": "x"}"#, "expected a sequence"),
        (r#"{"command": ["./x"]}"#, "must be an absolute path or a name in PATH"),
        (r#"{"command": ["x", "a\u0000"]}"#, "null character"),
        (r#"{"command": ["x"], "events": ["work_complete"]}"#, "no event type matches \"work_complete\""),
        (r#"{"command": ["x"], "events": ["W\u001b"]}"#, "lower case letters"),
        (r#"{"command": ["x"], "minSeverity": "fatal"}"#, "unknown variant"),
        (r#"{"command": ["x"], "minInterval": "soon"}"#, "is not a duration"),
        (r#"{"command": ["x"], "minInterval": "2d"}"#, "longer than 24 hours"),
        (r#"{"command": ["x"], "shell": true}"#, "unknown field `shell`"),
    ] {
        let (config, warnings) = from_home(format!(r#"{{"notify": [{entry}, {{"command": ["y"]}}]}}"#));
        assert_eq!(config.notify.len(), 1, "{entry}");
        assert_eq!(warnings.len(), 1, "{entry}: {warnings:?}");
        assert!(warnings[0].contains("notify[0] is ignored: "), "{warnings:?}");
        assert!(warnings[0].contains(problem), "{entry}: {warnings:?}");
    }
}

#[test]
fn a_project_cannot_start_commands() {
    let text = r#"{"notify": [{"command": ["x"]}]}"#;
    let scratch = testkit::tempdir().unwrap();
    let file = scratch.path().join("project.json");
    std::fs::write(&file, text).unwrap();
    let (config, warnings) = load(None, Some(&file), &Environment::default()).unwrap();
    assert_eq!(config, Config::default());
    assert_eq!(warnings.len(), 1, "{warnings:?}");
    assert!(warnings[0].contains("notify can be set in the home configuration only"), "{warnings:?}");
}

#[test]
fn a_project_can_leave_out_more_and_never_less() {
    for (project, expected, ignored) in [
        (r#"["work"]"#, &["agents", "work"][..], 0),
        ("[]", &["agents"], 0),
        (r#"["secrets"]"#, &["agents"], 1),
        (r#""work""#, &["agents"], 1),
        ("[1]", &["agents"], 1),
    ] {
        let files = Files::new();
        fs::write(files.home(), r#"{"export": {"redact": ["agents"]}}"#).unwrap();
        fs::write(files.project(), format!(r#"{{"export": {{"redact": {project}}}}}"#)).unwrap();
        let (config, warnings) = files.load();
        assert_eq!(
            (Some(config.redaction), warnings.len()),
            (Redaction::named(expected), ignored),
            "{project}"
        );
    }
}

#[test]
fn a_project_can_make_the_quota_stricter_and_nothing_else() {
    let budget = |budget: u64| {
        format!(r#"{{"quota": {{"providers": {{"a": {{"windows": {{"5h": {{"budget": {budget}}}}}}}}}}}}}"#)
    };
    for (home, project, expected, warning) in [
        (Some(100), Some(50), Some(50), None),
        (Some(100), None, Some(100), None),
        (
            Some(100),
            Some(200),
            Some(100),
            Some("quota.providers.a.windows.5h.budget: 200 is looser than 100"),
        ),
        (Some(100), Some(0), Some(100), Some("quota is ignored: providers.a.windows.5h.budget: 0 is not")),
        (None, Some(50), None, Some("the home configuration does not have it")),
    ] {
        let files = Files::new();
        for (file, value) in [(files.home(), home), (files.project(), project)] {
            if let Some(value) = value {
                fs::write(file, budget(value)).unwrap();
            }
        }
        let (config, warnings) = files.load();
        let found = config.quota.map(|quota| quota.providers["a"].windows["5h"].budget);
        assert_eq!(found, expected, "{warnings:?}");
        assert_eq!(warnings.len(), usize::from(warning.is_some()), "{warnings:?}");
        assert!(
            warnings.iter().zip(warning).all(|(found, expected)| found.contains(expected)),
            "{warnings:?}"
        );
    }
}

#[test]
fn a_mistake_in_a_file_removes_no_limit() {
    const HOME: &str = r#"{"quota": {"providers": {"a": {}}}}"#;
    const DENYING: &str = r#"{"quota": {"enforce": "deny", "providers": {"a": {}}}}"#;
    // Whether claims are refused because of a quota that is not valid; `None` if no quota of the files is invalid.
    for (home, project, expected) in [
        (Some(r#"{"quota": {"enforce": "deny", "providers": {"a": {}},,}}"#), None, Some(true)),
        (Some(r#"{"quota": {"enforce": "warn", "providers": {"a": {}},,}}"#), None, Some(false)),
        (Some(r#"{"quota": {"providers": {"a": {}},,}}"#), None, Some(false)),
        (Some(r#"{"fileGuard": "deny",, "notify": [{"events": ["quota_warning"]}]}"#), None, None),
        (Some(r#"[{"quota": {"enforce": "deny"}}]"#), None, Some(true)),
        (Some(r#"{"quota": {"enforce": "Deny", "providers": {"a": {}}}}"#), None, Some(true)),
        (Some(r#"{"quota": {"enforce": true, "providers": {"a": {}}}}"#), None, Some(true)),
        (Some(r#"{"quota": {"enforce": "warn", "provider": {"a": {}}}}"#), None, Some(false)),
        (Some(r#"{"quota": {"Enforce": "deny", "providers": {"a": {}}}}"#), None, Some(true)),
        (Some(r#"{"quota": {"enforce": "deny", "providers": {}}}"#), None, Some(true)),
        (Some(r#"{"quota": [{"providers": {"a": {}}}]}"#), None, Some(true)),
        (Some(r#"{"quota": "warn"}"#), None, Some(false)),
        (Some(r#"{"quota": null}"#), None, Some(false)),
        (Some(r#"{"qouta": {"enforce": "deny", "providers": {"a": {}}}}"#), None, Some(true)),
        (Some(HOME), Some(r#"{"quota": {"enforce": "deny", "provider": {}}}"#), Some(true)),
        (Some(HOME), Some(r#"{"quota": {"enforce": "Deny"}}"#), Some(true)),
        (Some(HOME), Some(r#"{"quota": {"enforce": "deny",}}}"#), Some(true)),
        (Some(HOME), Some(r#"{"quota": ["deny"]}"#), Some(true)),
        (Some(HOME), Some(r#"{"quota": {"provider": {}}}"#), None),
        (Some(DENYING), Some(r#"{"quota": {"provider": {}}}"#), Some(true)),
        (Some(HOME), Some(r#"{"quota": {"enforce": "deny"}}"#), None),
        (None, Some(r#"{"quota": {"enforce": "deny", "provider": {}}}"#), None),
    ] {
        let files = Files::new();
        for (file, text) in [(files.home(), home), (files.project(), project)] {
            if let Some(text) = text {
                fs::write(file, text).unwrap();
            }
        }
        let (config, warnings) = files.load();
        let denies = config.invalid_quota.map(|invalid| invalid.denies);
        assert_eq!(denies, expected, "{home:?} {project:?}: {warnings:?}");
        assert!(denies.is_none() || !warnings.is_empty(), "{home:?} {project:?}");
    }
}

#[test]
fn a_project_refuses_claims_without_naming_a_provider() {
    let files = Files::new();
    fs::write(files.home(), r#"{"quota": {"providers": {"a": {}}}}"#).unwrap();
    fs::write(files.project(), r#"{"quota": {"enforce": "deny"}}"#).unwrap();
    let (config, warnings) = files.load();
    assert_eq!(warnings, Vec::<String>::new());
    assert_eq!(config.quota.unwrap().enforcement(), blackboard::quota::Enforcement::Deny);
}

#[test]
fn a_file_without_text_refuses_claims_if_there_is_a_ledger() {
    for (ledger, expected) in [(None, None), (Some("quota.db"), Some(true)), (Some("notes.db"), None)] {
        let files = Files::new();
        fs::create_dir(files.home()).unwrap();
        if let Some(ledger) = ledger {
            fs::write(files.directory.path().join(ledger), "").unwrap();
        }
        let (config, warnings) = files.load();
        assert_eq!(config.invalid_quota.map(|invalid| invalid.denies), expected, "{warnings:?}");
    }
}

#[test]
fn flat_names_mean_the_same_in_their_own_unit() {
    let cases = [
        (r#"{"heartbeatInterval": 90}"#, "heartbeat.intervalSeconds", "90"),
        (r#"{"staleThreshold": 90}"#, "heartbeat.staleThresholdSeconds", "90"),
        (r#"{"staleThresholdSeconds": 90}"#, "heartbeat.staleThresholdSeconds", "90"),
        (r#"{"pruneHeartbeatsAfterDays": 3}"#, "sweep.pruneHeartbeatsAfterDays", "3"),
        (r#"{"pruneAfter": 259200}"#, "sweep.pruneHeartbeatsAfterDays", "3"),
        (r#"{"heartbeat.intervalSeconds": 90}"#, "heartbeat.intervalSeconds", "90"),
    ];
    for (text, path, number) in cases {
        let mut expected = Config::default();
        assert!(key(path).store(&mut expected, &Written::Number(number), None));
        assert_eq!(from_home(text), (expected, vec![]), "{text}");
    }
}

#[test]
fn of_two_names_for_one_key_the_nested_one_counts() {
    let (config, warnings) =
        from_home(r#"{"staleThreshold": 100, "heartbeat": {"staleThresholdSeconds": 200}}"#);
    assert_eq!(config.heartbeat.stale_threshold, Duration::from_secs(200));
    assert_eq!(warnings.len(), 1);
    assert!(warnings[0].contains("staleThreshold is another name of heartbeat.staleThresholdSeconds"));
}

#[test]
fn project_overrides_home_and_environment_overrides_both() {
    let files = Files::new();
    fs::write(
        files.home(),
        r#"{"heartbeatInterval": 11, "staleThreshold": 21, "pruneAfter": 864000, "agent": {"name": "Ivy"}}"#,
    )
    .unwrap();
    fs::write(files.project(), r#"{"staleThreshold": 22, "pruneAfter": 950400}"#).unwrap();
    let environment = Environment { prune_after: Some("1036800".into()), ..Environment::default() };
    let (config, warnings) = load(Some(&files.home()), Some(&files.project()), &environment).unwrap();
    assert_eq!(warnings, Vec::<String>::new());
    assert_eq!(config.heartbeat.interval, Duration::from_secs(11));
    assert_eq!(config.heartbeat.stale_threshold, Duration::from_secs(22));
    assert_eq!(config.retention.heartbeats, 12 * DAY);
    assert_eq!(config.agent_name.as_deref(), Some("Ivy"));
}

#[test]
fn each_variable_sets_its_own_key_in_seconds() {
    let environment = Environment {
        heartbeat_interval: Some("31".into()),
        stale_threshold: Some(" 32 ".into()),
        prune_after: Some("7200".into()),
        ..Environment::default()
    };
    let (config, warnings) = load(None, None, &environment).unwrap();
    assert_eq!(warnings, Vec::<String>::new());
    assert_eq!(config.heartbeat.interval, Duration::from_secs(31));
    assert_eq!(config.heartbeat.stale_threshold, Duration::from_secs(32));
    assert_eq!(config.retention.heartbeats, Duration::from_hours(2));
}

#[test]
fn a_variable_that_is_a_switch_is_true_or_false() {
    for (value, expected, warned) in [
        ("true", true, false),
        ("1", true, false),
        ("false", false, false),
        ("0", false, false),
        ("yes", false, true),
    ] {
        let environment =
            Environment { allow_network_filesystem: Some(value.into()), ..Environment::default() };
        let (config, warnings) = load(None, None, &environment).unwrap();
        assert_eq!(
            (config.database.allow_network_filesystem, !warnings.is_empty()),
            (expected, warned),
            "{value}"
        );
    }
}

#[test]
fn a_file_that_other_users_can_write_is_refused_with_the_fix() {
    use std::os::unix::fs::{PermissionsExt, chown};
    for (mode, group, expected) in [
        (0o600, 4242, true),
        (0o644, 4242, true),
        (0o664, 4242, false),
        (0o646, 4242, false),
        (0o666, 4242, false),
    ] {
        for of_project in [false, true] {
            let files = Files::new();
            let file = if of_project { files.project() } else { files.home() };
            fs::write(&file, "{}").unwrap();
            if rustix::process::geteuid().is_root() {
                chown(&file, None, Some(group)).unwrap();
            }
            fs::set_permissions(&file, fs::Permissions::from_mode(mode)).unwrap();
            let environment = Environment::default();
            let loaded = load(Some(&files.home()), Some(&files.project()), &environment);
            if expected {
                assert_eq!(loaded.unwrap(), (Config::default(), vec![]), "{mode:o}");
            } else if rustix::process::geteuid().is_root() || mode & 0o002 != 0 {
                let refusal = loaded.unwrap_err();
                assert_eq!(refusal.code(), blackboard::Code::UnsafePermissions);
                let hint = refusal.hint().and_then(|hint| hint.advice());
                assert_eq!(hint, Some(&*format!("chmod go-w {}", file.display())));
            }
        }
    }
}

#[test]
fn a_file_of_another_user_is_refused() {
    use std::os::unix::fs::chown;
    if !testkit::machine::can_give_files_away() {
        return;
    }
    for of_project in [false, true] {
        let files = Files::new();
        let file = if of_project { files.project() } else { files.home() };
        fs::write(&file, r#"{"heartbeatInterval": 5}"#).unwrap();
        chown(&file, Some(65534), None).unwrap();
        let refusal = load(Some(&files.home()), Some(&files.project()), &Environment::default()).unwrap_err();
        assert_eq!(refusal.code(), blackboard::Code::UnsafePermissions);
        assert!(refusal.to_string().ends_with("belongs to another user (uid 65534)"), "{refusal}");
    }
}

#[test]
fn a_bad_variable_is_named_with_its_range_and_default() {
    for value in ["soon", "-1", "0", "1.5", "99999999999999999999"] {
        let environment = Environment { stale_threshold: Some(value.into()), ..Environment::default() };
        let (config, warnings) = load(None, None, &environment).unwrap();
        assert_eq!(config, Config::default(), "{value}");
        assert_eq!(
            warnings,
            [
                "BLACKBOARD_STALE_THRESHOLD must be a whole number from 1 to 604800 (default 300), so this value is \
              ignored"
            ],
            "{value}"
        );
    }
}

#[test]
fn a_bad_value_is_ignored_and_named_with_file_range_and_default() {
    let values =
        ["null", "[]", "{}", "-1", "1.5", "1e3", "99999999999999999999999", r#""""#, r#""a\u0000b/..""#];
    for key in KEYS {
        // Nothing is left out by an empty list, and an empty quota has another problem.
        let allowed = [("export.redact", "[]"), ("quota", "{}"), ("notify", "[]")];
        for value in values.iter().filter(|value| !allowed.contains(&(key.path, **value))) {
            let (section, name) = key.path.split_once('.').map_or(("", key.path), |parts| parts);
            let text = match section {
                "" => format!(r#"{{"{name}": {value}}}"#),
                _ => format!(r#"{{"{section}": {{"{name}": {value}}}}}"#),
            };
            let (config, warnings) = from_home(&text);
            // A quota that is not valid is noted.
            assert_eq!(Config { invalid_quota: None, ..config }, Config::default(), "{text}");
            assert_eq!(warnings.len(), 1, "{text}: {warnings:?}");
            let expected = [
                "home.json: ".to_owned(),
                format!("{} must be {}", key.path, key.allowed(None)),
                format!("(default {})", key.default_value(None)),
            ];
            assert!(expected.iter().all(|part| warnings[0].contains(part)), "{text}: {warnings:?}");
        }
    }
}

#[test]
fn numbers_are_taken_up_to_both_ends_of_their_range_and_no_further() {
    let cases = [
        ("heartbeat.intervalSeconds", 1, 86_400),
        ("heartbeat.staleThresholdSeconds", 1, 604_800),
        ("sweep.pruneEventsAfterDays", 1, 3650),
        ("database.maxLogMb", 1, 1_048_576),
        ("limits.maxValueBytes", 1024, 67_108_864),
        ("webServer.port", 1, 65_535),
        ("contentFilter.maxFieldLength", 20, 64_000),
        ("schemaVersion", 1, 1),
    ];
    for (path, least, most) in cases {
        for (number, taken) in [(least - 1, false), (least, true), (most, true), (most + 1, false)] {
            let stored = key(path).store(&mut Config::default(), &Written::Number(&number.to_string()), None);
            assert_eq!(stored, taken, "{path} = {number}");
        }
    }
}

#[test]
fn the_page_is_never_served_to_other_machines() {
    for (host, taken) in [
        ("127.0.0.1", true),
        ("127.0.0.2", true),
        ("::1", true),
        ("localhost", true),
        ("0.0.0.0", false),
        ("::", false),
        ("192.168.1.2", false),
        ("example.com", false),
        ("127.0.0.1.example.com", false),
    ] {
        let mut config = Config::default();
        assert_eq!(key("webServer.host").store(&mut config, &Written::Text(host), None), taken, "{host}");
        assert!(config.web_server.host.is_loopback(), "{host}");
    }
}

#[test]
fn the_directory_of_a_project_is_a_plain_name() {
    for (name, taken) in [
        (".blackboard", true),
        ("board", true),
        ("..", false),
        (".", false),
        ("a/b", false),
        ("board/", false),
        ("/etc", false),
        (".git", false),
        ("a\u{1b}b", false),
    ] {
        let stored = key("database.projectDir").store(&mut Config::default(), &Written::Text(name), None);
        assert_eq!(stored, taken, "{name}");
    }
}

#[test]
fn a_project_can_make_the_file_guard_stricter_and_nothing_else() {
    use FileGuard::{Deny, Off, Warn};
    for (home, project, expected, warned) in [
        ("{}", "off", Warn, true),
        ("{}", "warn", Warn, false),
        ("{}", "deny", Deny, false),
        (r#"{"fileGuard": "off"}"#, "warn", Warn, false),
        (r#"{"fileGuard": "deny"}"#, "off", Deny, true),
        (r#"{"fileGuard": "deny"}"#, "warn", Deny, true),
        (r#"{"fileGuard": "off"}"#, "off", Off, false),
    ] {
        let files = Files::new();
        fs::write(files.home(), home).unwrap();
        fs::write(files.project(), format!(r#"{{"fileGuard": "{project}"}}"#)).unwrap();
        let (config, warnings) = files.load();
        assert_eq!(config.file_guard, expected, "{home} and {project}");
        assert_eq!(warnings.iter().any(|warning| warning.contains("stricter")), warned, "{warnings:?}");
    }
}

#[test]
fn a_project_can_set_thresholds_limits_and_retention_but_no_path_address_or_safeguard() {
    let home_only: Vec<_> =
        KEYS.iter().filter(|key| key.project == ByProject::No).map(|key| key.path).collect();
    assert_eq!(
        home_only,
        [
            "database.operatorPath",
            "database.projectDir",
            "database.durability",
            "database.allowNetworkFilesystem",
            "webServer.port",
            "webServer.host",
            "contentFilter.stripCodeBlocks",
            "contentFilter.stripHtmlTags",
            "agent.name",
            "hub.url",
            "notify",
        ]
    );
    let (config, warnings) = from_project(
        r#"{
          "database": { "operatorPath": "redis://evil", "projectDir": "x", "durability": "full",
                        "allowNetworkFilesystem": true, "warnSizeMb": 2 },
          "webServer": { "port": 1, "host": "::1" },
          "contentFilter": { "stripCodeBlocks": false, "stripHtmlTags": false },
          "agent": { "name": "Mallory" },
          "hub": { "url": "mallory/hub" },
          "fileGuard": "deny",
        }"#,
    );
    let defaults = Config::default();
    let expected = Config {
        database: Database { warn_size_mb: 2, ..defaults.database.clone() },
        file_guard: FileGuard::Deny,
        ..defaults
    };
    assert_eq!(config, expected);
    // A file has at most ten warnings; `notify` has a test of its own.
    assert_eq!(warnings.len(), home_only.len() - 1);
    for (warning, path) in warnings.iter().zip(home_only) {
        assert!(warning.contains(&format!("project.json: {path} can be set in the home configuration only")));
    }
}

#[test]
fn an_unknown_key_is_named_with_the_nearest_known_one() {
    let (config, warnings) = from_home(
        r#"{"staleTreshold": 1, "heartbeat": {"interval": 5, "intervallSeconds": 5}, "telemetry": {"a": 1}, "sweep": 3}"#,
    );
    assert_eq!(config, Config::default());
    let endings = [
        r#"unknown key "heartbeat.interval"; did you mean heartbeatInterval?"#,
        r#"unknown key "heartbeat.intervallSeconds"; did you mean heartbeat.intervalSeconds?"#,
        r#"unknown key "staleTreshold"; did you mean staleThreshold?"#,
        "sweep must be an object, so it is ignored",
        r#"unknown key "telemetry""#,
    ];
    assert_eq!(warnings.len(), endings.len());
    for (warning, ending) in warnings.iter().zip(endings) {
        assert!(warning.ends_with(ending), "{warning}");
    }
}

#[test]
fn a_file_that_can_not_be_used_gives_one_warning() {
    let mut deep = "[".repeat(100_000);
    deep.insert_str(0, r#"{"a": "#);
    let large = format!("{{}}{}", " ".repeat(1024 * 1024));
    let cases: [(&[u8], &str); 9] = [
        (b"{", "not valid JSON"),
        (b"{'heartbeatInterval': 5}", "not valid JSON"),
        (b"{\"heartbeatInterval\": 5} {}", "not valid JSON"),
        (b"{\"heartbeatInterval\": 0x10}", "not valid JSON"),
        (deep.as_bytes(), "not valid JSON"),
        (b"[1]", "must be a JSON object"),
        (b"7", "must be a JSON object"),
        (b"{\"agent\": {\"name\": \"\xff\"}}", "not UTF-8"),
        (large.as_bytes(), "larger than 1 MB"),
    ];
    for (content, reason) in cases {
        let (config, warnings) = from_home(content);
        assert_eq!(config, Config::default(), "{reason}");
        assert_eq!(warnings.len(), 1, "{reason}");
        assert!(warnings[0].contains("home.json: ignored: ") && warnings[0].contains(reason), "{warnings:?}");
    }
}

#[test]
fn an_empty_file_and_a_byte_order_mark_are_fine() {
    assert_eq!(from_home(""), (Config::default(), vec![]));
    assert_eq!(from_home(" // nothing yet\n"), (Config::default(), vec![]));
    let (config, warnings) = from_home("\u{feff}{\"heartbeatInterval\": 5}");
    assert_eq!((config.heartbeat.interval, warnings), (Duration::from_secs(5), vec![]));
}

#[test]
fn a_pipe_or_a_directory_is_not_waited_on() {
    let files = Files::new();
    assert!(Command::new("mkfifo").arg(files.project()).run_to_end().status.success());
    fs::create_dir(files.home()).unwrap();
    let (config, warnings) = files.load();
    assert_eq!(config, Config::default());
    assert_eq!(warnings.len(), 2);
    assert!(warnings.iter().all(|warning| warning.ends_with("it is not a plain file")), "{warnings:?}");
}

#[test]
fn a_link_is_followed_in_the_home_and_refused_in_a_project() {
    let files = Files::new();
    let elsewhere = files.directory.path().join("elsewhere.json");
    fs::write(&elsewhere, r#"{"heartbeatInterval": 5}"#).unwrap();
    std::os::unix::fs::symlink(&elsewhere, files.home()).unwrap();
    let (config, warnings) = files.load();
    assert_eq!((config.heartbeat.interval, warnings), (Duration::from_secs(5), vec![]));

    fs::rename(files.home(), files.project()).unwrap();
    let (config, warnings) = files.load();
    assert_eq!(config, Config::default());
    assert_eq!(warnings.len(), 1);
    assert!(warnings[0].ends_with("ignored: it is a symbolic link"), "{warnings:?}");
}

#[test]
fn hostile_names_reach_the_terminal_few_short_and_without_control_characters() {
    let keys: Vec<_> = (0..5000).map(|n| format!(r#""\u001b[2J\u202e{n}{}": 1"#, "x".repeat(100))).collect();
    let (_, warnings) = from_project(format!("{{{}}}", keys.join(",")));
    assert_eq!(warnings.len(), 11);
    assert!(warnings[10].ends_with("4990 more problems of this kind"));
    for warning in warnings {
        assert!(!warning.contains(|c: char| c.is_control() || c == '\u{202e}'), "{warning:?}");
        assert!(warning.len() < 300, "{warning}");
    }
    assert_eq!(printable(Path::new("/a\u{1b}[31m\n/b")), r"/a\u{1b}[31m\n/b");
}

#[test]
fn names_are_unique_and_documented_defaults_are_the_real_ones() {
    let names: Vec<_> =
        KEYS.iter().flat_map(|key| key.aliases.iter().map(|alias| alias.name).chain([key.path])).collect();
    assert_eq!(names.iter().collect::<BTreeSet<_>>().len(), names.len());
    for key in KEYS {
        let Kind::Text { default, .. } = key.kind else { continue };
        let mut config = Config::default();
        assert!(key.store(&mut config, &Written::Text(default), None), "{}", key.path);
        config.database.operator_path = None;
        config.agent_name = None;
        config.hub_url = None;
        assert_eq!(config, Config::default(), "{}", key.path);
    }
}

#[test]
fn the_documentation_lists_every_key_as_it_is() {
    let page = include_str!("../../../../docs/configuration.md");
    let mut documented = page.lines().filter(|line| line.starts_with("| `"));
    for key in KEYS {
        let aliases = key.aliases.iter().map(|alias| match (&key.kind, alias.unit) {
            (Kind::Time { unit: Unit::Days, .. }, Unit::Seconds) => format!("`{}` (seconds)", alias.name),
            _ => format!("`{}`", alias.name),
        });
        let unit = if matches!(key.kind, Kind::Switch { .. }) { "" } else { " (seconds)" };
        let variable = key.variable.iter().map(|variable| format!("`{}`{unit}", variable.name));
        let expected = format!(
            "| `{}` | {} | {} | {} | {} |",
            key.path,
            key.default_value(None),
            key.allowed(None),
            match key.project {
                ByProject::Yes => "yes",
                ByProject::No => "no",
                ByProject::Stricter => "stricter only",
            },
            aliases.chain(variable).collect::<Vec<_>>().join(", "),
        );
        let line = documented.next().unwrap_or_default();
        assert!(line.starts_with(&expected), "expected: {expected}\n   found: {line}");
        assert!(line.len() > expected.len() + 10, "{} has no meaning", key.path);
    }
    assert_eq!(documented.next(), None, "a documented key does not exist");
}
