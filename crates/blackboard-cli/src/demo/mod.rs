//! What the product is for, shown in half a minute: a board of its own, a few agents that are real processes, and a
//! dashboard to watch them.
//!
//! | File | What it is about |
//! |---|---|
//! | `plan.rs` | who works, and what there is to do |
//! | `worker.rs` | one agent |
//! | `stage.rs` | the board, the processes and the dashboard, and that nothing of them stays |
//! | `story.rs` | what happens, told while it happens |

mod plan;
mod stage;
mod story;
mod worker;

pub use self::stage::Stage;
pub use self::story::{Ended, Told, tell};
pub use self::worker::work;
