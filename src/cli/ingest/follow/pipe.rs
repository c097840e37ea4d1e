//! A pipe: standard input or a named pipe, read by a thread of its own.

use std::fs::File;
use std::io::{self, ErrorKind, Read};
use std::path::PathBuf;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::thread;
use std::time::Duration;

use tadoc_session::{Failure, Outcome};

use super::Step;

/// Number of bytes that are read at once.
const READ_BYTES: usize = 64 << 10;
/// Number of reads that wait for their receiver. A writer that is faster waits.
const WAITING_READS: usize = 4;

/// A pipe that is read.
pub struct Pipe {
    name: String,
    reads: Receiver<io::Result<Vec<u8>>>,
}

impl Pipe {
    /// Starts to read the pipe at `path`, or standard input. Messages call it `name`. A named pipe has to be
    /// waited for until a program opens it.
    pub fn open(path: Option<PathBuf>, name: String) -> Self {
        let (sender, reads) = sync_channel(WAITING_READS);
        // The thread is not joined, as it may wait for bytes that never come.
        thread::spawn(move || match path.map(File::open) {
            None => send(io::stdin(), &sender),
            Some(Ok(file)) => send(file, &sender),
            Some(Err(error)) => {
                let _no_receiver = sender.send(Err(error));
            }
        });
        Self { name, reads }
    }

    /// Appends the next bytes to `text`. Waits for them up to `patience`.
    ///
    /// # Errors
    /// The pipe cannot be read.
    pub fn read(&self, text: &mut Vec<u8>, patience: Duration) -> Outcome<Step> {
        match self.reads.recv_timeout(patience) {
            Ok(Ok(bytes)) => {
                text.extend_from_slice(&bytes);
                Ok(Step::Read)
            }
            Ok(Err(error)) => {
                Err(Failure::with_cause(format!("{}: cannot read", self.name), &error))
            }
            Err(RecvTimeoutError::Timeout) => Ok(Step::Quiet),
            Err(RecvTimeoutError::Disconnected) => Ok(Step::Closed),
        }
    }
}

/// Sends what `pipe` has until its end, an error, or the end of the receiver.
fn send(mut pipe: impl Read, reads: &SyncSender<io::Result<Vec<u8>>>) {
    let mut bytes = vec![0; READ_BYTES];
    loop {
        let read = match pipe.read(&mut bytes) {
            Ok(0) => return,
            Ok(len) => Ok(bytes.get(..len).unwrap_or_default().to_vec()),
            Err(error) if error.kind() == ErrorKind::Interrupted => continue,
            Err(error) => Err(error),
        };
        let is_failed = read.is_err();
        if reads.send(read).is_err() || is_failed {
            return;
        }
    }
}
