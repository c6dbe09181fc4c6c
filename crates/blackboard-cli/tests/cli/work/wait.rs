use std::process::Stdio;

use blackboard::Code;
use testkit::process::RunToEnd as _;

use crate::scratch::{Output, Scratch};
use crate::shapes::{WORK_ITEM, is_object};
use crate::transcript;

testkit::on_each_engine![
    human_output_matches_transcript,
    json_has_the_item,
    wait_ends_when_another_process_completes_the_item,
    timeout_names_the_holder,
    missing_board_is_not_created,
];

fn human_output_matches_transcript() {
    transcript::check("work wait");
}

fn json_has_the_item() {
    let scratch = Scratch::new();
    scratch.json(["work", "create", "item", "--title", "Item"]);
    let item = scratch.json(["work", "wait", "item", "--status", "available"]);
    assert_eq!((item["item_id"].as_str(), item["status"].as_str()), (Some("item"), Some("available")));
    is_object(&item, WORK_ITEM);
}

fn wait_ends_when_another_process_completes_the_item() {
    let scratch = Scratch::new();
    scratch.json(["agent", "register", "--name", "Ivy", "--session-hint", "ivy"]);
    scratch.json(["work", "claim", "item", "--title", "Item", "--session", "ivy"]);
    let mut command = scratch.command(["work", "wait", "item", "--timeout", "2m", "--json"]);
    let waiting = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    scratch.json(["work", "complete", "item", "--session", "ivy", "--summary", "Green"]);
    let item = Output::of(waiting.run_to_end()).success().json();
    assert_eq!((item["status"].as_str(), item["summary"].as_str()), (Some("completed"), Some("Green")));
}

fn timeout_names_the_holder() {
    let scratch = Scratch::new();
    scratch.json(["agent", "register", "--name", "Ivy", "--session-hint", "ivy"]);
    scratch.json(["work", "claim", "item", "--title", "Item", "--session", "ivy"]);
    let refused =
        scratch.run(["work", "wait", "item", "--timeout", "10ms", "--json"]).refused(Code::TimedOut);
    let holder = scratch.json(["agent", "show", "ivy"])["session_id"].as_str().unwrap()[..8].to_owned();
    let sentence = format!("timed out after 10ms: work item item is still claimed by Ivy ({holder})");
    assert_eq!(refused["error"], sentence);
    let hint = "increase --timeout, or show the item: blackboard work status item";
    assert_eq!(refused["hint"], hint);
    let human = scratch.run(["work", "wait", "item", "--timeout", "10ms"]);
    assert!(human.stderr.starts_with(&format!("error: {sentence} since ")), "{human:?}");
    assert!(human.stderr.ends_with(&format!("\nhint: {hint}\n")), "{human:?}");
    assert_eq!(
        (refused["held_by_name"].as_str(), refused["status"].as_str()),
        (Some("Ivy"), Some("claimed"))
    );
}

fn missing_board_is_not_created() {
    let scratch = Scratch::new();
    let before = scratch.contents();
    scratch.run(["work", "wait", "item", "--json"]).refused(Code::WorkNotFound);
    assert!(scratch.contents() == before);
}
