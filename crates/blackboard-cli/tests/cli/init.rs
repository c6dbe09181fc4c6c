use crate::scratch::Scratch;
use crate::shapes::is_object;
use crate::transcript;

#[test]
fn people_see_what_the_transcript_shows() {
    transcript::check("init");
}

#[test]
fn programs_get_where_the_board_is() {
    let scratch = Scratch::new();
    let made = scratch.json(["init"]);
    is_object(&made, &["database", "created"]);
    assert_eq!(made["database"], scratch.path().join(".blackboard/local.db").to_str().unwrap());
    assert_eq!(
        (made["created"].as_bool(), scratch.json(["init"])["created"].as_bool()),
        (Some(true), Some(false))
    );
}
