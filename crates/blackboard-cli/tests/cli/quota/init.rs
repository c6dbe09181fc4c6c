use std::fs;

use blackboard::Code;

use super::write_config;
use crate::scratch::Scratch;
use crate::shapes::is_object;
use crate::transcript;

testkit::on_each_engine![
    human_output_matches_transcript,
    json_has_the_file_and_the_quota,
    what_the_configuration_has_stays,
    the_example_is_in_the_documentation,
];

fn human_output_matches_transcript() {
    transcript::check("quota init");
}

fn json_has_the_file_and_the_quota() {
    let scratch = Scratch::new();
    let written = scratch.json(["quota", "init"]);
    is_object(&written, &["file", "quota"]);
    assert_eq!(written["quota"]["providers"]["anthropic"]["windows"]["5h"]["budget"], 500_000);
    let status = scratch.run(["quota", "status"]).success();
    assert_eq!(status.stderr, "", "the example has no warnings");
    assert!(!scratch.home_file("quota.db").exists());
}

fn what_the_configuration_has_stays() {
    let scratch = Scratch::new();
    for (before, code) in [
        ("// mine\n{\n  \"fileGuard\": \"deny\", // strict\n}\n", None),
        ("{}", None),
        ("", None),
        ("{\"quota\": {}}", Some(Code::AlreadyExists)),
        ("{\"quota\": null}", Some(Code::AlreadyExists)),
        ("[]", Some(Code::InvalidValue)),
        ("{,}", Some(Code::InvalidValue)),
    ] {
        write_config(&scratch, before);
        let output = scratch.run(["quota", "init", "--json"]);
        let after = fs::read_to_string(scratch.home_file("config.json")).unwrap();
        if let Some(code) = code {
            output.refused(code);
            assert_eq!(after, before);
            continue;
        }
        output.success();
        assert!(before.lines().all(|line| line.len() < 3 || after.contains(line)), "{after}");
        assert_eq!(scratch.run(["quota", "status"]).success().stderr, "", "{after}");
    }
}

fn the_example_is_in_the_documentation() {
    let page = include_str!("../../../../../docs/quota.md");
    let example = include_str!("../../../src/commands/quota/example.jsonc");
    assert!(page.contains(example), "docs/quota.md does not have the example of `quota init`");
}
