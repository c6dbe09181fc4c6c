use std::fs;

use crate::scratch::Scratch;
use crate::transcript;

#[test]
fn people_see_what_the_transcript_shows() {
    transcript::check("setup remove");
}

#[test]
fn what_the_user_has_added_since_stays() {
    let scratch = Scratch::new();
    let file = scratch.path().join(".gemini/settings.json");
    fs::create_dir(scratch.path().join(".gemini")).unwrap();
    let before = "{\n  // mine\n  \"theme\": \"dark\"\n}\n";
    fs::write(&file, before).unwrap();
    scratch.json(["setup", "gemini", "--yes"]);
    let changed = fs::read_to_string(&file).unwrap().replace("\"dark\"", "\"light\"");
    fs::write(&file, &changed).unwrap();
    let answer = scratch.json(["setup", "remove", "gemini", "--yes"]);
    assert_eq!(fs::read_to_string(&file).unwrap(), before.replace("dark", "light"));
    // The text from before is not that of the file any more: it is left, and it is said where.
    let backup = scratch.path().join(".gemini/settings.json.before-blackboard");
    assert_eq!(answer["platforms"][0]["changes"][0]["backup"], backup.to_str().unwrap());
    assert_eq!(fs::read_to_string(backup).unwrap(), before);
}

#[test]
fn setting_up_again_after_a_change_keeps_a_backup_of_that() {
    let scratch = Scratch::new();
    let file = scratch.path().join(".cursor/mcp.json");
    fs::create_dir(scratch.path().join(".cursor")).unwrap();
    fs::write(&file, "{\"a\": 1}").unwrap();
    scratch.json(["setup", "cursor", "--yes"]);
    fs::write(&file, "{\"b\": 2}").unwrap();
    scratch.json(["setup", "cursor", "--yes"]);
    scratch.json(["setup", "remove", "--yes"]);
    assert_eq!(fs::read_to_string(&file).unwrap(), "{\"b\": 2}");
    let left: Vec<_> = fs::read_dir(scratch.path().join(".cursor"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name())
        .collect();
    assert!(left.iter().all(|name| name == "mcp.json" || name == "skills"), "{left:?}");
}

#[test]
fn nothing_is_removed_where_nothing_is_set_up() {
    let scratch = Scratch::new();
    let before = scratch.contents();
    assert_eq!(scratch.run(["setup", "remove"]).success().stdout, "Nothing is set up.\n");
    assert_eq!(scratch.json(["setup", "remove"])["written"], false);
    assert!(scratch.contents() == before);
}
