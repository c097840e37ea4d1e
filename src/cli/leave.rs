//! The end of the process.
//!
//! A thread may still be opening a GPU for statements that never came (`tadoc.device = auto`). What the driver has registered
//! with `atexit` would wait for it, up to half a second, to close it again. Such a process ends without that: all output has
//! been written by then, and the system frees the rest.

#![allow(unsafe_code, reason = "one call that ends the process and has no safe form")]

use std::process::ExitCode;

use datafusion_tadoc::is_opening_device;

/// Ends `main` with `status`; at once where a GPU is being opened.
pub fn leave(status: u8) -> ExitCode {
    #[cfg(unix)]
    if is_opening_device() {
        use std::io::Write;
        // Where nobody reads it any more there is nobody to tell.
        let _ = std::io::stdout().flush();
        // SAFETY: ends the process without running any more of its code.
        unsafe { libc::_exit(i32::from(status)) }
    }
    ExitCode::from(status)
}
