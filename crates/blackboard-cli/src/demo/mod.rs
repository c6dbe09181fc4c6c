//! The demo: a temporary board, a few agents that are real processes, and a dashboard. It takes half a minute.
//!
//! | File | What it is about |
//! |---|---|
//! | `plan.rs` | the agents and the work items |
//! | `worker.rs` | one agent |
//! | `stage.rs` | the board, the processes and the dashboard, and their cleanup |
//! | `story.rs` | the scenes, and their narration |

mod plan;
mod stage;
mod story;
mod worker;

pub use self::plan::VICTIM;
pub use self::stage::Stage;
pub use self::story::{Ended, Narration, tell};
pub use self::worker::work;
