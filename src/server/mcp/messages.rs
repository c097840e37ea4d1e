//! Messages on standard input and output. Those that come before a client begins are left out.
//!
//! ```text
//! notification, answer, …  initialize  request  notification …
//! └── left out ─────────┘ └── pass on ───────────────────────┘
//! ```
//!
//! The SDK ends a server whose client sends something else than a request first, and a damaged message can look so.

use rmcp::RoleServer;
use rmcp::model::{ClientJsonRpcMessage, ClientRequest, GetMeta};
use rmcp::service::{RxJsonRpcMessage, TxJsonRpcMessage};
use rmcp::transport::Transport;
use rmcp::transport::async_rw::AsyncRwTransport;
use tokio::io::{Stdin, Stdout, stdin, stdout};

/// The messages of a client.
pub struct Messages {
    streams: AsyncRwTransport<RoleServer, Stdin, Stdout>,
    has_begun: bool,
}

impl Messages {
    /// Creates the messages on standard input and output.
    pub fn new() -> Self {
        Self { streams: AsyncRwTransport::new_server(stdin(), stdout()), has_begun: false }
    }
}

impl Transport<RoleServer> for Messages {
    type Error = std::io::Error;

    fn send(
        &mut self,
        item: TxJsonRpcMessage<RoleServer>,
    ) -> impl Future<Output = Result<(), Self::Error>> + Send + 'static {
        self.streams.send(item)
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleServer>> {
        loop {
            let message = self.streams.receive().await?;
            self.has_begun = self.has_begun || begins(&message);
            if self.has_begun || matches!(message, ClientJsonRpcMessage::Request(_)) {
                return Some(message);
            }
        }
    }

    async fn close(&mut self) -> Result<(), Self::Error> {
        self.streams.close().await
    }
}

/// Returns true if a client begins with `message`: by a handshake, or by a request that says all that one would.
fn begins(message: &ClientJsonRpcMessage) -> bool {
    let ClientJsonRpcMessage::Request(request) = message else { return false };
    match &request.request {
        ClientRequest::InitializeRequest(_) => true,
        ClientRequest::PingRequest(_) | ClientRequest::DiscoverRequest(_) => false,
        other => other.get_meta().protocol_version().is_some(),
    }
}
