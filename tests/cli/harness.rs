//! Folders in which `tadoc` runs, and files as other programs pack them.

use std::io::Write;

pub use testkit::command::{Folder, Ran};

/// Returns a folder for one test.
pub fn new_folder() -> Folder {
    Folder::for_program(env!("CARGO_BIN_EXE_tadoc"))
}

pub fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

pub fn zstd(bytes: &[u8]) -> Vec<u8> {
    zstd::encode_all(bytes, 3).unwrap()
}
