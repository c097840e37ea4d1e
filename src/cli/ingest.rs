//! `tadoc ingest`: compresses text into one corpus, or adds documents to a living corpus.
//!
//! ```text
//! reader thread: inputs ─▶ documents ─▶ batches ──bounded channel──▶ CorpusBuilder ─▶ Output
//!                                      (columns stay with the reader      │
//!                                       and are stored last)      │       └ --append ─▶ a part of
//!                                                       --workers: segments       a living corpus, one commit
//! ```

mod append;
mod follow;
mod job;
mod options;

use std::path::{Path, PathBuf};

use clap::Args;
use regex::bytes::Regex;
use tadoc_documents as documents;
use tadoc_documents::pattern::Pattern;
use tadoc_documents::{Dialect, Division, Documents, MAX_COLUMNS, Quote, ReadOptions, Timestamps, display};
use tadoc_session::location::{check_living_location, is_living_folder, local_path};
use tadoc_session::{Failure, Outcome, interrupt, note};
use tadoc_store::RECOMPRESS_RATIO;

use self::append::{Appending, append};
pub use self::append::{Shapes, Written, write};
use self::follow::{Follow, follow};
pub use self::job::{DocumentFilter, Job, LeftOut, Machine};
use self::options::Html;
pub use self::options::{Building, Forms, Packed, When};
use crate::inputs::{self, Filter, Found};
use crate::living::{Living, parse_share};
use crate::output::{Output, say};
use crate::workers;

/// Compress text into a corpus
///
/// Reads files, folders (recursively, without hidden files and symbolic links), globs, or standard
/// input (`-`), on this machine and behind URLs (s3://, gs://, az://, http://). Compressed files (gzip, zstd,
/// bzip2, xz, lzip, lz4) are decompressed, and members of archives (tar, zip) become documents. Any
/// bytes are accepted, and they are returned exactly.
#[derive(Args)]
#[command(after_long_help = EXAMPLES)]
pub struct Arguments {
    /// Files, folders, globs (in quotes), URLs of these, or - for standard input
    #[arg(required = true, value_name = "PATH")]
    paths: Vec<PathBuf>,

    /// The corpus to write, such as notes.tadoc or s3://bucket/notes.tadoc; with --append a folder
    /// or URL, such as notes/
    #[arg(short, long, value_name = "FILE", required_unless_present = "explain_timestamps")]
    output: Option<PathBuf>,

    /// Add the documents to the living corpus at FILE, which is created if it does not exist
    ///
    /// A living corpus is a folder, or a URL of an object store, whose documents can be added and
    /// edited (tadoc edit). All documents of an ingest appear at once, in one new version.
    #[arg(long, conflicts_with = "force")]
    append: bool,

