//! The key of a task list, which the ids of its items contain: the same text in another list is another item.

use std::ffi::OsStr;
use std::fs;
use std::path::Path;

use uuid::Uuid;

use crate::identity;
use crate::location::{self, Request};

/// How many hexadecimal digits a key has: more than the short id of a session, so that it does not look like one.
const DIGITS: usize = 10;

/// The key of a file, or of standard input if there is none.
///
/// A file of a git repository has the same key in all directories, worktrees and clones: its repository is known by its
/// remote, or without one by its main worktree. Standard input has one key for each project and repository.
pub fn list_key(request: &Request, file: Option<&Path>, project: Option<&str>) -> String {
    let file = file.map(|file| request.current_dir.join(file));
    let file = file.map(|file| fs::canonicalize(&file).unwrap_or(file));
    let directory = match &file {
        Some(file) => file.parent().unwrap_or(file),
        None => &request.current_dir,
    };
    let (home, path) =
        match location::worktree(&Request { current_dir: directory.to_owned(), ..request.clone() }) {
            Some((root, main)) => {
                let remote = identity::remote(&main).and_then(|remote| remote.repository);
                let path = file.as_ref().map(|file| file.strip_prefix(&root).unwrap_or(file).to_owned());
                (remote.map_or_else(|| bytes(main.as_os_str()), String::into_bytes), path)
            }
            None if file.is_some() => (Vec::new(), file),
            None => (bytes(directory.as_os_str()), None),
        };
    let mut list = home;
    if let Some(path) = &path {
        for part in path {
            list.push(0);
            list.extend(part.as_encoded_bytes());
        }
    } else {
        // No file has an empty part.
        list.extend([0, 0]);
        list.extend(project.unwrap_or_default().bytes());
    }
    let mut key = Uuid::new_v5(&Uuid::NAMESPACE_OID, &list).simple().to_string();
    key.truncate(DIGITS);
    key
}

fn bytes(text: &OsStr) -> Vec<u8> {
    text.as_encoded_bytes().to_vec()
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;

    fn key(directory: &Path, file: Option<&str>, project: Option<&str>) -> String {
        let request = Request { current_dir: directory.to_owned(), ..Request::default() };
        list_key(&request, file.map(Path::new), project)
    }

    /// A repository with two lists, and with this remote.
    fn repository(root: &Path, name: &str, remote: Option<&str>) -> PathBuf {
        let repository = root.join(name);
        fs::create_dir_all(repository.join(".git")).unwrap();
        fs::create_dir_all(repository.join("docs")).unwrap();
        for list in ["TODO.md", "docs/TODO.md"] {
            fs::write(repository.join(list), "").unwrap();
        }
        let remote = remote.map(|url| format!("[remote \"origin\"]\n\turl = {url}\n")).unwrap_or_default();
        fs::write(repository.join(".git/config"), remote).unwrap();
        repository
    }

    #[test]
    fn a_list_has_the_same_key_from_every_directory_and_clone_and_no_other_list_has_it() {
        testkit::limit_test();
        let directory = testkit::tempdir().unwrap();
        let root = &fs::canonicalize(directory.path()).unwrap();
        let first = repository(root, "first", Some("https://github.com/o/r.git"));
        let clone = repository(root, "clone", Some("git@github.com:o/r"));
        let other = repository(root, "other", Some("https://github.com/o/other"));
        let [a, b] = ["a", "b"].map(|name| repository(root, name, None));
        fs::write(root.join("TODO.md"), "").unwrap();

        let own = key(&first, Some("TODO.md"), None);
        assert!(own.len() == DIGITS && own.bytes().all(|byte| byte.is_ascii_hexdigit()), "{own}");
        let absolute = first.join("TODO.md");
        for (directory, file) in [
            (&first, "./TODO.md"),
            (&first.join("docs"), "../TODO.md"),
            (root, "first/TODO.md"),
            (&other, absolute.to_str().unwrap()),
            (&clone, "TODO.md"),
        ] {
            assert_eq!(key(directory, Some(file), Some("any")), own, "{directory:?} {file}");
        }
        let mut keys = vec![own];
        for (directory, file, project) in [
            (&first, Some("docs/TODO.md"), None),
            (&other, Some("TODO.md"), None),
            (&a, Some("TODO.md"), None),
            (&b, Some("TODO.md"), None),
            (root, Some("TODO.md"), None),
            (&first, None, None),
            (&first, None, Some("p")),
            (&other, None, Some("p")),
            (root, None, None),
        ] {
            keys.push(key(directory, file, project));
        }
        let distinct: std::collections::BTreeSet<_> = keys.iter().collect();
        assert_eq!(distinct.len(), keys.len(), "{keys:?}");
    }
}
