//! The board that agents use: its location in the home configuration, which hooks, the MCP server and all other commands
//! read.
//!
//! The settings of platforms do not name it: a shell command of an agent would use another board then. The configuration
//! of a project cannot name it, because it may have come with a clone. The password of a server is never written.

use std::path::PathBuf;

use blackboard::store::redis::Address;
use blackboard::{Code, Refusal, Result};

use super::content::Content;
use super::json::Wanted;
use super::target::{Part, SettingsLevel, Target};
use crate::config::Database;
use crate::context::Context;
use crate::location::{self, Location, Request, Source, no_home, without_password};

/// The key of the home configuration.
const KEY: &[&str] = &["database", "operatorPath"];

/// The location that `--db` names.
pub struct BoardLocation {
    /// The URL, without its password.
    pub url: String,
    /// Whether the URL has a password.
    pub has_password: bool,
    /// The configuration.
    pub file: PathBuf,
    /// Why commands here use another board.
    pub instead: Option<String>,
}

impl BoardLocation {
    /// The location of a server that `--db` of this call names.
    pub fn named(context: &Context, level: SettingsLevel) -> Result<Option<BoardLocation>> {
        let request = context.request();
        if request.db.is_none() {
            return Ok(None);
        }
        let location = location::find(&request)?;
        context.note_password_in_arguments(&location);
        let location::Target::Redis(text) = location.target else {
            let message = "the board of this user can only be a server here, and --db names a file";
            return Err(Refusal::new(Code::InvalidValue, message)
                .hint("leave out --db, and set BLACKBOARD_DB where the agents run")
                .into());
        };
        let address: Address = text.parse()?;
        if level != SettingsLevel::User {
            let message =
                format!("{} settings cannot name a board: they may come with a clone", level.as_str());
            return Err(Refusal::new(Code::InvalidValue, message)
                .hint("leave out --settings, or set BLACKBOARD_DB where the agents run")
                .into());
        }
        if address.certificates().is_some_and(std::path::Path::is_relative) {
            return Err(Refusal::new(Code::InvalidValue, "?ca= needs an absolute path here").into());
        }
        let file = location::home_config(&request).ok_or_else(no_home)?;
        let instead = instead(&Request { db: None, ..request });
        let url = without_password(&text).into_owned();
        Ok(Some(BoardLocation { url, has_password: address.has_password(), file, instead }))
    }

    /// The server in the home configuration, and that file.
    pub fn configured(context: &Context) -> Option<(String, PathBuf)> {
        let file = location::home_config(&context.request())?;
        let Database { operator_path, .. } = crate::config::database(Some(&file)).ok()?;
        let url =
            operator_path.as_ref().and_then(|name| name.to_str()).filter(|text| location::is_server(text))?;
        Some((without_password(url).into_owned(), file))
    }

    /// The file that has it.
    pub fn target(&self) -> Target {
        let content = Content::Json(vec![Wanted::Text(KEY, self.url.clone())]);
        Target { is_private: true, ..Target::new(Part::Board, self.file.clone(), content) }
    }
}

/// Why commands here use another board than that of the home configuration.
fn instead(request: &Request) -> Option<String> {
    let Location { source, .. } = location::find(request).ok()?;
    match source {
        Source::Environment => Some("BLACKBOARD_DB names another board".to_owned()),
        Source::Project(directory) => {
            Some(format!("this project has its own board in {}", directory.display()))
        }
        Source::Option | Source::HomeConfiguration | Source::Home => None,
    }
}
