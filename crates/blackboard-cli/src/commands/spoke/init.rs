//! `blackboard spoke init`

use std::path::Path;

use blackboard::{Code, Refusal, Result};
use clap::builder::PossibleValuesParser;

use super::spoke_at;
use crate::commands::Run;
use crate::context::Context;
use crate::disk;
use crate::outcome::Outcome;
use crate::output::spoke::CreatedManifest;
use crate::spoke::manifest::{self, LICENSES};
use crate::spoke::template::ManifestTemplate;
use crate::spoke::{Manifest, project};

/// How much of a license is read to recognize it.
const MOST_LICENSE_BYTES: u64 = 64 * 1024;

/// Create .collab/manifest.yaml for this project
///
/// Writes a manifest with comments, from these options and from the remote and the license of the repository. What is
/// not known is left empty: `blackboard spoke validate` lists it. An existing manifest is kept, unless --force is given.
///
/// Examples:
///   blackboard spoke init --hub mellanon/pai-collab --maintainer ivy
///   blackboard spoke init --hub mellanon/pai-collab --license MIT --force
#[derive(clap::Args, Debug)]
#[command(verbatim_doc_comment)]
pub struct Init {
    /// Hub to report to
    #[arg(long, value_name = "OWNER/REPO", value_parser = repository)]
    hub: Option<String>,

    /// Name of the spoke [default: the name of the remote or the directory]
    #[arg(long, value_name = "NAME", value_parser = name)]
    name: Option<String>,

    /// Project in the hub [default: as --name]
    #[arg(short = 'P', long, value_name = "NAME", value_parser = name)]
    project: Option<String>,

    /// Handle of the maintainer [default: the owner of the remote]
    #[arg(long, value_name = "HANDLE", value_parser = handle)]
    maintainer: Option<String>,

    /// License [default: as the LICENSE file says]
    #[arg(long, value_name = "LICENSE", value_parser = PossibleValuesParser::new(LICENSES))]
    license: Option<String>,

    /// Public key of the maintainer: ssh-ed25519 …
    #[arg(long, value_name = "KEY", value_parser = public_key)]
    public_key: Option<String>,

    /// Replace an existing manifest
    #[arg(long)]
    force: bool,
}

impl Run for Init {
    fn run(self, context: &Context) -> Result<Outcome> {
        let spoke = spoke_at(context, None);
        if !self.force && spoke.read(manifest::FILE)?.is_some() {
            let message = format!("{} already exists", spoke.file(manifest::FILE).display());
            return Err(Refusal::new(Code::AlreadyExists, message).hint("replace it with --force").into());
        }
        let name = self.name.unwrap_or_else(|| spoke.session_project());
        let owner = spoke.remote.as_ref().and_then(|remote| remote.repository.as_deref()?.split_once('/'));
        let owner =
            owner.map(|(owner, _)| owner.to_owned()).filter(|owner| manifest::is_handle(owner).is_ok());
        let template = ManifestTemplate {
            project: self.project.unwrap_or_else(|| name.clone()),
            name,
            hub: self.hub,
            maintainer: self.maintainer.or(owner),
            license: self.license.or_else(|| license_of(&spoke)),
            public_key: self.public_key,
        };
        let text = template.text();
        let missing = Manifest::check(&text).errors;
        let file = spoke.write(manifest::FILE, &text)?;
        Ok(Outcome::new(CreatedManifest { file: file.display().to_string(), missing }))
    }
}

fn repository(text: &str) -> Result<String, String> {
    manifest::is_repository(text).map(|()| text.to_owned())
}

fn handle(text: &str) -> Result<String, String> {
    manifest::is_handle(text).map(|()| text.to_owned())
}

fn name(text: &str) -> Result<String, String> {
    manifest::is_name(text).map(|()| text.to_owned())
}

fn public_key(text: &str) -> Result<String, String> {
    let text = text.trim();
    manifest::is_name(text).and_then(|()| manifest::is_public_key(text)).map(|()| text.to_owned())
}

/// The license that the file of the repository contains, if hubs accept it.
fn license_of(spoke: &project::SpokeProject) -> Option<String> {
    let files = ["LICENSE", "LICENSE.md", "LICENSE.txt", "LICENSE-MIT", "LICENSE-APACHE", "COPYING"];
    let text = |name: &&str| disk::plain_text(Path::new(&spoke.root.join(name)), MOST_LICENSE_BYTES);
    files.iter().find_map(text).and_then(|text| license_in(&text)).map(str::to_owned)
}

/// The license of a text, by the words that only this license has.
fn license_in(text: &str) -> Option<&'static str> {
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ").to_lowercase();
    let has = |words: &str| text.contains(words);
    Some(if has("gnu affero general public license") && has("version 3") {
        "AGPL-3.0"
    } else if has("apache license") && has("version 2.0") {
        "Apache-2.0"
    } else if has("attribution 4.0 international") {
        "CC-BY-4.0"
    } else if has("redistribution and use in source and binary forms") {
        if has("neither the name") { "BSD-3-Clause" } else { "BSD-2-Clause" }
    } else if has("permission is hereby granted, free of charge")
        && has("the above copyright notice and this permission")
    {
        "MIT"
    } else {
        return None;
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_license_is_known_by_its_words() {
        for (text, expected) in [
            (
                "Permission is hereby granted, free of charge,\nto x\nThe above copyright notice and this permission notice",
                Some("MIT"),
            ),
            ("Apache License\n  Version 2.0, January 2004", Some("Apache-2.0")),
            ("Redistribution and use in source and binary forms … Neither the name of", Some("BSD-3-Clause")),
            ("Redistribution and use in source and binary forms", Some("BSD-2-Clause")),
            ("GNU AFFERO GENERAL PUBLIC LICENSE\n Version 3", Some("AGPL-3.0")),
            ("Creative Commons Attribution 4.0 International", Some("CC-BY-4.0")),
            ("All rights reserved", None),
        ] {
            assert_eq!(license_in(text), expected, "{text}");
        }
    }
}
