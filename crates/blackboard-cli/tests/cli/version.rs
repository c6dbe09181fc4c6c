use crate::scratch::Scratch;
use crate::transcript;

#[test]
fn people_see_what_the_transcript_shows() {
    transcript::check("version");
}

#[test]
fn the_version_is_said_in_three_ways() {
    let scratch = Scratch::new();
    let text = format!("blackboard {}\n", env!("CARGO_PKG_VERSION"));
    for call in [&["--version"][..], &["-V"], &["version"], &["--db", "nowhere", "version"]] {
        let output = scratch.run(call).success();
        assert_eq!((output.stdout, output.stderr), (text.clone(), String::new()));
    }
}

#[test]
fn the_version_is_an_object_for_programs() {
    let json = Scratch::new().run(["version", "--json"]).success().json();
    assert_eq!(json["ok"], true);
    assert_eq!(json["version"], env!("CARGO_PKG_VERSION"));
    assert!(json["timestamp"].as_str().unwrap().ends_with('Z'));
}
