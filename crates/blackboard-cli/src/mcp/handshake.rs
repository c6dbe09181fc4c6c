//! The start of a connection, until the first request shows the version of the protocol.
//!
//! The SDK gives up on a client whose first message is not a request, even if the client only asked for the server's
//! capabilities. No message this early needs an answer, so this transport drops it. During the complete connection, it
//! answers lines that are not JSON, which the SDK ignores: a client that waits for an answer to one waits forever.

use std::pin::Pin;

use rmcp::RoleServer;
use rmcp::model::{ClientRequest, ErrorData, GetMeta, JsonRpcMessage, ProtocolVersion};
use rmcp::service::{RxJsonRpcMessage, TxJsonRpcMessage};
use rmcp::transport::Transport;
use tokio::sync::mpsc::UnboundedReceiver;

type Sending<E> = Pin<Box<dyn Future<Output = Result<(), E>> + Send>>;

/// A transport that passes on only requests, until one of them starts the session.
pub struct HandshakeTransport<T: Transport<RoleServer>> {
    transport: T,
    is_over: bool,
    /// Has one element for each line that is not JSON.
    not_json: UnboundedReceiver<()>,
    /// The answer to such a line, while it is sent. The SDK may drop the future of `receive` at any time.
    answer: Option<Sending<T::Error>>,
}

impl<T: Transport<RoleServer>> HandshakeTransport<T> {
    /// The transport at the start of its connection.
    pub fn new(transport: T, not_json: UnboundedReceiver<()>) -> HandshakeTransport<T> {
        HandshakeTransport { transport, is_over: false, not_json, answer: None }
    }

    fn answer_not_json(&mut self) {
        let error = ErrorData::parse_error("the line is not JSON", None);
        // The line has no id that could be read, so the answer has none.
        self.answer = Some(Box::pin(self.transport.send(TxJsonRpcMessage::<RoleServer>::error(error, None))));
    }
}

impl<T: Transport<RoleServer>> Transport<RoleServer> for HandshakeTransport<T> {
    type Error = T::Error;

    fn send(
        &mut self,
        message: TxJsonRpcMessage<RoleServer>,
    ) -> impl Future<Output = Result<(), Self::Error>> + Send + 'static {
        self.transport.send(message)
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleServer>> {
        loop {
            if let Some(answer) = &mut self.answer {
                // If the client no longer reads, the next message finds that out.
                let _ = answer.await;
                self.answer = None;
            }
            let message = tokio::select! {
                biased;
                Some(()) = self.not_json.recv() => {
                    self.answer_not_json();
                    continue;
                }
                message = self.transport.receive() => message,
            };
            let Some(message) = message else {
                // The input may have ended just after such a line.
                self.not_json.try_recv().ok()?;
                self.answer_not_json();
                continue;
            };
            if self.is_over {
                return Some(message);
            }
            if let JsonRpcMessage::Request(request) = &message {
                self.is_over = begins(&request.request);
                return Some(message);
            }
        }
    }

    fn close(&mut self) -> impl Future<Output = Result<(), Self::Error>> + Send {
        self.transport.close()
    }
}

/// Whether the SDK accepts it as the start of the session. The SDK answers all other requests and keeps waiting.
fn begins(request: &ClientRequest) -> bool {
    match request {
        ClientRequest::InitializeRequest(_) => true,
        ClientRequest::DiscoverRequest(_) | ClientRequest::PingRequest(_) => false,
        other => other.get_meta().missing_required_keys(&ProtocolVersion::V_2026_07_28).is_empty(),
    }
}