    /// With --append: compress the corpus anew once its edits exceed this share of its bytes (and
    /// 1 MiB), or once 64 small files lie side by side; 0 means never
    #[arg(long, requires = "append", default_value_t = RECOMPRESS_RATIO, value_name = "SHARE",
          value_parser = parse_share)]
    recompress_ratio: f64,

    #[command(flatten)]
    follow: Follow,

    /// Store documents once more whose path the corpus has already
    ///
    /// Without this option, --append adds nothing if a file, or a member of an archive, is a document of the corpus
    /// already, under any spelling of its path, or lines and rows of it are; and a file that is named several times
    /// is stored once. Lines and rows that come through a pipe are always added.
    #[arg(long)]
    duplicate: bool,

    /// Path of the documents of standard input, or of the only file; with --follow also the name under which
    /// the place in the file is stored
    #[arg(long, value_name = "NAME")]
    path: Option<String>,

    /// From folders and archives, take only files that match this glob (may be given several times)
    ///
    /// A pattern without a slash is matched against file names. A pattern with a slash is matched
    /// against the path inside the folder. `*` and `?` stay inside one component, `**` does not;
    /// `{a,b}` and `[abc]` work as in a shell.
    #[arg(long, value_name = "PATTERN", value_parser = Pattern::new)]
    glob: Vec<Pattern>,

    /// The unit that becomes one document: files, lines, jsonl:FIELD, csv:COLUMN, tsv:COLUMN,
    /// parquet:COLUMN, arrow:COLUMN, avro:FIELD, warc or mbox
    ///
    /// files: a whole file; its path is relative to the given folder. If several paths are given,
    /// the folder's name stands in front.
    /// lines: a line without its line end (\n is not part of the document, \r is); its path is the
    /// path of the file.
    /// jsonl, csv, tsv, parquet, arrow, avro: a row; arrow is IPC, a stream or a file (Feather 2); for
    /// jsonl also an object over several lines or an element of an array, for csv and tsv also a line of a log
    /// of Zeek. The column named after the colon is the text, a column called `path` is the path, all others
    /// become columns of the table (CREATE EXTERNAL TABLE t STORED AS TADOC LOCATION 'FILE'). jsonl:a.b is the
    /// field b of the object a.
    /// warc: a response, resource or conversion of a crawl, in WARC or ARC; its path is the URL, and type,
    /// content_type and date become columns.
    /// mbox: a message of a mailbox, or a file .eml, or one of Maildir or MH; from, to, subject and date become
    /// columns.
    #[arg(long, default_value = "files", value_name = "KIND", verbatim_doc_comment)]
    documents: Documents,

    /// Make a column `ts` of timestamps: auto, dmesg, FORMAT, re:REGEX or jsonl:FIELD for lines, FIELD for rows
    ///
    /// auto: the line begins with a time of ISO 8601 or RFC 3339 (2024-05-06T07:08:09Z), of syslog (May  6
    /// 07:08:09), mail or HTTP, with the name of a month, in seconds, ms, µs or ns since 1970 (1714979289), or
    /// has one of the common log format ([06/May/2024:07:08:09 +0200]). 06.05.2024 and, with AM or PM, 05/06/2024
    /// are in May; other lines may tell the order (13/06/2024). A time with its year may stand behind up to three
    /// other words. A line that is a JSON object has it in a field such as @timestamp, timestamp, time or ts.
    /// --explain-timestamps shows which forms are found.
    /// dmesg: the line begins with seconds since the start of the machine ([   12.345678]), counted from 1970.
    /// FORMAT: the line begins with a time in this form of strftime, such as '%d.%m.%Y %H:%M:%S'; %f are the
    /// digits behind the point of a second, %Z is the name of a zone. A fraction, AM or PM, zone or year behind
    /// the form counts, too.
    /// re:REGEX: the time is the group `ts` of the expression, such as 're:at=(?<ts>[^ ]+)', or its first group,
    /// or all that it finds in the first 4 KiB of the line; a text as for auto, or in --timestamp-format.
    /// jsonl:FIELD: the line is a JSON object that stays as it is, with the time in FIELD.
    /// FIELD: the column of rows, or a.b for a field of objects, with texts as for auto, dates and times, or numbers
    /// that count seconds, ms, µs or ns since 1970, by their size. auto: the column ts, or one with such a name.
    /// A document without a timestamp, or with one that is not understood as a whole, has NULL; a FIELD has
    /// nothing behind its time. Times are stored in UTC, in microseconds. Of two hours with one name the first
    /// counts, and an hour that clocks leave out counts by the clocks before.
    #[arg(long, value_name = "HOW", verbatim_doc_comment, allow_hyphen_values = true)]
    timestamp: Option<String>,

    /// Form of strftime of the texts that re:REGEX finds, or of those in a FIELD, such as '%d.%m.%Y %H:%M:%S'
    #[arg(long, requires = "timestamp", value_name = "FORMAT", allow_hyphen_values = true)]
    timestamp_format: Option<String>,

    /// Print which forms of timestamps the lines have, with shares and examples, and write nothing
    ///
    /// Without --timestamp the forms of auto are looked for, in lines.
    #[arg(long, conflicts_with_all = ["output", "append"])]
    explain_timestamps: bool,

    /// Time zone of timestamps that state none: an offset such as +02:00, or a name such as Europe/Berlin
    #[arg(long, requires = "timestamp", default_value = "UTC", value_name = "ZONE")]
    timezone: String,

    /// Year of timestamps that state none [default: the latest one at which the file had been changed for the last
    /// line, and a year less for lines before a new year]
    #[arg(long, requires = "timestamp", value_name = "YEAR", verbatim_doc_comment,
          value_parser = clap::value_parser!(i32).range(1..=9999))]
    year: Option<i32>,

    /// With csv and tsv: character between cells, or \t [default: a comma; a tab with tsv and for .tsv files]
    #[arg(long, value_name = "CHARACTER", value_parser = parse_character, verbatim_doc_comment)]
    delimiter: Option<u8>,

    /// With csv and tsv: character around cells that hold delimiters or line ends, or none, where such
    /// characters are text [default: none between tabs, else "]
    #[arg(long, value_name = "CHARACTER", value_parser = parse_quote, verbatim_doc_comment)]
    quote: Option<Quote>,

    /// With csv and tsv: the first row is no header; columns are named column_1, column_2 and so on
    #[arg(long)]
    no_header: bool,

    /// With csv and tsv: leave out lines that begin with this character
    #[arg(long, value_name = "CHARACTER", value_parser = parse_character)]
    comment: Option<u8>,

    /// With csv and tsv: leave out this number of lines before the header, or before the first row
    #[arg(long, default_value_t = 0, value_name = "LINES")]
    skip_rows: u64,

    /// With --documents lines: a document is a line that this regular expression matches, together with
    /// the lines behind it that it does not match
    ///
    /// The first 4 KiB of a line are looked at. The expression is searched for in them; `^` is the start
    /// of the line.
    #[arg(long, value_name = "REGEX", value_parser = Regex::new)]
    record_start: Option<Regex>,

    /// Leave out codes of terminals, such as colours (ESC[31m): auto (of lines), always (of files, too) or never
    ///
    /// A note says how many there were. Words beside a code would have its digits: `31mERROR`.
    #[arg(long, default_value = "auto", value_name = "WHEN", value_enum, num_args = 0..=1, require_equals = true,
          default_missing_value = "always", hide_possible_values = true)]
    strip_ansi: When,

    /// With --documents lines: join the parts of long lines in logs of containers (CRI, the tags P and F): auto
    /// or never
    #[arg(long, default_value = "auto", value_name = "WHEN", value_enum, hide_possible_values = true)]
    join_partial: When,

    #[command(flatten)]
    building: Building,

    /// Replace FILE if it exists
    #[arg(long)]
    force: bool,

    /// Store rows whose text is missing or null as empty documents, instead of an error
    #[arg(long)]
    allow_missing: bool,

    /// Write a corpus even without any file or document (always so for standard input)
    #[arg(long)]
    allow_empty: bool,

    #[command(flatten)]
    forms: Forms,

    /// Keep only text and path of rows
    #[arg(long)]
    no_columns: bool,

    /// Leave out what is damaged, with a warning, instead of ending with an error
    ///
    /// A compressed file that is cut, damaged or exceeds a limit is stored up to there, and so is an archive;
    /// a cut zip file, whose list of members is missing, ends before the first member whose length stands
    /// behind it. Files that cannot be opened are left out, and so are rows that cannot be read, lack the text or
    /// are larger than --max-row-size; their number is told. Files of rows end where no next row can be found. A
    /// path that does not exist, a folder that cannot be read, and an error of the disk or of a store end the
    /// ingest nevertheless.
    #[arg(long)]
    keep_going: bool,

    /// Maximum size of a row of JSON lines, CSV, Parquet or Arrow, and of a page with --html text,
    /// which are held in memory; files and lines may have any length
    #[arg(long, default_value = "128MiB", value_name = "SIZE", value_parser = display::parse_size)]
    max_row_size: u64,

    /// Maximum number of user columns, with the fields of structures. Columns that few rows have take time
    /// and memory in all rows
    #[arg(long, default_value_t = MAX_COLUMNS, value_name = "N")]
    max_columns: usize,

    #[command(flatten)]
    packed: Packed,

    /// Say nothing unless something fails
    #[arg(short, long)]
    quiet: bool,

    #[command(flatten)]
    workers: workers::Named,
}

