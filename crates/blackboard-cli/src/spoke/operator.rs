//! `.collab/operator.yaml`: a person who runs agents, with their skills.

use blackboard::clock::Timestamp;
use serde::Serialize;

use super::check::{Checked, Fields, Need, schema_version};
use super::manifest::{is_fingerprint, is_public_key};
use Need::{Optional, Required};

/// The name of the file in `.collab/`.
pub const FILE: &str = "operator.yaml";

/// The words for availability.
pub const AVAILABILITY: [&str; 3] = ["open", "busy", "offline"];

/// An operator.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct OperatorFile {
    /// The version of the schema.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub schema_version: String,
    /// The handle.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub handle: String,
    /// The name to show.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The key that the operator signs with.
    pub signing: Signing,
    /// Accounts elsewhere.
    pub identities: Vec<Account>,
    /// What the operator's agents can do.
    pub skills: Vec<String>,
    /// One of [`AVAILABILITY`].
    #[serde(skip_serializing_if = "String::is_empty")]
    pub availability: String,
    /// The hubs that the operator takes part in.
    pub hives: Vec<String>,
}

/// The key that an operator signs with.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Signing {
    /// The public key: `ssh-ed25519 …`.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub public_key: String,
    /// The fingerprint of the key: `SHA256:…`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fingerprint: Option<String>,
}

/// An account of an operator at a provider.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Account {
    /// The provider, for example `github`.
    pub provider: String,
    /// The account.
    pub id: String,
    /// Whether the file says that it was verified. This program does not check it.
    pub verified: bool,
    /// When it was verified.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub verified_at: Option<Timestamp>,
}

impl OperatorFile {
    /// Reads a file and everything that is wrong with it.
    pub fn check(text: &str) -> Checked<OperatorFile> {
        Checked::of(text, |fields| OperatorFile {
            schema_version: schema_version(fields).unwrap_or_default(),
            handle: fields.text("handle", Required).unwrap_or_default(),
            name: fields.text("name", Optional),
            signing: fields
                .section("signing", Required, |signing| Signing {
                    public_key: signing
                        .checked_text("publicKey", Required, is_public_key)
                        .unwrap_or_default(),
                    fingerprint: signing.checked_text("fingerprint", Optional, is_fingerprint),
                })
                .unwrap_or_default(),
            identities: fields.sections("identities", account),
            skills: fields.texts("skills"),
            availability: fields.word("availability", Required, &AVAILABILITY).unwrap_or_default(),
            hives: hives(fields),
        })
    }
}

fn account(fields: &mut Fields<'_, '_>) -> Option<Account> {
    let (provider, id) = (fields.text("provider", Required), fields.text("id", Required));
    let verified = fields.boolean("verified", Required);
    let verified_at = fields.time("verified_at", Optional);
    Some(Account { provider: provider?, id: id?, verified: verified?, verified_at })
}

/// The hubs. The protocol leaves their form open: a text, or a mapping with a name.
fn hives(fields: &mut Fields<'_, '_>) -> Vec<String> {
    let mut hives = Vec::new();
    for node in fields.items("hives") {
        let name = ["hub", "name", "hive", "id"].iter().find_map(|key| node.get(key)?.text());
        match node.text().or(name) {
            Some(name) => hives.push(blackboard::text::visible(name)),
            None => {
                fields.error(
                    node,
                    "hives",
                    format_args!("expected the name of a hub, found {}", node.kind()),
                );
            }
        }
    }
    hives
}
