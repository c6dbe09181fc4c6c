use crate::scratch::Scratch;
use crate::shapes::is_object;
use crate::transcript;

#[test]
fn human_output_matches_transcript() {
    transcript::check("init");
}

#[test]
fn json_has_the_path_of_the_board() {
    let scratch = Scratch::new();
    let made = scratch.json(["init"]);
    is_object(&made, &["database", "created"]);
    assert_eq!(made["database"], scratch.path().join(".blackboard/local.db").to_str().unwrap());
    assert_eq!(
        (made["created"].as_bool(), scratch.json(["init"])["created"].as_bool()),
        (Some(true), Some(false))
    );
}
