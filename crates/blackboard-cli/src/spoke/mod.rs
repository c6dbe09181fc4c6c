//! The spoke: the files in `.collab/` by which a project reports to a hub.
//!
//! `manifest.yaml` and `operator.yaml` are kept by a person, `status.yaml` is generated. [`Manifest`], [`OperatorFile`]
//! and [`StatusFile`] are read from text that others wrote: each reports all errors of a file, with line and column. Keys
//! that are not known are ignored with a note. No command in a manifest is ever executed.

mod check;
pub mod export;
pub mod manifest;
pub mod operator;
pub mod outgoing;
pub mod phase;
pub mod project;
pub mod repository;
pub mod status;
pub mod template;
pub mod test_report;

pub use self::check::Checked;
pub use self::manifest::Manifest;
pub use self::operator::OperatorFile;
pub use self::phase::Phase;
pub use self::status::StatusFile;

/// The directory of the files, in the root of a repository.
pub const DIRECTORY: &str = ".collab";

/// The version of all three schemas.
pub const SCHEMA_VERSION: &str = "1.0";

#[cfg(test)]
mod tests;
