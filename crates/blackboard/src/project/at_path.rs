//! The project of a directory.

use std::path::Path;

use super::{Project, Projects};
use crate::error::Result;
use crate::store::{Prefetch, Range};

impl Projects<'_> {
    /// The project whose path contains one of these directories; of several, the one with the longest path. It reads
    /// only projects, so that no other row can stop a session from starting.
    ///
    /// ```
    /// # use blackboard::{Board, project::RegisterProject};
    /// # use std::path::Path;
    /// # let board = Board::memory();
    /// let path = Some("/srv/pai".to_owned());
    /// board.projects().register(&RegisterProject { path, ..RegisterProject::new("pai", "PAI") })?;
    /// assert_eq!(board.projects().at_path(&[Path::new("/srv/pai/src")])?.unwrap().project_id, "pai");
    /// assert_eq!(board.projects().at_path(&[Path::new("/srv")])?, None);
    /// # Ok::<(), blackboard::Error>(())
    /// ```
    pub fn at_path(&self, directories: &[&Path]) -> Result<Option<Project>> {
        let range = Range::projects();
        let projects: Vec<Project> =
            self.board.read_list(&[Prefetch::Range(range.clone())], |tx| tx.rows(&range))?;
        let contains = |path: &str| directories.iter().any(|directory| directory.starts_with(path));
        let nearest = projects
            .into_iter()
            .filter(|project| project.local_path.as_deref().is_some_and(contains))
            .max_by_key(|project| project.local_path.as_ref().map_or(0, String::len));
        Ok(nearest)
    }
}