const EXAMPLES: &str = "\
Examples:
  tadoc ingest notes/ -o notes.tadoc
  tadoc ingest src docs --glob '*.rs' --glob '*.md' -o source.tadoc
  tadoc ingest 'logs/**/*.log.gz' --documents lines -o logs.tadoc
  tadoc ingest app.log --documents lines --timestamp auto --record-start '^[0-9]{4}-' -o app.tadoc
  tadoc ingest linux-6.1.tar.xz --glob '*.[ch]' -o linux.tadoc     members become documents
  tadoc ingest tickets.jsonl --documents jsonl:body -o tickets.tadoc
  tadoc ingest s3://bucket/mail --glob '*.eml' -o s3://bucket/mail.tadoc
  tadoc ingest mail.parquet --documents parquet:text -o mail.tadoc --force
  tadoc ingest site.tar.zst --html text --glob '*.html' -o site.tadoc
  journalctl | tadoc ingest - --documents lines -o journal.tadoc
  tadoc ingest app.log -o logs/ --append --documents lines --follow     goes on as the file grows
  tadoc ingest today/ -o notes/ --append      adds to the living corpus in the folder notes
  tadoc ingest logs -o logs.tadoc --workers http://one:8816,http://two:8816

The output appears under its name when it is complete and on disk; on an error or Ctrl-C nothing is
left behind, and what a kill leaves, the next ingest there removes. A living corpus is at its old version
or at the new one, and one that did not exist does not exist then; the next commit removes files that
Ctrl-C leaves among its segments.

