//! The start of a connection, until the first request shows the version of the protocol.
//!
//! The SDK gives up on a client whose first message is not a request, even if the client only asked for the server's
//! capabilities. No message this early needs an answer, so this transport drops it.

use rmcp::RoleServer;
use rmcp::model::{ClientRequest, GetMeta, JsonRpcMessage, ProtocolVersion};
use rmcp::service::{RxJsonRpcMessage, TxJsonRpcMessage};
use rmcp::transport::Transport;

/// A transport that passes on only requests, until one of them starts the session.
pub struct HandshakeTransport<T> {
    transport: T,
    is_over: bool,
}

impl<T> HandshakeTransport<T> {
    /// The transport at the start of its connection.
    pub fn new(transport: T) -> HandshakeTransport<T> {
        HandshakeTransport { transport, is_over: false }
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
            let message = self.transport.receive().await?;
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
