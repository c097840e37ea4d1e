//! `tadoc verify`: checks every stored byte of corpora, section by section.
//!
//! First the header and the checksum of each section, so that damage is located as closely as the
//! format allows; then every segment is decoded and its rules are validated. One segment is held in
//! memory at a time. Of a living corpus: every version that is kept, the files and edits of one, and
//! whether these make a corpus.

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use clap::Args;
use datafusion_tadoc::corpus::{OpenLimits, SectionMeta, check_header, read_columns, read_segment};
use datafusion_tadoc::living::Part;

use crate::corpus_file::{CorpusFile, refuse_version};
use crate::display::{bytes, grouped, plural};
use crate::failure::{Failure, Outcome};
use crate::living::{Living, is_living};

/// Every file begins with as much that is no section.
const HEADER_BYTES: u64 = 64;

/// Check every byte of a corpus
///
/// Verifies the checksum of each section, then decodes every segment and validates its structure.
/// Damage is reported section by section and gives exit status 1; all files are checked.
#[derive(Args)]
#[command(disable_version_flag = true)]
pub struct Arguments {
    /// The corpora
    #[arg(required = true, value_name = "CORPUS")]
    corpora: Vec<PathBuf>,

    /// Report damage only
    #[arg(short, long)]
    quiet: bool,

    /// Of a living corpus, the files of this version instead of the latest
    #[arg(long, value_name = "N")]
    version: Option<u64>,
}

/// Runs the command.
pub fn run(arguments: &Arguments) -> Outcome {
    let mut num_damaged = 0;
    for path in &arguments.corpora {
        let report = match is_living(path) {
            true => verify_living(path, arguments.version),
            false => verify(path, arguments.version),
        };
        let mut out = io::stdout().lock();
        if !arguments.quiet || !report.damages.is_empty() {
            for line in &report.lines {
                writeln!(out, "{line}")?;
            }
        }
        num_damaged += u64::from(!report.damages.is_empty());
        for damage in report.damages {
            writeln!(out, "  damaged: {damage}")?;
        }
    }
    match num_damaged {
        0 => Ok(()),
        _ => Err(Failure::new(format!(
            "{} of {} failed the check; restore from a copy or ingest again",
            grouped(num_damaged),
            plural(arguments.corpora.len() as u64, "file")
        ))),
    }
}

#[derive(Default)]
struct Report {
    lines: Vec<String>,
    damages: Vec<String>,
}

/// Checks a living corpus; damage ends what depends on it.
fn verify_living(path: &Path, version: Option<u64>) -> Report {
    let mut report = Report::default();
    if let Err(damage) = verify_version(path, version, &mut report) {
        report.damages.push(damage.into_text());
    }
    report
}

fn verify_version(path: &Path, version: Option<u64>, report: &mut Report) -> Outcome {
    report.lines.push(path.display().to_string());
    let living = Living::open(path)?;
    let version = living.version(version)?;
    let parts = plural(version.parts.len() as u64, "part");
    report.lines[0] = format!("{}: version {}, {parts}", path.display(), version.number);
    let versions = living.wait(living.store.history())?;
    let versions = plural(versions.len() as u64, "version");
    report.lines.push(format!("  {versions} {:<36} ok", ""));
    let limits = OpenLimits::default();
    for part in &version.parts {
        let Part::File { len_bytes, .. } = part else { continue };
        let checked = living.wait(living.store.read_part(part, &limits));
        let verdict = if checked.is_ok() { "ok" } else { "DAMAGED" };
        let name = part.file_name().unwrap_or_default();
        report.lines.push(format!("  {name} {:<12} {verdict}", bytes(*len_bytes)));
        if let Err(damage) = checked {
            report.damages.push(damage.into_text());
        }
    }
    let documents = plural(living.wait(living.store.num_docs(&version))?, "document");
    report.lines[0] =
        format!("{}: version {}, {documents}, {parts}", path.display(), version.number);
    if report.damages.is_empty() {
        living.corpus(&version)?;
    }
    Ok(())
}

fn verify(path: &Path, version: Option<u64>) -> Report {
    let mut report = Report::default();
    let opened = refuse_version(path, version).and_then(|()| CorpusFile::open(path));
    let mut file = match opened {
        Ok(file) => file,
        Err(failure) => {
            report.lines.push(path.display().to_string());
            report.damages.push(failure.into_text());
            return report;
        }
    };
    let (documents, segments) =
        (file.footer.num_docs(), plural(file.footer.segments.len() as u64, "segment"));
    let documents = plural(documents, "document");
    report.lines.push(format!("{}: {documents}, {segments}", file.name));
    if let Err(damage) = verify_header(&mut file) {
        report.damages.push(damage.into_text());
    }
    for segment_idx in 0..file.footer.segments.len() {
        if let Err(damage) = verify_segment(&mut file, segment_idx, &mut report) {
            report.damages.push(damage.into_text());
        }
    }
    if let Some(section) = file.footer.columns.clone()
        && let Err(damage) = verify_columns(&mut file, &section, &mut report)
    {
        report.damages.push(damage.into_text());
    }
    report
}

fn verify_header(file: &mut CorpusFile) -> Outcome {
    let header = file.read(0..HEADER_BYTES)?;
    Ok(check_header(&file.name, &header)?)
}

fn verify_segment(file: &mut CorpusFile, segment_idx: usize, report: &mut Report) -> Outcome {
    let meta = file.footer.segments[segment_idx].clone();
    let range = meta.byte_range();
    let stored = file.read(range.clone())?;
    let mut is_sound = true;
    for section in &meta.sections {
        let start = (section.offset - range.start) as usize;
        let is_right = stored
            .get(start..start + section.len as usize)
            .is_some_and(|stored| crc32c::crc32c(stored) == section.crc32c);
        report.lines.push(line_of(&format!("segment {segment_idx}"), section, is_right));
        is_sound &= is_right;
    }
    let name = file.name.clone();
    let decoded = read_segment(&name, &file.footer, segment_idx, &stored, &OpenLimits::default());
    match decoded {
        Ok(_) if is_sound => Ok(()),
        Ok(_) => Err(Failure::new(format!("segment {segment_idx}: a checksum does not match"))),
        Err(error) => Err(error.into()),
    }
}

fn verify_columns(file: &mut CorpusFile, section: &SectionMeta, report: &mut Report) -> Outcome {
    let stored = file.read(section.offset..section.offset + section.len)?;
    let name = file.name.clone();
    let checked = read_columns(&name, section, &stored);
    report.lines.push(line_of("columns", section, checked.is_ok()));
    checked?;
    Ok(())
}

fn line_of(place: &str, section: &SectionMeta, is_right: bool) -> String {
    let verdict = if is_right { "ok" } else { "DAMAGED" };
    let (kind, offset) = (section.kind.name(), section.offset);
    format!("  {place:<12} {kind:<12} offset {offset:<12} {:<12} {verdict}", bytes(section.len))
}
