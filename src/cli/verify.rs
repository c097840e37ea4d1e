//! `tadoc verify`: checks every stored byte of corpora, section by section.
//!
//! The command first checks the header and the checksum of each section, so that damage is located as closely as the
//! format allows. Then it decodes every segment and validates its rules. It holds one segment in memory at a time. For
//! a living corpus, it checks every kept version, the files and edits of one version, and that these form a corpus.
//! Data that cannot be read is not reported as damaged.

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use clap::Args;
use datafusion_tadoc::mask_secrets;
use tadoc::Error;
use tadoc::format::{OpenLimits, SectionMeta, check_header, read_columns, verify_segment};
use tadoc_documents::display::{bytes, grouped, plain, plural};
use tadoc_session::{BlockingResolver, Corpora, CorpusFile, Failure, Outcome, StoredFile};
use tadoc_store::{Part, Version};

use crate::living::Living;

/// Bytes at the start of every file that belong to no section.
const HEADER_BYTES: u64 = 64;

/// Check every byte of a corpus
///
/// Verifies the checksum of each section, then decodes every segment and validates its structure.
/// All files are checked. Damage is reported section by section. Damage and files that cannot be
/// read both give exit status 1.
#[derive(Args)]
#[command(disable_version_flag = true)]
pub struct Arguments {
    /// The corpora: files, living corpora, or folders or globs of files; paths or URLs
    #[arg(required = true, value_name = "CORPUS")]
    corpora: Vec<PathBuf>,

    /// Report damage only
    #[arg(short, long)]
    quiet: bool,

    /// For a living corpus: check the files of this version instead of the latest
    #[arg(long, value_name = "N")]
    version: Option<u64>,
}

/// Runs the command.
pub fn run(arguments: &Arguments) -> Outcome {
    let resolver = BlockingResolver::new()?;
    let mut total = Total::default();
    for location in &arguments.corpora {
        match resolver.corpora(location, arguments.version) {
            Ok(Corpora::Living(store)) => {
                let living = Living { store, resolver: resolver.clone() };
                total.print(verify_living(&living, location, arguments.version), arguments.quiet)?;
            }
            Ok(Corpora::Files(files)) => {
                for file in files {
                    total.print(verify(file), arguments.quiet)?;
                }
            }
            Err(failure) => {
                let mut report = Report::new(&location.display().to_string());
                report.note(failure);
                total.print(report, arguments.quiet)?;
            }
        }
    }
    total.outcome()
}

/// Number of checked corpora, and numbers of those that failed.
#[derive(Default)]
struct Total {
    num_checked: u64,
    num_damaged: u64,
    num_unread: u64,
}

impl Total {
    fn print(&mut self, report: Report, quiet: bool) -> Outcome {
        let mut out = io::stdout().lock();
        if !quiet || !report.is_good() {
            for line in &report.lines {
                writeln!(out, "{}", plain(&mask_secrets(line)))?;
            }
        }
        self.num_checked += 1;
        match (report.damages.is_empty(), report.unread.is_empty()) {
            (false, _) => self.num_damaged += 1,
            (true, false) => self.num_unread += 1,
            (true, true) => {}
        }
        for damage in report.damages {
            writeln!(out, "  damaged: {damage}")?;
        }
        for reason in report.unread {
            writeln!(out, "  not checked: {reason}")?;
        }
        Ok(())
    }

    fn outcome(self) -> Outcome {
        let checked = plural(self.num_checked, "file");
        let damaged =
            format!("{} of {checked} failed the check; restore from a copy or ingest again", grouped(self.num_damaged));
        let unread =
            format!("{} of {checked} could not be read, which says nothing about damage", grouped(self.num_unread));
        match (self.num_damaged, self.num_unread) {
            (0, 0) => Ok(()),
            (_, 0) => Err(Failure::new(damaged)),
            (0, _) => Err(Failure::new(unread)),
            (_, _) => Err(Failure::new(format!("{damaged}; {unread}"))),
        }
    }
}

#[derive(Default)]
struct Report {
    lines: Vec<String>,
    /// Damage: stored bytes that differ from the written ones.
    damages: Vec<String>,
    /// Reasons why something was not checked.
    unread: Vec<String>,
}

impl Report {
    fn new(name: &str) -> Self {
        Self { lines: vec![name.to_owned()], ..Self::default() }
    }

    fn is_good(&self) -> bool {
        self.damages.is_empty() && self.unread.is_empty()
    }

    fn note(&mut self, failure: Failure) {
        if failure.is_damage() { self.damages.push(failure.into_text()) } else { self.unread.push(failure.into_text()) }
    }
}

