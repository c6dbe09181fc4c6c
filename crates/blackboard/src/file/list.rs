//! `file list`: lists file reservations.

use super::{ActiveReservation, Files, Reservation, every_reservation};
use crate::error::Result;
use crate::store::Prefetch;

/// Which reservations to show; all by default.
#[derive(Clone, Debug, Default)]
pub struct FileFilter {
    /// Only those of this repository, in all of its worktrees.
    pub repository: Option<String>,
    /// Only those of this session.
    pub session: Option<String>,
}

impl Files<'_> {
    /// The reservations, by worktree and pattern.
    ///
    /// ```
    /// # use blackboard::{Board, agent::Register, file::{FileFilter, Reserve}};
    /// # let board = Board::memory();
    /// # let ivy = board.agents().register(&Register::named("Ivy"))?.agent.session_id;
    /// board.files().reserve(&Reserve::of("/home/ivy/project", &["src/**"], &ivy))?;
    /// let reserved = board.files().list(&FileFilter::default())?;
    /// assert_eq!((&reserved[0].pattern[..], &reserved[0].agent_name[..]), ("src/**", "Ivy"));
    /// # Ok::<(), blackboard::Error>(())
    /// ```
    pub fn list(&self, filter: &FileFilter) -> Result<Vec<Reservation>> {
        self.board.read_list(&[Prefetch::Range(every_reservation())], |tx| {
            let mut reservations = Vec::new();
            for ActiveReservation { reservation, .. } in ActiveReservation::all(tx)? {
                let fits = filter.repository.as_ref().is_none_or(|wanted| *wanted == reservation.repository)
                    && filter.session.as_ref().is_none_or(|wanted| *wanted == reservation.session_id);
                if fits {
                    reservations.push(reservation.with_name_of_today(tx)?);
                }
            }
            reservations.sort_by(|one, other| {
                let order = |reservation: &Reservation| {
                    (reservation.worktree.clone(), reservation.pattern.clone(), reservation.fence)
                };
                order(one).cmp(&order(other))
            });
            Ok(reservations)
        })
    }
}
