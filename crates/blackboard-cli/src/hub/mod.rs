//! A hub: a repository that lists projects. `pull` and `registry` read what its spokes report.
//!
//! A *spoke* is the directory `.collab/` of a project. It is read from the path of a project that is registered on this
//! board, from the hub's own copy, or from the repository that the hub names ([`git`], through a [`cache`]). A hub never reaches
//! past a spoke: no other file of a project is read, and no board. Everything here was written by others: [`folder`] follows no
//! link, [`address`] allows few protocols, [`yaml`](crate::yaml) has limits, and every text is escaped where it is shown.

pub mod address;
pub mod cache;
pub mod check;
pub mod files;
pub mod find;
pub(crate) mod folder;
pub mod git;
pub mod project;
pub mod pull;
pub mod registry;
pub mod spoke;
