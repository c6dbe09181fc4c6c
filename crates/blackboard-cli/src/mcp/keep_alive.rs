//! Heartbeats for the client's sessions while it is connected.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::sleep;

use super::state::{ServerState, blocking};

/// The longest time until the server notices that a client ended without closing the pipe.
const LOOK: Duration = Duration::from_secs(30);

/// Sends heartbeats until the client is gone. Errors are ignored, because the calls report the same ones.
pub async fn until_client_is_gone(state: &Arc<ServerState>) {
    let interval = state.settings().heartbeat_interval.min(LOOK).max(Duration::from_secs(1));
    loop {
        sleep(interval).await;
        let sessions = Arc::clone(state);
        let lives = blocking(move || {
            if !sessions.sessions.client.is_alive() {
                return Ok(false);
            }
            if let Some(board) = sessions.existing()? {
                sessions.sessions.beat(&board)?;
                board.try_prune();
                board.maintain();
            }
            Ok(true)
        });
        if matches!(lives.await, Ok(false)) {
            return;
        }
    }
}