/// Checks a living corpus. At the first failure, the dependent checks are skipped.
fn verify_living(living: &Living, location: &Path, version: Option<u64>) -> Report {
    let mut report = Report::new(&location.display().to_string());
    if let Err(failure) = verify_version(living, version, &mut report) {
        report.note(failure);
    }
    report
}

fn verify_version(living: &Living, version: Option<u64>, report: &mut Report) -> Outcome {
    let shown = report.lines[0].clone();
    let version = living.version(version)?;
    let parts = plural(version.parts.len() as u64, "part");
    report.lines[0] = format!("{shown}: version {}, {parts}", version.number);
    let versions = living.wait(living.store.history())?;
    let versions = plural(versions.len() as u64, "version");
    report.lines.push(format!("  {versions} {:<36} ok", ""));
    verify_parts(living, &version, report);
    let documents = plural(living.wait(living.store.num_docs(&version))?, "document");
    report.lines[0] = format!("{shown}: version {}, {documents}, {parts}", version.number);
    if report.is_good() {
        living.corpus(&version)?;
    }
    Ok(())
}

/// Checks each file of `version` as a whole.
fn verify_parts(living: &Living, version: &Version, report: &mut Report) {
    let limits = OpenLimits::default();
    for part in &version.parts {
        let Part::File { len_bytes, .. } = part else { continue };
        let checked = living.resolver.wait(living.store.read_part(part, &limits));
        let is_damage = |error: &Error| error.is_damage() || matches!(error, Error::Missing { .. });
        let verdict = match &checked {
            Ok(_) => "ok",
            Err(error) if is_damage(error) => "DAMAGED",
            Err(_) => "NOT CHECKED",
        };
        let name = part.file_name().unwrap_or_default();
        report.lines.push(format!("  {name} {:<12} {verdict}", bytes(*len_bytes)));
        match checked {
            // A version that lacks one of its files is damaged, too.
            Err(error) if is_damage(&error) => {
                report.damages.push(Failure::from(error).into_text());
            }
            Err(error) => report.note(error.into()),
            Ok(_) => {}
        }
    }
}

fn verify(stored: StoredFile) -> Report {
    let mut report = Report::new(stored.file.name());
    match stored.open() {
        Ok(file) => verify_file(&file, &mut report),
        Err(failure) => report.note(failure),
    }
    report
}

fn verify_file(file: &CorpusFile, report: &mut Report) {
    let footer = &file.footer;
    let documents = plural(footer.num_docs(), "document");
    let segments = plural(footer.segments.len() as u64, "segment");
    report.lines[0] = format!("{}: {documents}, {segments}", file.name);
    if let Err(failure) = verify_header(file) {
        report.note(failure);
    }
    for segment_idx in 0..footer.segments.len() {
        if let Err(failure) = report_segment(file, segment_idx, report) {
            report.note(failure);
        }
    }
    if let Some(section) = &footer.columns
        && let Err(failure) = verify_columns(file, section, report)
    {
        report.note(failure);
    }
}

fn verify_header(file: &CorpusFile) -> Outcome {
    let header = file.read(0..HEADER_BYTES)?;
    Ok(check_header(&file.name, &header)?)
}

fn report_segment(file: &CorpusFile, segment_idx: usize, report: &mut Report) -> Outcome {
    let meta = &file.footer.segments[segment_idx];
    let range = meta.whole_range();
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
    let decoded = verify_segment(&file.name, &file.footer, segment_idx, &stored, &OpenLimits::default());
    match decoded {
        Ok(_) if is_sound => Ok(()),
        Ok(_) => {
            let reason = "a checksum does not match".to_owned();
            let file = file.name.clone();
            let offset = range.start;
            Err(Error::Format { file, section: "segment", offset, reason }.into())
        }
        Err(error) => Err(error.into()),
    }
}

fn verify_columns(file: &CorpusFile, section: &SectionMeta, report: &mut Report) -> Outcome {
    let stored = file.read(section.offset..section.offset + section.len)?;
    let checked = read_columns(&file.name, section, &stored);
    report.lines.push(line_of("columns", section, checked.is_ok()));
    checked?;
    Ok(())
}

fn line_of(place: &str, section: &SectionMeta, is_right: bool) -> String {
    let verdict = if is_right { "ok" } else { "DAMAGED" };
    let kind = section.kind.name();
    let offset = section.offset;
    format!("  {place:<12} {kind:<12} offset {offset:<12} {:<12} {verdict}", bytes(section.len))
}
