//! The file tree of the working directory, and how paths on the command line map to it.

use std::path::{Component, Path, PathBuf};

use blackboard::{Code, Error, Refusal, Result};

/// Characters that are special or not allowed in patterns.
const NOT_LITERAL: [char; 7] = ['*', '?', '[', ']', '{', '}', '\\'];

/// The worktree of a call.
#[derive(Debug)]
pub(crate) struct Tree {
    /// The path that all worktrees of the repository share: that of the main worktree.
    pub(crate) repository: String,
    /// The root of the worktree.
    pub(crate) worktree: String,
    root: PathBuf,
    current_dir: PathBuf,
}

impl Tree {
    /// The tree with this root, which contains the working directory.
    pub(super) fn new(root: PathBuf, main: &Path, current_dir: PathBuf) -> Result<Tree> {
        Ok(Tree { repository: text_of(main)?, worktree: text_of(&root)?, root, current_dir })
    }

    /// A path of the command line relative to the root. A directory ends with `/`; the root itself is `**`.
    pub(crate) fn path(&self, text: &str) -> Result<String> {
        let path = joined(&self.segments(text)?);
        let end = self.end_of(&path, text);
        Ok(path + end)
    }

    /// The same as a pattern. Special characters in names of existing files become `?`.
    pub(crate) fn pattern(&self, text: &str) -> Result<String> {
        let mut segments = self.segments(text)?;
        let path = joined(&segments);
        let exists = self.root.join(&path).symlink_metadata().is_ok();
        for segment in segments.iter_mut().filter(|segment| exists || segment.given_by_directory) {
            segment.name = segment.name.replace(NOT_LITERAL, "?");
        }
        Ok(joined(&segments) + self.end_of(&path, text))
    }

    /// The suffix of a path that was given as this text.
    fn end_of(&self, path: &str, text: &str) -> &'static str {
        if path.is_empty() {
            "**"
        } else if text.ends_with('/') || self.root.join(path).is_dir() {
            "/"
        } else {
            ""
        }
    }

    /// The names from the root, without `.` and `..`.
    fn segments(&self, text: &str) -> Result<Vec<Segment>> {
        if text.is_empty() {
            return Err(Error::invalid("a path is empty"));
        }
        let mut segments = Vec::new();
        let rest = if Path::new(text).is_absolute() {
            self.inside(text)?
        } else {
            let inside = self.current_dir.strip_prefix(&self.root).unwrap_or(Path::new(""));
            for component in inside.components() {
                if let Component::Normal(name) = component {
                    let name = name.to_str().ok_or_else(|| not_text(inside))?.to_owned();
                    segments.push(Segment { name, given_by_directory: true });
                }
            }
            text.to_owned()
        };
        for name in rest.split('/') {
            match name {
                "" | "." => {}
                ".." => match segments.pop() {
                    None => return Err(outside(text, &self.root)),
                    Some(Segment { name, given_by_directory: false }) if name.contains(['*', '?']) => {
                        let message = format!("\"..\" after \"{name}\" is ambiguous: \"{text}\"");
                        return Err(Refusal::new(Code::InvalidValue, message)
                            .hint("write the pattern without \"..\"")
                            .into());
                    }
                    Some(_) => {}
                },
                name => segments.push(Segment { name: name.to_owned(), given_by_directory: false }),
            }
        }
        Ok(self.without_links(segments))
    }

    /// The same path without the symbolic links inside the tree, so that a file has one name. A link that leads out of
    /// the tree is kept.
    fn without_links(&self, segments: Vec<Segment>) -> Vec<Segment> {
        let is_literal =
            |segment: &&Segment| segment.given_by_directory || !segment.name.contains(['*', '?']);
        let literal = segments.iter().take_while(is_literal).count();
        let Ok(root) = std::fs::canonicalize(&self.root) else { return segments };
        for known in (1..=literal).rev() {
            let Ok(real) = std::fs::canonicalize(self.root.join(joined(&segments[..known]))) else {
                continue;
            };
            let Some(inside) = real.strip_prefix(&root).ok().and_then(Path::to_str) else { break };
            if inside == joined(&segments[..known]) {
                break;
            }
            let names = inside.split('/').filter(|name| !name.is_empty());
            let resolved = names.map(|name| Segment { name: name.to_owned(), given_by_directory: true });
            return resolved.chain(segments.into_iter().skip(known)).collect();
        }
        segments
    }

    /// An absolute path relative to the root.
    fn inside(&self, text: &str) -> Result<String> {
        let plain = lexically(Path::new(text));
        let inside = match plain.strip_prefix(&self.root) {
            Ok(inside) => inside.to_owned(),
            // The path may lead into the tree through a symbolic link.
            Err(_) => std::fs::canonicalize(text)
                .ok()
                .and_then(|path| path.strip_prefix(&self.root).ok().map(Path::to_owned))
                .ok_or_else(|| outside(text, &self.root))?,
        };
        inside.to_str().map(str::to_owned).ok_or_else(|| not_text(&inside))
    }
}

/// One name of a path.
struct Segment {
    name: String,
    /// Whether it is part of the working directory, so that it is not a pattern.
    given_by_directory: bool,
}

fn joined(segments: &[Segment]) -> String {
    segments.iter().map(|segment| segment.name.as_str()).collect::<Vec<_>>().join("/")
}

