use blackboard::Code;
use serde_json::json;

use crate::scratch::Scratch;
use crate::shapes::is_object;
use crate::transcript;

#[test]
fn people_see_what_the_transcript_shows() {
    transcript::check("delete");
}

#[test]
fn a_key_goes_once_and_its_versions_go_on() {
    let scratch = Scratch::new();
    scratch.json(["write", "key", "1"]);
    let deleted = scratch.json(["delete", "key"]);
    is_object(&deleted, &["scope", "key", "version", "revision"]);
    assert_eq!((&deleted["key"], &deleted["version"]), (&json!("key"), &json!(1)));
    scratch.run(["delete", "key", "--json"]).refused(Code::EntryNotFound);
    let again = scratch.json(["write", "key", "2", "--if-absent"]);
    assert_eq!((&again["created"], &again["version"]), (&json!(true), &json!(2)));
}

#[test]
fn whoever_was_swept_and_comes_back_deletes_nothing() {
    let scratch = Scratch::new();
    scratch.json(["agent", "register", "--name", "Ivy", "--session-hint", "ivy"]);
    let claimed = scratch.json(["work", "claim", "item", "--title", "Item", "--session", "ivy"]);
    let fence = format!("work:item={}", claimed["fence"]);
    scratch.json(["write", "result:item", "1", "--fence", &fence, "--session", "ivy"]);
    scratch.json(["work", "release", "item", "--session", "ivy"]);
    for call in [
        &["write", "result:item", "2"][..],
        &["delete", "result:item"],
        &["append", "result:list", "2"],
        &["increment", "result:count"],
        &["clear", "result:*"],
        &["purge", "result:item"],
    ] {
        let fenced = ["--fence", &fence, "--session", "ivy", "--json"];
        scratch.run(call.iter().chain(&fenced)).refused(Code::StaleFence);
    }
    assert_eq!(scratch.run(["list", "--json"]).stdout, "[\"result:item\"]\n");
}
