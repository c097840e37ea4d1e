//! Reads files and lines of any length as documents. Their bytes are passed on as they are read.

use std::io::{self, BufRead, ErrorKind};
use std::sync::Arc;

use memchr::memchr;

use crate::Gather;
use crate::failure::Outcome;
use crate::inputs::Input;
use crate::open::Opened;

/// Reads an input as one document with all of its bytes.
pub fn read_file(mut opened: Opened<'_>, input: &Input, sink: &mut Gather<'_>) -> Outcome {
    let path: Arc<str> = Arc::from(input.path.as_str());
    loop {
        let text = next_bytes(&mut opened, input)?;
        let len = text.len();
        if len == 0 {
            break;
        }
        sink.watch_script(input, text);
        sink.append(&path, text)?;
        opened.reader.consume(len);
        sink.count_read(opened.take_counts());
    }
    sink.count_read(opened.take_counts());
    sink.end_document(&path)
}

/// Reads an input as one document per line, without the `\n`. A `\r` before it stays. Text after
/// the last line end is a line, too.
pub fn read_lines(mut opened: Opened<'_>, input: &Input, sink: &mut Gather<'_>) -> Outcome {
    let path: Arc<str> = Arc::from(input.path.as_str());
    let mut is_open = false;
    loop {
        let mut text = next_bytes(&mut opened, input)?;
        let len = text.len();
        if len == 0 {
            break;
        }
        sink.watch_script(input, text);
        while let Some(end) = memchr(b'\n', text) {
            sink.push(&path, &text[..end])?;
            text = &text[end + 1..];
            is_open = false;
        }
        if !text.is_empty() {
            sink.append(&path, text)?;
            is_open = true;
        }
        opened.reader.consume(len);
        sink.count_read(opened.take_counts());
    }
    sink.count_read(opened.take_counts());
    if is_open { sink.end_document(&path) } else { Ok(()) }
}

/// Returns the next bytes of the input, or none at its end.
pub fn next_bytes<'a>(opened: &'a mut Opened<'_>, input: &Input) -> Outcome<&'a [u8]> {
    let is_end = is_at_end(&mut *opened.reader);
    if is_end.map_err(|error| opened.failed(input, &error))? {
        Ok(&[])
    } else {
        // The buffer is filled, so this call reads nothing.
        Ok(opened.reader.fill_buf()?)
    }
}

/// Fills the buffer of `reader`, again if a signal interrupts it. Returns true if there are no more
/// bytes.
///
/// # Errors
/// The other errors of `reader`.
pub fn is_at_end(reader: &mut dyn BufRead) -> io::Result<bool> {
    loop {
        match reader.fill_buf() {
            Ok(bytes) => return Ok(bytes.is_empty()),
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}
