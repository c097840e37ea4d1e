//! The end of the process.
//!
//! With `tadoc.device = auto`, a thread may still be opening a GPU that no statement used. The
//! driver registers handlers with `atexit`. They would wait for that thread for up to half a
//! second and then close the GPU. Such a process ends without the handlers: all output is written
//! by then, and the system frees the rest.

#![allow(unsafe_code, reason = "one call that ends the process and has no safe form")]

use std::process::ExitCode;
use std::sync::{Arc, OnceLock};

use datafusion_tadoc::DeviceSession;

/// The devices of the session of this process.
static DEVICES: OnceLock<Arc<DeviceSession>> = OnceLock::new();

/// Remembers the devices that the process may be opening when it ends.
pub fn remember(devices: Arc<DeviceSession>) {
    // A process has one session; a second one would have devices that nobody waits for either.
    let _first_stays = DEVICES.set(devices);
}

/// Ends `main` with `status`, immediately if a GPU is being opened.
pub fn leave(status: u8) -> ExitCode {
    #[cfg(unix)]
    if DEVICES.get().is_some_and(|devices| devices.is_opening()) {
        use std::io::Write;
        // An error means that nobody reads standard output any more.
        let _ = std::io::stdout().flush();
        // SAFETY: ends the process without running any more of its code.
        unsafe { libc::_exit(i32::from(status)) }
    }
    ExitCode::from(status)
}
