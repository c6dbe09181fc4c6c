use std::fs;

use blackboard::Code;

use super::configured;
use crate::scratch::Scratch;
use crate::shapes::is_object;
use crate::transcript;

testkit::on_each_engine![
    human_output_matches_transcript,
    json_has_the_changed_quota,
    invalid_values_change_nothing,
];

fn human_output_matches_transcript() {
    transcript::check("quota set");
}

fn json_has_the_changed_quota() {
    let scratch = Scratch::new();
    scratch.run(["quota", "init"]).success();
    let before = fs::read_to_string(scratch.home_file("config.json")).unwrap();
    let set = scratch.json(["quota", "set", "providers.anthropic.windows.5h.budget", "400000"]);
    is_object(&set, &["file", "key", "quota"]);
    assert_eq!(set["quota"]["providers"]["anthropic"]["windows"]["5h"]["budget"], 400_000);
    let after = fs::read_to_string(scratch.home_file("config.json")).unwrap();
    assert_eq!(after, before.replace("\"budget\": 500000 ", "\"budget\": 400000 "), "comments stay");
    let added = scratch.json(["quota", "set", "providers.openai.windows.1h.budget", "7"]);
    assert_eq!(added["quota"]["providers"]["openai"]["windows"]["1h"]["budget"], 7);
    let unit = scratch.json(["quota", "set", "providers.openai.windows.1h.budget", "1.5M"]);
    assert_eq!(unit["quota"]["providers"]["openai"]["windows"]["1h"]["budget"], 1_500_000);
    let text = scratch.json(["quota", "set", "providers.openai.tier", "5M"]);
    assert_eq!(text["quota"]["providers"]["openai"]["tier"], "5M", "only a number of tokens has a unit");
    let pattern = scratch.json(["quota", "set", "models.gpt-5.1-*", "openai"]);
    assert_eq!(pattern["quota"]["models"]["gpt-5.1-*"], "openai");
    // Members are removed, and what refers to them has to be removed first.
    scratch.run(["quota", "set", "providers.openai", "null", "--json"]).refused(Code::InvalidValue);
    for (key, pointer) in [
        ("models.gpt-5.1-*", "/quota/models/gpt-5.1-*"),
        ("providers.openai.windows.1h", "/quota/providers/openai/windows/1h"),
        ("providers.openai", "/quota/providers/openai"),
    ] {
        let removed = scratch.json(["quota", "set", key, "null"]);
        assert_eq!(removed.pointer(pointer), None, "{removed}");
        let refused = scratch.run(["quota", "set", key, "null", "--json"]).refused(Code::InvalidValue);
        assert!(refused["error"].as_str().unwrap().contains(key), "{refused}");
    }
    let after = fs::read_to_string(scratch.home_file("config.json")).unwrap();
    assert!(!after.contains("openai") && after.contains("// Rolling windows"), "{after}");
}

fn invalid_values_change_nothing() {
    let scratch = configured();
    let before = fs::read_to_string(scratch.home_file("config.json")).unwrap();
    for (key, value) in [
        ("providers.a.windows.5h.budget", "0"),
        ("providers.a.windows.5h.budget", "many"),
        ("providers.a.windows.5h.budget.more", "1"),
        ("providers.a.window", "1"),
        ("providers", "{}"),
        ("enforce", "kill"),
        ("server", "foo"),
        ("server", "redis://user:secret@127.0.0.1"),
        ("", "1"),
        ("a..b", "1"),
    ] {
        scratch.run(["quota", "set", key, value, "--json"]).refused(Code::InvalidValue);
        assert_eq!(fs::read_to_string(scratch.home_file("config.json")).unwrap(), before, "{key}");
    }
    for (text, expected) in
        [("{\n\"quota\": {},\n,}", "config.json line 3: "), ("[]", "config.json line 1: ")]
    {
        super::write_config(&scratch, text);
        let refused = scratch.run(["quota", "set", "enforce", "deny", "--json"]).refused(Code::InvalidValue);
        assert!(refused["error"].as_str().unwrap().contains(expected), "{refused}");
    }
}
