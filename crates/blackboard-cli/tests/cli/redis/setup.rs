//! `setup --db`: the location of a server, in the configuration that every command reads.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;

use blackboard::Code;
use serde_json::{Value, json};
use testkit::redis::RedisServer;

use crate::scratch::{Output, Scratch};

fn configuration(scratch: &Scratch) -> PathBuf {
    scratch.path().join(".pai/blackboard/config.json")
}

fn configured(scratch: &Scratch) -> Value {
    serde_json::from_str(&fs::read_to_string(configuration(scratch)).unwrap()).unwrap()
}

#[test]
fn setup_makes_a_server_the_board_of_hooks_and_commands() {
    let Some(server) = RedisServer::start(&[]) else { return };
    let (scratch, url) = (Scratch::new(), server.url("team"));
    let dry = scratch.run(["setup", "claude", "--db", &url, "--dry-run"]).success().stdout;
    assert!(dry.contains(&format!("+    \"operatorPath\": \"{url}\"")), "{dry}");
    assert!(!configuration(&scratch).exists());
    let answer = scratch.json(["setup", "claude", "--db", &url, "--yes"]);
    let board = &answer["board"];
    assert_eq!(
        (&board["url"], &board["action"], &board["part"]),
        (&json!(url), &json!("create"), &json!("board"))
    );
    assert_eq!(configured(&scratch), json!({"database": {"operatorPath": url}}));
    let mode = |path: PathBuf| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(configuration(&scratch)), 0o600);
    assert_eq!(mode(scratch.path().join(".pai/blackboard")), 0o700);
    // A hook and a command without any option meet on it.
    let input = r#"{"session_id":"ivy","hook_event_name":"SessionStart"}"#;
    Output::fed(&mut scratch.command(["hook", "claude"]), input).success();
    assert_eq!(scratch.json(["agent", "list"])["count"], 1);
    assert_eq!(scratch.json(["status"])["database"], url.as_str());
    assert!(!scratch.database().exists(), "no local board was created");
    // The second run changes nothing, and the others report it.
    assert_eq!(scratch.json(["setup", "claude", "--db", &url, "--yes"])["board"]["action"], "none");
    let status = scratch.run(["setup", "status"]).success().stdout;
    assert!(status.contains(&format!("Board of this user: {url}")), "{status}");
    assert_eq!(scratch.json(["setup", "status"])["board"]["url"], url.as_str());
    let removed = scratch.run(["setup", "remove", "--yes"]).success().stdout;
    assert!(removed.contains(&format!("The board of this user stays {url}")), "{removed}");
    assert_eq!(scratch.json(["setup", "remove", "--yes"])["board_kept"]["url"], url.as_str());
    assert!(configuration(&scratch).exists());
    let removed = scratch.json(["setup", "remove", "--db", &url, "--yes"]);
    assert_eq!(removed["board"]["action"], "delete", "{removed}");
    assert!(!configuration(&scratch).exists());
}

#[test]
fn setup_writes_no_password_and_says_where_it_belongs() {
    let scratch = Scratch::new();
    for (login, written) in [("ivy:s3cr3t@", "ivy@"), (":s3cr3t@", ""), ("ivy@", "ivy@")] {
        let url = |login: &str| format!("rediss://{login}example.com:7000/1?board=team&replicas=2");
        for how in ["--dry-run", "--yes"] {
            let shown = scratch.run(["setup", "claude", "--db", &url(login), how]).success();
            let says_it =
                shown.stdout.contains("BLACKBOARD_REDIS_PASSWORD or BLACKBOARD_REDIS_PASSWORD_FILE");
            assert_eq!(says_it, login.contains("s3cr3t"), "{shown:?}");
            assert!(!shown.stdout.contains("s3cr3t") && !shown.stderr.contains("s3cr3t"), "{shown:?}");
        }
        assert_eq!(configured(&scratch)["database"]["operatorPath"], url(written).as_str());
        for (path, _, content) in scratch.contents() {
            assert!(!String::from_utf8_lossy(&content).contains("s3cr3t"), "{}", path.display());
        }
        let answer = scratch.json(["setup", "remove", "--db", &url(login), "--yes"]);
        assert!(!answer.to_string().contains("s3cr3t"), "{answer}");
        assert!(!configuration(&scratch).exists());
    }
}

#[test]
fn setup_keeps_the_rest_of_the_configuration_and_restores_it() {
    let scratch = Scratch::new();
    let file = configuration(&scratch);
    fs::create_dir_all(file.parent().unwrap()).unwrap();
    let before = "{\n  // Mine.\n  \"agentName\": \"Ivy\",\n  \"database\": {\"warnSizeMb\": 100}\n}\n";
    fs::write(&file, before).unwrap();
    let url = "redis://example.com?board=team";
    scratch.json(["setup", "claude", "--db", url, "--yes"]);
    let after = fs::read_to_string(&file).unwrap();
    assert!(after.contains("// Mine.") && after.contains("warnSizeMb") && after.contains(url), "{after}");
    // Another board is not replaced.
    let refusal =
        scratch.run(["setup", "claude", "--db", "redis://other", "--yes", "--json"]).refused(Code::ReadOnly);
    assert!(refusal["board"]["reason"].as_str().unwrap().contains("operatorPath"), "{refusal}");
    assert_eq!(fs::read_to_string(&file).unwrap(), after);
    scratch.json(["setup", "remove", "--db", url, "--yes"]);
    assert_eq!(fs::read_to_string(&file).unwrap(), before);
}

#[test]
fn setup_says_when_commands_here_use_another_board() {
    let scratch = Scratch::new();
    scratch.json(["init"]);
    let call = ["setup", "claude", "--db", "redis://example.com", "--dry-run"];
    let shown = scratch.run(call).success().stdout;
    assert!(shown.contains("Commands here do not use it: this project has its own board in "), "{shown}");
    let mut refused = call.to_vec();
    refused.extend(["--settings", "project", "--json"]);
    scratch.run(refused).refused(Code::InvalidValue);
    scratch
        .run(["setup", "claude", "--db", "redis://h?ca=ca.pem", "--yes", "--json"])
        .refused(Code::InvalidValue);
    scratch
        .run(["setup", "claude", "--db", "redis://:s3cr3t@h:0", "--yes", "--json"])
        .refused(Code::InvalidValue);
}
