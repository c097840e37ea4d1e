//! `tadoc ls`: lists the documents of a corpus.
//!
//! Only the facts of documents are read: no dictionary and no grammar. Documents that share a path,
//! such as the lines of a file, are listed as one path; `--json` has each of them.

use std::collections::HashSet;
use std::io::{self, IsTerminal, Write};
use std::path::PathBuf;

use clap::Args;
use serde_json::json;
use tadoc_documents::display::plain;
use tadoc_session::{BlockingResolver, Outcome};

use crate::listing::{Globs, Listing};

/// List the documents of a corpus
///
/// Writes each path once, in order of the documents. Names of files that are not UTF-8 have escapes
/// such as \xFF.
#[derive(Args)]
#[command(
    disable_version_flag = true,
    after_long_help = "Examples:\n  \
    tadoc ls notes.tadoc\n  \
    tadoc ls notes.tadoc '*.md' 'todo/**'\n  \
    tadoc ls notes/ --version 3                        a living corpus, as it was\n  \
    tadoc ls --json s3://bucket/notes.tadoc            number, path and bytes of each document\n  \
    tadoc ls -0 notes.tadoc | xargs -0 -n1 tadoc cat notes.tadoc"
)]
pub struct Arguments {
    /// The corpus: a file, a living corpus, or a folder or glob of files; a path or URL
    #[arg(value_name = "CORPUS")]
    corpus: PathBuf,

    /// List only documents whose path matches one of these. A glob without a slash is compared with
    /// the name of the document
    #[arg(value_name = "GLOB")]
    globs: Vec<String>,

    /// End each path with a zero byte instead of a line end
    #[arg(short = '0', long, conflicts_with = "json")]
    null: bool,

    /// Write an object for each document: doc_id, path, bytes
    #[arg(long)]
    json: bool,

    /// For a living corpus: list the documents of this version
    #[arg(long, value_name = "N")]
    version: Option<u64>,
}

/// Runs the command.
pub fn run(arguments: &Arguments) -> Outcome {
    let globs = Globs::new(&arguments.globs)?;
    let listing = Listing::read(&BlockingResolver::new()?, &arguments.corpus, arguments.version)?;
    let is_terminal = io::stdout().is_terminal();
    let mut out = io::BufWriter::new(io::stdout().lock());
    let mut listed: HashSet<Box<str>> = HashSet::new();
    let mut is_empty = true;
    listing.for_each(&mut |document| {
        if !globs.choose(document.path) {
            return Ok(());
        }
        is_empty = false;
        if arguments.json {
            let (doc_id, path, bytes) = (document.doc_id, document.path, document.len_bytes);
            return Ok(writeln!(out, "{}", json!({"doc_id": doc_id, "path": path, "bytes": bytes}))?);
        }
        if listed.contains(document.path) {
            return Ok(());
        }
        listed.insert(document.path.into());
        let written = match (arguments.null, is_terminal) {
            (true, _) => write!(out, "{}\0", document.path),
            (false, true) => writeln!(out, "{}", plain(document.path)),
            (false, false) => writeln!(out, "{}", document.path),
        };
        Ok(written?)
    })?;
    out.flush()?;
    if is_empty && !arguments.globs.is_empty() { Err(globs.nothing_chosen(&arguments.corpus)) } else { Ok(()) }
}
