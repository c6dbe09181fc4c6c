//! The board as an MCP server on standard input and output: one file a noun, and what all of them use.
//!
//! Here alone a runtime runs, on one thread; what touches the board goes to a few others ([`desk::blocking`]). All share
//! one board. Whoever waits, for a key, a lock or a change, waits for one thread that follows the log ([`log`]), however
//! many they are.
//!
//! A refusal of the board is the result of a tool, marked as an error, with code, hint and details: the model is to read
//! it. Errors of the protocol are for what is no call of a tool at all.
//!
//! Nothing here decides a rule of the board. A write is not given the name of an operation: a client that tries again sends
//! another request id, so that nothing tells a repetition from a second call (`docs/decisions/0009`). Who wants that passes `op`.

mod agent;
mod desk;
mod entry;
mod event;
mod greeting;
mod hold;
mod input;
mod keep_alive;
mod log;
mod reply;
mod resource;
mod schema;
mod server;
mod session;
mod tools;
mod wait;
mod work;

use std::sync::Arc;

use blackboard::{Code, Fault, Result};
use rmcp::service::{QuitReason, ServerInitializeError, ServiceExt};
use rmcp::transport::async_rw::AsyncRwTransport;
use rmcp::transport::io::stdio_pipes;
use tokio::sync::watch;

use self::desk::Desk;
use self::greeting::Greeting;
use self::input::Input;
use self::server::Server;
use crate::context::Context;

/// How long a message may be, in bytes. Longer ones are dropped, as the protocol has no answer to them.
const MAX_MESSAGE: usize = 8 * 1024 * 1024;

/// How many threads work on the board: as many as it keeps connections, and two that may be reading and writing where the
/// standard streams are no pipes.
const THREADS: usize = 6;

/// Serves until the input ends or the client is gone.
pub fn serve(context: &Context) -> Result<()> {
    let (ending, ended) = watch::channel(false);
    let desk = Arc::new(Desk::new(context, ended)?);
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_io()
        .enable_time()
        .max_blocking_threads(THREADS)
        .build()
        .map_err(|error| Fault::new(Code::Io, "the server could not be started").because(error))?;
    let served = runtime.block_on(async {
        let outcome = tokio::select! {
            outcome = talk(Arc::clone(&desk), ending) => outcome,
            () = keep_alive::until_client_is_gone(&desk) => Ok(()),
        };
        let leaving = Arc::clone(&desk);
        desk::blocking(move || leaving.leave()).await?;
        outcome
    });
    // What is still at work has nobody left to answer to.
    runtime.shutdown_background();
    served
}

/// Speaks with the client until its input ends and the answers to it are out.
async fn talk(desk: Arc<Desk>, ending: watch::Sender<bool>) -> Result<()> {
    let (reader, writer) = stdio_pipes();
    let transport =
        AsyncRwTransport::new_server(Input::new(reader, ending), writer).with_max_line_length(MAX_MESSAGE);
    let service = match Server::new(desk).serve(Greeting::new(transport)).await {
        Ok(service) => service,
        Err(ServerInitializeError::ConnectionClosed(_)) => return Ok(()),
        Err(error) => {
            let fault = Fault::new(Code::Io, "the client did not begin as the protocol has it");
            return Err(fault.because(error).into());
        }
    };
    match service.waiting().await {
        Ok(QuitReason::JoinError(error)) | Err(error) => {
            Err(Fault::new(Code::Internal, "the server broke down").because(error).into())
        }
        Ok(_) => Ok(()),
    }
}
