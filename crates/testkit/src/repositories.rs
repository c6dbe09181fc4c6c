//! Many bare repositories. They share the objects of one, because making hundreds of them with git takes long.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::process::RunToEnd as _;

/// The name of the repository that has the objects.
const SHARED: &str = "shared";

/// Makes a repository for each of these texts in this directory. Its branch `main` has one commit with one file of that text.
#[track_caller]
pub fn make_repositories(directory: &Path, file: &str, repositories: &[(String, String)]) {
    let input = directory.join("commits");
    fs::write(&input, commits(file, repositories)).unwrap();
    let shared = directory.join(SHARED);
    git(Command::new("git").args(["init", "-q", "--bare", "--template="]).arg(&shared));
    let commits = fs::File::open(&input).unwrap();
    git(Command::new("git").arg("-C").arg(&shared).args(["fast-import", "--quiet"]).stdin(commits));
    let format = "--format=%(objectname) %(refname:short)";
    let listed = git(Command::new("git").arg("-C").arg(&shared).args(["for-each-ref", format]));
    for (commit, name) in listed.lines().filter_map(|line| line.split_once(' ')) {
        let repository = directory.join(name);
        for part in ["objects/info", "refs/heads"] {
            fs::create_dir_all(repository.join(part)).unwrap();
        }
        for (part, text) in [
            ("HEAD", "ref: refs/heads/main\n".to_owned()),
            ("config", "[core]\n\tbare = true\n[uploadpack]\n\tallowFilter = true\n".to_owned()),
            ("refs/heads/main", format!("{commit}\n")),
            ("objects/info/alternates", format!("{}\n", shared.join("objects").display())),
        ] {
            fs::write(repository.join(part), text).unwrap();
        }
    }
    fs::remove_file(input).unwrap();
}

/// A branch for each repository, as `git fast-import` reads it.
fn commits(file: &str, repositories: &[(String, String)]) -> String {
    let commit = |(name, text): &(String, String)| {
        format!(
            "commit refs/heads/{name}\ncommitter Ivy <ivy@example.org> 1700000000 +0000\ndata 0\n\
             M 100644 inline {file}\ndata {}\n{text}\n",
            text.len()
        )
    };
    repositories.iter().map(commit).collect()
}

#[track_caller]
fn git(command: &mut Command) -> String {
    let command = command.env_remove("GIT_DIR").stderr(Stdio::piped());
    let output = command.run_to_end();
    assert!(output.status.success(), "{command:?}: {output:?}");
    String::from_utf8(output.stdout).unwrap()
}
