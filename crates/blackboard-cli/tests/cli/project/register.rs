use crate::scratch::Scratch;
use crate::shapes::{PROJECT, is_object};
use crate::transcript;

testkit::on_each_engine![
    human_output_matches_transcript,
    json_has_the_project,
    path_is_absolute_and_a_missing_one_is_reported,
];

fn human_output_matches_transcript() {
    transcript::check("project register");
}

fn json_has_the_project() {
    let scratch = Scratch::new();
    let call = ["project", "register", "pai", "--name", "PAI", "--metadata", "{\"a\": 1}"];
    let project = scratch.json(call);
    is_object(&project, PROJECT);
    assert_eq!((project["created"].as_bool(), project["updated"].as_bool()), (Some(true), Some(false)));
    assert_eq!(scratch.json(call)["updated"], false);
    assert_eq!(scratch.json(["project", "register", "pai", "--path", "/x"])["metadata"]["a"], 1);
}

fn path_is_absolute_and_a_missing_one_is_reported() {
    let scratch = Scratch::new();
    scratch.run(["init"]).success();
    let here = scratch.path().canonicalize().unwrap();
    std::fs::create_dir(here.join("sub")).unwrap();
    for (given, stored) in [
        (".", here.clone()),
        ("sub/", here.join("sub")),
        ("./sub/../sub", here.join("sub")),
        ("/", std::path::PathBuf::from("/")),
    ] {
        let said = scratch.run(["project", "register", "pai", "--name", "PAI", "--path", given]).success();
        assert_eq!(said.stderr, "", "{given}");
        let status = scratch.json(["project", "status", "pai"]);
        assert_eq!(status["local_path"].as_str(), stored.to_str(), "{given}");
    }
    let missing = here.join("missing");
    let said = scratch.run(["project", "register", "pai", "--path", missing.to_str().unwrap()]).success();
    assert_eq!(said.stderr, format!("note: the path {} does not exist\n", missing.display()));
}
