//! The name of a repository on a server: `owner/repo`, as a manifest, a hub, `--hub` and `--repo` have it.

/// How long each of its parts may be.
const LONGEST: usize = 100;

/// The owner and the name in `owner/repo` or `owner/repo.git`. Neither can be an option or lead to another directory.
pub fn owner_and_name(text: &str) -> Option<(&str, &str)> {
    let (owner, name) = text.split_once('/')?;
    let name = name.strip_suffix(".git").unwrap_or(name);
    // Only a repository may begin with a dot: `.github` is one.
    let is_valid = is_part(owner) && !owner.starts_with('.') && is_part(name);
    is_valid.then_some((owner, name))
}

fn is_part(part: &str) -> bool {
    let is_allowed = |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '-' | '_' | '.');
    !matches!(part, "" | "." | "..")
        && part.len() <= LONGEST
        && !part.starts_with('-')
        && part.chars().all(is_allowed)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hub::address::{Address, Paths, USUAL_HOST};
    use crate::spoke::manifest;
    use crate::trackers::github;

    #[test]
    fn a_manifest_a_hub_and_an_import_accept_the_same_names() {
        testkit::limit_test();
        let [long, too_long] = [100, 101].map(|length| format!("o/{}", "r".repeat(length)));
        for (text, is_name) in [
            ("o/r", true),
            ("o/r.git", true),
            ("o-o/r_r.r", true),
            ("_o/_r", true),
            ("o_/r-", true),
            ("o/.github", true),
            (&long, true),
            (&too_long, false),
            (".o/r", false),
            ("-o/r", false),
            ("o/-r", false),
            ("o/.", false),
            ("o/..", false),
            ("../r", false),
            ("o/.git", false),
            ("o/", false),
            ("/r", false),
            ("o", false),
            ("", false),
            ("o/r;x", false),
            ("o/r r", false),
            ("ö/r", false),
        ] {
            assert_eq!(owner_and_name(text).is_some(), is_name, "{text}");
            assert_eq!(manifest::is_repository(text).is_ok(), is_name, "{text}");
            assert_eq!(Address::parse(text, USUAL_HOST, Paths::Inside(&[])).is_ok(), is_name, "{text}");
            assert_eq!(github::check_repository(text).is_ok(), is_name, "{text}");
        }
    }
}
