use crate::scratch::Scratch;
use crate::shapes::{PROJECT, is_object};
use crate::transcript;

#[test]
fn human_output_matches_transcript() {
    transcript::check("project register");
}

#[test]
fn json_has_the_project() {
    let scratch = Scratch::new();
    let call = ["project", "register", "pai", "--name", "PAI", "--metadata", "{\"a\": 1}"];
    let project = scratch.json(call);
    is_object(&project, PROJECT);
    assert_eq!((project["created"].as_bool(), project["updated"].as_bool()), (Some(true), Some(false)));
    assert_eq!(scratch.json(call)["updated"], false);
    assert_eq!(scratch.json(["project", "register", "pai", "--path", "/x"])["metadata"]["a"], 1);
}
