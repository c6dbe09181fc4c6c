//! A new manifest, with comments for the person who completes it.

use std::fmt::Write as _;

use super::SCHEMA_VERSION;
use super::manifest::LICENSES;
use crate::yaml;

/// What is known about a new manifest.
#[derive(Clone, Debug, Default)]
pub struct ManifestTemplate {
    /// The name of the spoke.
    pub name: String,
    /// The hub, as `owner/repo`.
    pub hub: Option<String>,
    /// The project in the hub.
    pub project: String,
    /// The handle of the maintainer.
    pub maintainer: Option<String>,
    /// The license.
    pub license: Option<String>,
    /// The public key of the maintainer.
    pub public_key: Option<String>,
}

impl ManifestTemplate {
    /// The text of the file. A value that is not known is empty.
    pub fn text(&self) -> String {
        let licenses = LICENSES.join(", ");
        let mut text = "# The manifest of a spoke: what this project is, and which hub it reports to.\n\
                        # `blackboard spoke validate` checks it.\n"
            .to_owned();
        let mut add = |comment: &str, indent: &str, key: &str, value: Option<&str>| {
            if !comment.is_empty() {
                let _ = writeln!(text, "\n{indent}# {comment}");
            }
            let value = value.map(|value| format!(" {}", quoted(value))).unwrap_or_default();
            let _ = writeln!(text, "{indent}{key}:{value}");
        };
        add("", "", "schemaVersion", Some(SCHEMA_VERSION));
        add("The name of this spoke.", "", "name", Some(&self.name));
        add("The hub that it reports to, as owner/repo.", "", "hub", self.hub.as_deref());
        add("The project in the hub.", "", "project", Some(&self.project));
        add(
            "The handle of the maintainer: letters, digits and hyphens.",
            "",
            "maintainer",
            self.maintainer.as_deref(),
        );
        add(&format!("One of {licenses}."), "", "license", self.license.as_deref());
        add("Who signs for this project.", "", "identity", None);
        add("", "  ", "handle", self.maintainer.as_deref());
        add(
            "The content of a .pub file, for example ~/.ssh/id_ed25519.pub.",
            "  ",
            "publicKey",
            self.public_key.as_deref(),
        );
        text.push_str(OPTIONAL);
        text
    }
}

/// What a manifest may also have.
const OPTIONAL: &str = "
# What this project does for its security.
# security:
#   reflexes:
#     signing: true
#     secretScanning: true
#     sandboxEnforcer: false
#     contentFilter: true

# Commands for people. `blackboard` shows them and never runs them.
# status:
#   test: cargo test
#   healthCheck: cargo check
";

fn quoted(text: &str) -> String {
    // A text can always be written.
    yaml::write(&text).unwrap_or_default().trim_end().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spoke::Manifest;

    #[test]
    fn a_new_manifest_is_valid_once_everything_is_known() {
        let template = ManifestTemplate {
            name: "no".into(),
            hub: Some("mellanon/pai-collab".into()),
            project: "it's: #1".into(),
            maintainer: Some("ivy".into()),
            license: Some("MIT".into()),
            public_key: Some("ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIOn ivy".into()),
        };
        let checked = Manifest::check(&template.text());
        assert_eq!((checked.errors, checked.notes), (vec![], vec![]), "{}", template.text());
        let manifest = checked.value.expect("a manifest");
        assert_eq!(
            (&*manifest.name, &*manifest.project, &*manifest.identity.handle),
            ("no", "it's: #1", "ivy")
        );
        let empty = ManifestTemplate { name: "a".into(), project: "a".into(), ..ManifestTemplate::default() };
        let missing: Vec<_> =
            Manifest::check(&empty.text()).errors.into_iter().map(|error| error.message).collect();
        let expected = ["hub", "maintainer", "license", "identity.handle", "identity.publicKey"];
        assert_eq!(missing, expected.map(|key| format!("{key}: required, but missing")));
    }

    #[test]
    fn the_optional_parts_are_valid_without_their_number_signs() {
        let all =
            OPTIONAL.lines().filter(|line| !line.ends_with('.')).map(|line| line.trim_start_matches("# "));
        let text = all.collect::<Vec<_>>().join("\n");
        let checked = Manifest::check(&text);
        assert_eq!(checked.notes, [], "{text}");
        let manifest = checked.value.expect("a mapping");
        assert!(manifest.status.is_some_and(|status| status.health_check.is_some()), "{text}");
        assert!(manifest.security.is_some_and(|security| security.reflexes.is_some()), "{text}");
    }
}