With --workers the machines that it names build the segments (tadoc worker), and the file is the same, byte for
byte. If one is gone, slow, of another version or asks for another token, another one builds its blocks, or this
process, and a warning says why.

Exit status: 0 done, 1 failed, 2 usage, 130 interrupted.";

/// Runs the command.
pub fn run(arguments: &Arguments) -> Outcome {
    arguments.building.start_threads()?;
    if arguments.explain_timestamps {
        return arguments.explain();
    }
    let output = arguments.output();
    refuse_standard_output(output, &arguments.paths)?;
    let mut job = arguments.job()?;
    job.remote = arguments.workers.builder()?;
    let filter = arguments.filter();
    if arguments.append {
        check_living_location(output)?;
        if arguments.follow.is_asked() {
            return arguments.follow(job);
        }
        let found = arguments.named(inputs::collect(&arguments.paths, &filter)?)?;
        job.notes = found.skipped.notes();
        interrupt::ask_first();
        let how = Appending {
            location: output,
            recompress_ratio: arguments.recompress_ratio,
            may_duplicate: arguments.duplicate,
        };
        return arguments.with_living(|living| append(job, living, found, &how));
    }
    refuse_folder(output, &arguments.paths)?;
    let file = Output::create(output, arguments.force)?;
    let found = arguments.named(inputs::collect(&arguments.paths, &filter)?)?;
    job.notes = found.skipped.notes();
    let summary = job.run(&found.inputs, file, output)?;
    if !arguments.quiet {
        note(summary);
    }
    Ok(())
}

/// Refuses `-`, which means standard output elsewhere.
fn refuse_standard_output(output: &Path, inputs: &[PathBuf]) -> Outcome {
    if output.as_os_str() != "-" {
        return Ok(());
    }
    Err(Failure::new(format!(
        "-o -: a corpus is not written to standard output; name a file, such as -o {}, or -o ./- for one of \
         that name",
        corpus_name(inputs)
    )))
}

