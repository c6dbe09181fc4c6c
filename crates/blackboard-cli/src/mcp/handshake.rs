//! The beginning of a conversation, until the first request shows which generation of the protocol it is.
//!
//! The SDK gives up on a client that begins with anything but a request, also when it has only asked what there is. Nothing
//! that comes so early concerns anybody: it is passed over.

use rmcp::RoleServer;
use rmcp::model::{ClientRequest, GetMeta, JsonRpcMessage, ProtocolVersion};
use rmcp::service::{RxJsonRpcMessage, TxJsonRpcMessage};
use rmcp::transport::Transport;

/// A transport that hands on nothing but requests, until one of them is more than a question about the server.
pub struct HandshakeTransport<T> {
    transport: T,
    is_over: bool,
}

impl<T> HandshakeTransport<T> {
    /// The beginning of what comes by this transport.
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

/// Whether the SDK takes it for the beginning: everything else it answers and goes on waiting for that.
fn begins(request: &ClientRequest) -> bool {
    match request {
        ClientRequest::InitializeRequest(_) => true,
        ClientRequest::DiscoverRequest(_) | ClientRequest::PingRequest(_) => false,
        other => other.get_meta().missing_required_keys(&ProtocolVersion::V_2026_07_28).is_empty(),
    }
}
