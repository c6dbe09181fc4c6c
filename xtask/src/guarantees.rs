//! What the documentation says about the tests has to be true.

use std::fs;
use std::path::Path;

fn sources(directory: &Path, text: &mut String) {
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            sources(&path, text);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            text.push_str(&fs::read_to_string(&path).unwrap());
        }
    }
}

#[test]
fn every_test_that_the_guarantees_name_exists() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let mut code = String::new();
    sources(&root.join("crates"), &mut code);
    let page = fs::read_to_string(root.join("docs/guarantees.md")).unwrap();
    let names: Vec<_> = page
        .split('`')
        .skip(1)
        .step_by(2)
        .filter(|name| {
            name.contains('_') && name.bytes().all(|byte| byte == b'_' || byte.is_ascii_alphanumeric())
        })
        .collect();
    assert!(names.len() > 40, "{names:?}");
    for name in names {
        assert!(code.contains(&format!("fn {name}(")), "docs/guarantees.md names {name}, which is no test");
    }
}