/// Refuses an output that is a folder or names one. Living corpora are checked later.
fn refuse_folder(output: &Path, inputs: &[PathBuf]) -> Outcome {
    let shown = display::path(output);
    if !(shown.ends_with('/') || output.is_dir()) || is_living_folder(output) {
        return Ok(());
    }
    let example = display::path(&output.join(corpus_name(inputs)));
    Err(Failure::new(if output.is_dir() {
        format!(
            "{shown} is a folder; name a file, such as -o {example}, or pass --append with a new or \
             empty folder for a living corpus"
        )
    } else if let file = shown.trim_end_matches('/')
        && Path::new(file).is_file()
    {
        format!("{shown} names a folder, and {file} is a file; name another file, or pass -o {file} --force")
    } else {
        format!(
            "{shown} names a folder, and a folder is a living corpus; pass --append to begin one \
             there, or name a file, such as -o {example}"
        )
    }))
}

/// Returns a file name for a corpus of `inputs`: that of the only input, if it has a plain one.
fn corpus_name(inputs: &[PathBuf]) -> String {
    let stem = match inputs {
        [input] => input.file_stem().and_then(|stem| stem.to_str()),
        _ => None,
    };
    let is_plain = |stem: &&str| !stem.contains(['*', '?', '[', '{']) && *stem != "-";
    format!("{}.tadoc", stem.filter(is_plain).unwrap_or("corpus"))
}

impl Arguments {
    /// Returns the corpus to write, which every way but [`explain`](Self::explain) has.
    fn output(&self) -> &Path {
        self.output.as_deref().unwrap_or(Path::new(""))
    }

    /// Prints the forms of timestamps of the inputs.
    fn explain(&self) -> Outcome {
        let job = self.job()?;
        if job.division.documents != Documents::Lines {
            let got = &job.division.documents;
            return Err(Failure::usage(format!("--explain-timestamps reads lines, got --documents {got}")));
        }
        let found = self.named(inputs::collect(&self.paths, &self.filter())?)?;
        for row in documents::explain_timestamps(&found.inputs, &job.division, job.read, &job.archives)? {
            say(row)?;
        }
        Ok(())
    }

    fn job(&self) -> Outcome<Job> {
        let read = ReadOptions {
            max_row_bytes: self.max_row_size,
            allow_missing: self.allow_missing,
            keep_columns: !self.no_columns,
            max_columns: self.max_columns,
            keep_going: self.keep_going,
            strip_ansi: self.strip_ansi.strips_ansi(),
            join_partial: self.join_partial != When::Never,
            ..ReadOptions::default()
        };
        Ok(Job {
            options: self.building.options()?,
            division: self.division()?,
            read: self.packed.limit(self.forms.with(read)),
            archives: self.packed.archives(&self.glob),
            machine: self.building.machine.clone(),
            allow_empty: self.allow_empty || self.paths.iter().any(|path| is_stdin(path)),
            quiet: self.quiet,
            heeds_interrupts: true,
            notes: Vec::new(),
            taken: None,
            filter: None,
            remote: None,
        })
    }

    fn with_living(&self, work: impl FnOnce(&Living) -> Outcome) -> Outcome {
        Living::with_open_or_created(self.output(), self.building.tokenizer, work)
    }

    fn follow(&self, job: Job) -> Outcome {
        let [path] = self.paths.as_slice() else {
            return Err(Failure::usage("--follow takes one file, or - for standard input"));
        };
        let Some(path) = local_path(path)? else {
            let shown = display::path(path);
            return Err(Failure::usage(format!(
                "{shown}: --follow takes a file of this machine, or - for standard input"
            )));
        };
        interrupt::ask_twice();
        let how = Appending {
            location: self.output(),
            recompress_ratio: self.recompress_ratio,
            may_duplicate: self.duplicate,
        };
        let name = self.path.as_deref();
        self.with_living(|living| follow(job, living, &path, name, &self.follow, &how))
    }

