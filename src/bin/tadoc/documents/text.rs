//! Files and lines as documents.

use std::io::{BufRead, Read};
use std::sync::Arc;

use super::Gather;
use super::open::open;
use crate::failure::Outcome;
use crate::inputs::Input;

/// One document: all bytes of the file.
pub fn read_file(input: &Input, decompress: bool, sink: &mut Gather<'_>) -> Outcome {
    let mut opened = open(input, decompress)?;
    let mut text = Vec::with_capacity(usize::try_from(input.len_bytes).unwrap_or(0).min(1 << 30));
    let read = opened.reader.read_to_end(&mut text);
    read.map_err(|error| opened.failed(input, &error))?;
    sink.count_read(opened.counter.take());
    sink.push_owned(&Arc::from(input.path.as_str()), text)
}

/// One document for each line, without its `\n`; a `\r` before it stays. Text after the last line
/// end is a line too.
pub fn read_lines(input: &Input, decompress: bool, sink: &mut Gather<'_>) -> Outcome {
    let mut opened = open(input, decompress)?;
    let path: Arc<str> = Arc::from(input.path.as_str());
    let mut line = Vec::new();
    loop {
        line.clear();
        let read = opened.reader.read_until(b'\n', &mut line);
        if read.map_err(|error| opened.failed(input, &error))? == 0 {
            break;
        }
        sink.count_read(opened.counter.take());
        sink.push(&path, line.strip_suffix(b"\n").unwrap_or(&line))?;
    }
    sink.count_read(opened.counter.take());
    Ok(())
}
