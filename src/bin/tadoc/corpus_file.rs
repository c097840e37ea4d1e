//! Reads parts of a corpus file: its footer, a section, a segment; or a whole corpus, of either kind.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::ops::Range;
use std::path::Path;

use datafusion_tadoc::Corpus;
use datafusion_tadoc::corpus::{FileFooter, FooterOutcome, OpenLimits};
use datafusion_tadoc::edits::LivingCorpus;

use crate::failure::{Failure, Outcome};
use crate::living::{Living, is_living};

/// A corpus file and what its footer says.
pub struct CorpusFile {
    /// Name for messages.
    pub name: String,
    /// Size in bytes.
    pub len_bytes: u64,
    /// What the file holds and where.
    pub footer: FileFooter,
    file: File,
}

impl CorpusFile {
    /// Opens the file at `path` and reads its footer, in two reads at most.
    ///
    /// # Errors
    /// A file that is not there, or that is no corpus.
    pub fn open(path: &Path) -> Outcome<Self> {
        let name = path.display().to_string();
        let mut file = open_file(path)?;
        let len_bytes = file.metadata().map_err(|error| Failure::with_cause(&name, &error))?.len();
        let mut tail_len = FileFooter::TAIL_BYTES.min(len_bytes);
        loop {
            let tail = read_range(&mut file, len_bytes - tail_len..len_bytes)
                .map_err(|error| Failure::with_cause(&name, &error))?;
            match FileFooter::parse(&name, &tail, len_bytes, &OpenLimits::default())? {
                FooterOutcome::Footer(footer) => return Ok(Self { name, len_bytes, footer, file }),
                FooterOutcome::NeedsTail(len) if len > tail_len && len <= len_bytes => {
                    tail_len = len;
                }
                FooterOutcome::NeedsTail(_) => {
                    return Err(Failure::new(format!("{name}: the footer is cut")));
                }
            }
        }
    }

    /// The bytes of a range of the file.
    pub fn read(&mut self, range: Range<u64>) -> Outcome<Vec<u8>> {
        let name = &self.name;
        read_range(&mut self.file, range).map_err(|error| Failure::with_cause(name, &error))
    }
}

/// Opens and checks the whole corpus at `path`: a file, or a version of a living one.
///
/// # Errors
/// A file or version that is not there, that is no corpus, or that is damaged; a version of a file.
pub fn open_corpus(path: &Path, version: Option<u64>) -> Outcome<LivingCorpus> {
    if is_living(path) {
        let living = Living::open(path)?;
        return living.corpus(&living.version(version)?);
    }
    refuse_version(path, version)?;
    open_file(path)?;
    Ok(LivingCorpus::new(Corpus::open(path, &OpenLimits::default())?.1))
}

/// Only a living corpus has versions.
///
/// # Errors
/// A `version` of the file at `path`.
pub fn refuse_version(path: &Path, version: Option<u64>) -> Outcome {
    match version {
        Some(_) => Err(Failure::new(format!(
            "{} is no living corpus and has no versions; leave out --version",
            path.display()
        ))),
        None => Ok(()),
    }
}

fn open_file(path: &Path) -> Outcome<File> {
    let name = path.display();
    if path.is_dir() {
        return Err(Failure::new(format!("{name} is a folder; expected a .tadoc file")));
    }
    File::open(path).map_err(|error| Failure::with_cause(&name, &error))
}

fn read_range(file: &mut File, range: Range<u64>) -> io::Result<Vec<u8>> {
    let len = range.end - range.start;
    let mut bytes = Vec::with_capacity(usize::try_from(len).map_err(io::Error::other)?);
    file.seek(SeekFrom::Start(range.start))?;
    file.take(len).read_to_end(&mut bytes)?;
    match bytes.len() as u64 == len {
        true => Ok(bytes),
        false => Err(io::Error::new(
            io::ErrorKind::UnexpectedEof,
            format!("expected bytes {} to {}, the file is shorter", range.start, range.end),
        )),
    }
}
