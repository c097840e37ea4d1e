//! Options that `tadoc ingest` and `tadoc sync` share: the forms of files, what is packed, and how a corpus is built.

use clap::{Args, ValueEnum};
use tadoc::build::{BuilderKind, IngestOptions};
use tadoc::format::SegmentLayout;
use tadoc::text::TokenizerProfile;
use tadoc_documents::pattern::Pattern;
use tadoc_documents::{ArchiveOptions, Charset, ExpansionLimits, ReadOptions, display};
use tadoc_session::{Failure, Outcome, note};

use super::job::Machine;

/// The form in which HTML is stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Html {
    /// Its bytes
    Keep,
    /// Its text
    Text,
}

/// The documents that an office file becomes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Office {
    /// One with its text
    Text,
    /// Its members
    Members,
}

/// The inputs that are mended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum When {
    /// Lines
    Auto,
    /// Lines and files
    Always,
    /// None
    Never,
}

/// Options for building a corpus.
#[derive(Debug, Clone, Args)]
pub struct Building {
    /// Tokenizer that finds words: auto (runs of letters, digits and _, and single characters of Chinese, Japanese,
    /// Korean, Thai and the like), word (runs only), uax29 or whitespace
    /// [default: auto, or that of the living corpus]
    #[arg(long, value_name = "NAME", verbatim_doc_comment)]
    pub tokenizer: Option<TokenizerProfile>,

    /// Builder of the grammar: rounds (fast, parallel) or sequitur (the published baseline)
    #[arg(long, default_value = "rounds", value_name = "NAME")]
    pub builder: BuilderKind,

    /// Layout of the file: indexed, or small (0.6 to 0.9 of the size, for archives)
    ///
    /// An indexed file has the documents of each word, up to 32 percent of the rest: counts and ranks of words
    /// read these alone, and searches decode the documents that they name. indexed:40 sets another percentage.
    /// Under it lists of rare words become shorter, and the longest are left out. A small file decodes whole segments
    /// instead. `tadoc optimize --layout` writes one as the other.
    #[arg(long, default_value = "indexed", value_name = "NAME")]
    pub layout: SegmentLayout,

    /// Is accepted, and changes nothing: grammars are built in one way
    #[arg(long, hide = true, value_name = "NAME")]
    effort: Option<String>,

    /// Amount of text that is compressed together; memory grows with it
    ///
    /// A block becomes segments of up to 16 MiB if its documents share few lines, but with --layout small.
    /// Versions of a text stay together.
    #[arg(long, default_value = "128MiB", value_name = "SIZE", value_parser = display::parse_size)]
    pub block_size: u64,

    /// Number of threads (default: all cores)
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    pub threads: Option<u16>,

    #[command(flatten)]
    pub machine: Machine,
}

/// The forms of files in folders.
#[derive(Debug, Clone, Args)]
pub struct Forms {
    /// Follow symbolic links inside folders
    ///
    /// Without this option, links inside folders are skipped and counted: a folder gives only its
    /// own contents. A link that is named on the command line is always followed. A link back to a
    /// folder on the current path is not followed. A link that leads nowhere is named in a note.
    #[arg(long)]
    pub follow_links: bool,

    /// The form of HTML that is stored: keep (its bytes) or text (as a reader of the page sees it)
    ///
    /// text is for files .html, .htm and .xhtml, in folders, archives and compressed, for the bodies of WARC
    /// whose type is HTML, and for messages of mail, whose parts are decoded. Packed bodies of WARC (gzip, deflate,
    /// br, zstd) are unpacked. Scripts, styles and hidden elements are left out, a block is a line, cells of
    /// tables have a tab between them. The path stays. A page or message may have --max-row-size bytes.
    #[arg(long, default_value = "keep", value_name = "HOW", value_enum)]
    pub html: Html,

    /// The documents that an office file becomes: text (one with its text) or members (those of the zip file, the
    /// bytes of rtf)
    ///
    /// text is for docx, pptx, xlsx, odt, odp, ods and rtf, as files and as lines, in folders and archives. Paragraphs
    /// are lines, cells have a tab between them, a sheet begins with its name. Headers, footers, notes and comments
    /// follow the text. Text that was deleted with changes tracked is left out. A file that is broken has a warning,
    /// and its members become documents (its bytes, of rtf). So they do where --glob leaves the file out. Each of its
    /// tags and texts, and the strings that cells share, may have --max-row-size bytes.
    #[arg(long, default_value = "text", value_name = "HOW", value_enum)]
    pub office: Office,

