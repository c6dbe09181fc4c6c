//! The inspector of the protocol's own authors, as a client. `cargo xtask test` installs it in CI where there is node.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;
use testkit::process::RunToEnd as _;

use crate::scratch::{Output, Scratch, program};

/// Its path, if it is installed.
fn installed() -> Option<(PathBuf, Value)> {
    let modules = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/inspector/node_modules");
    let package = modules.join("@modelcontextprotocol/inspector/package.json");
    let Ok(package) = std::fs::read_to_string(package) else {
        testkit::skip(
            "the MCP Inspector",
            "its package, which `cargo xtask test --all` installs where there is node",
        );
        return None;
    };
    let package: Value = serde_json::from_str(&package).unwrap();
    Some((modules.join(".bin/mcp-inspector"), package["version"].clone()))
}

#[test]
fn the_inspector_lists_the_tools_and_calls_them() {
    let Some((inspector, version)) = installed() else { return };
    let scratch = Scratch::new();
    let inspect = |arguments: &[&str]| {
        let mut command = Command::new(&inspector);
        command
            .arg("--cli")
            .arg(program())
            .arg("mcp")
            .args(arguments)
            .env("HOME", scratch.path())
            .current_dir(scratch.path());
        let output = Output::of(command.run_to_end());
        assert_eq!(output.code, 0, "{output:?}");
        output
    };
    // Later versions judge the schemas as well.
    let judges = version.as_str().is_some_and(|version| !version.starts_with("0."));
    let strict: &[&str] = if judges { &["--strict"] } else { &[] };
    let listed = inspect(&[&["--method", "tools/list"], strict].concat());
    let mut lines = listed.stdout.lines().chain(listed.stderr.lines());
    assert!(!judges || lines.any(|line| line.starts_with("0 errors")), "{listed:?}");
    assert!(listed.stdout.contains("\"work_claim\"") && listed.stdout.contains("\"wait\""), "{listed:?}");
    let call = [
        "--method",
        "tools/call",
        "--tool-name",
        "work_claim",
        "--tool-arg",
        "id=x",
        "--tool-arg",
        "title=X",
    ];
    let claimed: Value = serde_json::from_str(&inspect(&call).stdout).unwrap();
    assert_eq!(claimed["structuredContent"]["claimed"], true, "{claimed}");
    let read = inspect(&["--method", "resources/read", "--uri", "blackboard://work"]);
    assert!(read.stdout.contains("blackboard://work"), "{read:?}");
}
