//! `tadoc ls`: lists the documents of a corpus; and these documents by path, for other commands: which there
//! are, and which of them are asked for.
//!
//! ```text
//! corpus file    facts of each segment ─▶ documents      (no dictionary, no grammar)
//! living corpus  one version           ─▶ documents      without the dropped ones
//! ```
//!
//! Ids of documents are those of SQL: they count on from file to file. Documents that share a path, such as
//! the lines of a file, are listed as one path; `--json` has each of them.

use std::collections::HashSet;
use std::io::{self, IsTerminal, Write};
use std::path::{Path, PathBuf};

use clap::Args;
use serde_json::json;
use tadoc::edits::LivingCorpus;
use tadoc::format::{OpenLimits, SegmentMeta, read_document_facts, read_segment};
use tadoc::ids::DocId;
use tadoc::segment::{DocumentFacts, SegmentFacts};
use tadoc_documents::display::plain;
use tadoc_documents::pattern::{Pattern, is_glob};
use tadoc_session::{BlockingResolver, Corpora, CorpusFile, Failure, Outcome, StoredFile};

use crate::living::Living;

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
            let doc_id = document.doc_id;
            let path = document.path;
            let bytes = document.len_bytes;
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

/// A document.
#[derive(Debug, Clone, Copy)]
pub struct Listed<'a> {
    pub doc_id: u64,
    pub path: &'a str,
    pub len_bytes: u64,
    /// Index of its file.
    pub file_idx: usize,
}

/// Files, or one version of a living corpus.
pub enum Listing {
    Files(Vec<(CorpusFile, DocumentFacts)>),
    Living(Box<LivingCorpus>),
}

impl Listing {
    /// Reads the facts of the documents at `location`.
    ///
    /// # Errors
    /// Nothing is at `location`, it cannot be read, or it is damaged.
    pub fn read(resolver: &BlockingResolver, location: &Path, version: Option<u64>) -> Outcome<Self> {
        Self::from_corpora(resolver, resolver.corpora(location, version)?, version)
    }

    /// Reads the facts of the documents of `corpora`.
    ///
    /// # Errors
    /// They cannot be read, or they are damaged.
    pub fn from_corpora(resolver: &BlockingResolver, corpora: Corpora, version: Option<u64>) -> Outcome<Self> {
        Ok(match corpora {
            Corpora::Living(store) => {
                let living = Living { store, resolver: resolver.clone() };
                Self::Living(Box::new(living.corpus(&living.version(version)?)?))
            }
            Corpora::Files(files) => {
                let read = |file: StoredFile| {
                    let file = file.open()?;
                    let facts = facts_of(&file)?;
                    Ok((file, facts))
                };
                Self::Files(files.into_iter().map(read).collect::<Outcome<_>>()?)
            }
        })
    }

    /// Calls `visit` with each document, in order of id.
    ///
    /// # Errors
    /// The errors of `visit`, and of documents whose length cannot be read.
    pub fn for_each(&self, visit: &mut dyn FnMut(Listed<'_>) -> Outcome) -> Outcome {
        match self {
            Self::Files(files) => {
                let mut first_doc_id = 0;
                for (file_idx, (_, facts)) in files.iter().enumerate() {
                    for doc in 0..facts.num_docs() {
                        let path = facts.path(doc).unwrap_or_default();
                        let length = facts.length(doc);
                        let len_bytes = length.unwrap_or_default().len_bytes;
                        visit(Listed { doc_id: first_doc_id + doc, path, len_bytes, file_idx })?;
                    }
                    first_doc_id += facts.num_docs();
                }
            }
            Self::Living(corpus) => {
                for doc_id in (0..corpus.num_docs()).filter(|&doc_id| !corpus.is_dropped(doc_id)) {
                    if let Some(path) = corpus.path(doc_id) {
                        let len_bytes = corpus.len_bytes(doc_id)?;
                        let file_idx = 0;
                        visit(Listed { doc_id, path, len_bytes, file_idx })?;
                    }
                }
            }
        }
        Ok(())
    }
}

/// Reads the facts of the documents of `file`. No dictionary and no grammar is read, but of files of the
/// first releases.
///
/// # Errors
/// The file cannot be read, or it is damaged.
pub fn facts_of(file: &CorpusFile) -> Outcome<DocumentFacts> {
    let name = &file.name;
    let footer = &file.footer;
    let limits = OpenLimits::default();
    let read = |(segment_idx, meta): (usize, &SegmentMeta)| {
        if let Some(range) = meta.facts_range() {
            let bytes = file.read(range)?;
            return Ok(read_document_facts(name, footer, segment_idx, &bytes, &limits)?);
        }
        // A file of the first releases: its grammars have the lengths.
        let bytes = file.read(meta.byte_range())?;
        let segment = read_segment(name, footer, segment_idx, &bytes, &limits)?;
        let lengths = DocId::range(0..meta.num_docs as usize).map(|doc| segment.dag.doc_length(doc));
        let lengths = lengths.collect();
        let continues = segment.continues;
        Ok(SegmentFacts { paths: segment.paths, lengths, continues })
    };
    let facts = footer.segments.iter().enumerate().map(read).collect::<Outcome<_>>()?;
    Ok(DocumentFacts::new(facts))
}

/// The globs of a command line, which choose documents by path.
pub struct Globs(Vec<(String, Pattern)>);

impl Globs {
    /// Compiles `globs`. Without any, all documents are chosen.
    ///
    /// # Errors
    /// A glob is invalid.
    pub fn new(globs: &[String]) -> Outcome<Self> {
        let compile = |glob: &String| match Pattern::new(glob) {
            Ok(pattern) => Ok((glob.clone(), pattern)),
            Err(fault) => Err(Failure::usage(fault)),
        };
        Ok(Self(globs.iter().map(compile).collect::<Outcome<_>>()?))
    }

    /// Returns true if the document `path` is chosen: a glob matches it or is equal to it. A glob
    /// without a slash is compared with the name behind the last slash, too.
    pub fn choose(&self, path: &str) -> bool {
        let is_of = |(glob, pattern): &(String, Pattern)| glob == path || pattern.matches(path);
        self.0.is_empty() || self.0.iter().any(is_of)
    }

    /// Returns the failure of a command that found no document.
    pub fn nothing_chosen(&self, location: &Path) -> Failure {
        let location = location.display();
        let Some((first, _)) = self.0.first() else {
            return Failure::new(format!("{location} has no documents"));
        };
        let hint = if is_glob(first) {
            "* matches within one folder, ** across folders"
        } else {
            "a glob such as '*.md' or 'docs/**' chooses several"
        };
        Failure::new(format!("{location}: no document matches `{first}`; {hint}; `tadoc ls {location}` lists all"))
    }
}
