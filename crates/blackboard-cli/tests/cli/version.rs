use crate::scratch::Scratch;
use crate::transcript;

#[test]
fn human_output_matches_transcript() {
    transcript::check("version");
}

#[test]
fn version_is_printed_by_command_and_both_options() {
    let scratch = Scratch::new();
    let number = format!("{}\n", env!("CARGO_PKG_VERSION"));
    for (call, before) in [
        (&["--version"][..], ""),
        (&["-V"], ""),
        (&["version"], "blackboard "),
        (&["--db", "nowhere", "version"], "blackboard "),
    ] {
        let output = scratch.run(call).success();
        assert_eq!((output.stdout, output.stderr), (format!("{before}{number}"), String::new()));
    }
}

#[test]
fn json_has_the_version() {
    for call in [["version", "--json"], ["--version", "--json"], ["--json", "--version"], ["-V", "--json"]] {
        let json = Scratch::new().run(call).success().json();
        assert_eq!(json["ok"], true);
        assert_eq!(json["version"], env!("CARGO_PKG_VERSION"));
        assert!(json["timestamp"].as_str().unwrap().ends_with('Z'));
    }
}