    /// The character set of files, lines, JSON and CSV, which are stored in UTF-8 without a byte order
    /// mark: auto (UTF-16 by that mark), or a name such as windows-1252 or shift_jis
    /// [default: keep, the bytes as they are]
    ///
    /// U+FFFD stands for bytes that mean nothing. Names are those of the WHATWG's standard of encodings.
    /// Pages with --html text say themselves which one they have.
    #[arg(long, value_name = "NAME", verbatim_doc_comment)]
    pub charset: Option<Charset>,
}

/// Compressed files and archives.
#[derive(Debug, Clone, Args)]
pub struct Packed {
    /// Store compressed files and archives as they are
    ///
    /// Without this option, files compressed by gzip, zstd, bzip2, xz, lzip or lz4 are decompressed, and
    /// members of tar and zip archives (.tar.gz, .jar, .whl, .epub and so on) become documents of
    /// their own. Files packed by compress, 7z and rar are stored packed, with a warning.
    #[arg(long)]
    pub no_decompress: bool,

    /// Maximum number of archives that lie in each other
    #[arg(long, default_value_t = ArchiveOptions::MAX_DEPTH, value_name = "N")]
    pub max_depth: u32,

    /// Maximum number of members of an archive, with those of archives in it
    #[arg(long, default_value_t = ArchiveOptions::MAX_MEMBERS, value_name = "N")]
    pub max_members: u64,

    /// Maximum number of bytes that one byte of a compressed file may expand to; the first 64 MiB
    /// are always allowed
    #[arg(long, default_value_t = ExpansionLimits::DEFAULT.max_ratio, value_name = "RATIO",
          value_parser = clap::value_parser!(u64).range(1..))]
    pub max_expansion: u64,

    /// Maximum total size that a compressed file or an archive may expand to
    #[arg(long, default_value = "256GiB", value_name = "SIZE", value_parser = display::parse_size)]
    pub max_expanded_size: u64,

    /// Maximum memory for the window of a zstd, xz or lzip file (zstd --long=31 takes 2GiB)
    #[arg(long, default_value = "128MiB", value_name = "SIZE", value_parser = display::parse_size)]
    pub max_window: u64,
}

impl Building {
    /// Starts as many threads as are asked for.
    ///
    /// # Errors
    /// The system cannot start them.
    pub fn start_threads(&self) -> Outcome {
        let Some(num_threads) = self.threads else { return Ok(()) };
        let pool = rayon::ThreadPoolBuilder::new().num_threads(num_threads.into()).build_global();
        pool.map_err(|error| Failure::with_cause("starting threads", &error))
    }

    /// Returns the options of the library.
    ///
    /// # Errors
    /// The options do not fit each other.
    pub fn options(&self) -> Outcome<IngestOptions> {
        if self.effort.is_some() {
            note("--effort changes nothing: grammars are built in one way");
        }
        Ok(IngestOptions {
            profile: self.tokenizer.unwrap_or_default(),
            builder: self.builder,
            layout: self.layout,
            block_bytes: usize::try_from(self.block_size).unwrap_or(usize::MAX),
            ..IngestOptions::default()
        })
    }
}

impl Forms {
    /// Returns `read` with these forms.
    pub fn with(&self, read: ReadOptions) -> ReadOptions {
        let html_to_text = self.html == Html::Text;
        let office_to_text = self.office == Office::Text;
        ReadOptions { html_to_text, office_to_text, charset: self.charset, ..read }
    }
}

impl Packed {
    /// Returns `read` with the limits of compressed files.
    pub fn limit(&self, read: ReadOptions) -> ReadOptions {
        let expansion = ExpansionLimits {
            max_ratio: self.max_expansion,
            max_bytes: self.max_expanded_size,
            max_window_bytes: self.max_window,
        };
        ReadOptions { decompress: !self.no_decompress, expansion, ..read }
    }

    /// Returns the options of archives, of which the members that match `globs` are taken.
    pub fn archives(&self, globs: &[Pattern]) -> ArchiveOptions {
        ArchiveOptions {
            is_opened: !self.no_decompress,
            globs: globs.to_vec(),
            max_depth: self.max_depth,
            max_members: self.max_members,
        }
    }
}

impl When {
    /// Returns if codes of terminals are left out; `None` means of lines.
    pub fn strips_ansi(self) -> Option<bool> {
        match self {
            Self::Auto => None,
            when => Some(when == Self::Always),
        }
    }
}
