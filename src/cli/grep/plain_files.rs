//! Errors about files that are no corpus, with the ways out: `tadoc ingest`, and ripgrep.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use tadoc::format::check_header;
use tadoc_session::Failure;

/// Bytes at the beginning of a corpus file.
const HEADER_BYTES: u64 = 64;

/// Returns `failure` to search `location`, which says more if there are plain files.
pub fn explained(failure: Failure, location: &Path) -> Failure {
    let name = location.display();
    let corpus = match location.file_name() {
        Some(_) => format!("{}.tadoc", name.to_string().trim_end_matches('/')),
        None => "corpus.tadoc".to_owned(),
    };
    if failure.is_damage() && is_plain_file(location) {
        return Failure::new(format!(
            "{name} is no corpus; `tadoc ingest {name} -o {corpus}` makes one of it, and `rg` searches the file itself"
        ));
    }
    let ways =
        format!("`tadoc ingest {name} -o {corpus}` makes a corpus of them, and `rg` searches the files themselves");
    failure.with_way_out("holds no .tadoc file", ways)
}

/// Returns true if the file at `path` does not begin as a corpus.
fn is_plain_file(path: &Path) -> bool {
    let mut head = Vec::new();
    let read = File::open(path).and_then(|file| file.take(HEADER_BYTES).read_to_end(&mut head));
    read.is_ok() && check_header(&path.display().to_string(), &head).is_err()
}
