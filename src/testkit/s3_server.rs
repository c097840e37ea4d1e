//! A server that speaks S3: moto. It starts once for all tests of the process and ends with the
//! process.
//!
//! `TADOC_MOTO_SERVER` says how to start it: the path of `moto_server`, or a command such as
//! `python3 -m moto.server`. Without the variable the PATH is searched for `moto_server`.

use std::net::SocketAddr;
use std::sync::OnceLock;

use crate::server_process::{Kind, Process, answers};

pub const BUCKET: &str = "corpora";

const MOTO: Kind = Kind {
    name: "S3 server",
    command: "${TADOC_MOTO_SERVER:-moto_server} -H 127.0.0.1 -p \"$1\"",
    // Small pages make every listing come in several.
    variables: &[("MOTO_S3_DEFAULT_MAX_KEYS", "5")],
    is_ready: has_bucket,
    remedy: "`pip install 'moto[server]>=5.2.5,<6'` brings the program moto_server; put it on the PATH or \
             its path into TADOC_MOTO_SERVER",
    required_by: "REQUIRE_S3",
};

pub struct Server {
    pub address: SocketAddr,
    _process: Process,
}

impl Server {
    /// Returns the variables of the environment by which `tadoc` finds the server.
    pub fn variables(&self) -> Vec<(&'static str, String)> {
        vec![
            ("AWS_ENDPOINT", format!("http://{}", self.address)),
            ("AWS_ALLOW_HTTP", "true".into()),
            ("AWS_REGION", "us-east-1".into()),
            ("AWS_ACCESS_KEY_ID", "anybody".into()),
            ("AWS_SECRET_ACCESS_KEY", "secret".into()),
        ]
    }
}

/// Returns the server. Without one it prints a line that says so and returns `None`; with
/// `REQUIRE_S3=1` it panics.
pub fn server() -> Option<&'static Server> {
    static SERVER: OnceLock<Option<Server>> = OnceLock::new();
    let start = || MOTO.start().map(|process| Server { address: process.address, _process: process });
    SERVER.get_or_init(start).as_ref()
}

/// Creates the bucket. Returns true if a server answers that it exists now.
fn has_bucket(address: SocketAddr) -> bool {
    answers(address, &format!("PUT /{BUCKET} HTTP/1.1\r\n"), &["200"])
}
