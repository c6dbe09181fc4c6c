//! `blackboard import`

use std::path::PathBuf;

use blackboard::Result;
use blackboard::entry::{Actor, Import as Options, Keep as KeepEntry};
use blackboard::import::{self, Format};
use blackboard::swarm::MAX_FILE_BYTES;
use clap::ValueEnum;

use super::Run;
use super::arguments::{ScopeOption, Session};
use super::entry::input::read_document;
use crate::context::Context;
use crate::open::Access;
use crate::outcome::Outcome;
use crate::output::import::ImportedFile;

/// Import entries from an export, a snapshot or Markdown
///
/// FILE is the output of export or snapshot, or a swarm-blackboard.md in any dialect. Prints what becomes of each entry;
/// --dry-run changes nothing, and a second import of a file changes nothing. Exits with 4 if an entry is refused or cannot
/// be read.
///
/// Entries keep their author, and their time as metadata. A TTL starts at the time in the file. Locks, and entries that a
/// session held, are not imported.
///
/// An export also has protocols and policies of scopes, which are imported first and never replace others: if the board
/// has others, the scope is refused with its entries, unless you --keep ours. Agents, projects, work and events are not
/// imported; copy moves a complete board.
///
/// Examples:
///   blackboard import swarm-blackboard.md --dry-run
///   blackboard import swarm-blackboard.md --escape-keys
///   blackboard export | blackboard import - --scope default --keep theirs
#[derive(clap::Args, Debug)]
#[command(verbatim_doc_comment)]
pub struct Import {
    /// File to import; - is standard input
    #[arg(value_name = "FILE")]
    file: PathBuf,

    /// Show what would change and how entries differ, and change nothing
    #[arg(long)]
    dry_run: bool,

    /// Which entry stays if the board has another one under the key
    #[arg(long, value_name = "WHICH", value_enum, default_value = "newest")]
    keep: Keep,

    /// Percent-escape keys that the board refuses, for example task:* as task:%2A
    #[arg(long)]
    escape_keys: bool,

    /// Scope to import into; of an export, the only scope to import [default: the scopes that the file names, then
    /// $BLACKBOARD_SCOPE or "default"]
    #[arg(short = 'S', long, value_name = "NAME")]
    scope: Option<String>,

    #[command(flatten)]
    session: Session,
}

/// Which entry stays.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Keep {
    /// That of the board
    Ours,
    /// That of the file
    Theirs,
    /// The newer one; at the same time, that of the file
    Newest,
}

impl Run for Import {
    fn run(self, context: &Context) -> Result<Outcome> {
        let scope = context.scope(&ScopeOption { scope: self.scope.clone() })?;
        let mut file = import::read(&read_document(&self.file, MAX_FILE_BYTES)?)?;
        if self.scope.is_some() {
            match file.format {
                Format::Export => file.keep_scope(&scope)?,
                Format::Snapshot | Format::Markdown => {
                    file.content.entries.iter_mut().for_each(|entry| entry.scope = None);
                }
            }
        }
        let access = if self.dry_run { Access::plan } else { Access::write };
        let (board, session) = context.open(access(self.session.named()))?;
        let keep = match self.keep {
            Keep::Ours => KeepEntry::Ours,
            Keep::Theirs => KeepEntry::Theirs,
            Keep::Newest => KeepEntry::Newest,
        };
        let options = Options { keep, escape_keys: self.escape_keys, dry_run: self.dry_run };
        let actor = Actor { session, ..Actor::default() };
        let report = board.scope(&scope).acting_as(actor).import_file(&file, &options)?;
        let name = self.file.display().to_string();
        let imported = ImportedFile::new(name, &file, report, self.dry_run, context.json());
        let exit_code = imported.exit_code();
        Ok(Outcome::new(imported).with_exit_code(exit_code))
    }
}
