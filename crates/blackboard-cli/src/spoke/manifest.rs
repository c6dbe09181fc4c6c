//! `.collab/manifest.yaml`: what a project is, who maintains it, and which hub it reports to.

use serde::Serialize;

use super::check::{Checked, Fields, Need, one_line, schema_version};
use Need::{Optional, Required};

use crate::repository_name::owner_and_name;

/// The name of the file in `.collab/`.
pub const FILE: &str = "manifest.yaml";

/// The licenses that hubs accept.
pub const LICENSES: [&str; 6] =
    ["MIT", "Apache-2.0", "BSD-2-Clause", "BSD-3-Clause", "CC-BY-4.0", "AGPL-3.0"];

/// A manifest.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Manifest {
    /// The version of the schema.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub schema_version: String,
    /// The name of the spoke.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub name: String,
    /// The hub that it reports to: `owner/repo`.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub hub: String,
    /// The project in the hub.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub project: String,
    /// The handle of the maintainer.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub maintainer: String,
    /// One of [`LICENSES`].
    #[serde(skip_serializing_if = "String::is_empty")]
    pub license: String,
    /// Who signs.
    pub identity: Identity,
    /// What the project claims to do for its security.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub security: Option<Security>,
    /// Commands that others may run. This program shows them and never runs them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<Commands>,
}

/// The person who signs for the project.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Identity {
    /// The handle.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub handle: String,
    /// The public key: `ssh-ed25519 …`.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub public_key: String,
    /// The fingerprint of the key: `SHA256:…`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fingerprint: Option<String>,
}

/// What the project claims to do for its security.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Security {
    /// Each safeguard, and whether it is on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reflexes: Option<Reflexes>,
}

/// Safeguards, and whether they are on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Reflexes {
    /// Commits are signed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub signing: Option<bool>,
    /// Commits are searched for credentials.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub secret_scanning: Option<bool>,
    /// Agents run in a sandbox.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sandbox_enforcer: Option<bool>,
    /// Text of others is filtered.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub content_filter: Option<bool>,
}

/// Commands of the project, which are only shown.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Commands {
    /// The command of its tests.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub test: Option<String>,
    /// The command that checks whether it works.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub health_check: Option<String>,
}

impl Manifest {
    /// Reads a manifest and everything that is wrong with it.
    pub fn check(text: &str) -> Checked<Manifest> {
        Checked::of(text, |fields| Manifest {
            schema_version: schema_version(fields).unwrap_or_default(),
            name: fields.text("name", Required).unwrap_or_default(),
            hub: fields.checked_text("hub", Required, is_repository).unwrap_or_default(),
            project: fields.text("project", Required).unwrap_or_default(),
            maintainer: fields.checked_text("maintainer", Required, is_handle).unwrap_or_default(),
            license: fields.word("license", Required, &LICENSES).unwrap_or_default(),
            identity: fields.section("identity", Required, identity).unwrap_or_default(),
            security: fields.section("security", Optional, |security| Security {
                reflexes: security.section("reflexes", Optional, |reflexes| Reflexes {
                    signing: reflexes.boolean("signing", Optional),
                    secret_scanning: reflexes.boolean("secretScanning", Optional),
                    sandbox_enforcer: reflexes.boolean("sandboxEnforcer", Optional),
                    content_filter: reflexes.boolean("contentFilter", Optional),
                }),
            }),
            status: fields.section("status", Optional, |status| Commands {
                test: status.text("test", Optional),
                health_check: status.text("healthCheck", Optional),
            }),
        })
    }
}

fn identity(fields: &mut Fields<'_, '_>) -> Identity {
    Identity {
        handle: fields.text("handle", Required).unwrap_or_default(),
        public_key: fields.checked_text("publicKey", Required, is_public_key).unwrap_or_default(),
        fingerprint: fields.checked_text("fingerprint", Optional, is_fingerprint),
    }
}

/// `owner/repo`.
pub fn is_repository(text: &str) -> Result<(), String> {
    match owner_and_name(text) {
        Some(_) => Ok(()),
        None => Err(format!("expected a repository as owner/repo, found \"{text}\"")),
    }
}

/// A name: one line of text, as it is shown.
pub fn is_name(text: &str) -> Result<(), String> {
    if !text.is_empty() && one_line(text) == text {
        return Ok(());
    }
    Err("expected one line of text without control characters".to_owned())
}

/// A handle: letters, digits and hyphens.
pub fn is_handle(text: &str) -> Result<(), String> {
    let allowed = |character: char| character.is_ascii_alphanumeric() || character == '-';
    if !text.is_empty() && text.chars().all(allowed) {
        return Ok(());
    }
    Err(format!("expected a handle of letters, digits and hyphens, found \"{text}\""))
}

/// The public key of a person: `ssh-ed25519 …`.
pub fn is_public_key(text: &str) -> Result<(), String> {
    let mut words = text.split(' ');
    let is_base64 = |word: &str| {
        let allowed =
            |character: char| character.is_ascii_alphanumeric() || matches!(character, '+' | '/' | '=');
        word.len() >= 16 && word.chars().all(allowed)
    };
    match (words.next(), words.next()) {
        (Some("ssh-ed25519"), Some(key)) if is_base64(key) => Ok(()),
        _ => Err("expected a public key that begins with ssh-ed25519".to_owned()),
    }
}

pub(super) fn is_fingerprint(text: &str) -> Result<(), String> {
    match text.strip_prefix("SHA256:") {
        Some(rest) if !rest.is_empty() && !rest.contains(char::is_whitespace) => Ok(()),
        _ => Err("expected a fingerprint that begins with SHA256:".to_owned()),
    }
}
