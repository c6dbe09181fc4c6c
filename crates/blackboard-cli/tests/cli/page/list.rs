use serde_json::json;

use crate::scratch::Scratch;
use crate::shapes::is_list;
use crate::transcript;

testkit::on_each_engine![
    human_output_matches_transcript,
    json_has_a_list_of_pages,
    a_list_stores_the_pages_that_it_shows,
];

fn human_output_matches_transcript() {
    transcript::check("page list");
}

fn json_has_a_list_of_pages() {
    let scratch = Scratch::new();
    scratch.json(["write", "a", "1", "--tag", "x"]);
    scratch.json(["write", "b", "1", "--tag", "y"]);
    scratch.json(["page", "map", "default"]);
    let listed = scratch.json(["page", "list"]);
    is_list(&listed, &["id", "scope", "locality", "hash", "entries", "tokens", "revision"]);
    assert_eq!((&listed["behind"], &listed["scopes"][0]["pages"]), (&json!(0), &json!(2)));
    let hash = listed["items"][0]["hash"].as_str().unwrap();
    assert_eq!(listed["items"][0]["id"], format!("bb:default:x:{hash}"));
    let limited = scratch.json(["page", "list", "default", "--limit", "1"]);
    assert_eq!((&limited["count"], &limited["more"]), (&json!(1), &json!(true)));
}

fn a_list_stores_the_pages_that_it_shows() {
    let scratch = Scratch::new();
    scratch.json(["page", "map", "default"]);
    scratch.json(["write", "a", "1"]);
    let types = |scratch: &Scratch| {
        let events = scratch.json(["observe", "--since", "1h"]);
        let events = events["items"].as_array().unwrap().iter();
        events.filter(|event| event["event_type"] == "page_added").count()
    };
    assert_eq!(types(&scratch), 0);
    assert_eq!(scratch.json(["page", "list"])["count"], 1);
    assert_eq!(types(&scratch), 1);
    // There is nothing more to store.
    scratch.json(["page", "list"]);
    assert_eq!(types(&scratch), 1);
}
