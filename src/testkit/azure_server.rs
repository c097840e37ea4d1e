//! A server that speaks the protocol of Azure's blobs: azurite. It starts once for all tests of the
//! process and ends with the process.
//!
//! `TADOC_AZURITE` is the path of `azurite-blob`. Without the variable the PATH is searched for it.

use std::net::SocketAddr;
use std::sync::OnceLock;

use crate::server_process::{Kind, Process, answers};

pub const CONTAINER: &str = "corpora";

const AZURITE: Kind = Kind {
    name: "server of Azure's blobs",
    command: "${TADOC_AZURITE:-azurite-blob} --blobHost 127.0.0.1 --blobPort \"$1\" --inMemoryPersistence \
              --skipApiVersionCheck",
    variables: &[],
    is_ready: has_container,
    remedy: "`npm install azurite` brings the program azurite-blob; put it on the PATH or its path into \
             TADOC_AZURITE",
    required_by: "REQUIRE_AZURE",
};

pub struct Server(Process);

impl Server {
    /// Returns the variables of the environment by which `tadoc` finds the server.
    pub fn variables(&self) -> Vec<(&'static str, String)> {
        vec![
            ("AZURITE_BLOB_STORAGE_URL", format!("http://{}", self.0.address)),
            ("AZURE_STORAGE_USE_EMULATOR", "true".into()),
        ]
    }
}

/// Returns the server. Without one it prints a line that says so and returns `None`; with
/// `REQUIRE_AZURE=1` it panics.
pub fn server() -> Option<&'static Server> {
    static SERVER: OnceLock<Option<Server>> = OnceLock::new();
    SERVER.get_or_init(|| AZURITE.start().map(Server)).as_ref()
}

/// Creates the container. Returns true if a server answers that it exists now.
fn has_container(address: SocketAddr) -> bool {
    // The signature of these lines by the key that the emulator's account has everywhere.
    let request = format!(
        "PUT /devstoreaccount1/{CONTAINER}?restype=container HTTP/1.1\r\n\
         x-ms-date: Mon, 06 May 2024 07:08:09 GMT\r\nx-ms-version: 2021-08-06\r\n\
         Authorization: SharedKey devstoreaccount1:lobSde2z6/3H/ScQSRPpRNQUJV1e520w8BTPuSnfaJY=\r\n"
    );
    answers(address, &request, &["201", "409"])
}