/// Removes `.` and `..` from a path, without reading the file system.
pub(crate) fn lexically(path: &Path) -> PathBuf {
    let mut plain = PathBuf::new();
    for component in path.components() {
        match component {
            Component::CurDir => {}
            Component::ParentDir => drop(plain.pop()),
            other => plain.push(other),
        }
    }
    plain
}

fn text_of(path: &Path) -> Result<String> {
    path.to_str().map(str::to_owned).ok_or_else(|| not_text(path))
}

fn not_text(path: &Path) -> Error {
    Error::invalid(format!("the path is not text: {}", path.display()))
}

fn outside(text: &str, root: &Path) -> Error {
    Refusal::new(Code::InvalidValue, format!("\"{text}\" is outside of {}", root.display()))
        .hint("only files of the repository that you are in can be reserved; change into the other one first")
        .into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_relative_to_the_root() {
        let directory = testkit::tempdir().unwrap();
        let root = directory.path().canonicalize().unwrap();
        std::fs::create_dir_all(root.join("src/[id]/deep")).unwrap();
        std::fs::create_dir_all(root.join("docs")).unwrap();
        std::fs::write(root.join("src/[id]/page.tsx"), "").unwrap();
        std::fs::write(root.join("src/{x}.rs"), "").unwrap();
        let at = |inside: &str| Tree::new(root.clone(), &root, root.join(inside)).unwrap();
        let absolute = |path: &str| root.join(path).to_str().unwrap().to_owned();
        for (inside, text, path, pattern) in [
            ("", "src/lib.rs", "src/lib.rs", "src/lib.rs"),
            ("", "./src//lib.rs", "src/lib.rs", "src/lib.rs"),
            ("", "src", "src/", "src/"),
            ("", "new/", "new/", "new/"),
            ("", ".", "**", "**"),
            ("", "src/**/*.rs", "src/**/*.rs", "src/**/*.rs"),
            ("src", "lib.rs", "src/lib.rs", "src/lib.rs"),
            ("src", "../docs/cli.md", "docs/cli.md", "docs/cli.md"),
            ("src", "..", "**", "**"),
            ("src", ".", "src/", "src/"),
            ("src", "*.rs", "src/*.rs", "src/*.rs"),
            ("src/[id]", "page.tsx", "src/[id]/page.tsx", "src/?id?/page.tsx"),
            ("src/[id]", "*.tsx", "src/[id]/*.tsx", "src/?id?/*.tsx"),
            ("src/[id]", ".", "src/[id]/", "src/?id?/"),
            ("src", "{x}.rs", "src/{x}.rs", "src/?x?.rs"),
            ("src", "{new}.rs", "src/{new}.rs", "src/{new}.rs"),
            ("docs", &absolute("src/lib.rs"), "src/lib.rs", "src/lib.rs"),
            ("docs", &absolute("docs/../src"), "src/", "src/"),
            ("docs", &absolute(""), "**", "**"),
        ] {
            let tree = at(inside);
            assert_eq!(tree.path(text).unwrap(), path, "{text} in {inside}");
            assert_eq!(tree.pattern(text).unwrap(), pattern, "{text} in {inside}, as a pattern");
        }
        for (inside, text) in
            [("", ""), ("", ".."), ("src", "../../x"), ("", "/"), ("", "/etc/passwd"), ("", "src/*/../x")]
        {
            assert!(at(inside).path(text).is_err(), "{text} in {inside}");
        }
    }

    #[cfg(unix)]
    #[test]
    fn a_file_has_one_name_whichever_link_leads_to_it() {
        use std::os::unix::fs::symlink;
        let directory = testkit::tempdir().unwrap();
        let root = directory.path().canonicalize().unwrap().join("tree");
        std::fs::create_dir_all(root.join("src/store")).unwrap();
        std::fs::create_dir_all(root.with_file_name("elsewhere")).unwrap();
        std::fs::write(root.join("src/store/a.rs"), "").unwrap();
        symlink("src", root.join("link")).unwrap();
        symlink("src/store/a.rs", root.join("b.rs")).unwrap();
        symlink(root.with_file_name("elsewhere"), root.join("out")).unwrap();
        let tree = Tree::new(root.clone(), &root, root.clone()).unwrap();
        for (text, expected) in [
            ("link/store/a.rs", "src/store/a.rs"),
            ("link/store/new.rs", "src/store/new.rs"),
            ("link/**/*.rs", "src/**/*.rs"),
            ("b.rs", "src/store/a.rs"),
            ("out/x", "out/x"),
        ] {
            assert_eq!(tree.path(text).unwrap(), expected, "{text}");
            assert_eq!(tree.pattern(text).unwrap(), expected, "{text} as a pattern");
        }
    }

    #[test]
    fn a_link_to_the_tree_is_a_way_into_it() {
        let directory = testkit::tempdir().unwrap();
        let root = directory.path().canonicalize().unwrap().join("tree");
        std::fs::create_dir_all(root.join("src")).unwrap();
        let link = root.with_file_name("link");
        #[cfg(unix)]
        std::os::unix::fs::symlink(&root, &link).unwrap();
        let tree = Tree::new(root.clone(), &root, root.clone()).unwrap();
        #[cfg(unix)]
        assert_eq!(tree.path(link.join("src").to_str().unwrap()).unwrap(), "src/");
        assert!(tree.path(root.with_file_name("other").to_str().unwrap()).is_err());
    }
}