    /// Gives the only input the path of `--path`.
    fn named(&self, mut found: Found) -> Outcome<Found> {
        let Some(name) = &self.path else { return Ok(found) };
        match (self.paths.as_slice(), found.inputs.as_mut_slice()) {
            ([path], [input]) if !path.is_dir() => {
                input.path.clone_from(name);
                // A name is chosen, so that it is another document.
                found.files.clear();
                Ok(found)
            }
            _ => Err(Failure::usage("--path names the documents of standard input or of one file")),
        }
    }

    fn division(&self) -> Outcome<Division> {
        let documents = match &self.documents {
            Documents::Files if self.explain_timestamps => Documents::Lines,
            documents => documents.clone(),
        };
        let has_pages = matches!(documents, Documents::Files | Documents::Warc | Documents::Mbox);
        if self.forms.html == Html::Text && !has_pages {
            return Err(Failure::usage("--html text goes with --documents files, warc and mbox"));
        }
        let is_csv = matches!(documents, Documents::Csv(_) | Documents::Tsv(_));
        let is_text = matches!(documents, Documents::Files | Documents::Lines | Documents::Jsonl(_));
        if self.forms.charset.is_some() && !(is_text || is_csv) {
            return Err(Failure::usage("--charset goes with --documents files, lines, jsonl, csv and tsv"));
        }
        if self.record_start.is_some() && documents != Documents::Lines {
            return Err(Failure::usage("--record-start goes with --documents lines"));
        }
        let has_dialect = self.delimiter.is_some() || self.quote.is_some() || self.no_header || self.comment.is_some();
        let has_dialect = has_dialect || self.skip_rows > 0;
        if !is_csv && has_dialect {
            let options = "--delimiter, --quote, --no-header, --comment and --skip-rows";
            return Err(Failure::usage(format!("{options} go with --documents csv:COLUMN and tsv:COLUMN")));
        }
        if let Some(Quote::Byte(quote)) = self.quote
            && [self.delimiter, self.comment].contains(&Some(quote))
        {
            return Err(Failure::usage("--quote is the character of --delimiter or --comment; name another one"));
        }
        let place = self.timestamp.as_deref().or_else(|| self.explain_timestamps.then_some("auto"));
        let timestamps = place.map(|place| {
            let timestamps = Timestamps::new(place, &documents, &self.timezone, self.year)?;
            match &self.timestamp_format {
                Some(format) => timestamps.with_format(format),
                None => Ok(timestamps),
            }
        });
        Ok(Division {
            timestamps: timestamps.transpose()?,
            record_start: self.record_start.clone(),
            dialect: Dialect {
                delimiter: self.delimiter,
                has_header: !self.no_header,
                comment: self.comment,
                quote: self.quote,
                skip_lines: self.skip_rows,
            },
            ..Division::from(documents)
        })
    }

    fn filter(&self) -> Filter {
        Filter {
            patterns: self.glob.clone(),
            skip: match local_path(self.output()) {
                Ok(Some(path)) => path.canonicalize().ok(),
                _ => self.output.clone(),
            },
            follow_links: self.forms.follow_links,
            may_be_empty: self.allow_empty,
            may_be_repeated: self.duplicate,
            wants_files: self.append,
        }
    }
}

/// Parses one character of ASCII, or `\t`.
fn parse_character(text: &str) -> Result<u8, String> {
    match text.as_bytes() {
        b"\\t" => Ok(b'\t'),
        [byte] if byte.is_ascii() && !matches!(byte, b'\n' | b'\r' | b'"') => Ok(*byte),
        _ => Err("expected one ASCII character, such as ; or |, or \\t for a tab".to_owned()),
    }
}

/// Parses the quotation mark of CSV: one character of ASCII, or `none`.
fn parse_quote(text: &str) -> Result<Quote, String> {
    match text.as_bytes() {
        b"none" => Ok(Quote::None),
        [byte] if byte.is_ascii_graphic() => Ok(Quote::Byte(*byte)),
        _ => Err("expected one ASCII character, such as \" or ', or none".to_owned()),
    }
}

fn is_stdin(path: &Path) -> bool {
    path.as_os_str() == "-"
}
