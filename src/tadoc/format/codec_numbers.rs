//! Numbers of the codecs in the footer, and the facts about a section that its number alone tells.
//!
//! ```text
//! section          1            2           3      4                  5        6              7
//! grammar          sequential   packed      text   without repeats    stream
//! dictionary       list         parts       zstd   blocks             coded    headed blocks  headed coded
//! documents        strings      zstd
//! word lists       no regions   regions
//! counts, lengths, checksums   the only one
//! ```
//!
//! The heads of the [codecs](super::codecs) describe them. Each kind of section has its own numbers, and none is ever
//! given again. A reader refuses numbers that it does not know.

/// Grammar in the adaptive codes of early builds, which is read and not written.
pub(super) const SEQUENTIAL_GRAMMAR: u16 = 1;
/// Grammar of the layout `fast` of earlier builds, which is read and not written.
pub(super) const PACKED_GRAMMAR: u16 = 2;
/// Grammar of the layout `small`.
pub(super) const GRAMMAR: u16 = 3;
/// Grammar stream of earlier builds, which is read and not written.
pub(super) const STREAM_WITHOUT_REPEATS: u16 = 4;
/// Grammar of the layout `indexed`.
pub(super) const GRAMMAR_STREAM: u16 = 5;

/// Dictionary as one list.
pub(super) const DICTIONARY_LIST: u16 = 1;
/// Dictionary as several lists.
pub(super) const DICTIONARY_PARTS: u16 = 2;
/// Dictionary as front-coded strings in zstd.
pub(super) const DICTIONARY_ZSTD: u16 = 3;
/// Dictionary in blocks.
pub(super) const DICTIONARY_BLOCKS: u16 = 4;
/// Dictionary of tokens that are read alone.
pub(super) const CODED_DICTIONARY: u16 = 5;
/// Dictionary in blocks, with a head.
pub(super) const HEADED_BLOCKS: u16 = 6;
/// Dictionary of tokens that are read alone, with a head.
pub(super) const HEADED_CODED: u16 = 7;

/// Paths as a list of strings.
pub(super) const DOCUMENTS_STRINGS: u16 = 1;
/// Paths as front-coded strings in zstd.
pub(super) const DOCUMENTS_ZSTD: u16 = 2;

/// Word lists and their directory without regions, which are read and not written.
pub(super) const LISTS_WITHOUT_REGIONS: u16 = 1;
/// Word lists and their directory.
pub(super) const WORD_LISTS: u16 = 2;

pub(super) const WORD_COUNTS: u16 = 1;
pub(super) const DOCUMENT_LENGTHS: u16 = 1;
pub(super) const GRAMMAR_CHECKSUMS: u16 = 1;
pub(super) const TIES: u16 = 1;
/// Columns, which are stored unchanged: Parquet compresses its data.
pub(super) const COLUMNS: u16 = 0;

/// Returns true if `codec` is the number of a grammar section with entry points.
pub(super) fn is_stream(codec: u16) -> bool {
    matches!(codec, GRAMMAR_STREAM | STREAM_WITHOUT_REPEATS)
}

/// Returns true if `codec` is the number of a grammar section in static codes.
pub(super) fn has_static_codes(codec: u16) -> bool {
    codec == PACKED_GRAMMAR || is_stream(codec)
}

/// Returns true if a dictionary section of `codec` has a head.
pub(super) fn has_head(codec: u16) -> bool {
    matches!(codec, HEADED_BLOCKS | HEADED_CODED)
}

/// Returns true if this build reads word lists of `codec`.
pub(super) fn is_word_lists(codec: u16) -> bool {
    matches!(codec, WORD_LISTS | LISTS_WITHOUT_REGIONS)
}
