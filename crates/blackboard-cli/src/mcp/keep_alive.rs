//! What happens without a call: the client's heartbeats, for as long as it lives.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::sleep;

use super::state::{ServerState, blocking};

/// The longest time after which a client is missed that ended without closing its end of the pipe.
const LOOK: Duration = Duration::from_secs(30);

/// Sends heartbeats until the client is gone. Whatever keeps one from being sent is said by the calls that meet it too.
pub async fn until_client_is_gone(desk: &Arc<ServerState>) {
    let interval = desk.settings().heartbeat_interval.min(LOOK).max(Duration::from_secs(1));
    loop {
        sleep(interval).await;
        let sessions = Arc::clone(desk);
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
