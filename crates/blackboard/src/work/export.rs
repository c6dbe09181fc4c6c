//! `work export`: the items of the board, as those of a tracker.

use std::collections::HashMap;

use super::import::OutsideItem;
use super::{Dependency, Status, Work, WorkItem};
use crate::error::Result;
use crate::store::{Key, Prefetch, Range};

/// Which items to export.
#[derive(Clone, Debug, Default)]
pub struct ExportItems {
    /// Only items of this project.
    pub project: Option<String>,
    /// Also completed items.
    pub with_closed: bool,
}

impl Work<'_> {
    /// The items, by id. [`Work::import`] of them on another board makes the same items, without their claims.
    ///
    /// ```
    /// # use blackboard::{Board, work::{Create, ExportItems, ImportItems}};
    /// # let [board, other] = [Board::memory(), Board::memory()];
    /// board.work().create(&Create::new("fix-tests", "Fix the tests"))?;
    /// let items = board.work().export(&ExportItems::default())?;
    /// other.work().import(&ImportItems { items: items.clone(), from: "jsonl".into(), ..ImportItems::default() })?;
    /// assert_eq!(other.work().export(&ExportItems::default())?, items);
    /// # Ok::<(), blackboard::Error>(())
    /// ```
    pub fn export(&self, export: &ExportItems) -> Result<Vec<OutsideItem>> {
        let ranges = [Range::work_items(), Range::dependencies()];
        let mut prefetch: Vec<_> = ranges.into_iter().map(Prefetch::Range).collect();
        prefetch.extend(export.project.iter().map(|project| Prefetch::Row(Key::Project(project.clone()))));
        self.board.read_list(&prefetch, |tx| {
            if let Some(project) = &export.project {
                crate::project::known(tx, project)?;
            }
            let items = tx.rows::<WorkItem>(&Range::work_items())?;
            let statuses: HashMap<&str, Status> =
                items.iter().map(|item| (item.item_id.as_str(), item.status)).collect();
            let mut blockers: HashMap<String, Vec<String>> = HashMap::new();
            for Dependency { item_id, blocked_by, .. } in tx.rows::<Dependency>(&Range::dependencies())? {
                let is_completed = statuses.get(blocked_by.as_str()) == Some(&Status::Completed);
                if export.with_closed || !is_completed {
                    blockers.entry(item_id).or_default().push(blocked_by);
                }
            }
            let is_asked_for = |item: &&WorkItem| {
                (export.with_closed || item.status != Status::Completed)
                    && (export.project.is_none() || item.project_id == export.project)
            };
            Ok(items.iter().filter(is_asked_for).map(|item| outside(item, &mut blockers)).collect())
        })
    }
}

fn outside(item: &WorkItem, blockers: &mut HashMap<String, Vec<String>>) -> OutsideItem {
    OutsideItem {
        id: item.item_id.clone(),
        title: item.title.clone(),
        description: item.description.clone(),
        priority: Some(item.priority),
        project: item.project_id.clone(),
        source: Some(item.source.clone()),
        source_ref: item.source_ref.clone(),
        labels: Some(item.labels()),
        estimate: item.estimate(),
        is_closed: item.status == Status::Completed,
        blocked_by: Some(blockers.remove(&item.item_id).unwrap_or_default()),
        on_hold: None,
    }
}
