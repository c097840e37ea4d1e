//! Messages of plan nodes and of tables that travel between machines.
//!
//! ```text
//! magic "TADOCDF" │ version │ CRC32C of the rest, little endian │ Protocol Buffers
//! ```
//!
//! The version is that of the messages. Machines refuse messages of another version, so that a
//! field never changes its meaning silently. The checksum finds damage. Messages are decoded by
//! `prost`, which takes no more memory than the bytes have and limits the depth.

use datafusion::error::Result;
use prost::Message;

use crate::refused;

/// Bytes at the beginning of each message.
const MAGIC: &[u8; 7] = b"TADOCDF";
/// Version of the messages. Any change of a message below counts it up.
pub(super) const VERSION: u8 = 12;
/// Length of magic, version and checksum.
const HEAD_BYTES: usize = MAGIC.len() + 1 + 4;

/// Appends `node` to `buf`.
pub(super) fn seal(node: &NodeMessage, buf: &mut Vec<u8>) {
    let body = node.encode_to_vec();
    buf.extend_from_slice(MAGIC);
    buf.push(VERSION);
    buf.extend_from_slice(&crc32c::crc32c(&body).to_le_bytes());
    buf.extend_from_slice(&body);
}

/// Returns true if `bytes` begin like a message of this crate, of any version. So a program with codecs of
/// its own knows which of them to ask.
///
/// ```
/// assert!(!datafusion_tadoc_distributed::is_message(b"other bytes"));
/// ```
pub fn is_message(bytes: &[u8]) -> bool {
    bytes.starts_with(MAGIC)
}

/// Returns the node of a message.
///
/// # Errors
/// An error that says whether the bytes are of another kind, of another version, or damaged.
pub(super) fn open(bytes: &[u8]) -> Result<NodeMessage> {
    let Some((head, body)) = bytes.split_at_checked(HEAD_BYTES) else {
        return refused(format!("expected at least {HEAD_BYTES} bytes, got {}", bytes.len()));
    };
    let (magic, rest) = head.split_at(MAGIC.len());
    if magic != MAGIC {
        return refused("expected a node of datafusion-tadoc, got other bytes");
    }
    let (version, checksum) = rest.split_at(1);
    if version != [VERSION] {
        return refused(format!(
            "expected version {VERSION} of the messages, got {}; run the same version of tadoc on \
             all machines",
            version[0]
        ));
    }
    if checksum != crc32c::crc32c(body).to_le_bytes() {
        return refused("the checksum does not fit the bytes, which are damaged");
    }
    NodeMessage::decode(body).or_else(|error| refused(format!("expected a node: {error}")))
}

/// A plan node, or a table of a logical plan. Exactly one field is set.
#[derive(Clone, PartialEq, Message)]
pub(super) struct NodeMessage {
    #[prost(message, optional, boxed, tag = "1")]
    pub(super) scan: Option<Box<ScanMessage>>,
    #[prost(message, optional, tag = "2")]
    pub(super) runs: Option<RunsMessage>,
    #[prost(message, optional, tag = "3")]
    pub(super) portions: Option<PortionsMessage>,
    /// Rows of the same word become one row. The input is ordered by word.
    #[prost(bool, tag = "4")]
    pub(super) joins_lists: bool,
    /// Mean bytes of the longest rows, by which the rows of a batch are chosen.
    #[prost(uint64, optional, tag = "5")]
    pub(super) row_bytes: Option<u64>,
    #[prost(message, optional, tag = "6")]
    pub(super) columns: Option<ColumnsMessage>,
    #[prost(message, optional, boxed, tag = "7")]
    pub(super) table: Option<Box<TableMessage>>,
    #[prost(message, optional, tag = "8")]
    pub(super) listing: Option<ListingMessage>,
    #[prost(message, optional, tag = "9")]
    pub(super) segments: Option<SegmentsMessage>,
    /// Rows of which nothing is known.
    #[prost(bool, tag = "10")]
    pub(super) plain_rows: bool,
    /// Rows of which no column is known to be constant.
    #[prost(bool, tag = "11")]
    pub(super) nullable_rows: bool,
    /// Packed rows of several machines become rows.
    #[prost(message, optional, boxed, tag = "12")]
    pub(super) merged: Option<Box<MergedMessage>>,
    /// Number of documents of a corpus. Scans of its portions are told the numbers of words, which the first input
    /// has.
    #[prost(uint64, optional, tag = "13")]
    pub(super) numbered_docs: Option<u64>,
}

/// The merge of packed rows.
#[derive(Clone, PartialEq, Message)]
pub(super) struct MergedMessage {
    /// The scan, without files.
    #[prost(message, optional, tag = "1")]
    pub(super) scan: Option<ScanMessage>,
    /// Text for EXPLAIN.
    #[prost(string, tag = "2")]
    pub(super) times: String,
    /// Fewest partitions of the node.
    #[prost(uint32, tag = "3")]
    pub(super) least_partitions: u32,
    /// The scan of the words that all machines number alike, if they do.
    #[prost(message, optional, tag = "4")]
    pub(super) words: Option<ScanMessage>,
}

/// Description of a scan whose rows are packed.
#[derive(Clone, PartialEq, Message)]
pub(super) struct ParcelsMessage {
    #[prost(uint32, tag = "1")]
    pub(super) num_parcels: u32,
    /// Id in the whole corpus of the first document of each file.
    #[prost(uint64, repeated, tag = "2")]
    pub(super) first_doc_ids: Vec<u64>,
    /// Rows have lists of documents.
    #[prost(bool, tag = "3")]
    pub(super) has_lists: bool,
}

/// The living corpus that segment files are written for.
#[derive(Clone, PartialEq, Message)]
pub(super) struct SegmentsMessage {
    /// Absolute path or URL.
    #[prost(string, tag = "1")]
    pub(super) location: String,
    /// A `datafusion_proto` schema.
    #[prost(bytes = "vec", tag = "2")]
    pub(super) schema: Vec<u8>,
    /// Settings under `tadoc.`.
    #[prost(message, repeated, tag = "3")]
    pub(super) options: Vec<PairMessage>,
}

/// A table function and its arguments.
#[derive(Clone, PartialEq, Message)]
pub(super) struct CallMessage {
    #[prost(string, tag = "1")]
    pub(super) function: String,
    /// Arguments but the first of functions over files, as EXPLAIN shows them.
    #[prost(message, repeated, tag = "2")]
    pub(super) arguments: Vec<PairMessage>,
    #[prost(message, optional, tag = "3")]
    pub(super) synonyms: Option<SynonymsMessage>,
    /// The first argument. In a scan, as messages show it.
    #[prost(string, tag = "4")]
    pub(super) location: String,
    #[prost(message, optional, tag = "5")]
    pub(super) texts: Option<TextsMessage>,
}

/// A call, or a table `STORED AS TADOC`, in a logical plan.
#[derive(Clone, PartialEq, Message)]
pub(super) struct TableMessage {
    #[prost(message, optional, tag = "1")]
    pub(super) call: Option<CallMessage>,
    /// The place that is read, if the table reads files.
    #[prost(message, optional, tag = "2")]
    pub(super) place: Option<PlaceMessage>,
    /// The version of a living corpus.
    #[prost(message, optional, tag = "3")]
    pub(super) living: Option<LivingMessage>,
    /// Requested version.
    #[prost(uint64, optional, tag = "4")]
    pub(super) version: Option<u64>,
    /// Settings under `tadoc.` that those of the session do not change.
    #[prost(message, repeated, tag = "5")]
    pub(super) options: Vec<PairMessage>,
    /// True if the columns behind those of the function are user columns of a table.
    #[prost(bool, tag = "6")]
    pub(super) has_user_columns: bool,
    /// True if columns with the files of documents stand behind those of the function.
    #[prost(bool, tag = "7")]
    pub(super) has_files: bool,
    /// The condition that documents meet, if not all are asked about.
    #[prost(string, optional, tag = "8")]
    pub(super) condition: Option<String>,
}

/// A place that means the same on all machines.
#[derive(Clone, PartialEq, Message)]
pub(super) struct PlaceMessage {
    /// Absolute path or URL.
    #[prost(string, tag = "1")]
    pub(super) location: String,
    /// Folder above a relative location, which rows and messages do not show.
    #[prost(string, tag = "2")]
    pub(super) folder: String,
}

/// A table of Parquet or JSON files in a logical plan.
#[derive(Clone, PartialEq, Message)]
pub(super) struct ListingMessage {
    #[prost(enumeration = "FormatKind", tag = "1")]
    pub(super) format: i32,
    /// URLs of files and folders.
    #[prost(string, repeated, tag = "2")]
    pub(super) urls: Vec<String>,
    #[prost(string, tag = "3")]
    pub(super) extension: String,
    /// A `datafusion_proto` schema with the columns of the files.
    #[prost(bytes = "vec", tag = "4")]
    pub(super) schema: Vec<u8>,
    /// A `datafusion_proto` schema with the columns that are names of folders.
    #[prost(bytes = "vec", tag = "5")]
    pub(super) folders: Vec<u8>,
    /// Options of a table `STORED AS GSST`, settings under `parquet.` that have no default value, or all of JSON.
    #[prost(message, repeated, tag = "6")]
    pub(super) options: Vec<PairMessage>,
}

/// The format of a table of files.
#[derive(Clone, Copy, Debug, PartialEq, Eq, prost::Enumeration)]
#[repr(i32)]
pub(super) enum FormatKind {
    /// No format: the message is damaged.
    Unknown = 0,
    /// Files with GSST columns.
    Gsst = 1,
    /// Plain files of Parquet.
    Parquet = 2,
    /// Files of JSON.
    Json = 3,
}

/// A scan of a table function, and what the plan promises of its rows.
#[derive(Clone, PartialEq, Message)]
pub(super) struct ScanMessage {
    #[prost(message, optional, tag = "1")]
    pub(super) call: Option<CallMessage>,
    #[prost(message, optional, tag = "2")]
    pub(super) source: Option<SourceMessage>,
    /// A `datafusion_proto` schema with all columns.
    #[prost(bytes = "vec", tag = "3")]
    pub(super) schema: Vec<u8>,
    #[prost(uint32, repeated, tag = "4")]
    pub(super) projection: Vec<u32>,
    #[prost(message, optional, tag = "5")]
    pub(super) columns_stage: Option<StageMessage>,
    #[prost(message, repeated, tag = "6")]
    pub(super) dynamic_stages: Vec<StageMessage>,
    #[prost(message, optional, tag = "7")]
    pub(super) text_stage: Option<StageMessage>,
    #[prost(message, repeated, tag = "8")]
    pub(super) demands: Vec<DemandMessage>,
    #[prost(uint64, optional, tag = "9")]
    pub(super) limit: Option<u64>,
    /// Settings under `tadoc.`.
    #[prost(message, repeated, tag = "10")]
    pub(super) options: Vec<PairMessage>,
    /// Set if the rows are packed.
    #[prost(message, optional, tag = "11")]
    pub(super) parcels: Option<ParcelsMessage>,
    #[prost(uint32, tag = "13")]
    pub(super) num_partitions: u32,
    /// Columns by which each partition is ordered.
    #[prost(message, repeated, tag = "14")]
    pub(super) ordering: Vec<OrderMessage>,
    #[prost(uint64, optional, tag = "15")]
    pub(super) num_rows: Option<u64>,
    #[prost(bool, tag = "16")]
    pub(super) is_num_rows_exact: bool,
    /// The files whose words number those of packed rows, if all machines number them alike.
    #[prost(message, optional, tag = "17")]
    pub(super) numbered_by: Option<SourceMessage>,
}

/// A name and its value.
#[derive(Clone, PartialEq, Eq, Message)]
pub(super) struct PairMessage {
    #[prost(string, tag = "1")]
    pub(super) name: String,
    #[prost(string, tag = "2")]
    pub(super) value: String,
}

/// The synonyms of a fold: words and what they count as, both folded.
#[derive(Clone, PartialEq, Message)]
pub(super) struct SynonymsMessage {
    #[prost(string, tag = "1")]
    pub(super) name: String,
    #[prost(message, repeated, tag = "2")]
    pub(super) rows: Vec<PairMessage>,
}

/// Texts of another table, by their ids, that a function compares with a corpus.
#[derive(Clone, PartialEq, Message)]
pub(super) struct TextsMessage {
    #[prost(message, repeated, tag = "1")]
    pub(super) rows: Vec<PairMessage>,
}

/// A column of an ordering.
#[derive(Clone, PartialEq, Message)]
pub(super) struct OrderMessage {
    #[prost(string, tag = "1")]
    pub(super) column: String,
    #[prost(bool, tag = "2")]
    pub(super) descends: bool,
    #[prost(bool, tag = "3")]
    pub(super) nulls_first: bool,
}

/// The files that a scan reads.
#[derive(Clone, PartialEq, Message)]
pub(super) struct SourceMessage {
    #[prost(enumeration = "SourceKind", tag = "1")]
    pub(super) kind: i32,
    #[prost(message, repeated, tag = "2")]
    pub(super) files: Vec<FileMessage>,
    #[prost(message, optional, tag = "3")]
    pub(super) living: Option<LivingMessage>,
    /// The part of the corpora that is read, if not all is.
    #[prost(message, optional, tag = "4")]
    pub(super) part: Option<PartMessage>,
}

/// A part of corpora.
#[derive(Clone, PartialEq, Message)]
pub(super) struct PartMessage {
    /// The condition that its documents meet, as it is shown.
    #[prost(string, tag = "1")]
    pub(super) condition: String,
    /// Starts of the ranges of its documents, ascending.
    #[prost(uint64, repeated, tag = "2")]
    pub(super) starts: Vec<u64>,
    /// Ends of the ranges.
    #[prost(uint64, repeated, tag = "3")]
    pub(super) ends: Vec<u64>,
}

/// The way in which a scan reads its files.
#[derive(Clone, Copy, Debug, PartialEq, Eq, prost::Enumeration)]
#[repr(i32)]
pub(super) enum SourceKind {
    /// No kind: the message is damaged.
    Unknown = 0,
    /// Corpora, with their footers.
    Corpora = 1,
    /// A version of a living corpus, with the footers of its files.
    Living = 2,
    /// A version of a living corpus, whose files are read as they are.
    Unchecked = 3,
    /// Files that are read as they are.
    Files = 4,
}

/// A file, and the version of it that is read.
#[derive(Clone, PartialEq, Message)]
pub(super) struct FileMessage {
    /// Path as messages show it.
    #[prost(string, tag = "1")]
    pub(super) shown: String,
    /// Scheme and server.
    #[prost(string, tag = "2")]
    pub(super) store_url: String,
    /// Path in the store.
    #[prost(string, tag = "3")]
    pub(super) path: String,
    #[prost(uint64, tag = "4")]
    pub(super) len_bytes: u64,
    #[prost(string, optional, tag = "5")]
    pub(super) e_tag: Option<String>,
    /// Microseconds since 1970.
    #[prost(int64, tag = "6")]
    pub(super) modified_us: i64,
    /// Segments that are read, if these are not all.
    #[prost(message, optional, tag = "7")]
    pub(super) segments: Option<RangeMessage>,
    /// Path on disk, if the store of local files cannot read it.
    #[prost(string, optional, tag = "8")]
    pub(super) on_disk: Option<String>,
}

/// A range of numbers.
#[derive(Clone, PartialEq, Message)]
pub(super) struct RangeMessage {
    #[prost(uint64, tag = "1")]
    pub(super) start: u64,
    #[prost(uint64, tag = "2")]
    pub(super) end: u64,
}

/// A version of a living corpus.
#[derive(Clone, PartialEq, Message)]
pub(super) struct LivingMessage {
    /// Absolute path or URL.
    #[prost(string, tag = "1")]
    pub(super) location: String,
    #[prost(uint64, tag = "2")]
    pub(super) number: u64,
    /// Id of the commit.
    #[prost(string, tag = "3")]
    pub(super) commit: String,
}

/// A conjunction of filters over some columns.
#[derive(Clone, PartialEq, Message)]
pub(super) struct StageMessage {
    /// Positions in the schema, ascending.
    #[prost(uint32, repeated, tag = "1")]
    pub(super) columns: Vec<u32>,
    #[prost(string, tag = "2")]
    pub(super) shown: String,
    /// A `datafusion_proto` expression.
    #[prost(bytes = "vec", tag = "3")]
    pub(super) expr: Vec<u8>,
}

/// Patterns of which a text matches at least one.
#[derive(Clone, PartialEq, Message)]
pub(super) struct DemandMessage {
    #[prost(message, repeated, tag = "1")]
    pub(super) patterns: Vec<PatternMessage>,
}

/// A pattern of texts.
#[derive(Clone, PartialEq, Message)]
pub(super) struct PatternMessage {
    #[prost(string, repeated, tag = "1")]
    pub(super) fragments: Vec<String>,
    #[prost(uint64, optional, tag = "2")]
    pub(super) exact_len_bytes: Option<u64>,
    #[prost(bool, tag = "3")]
    pub(super) is_any_case: bool,
}

/// Runs of segments.
#[derive(Clone, PartialEq, Message)]
pub(super) struct RunsMessage {
    #[prost(message, repeated, tag = "1")]
    pub(super) runs: Vec<RunMessage>,
    #[prost(uint32, tag = "2")]
    pub(super) num_partitions: u32,
    /// A `datafusion_proto` schema.
    #[prost(bytes = "vec", tag = "3")]
    pub(super) schema: Vec<u8>,
    #[prost(string, repeated, tag = "4")]
    pub(super) ordering: Vec<String>,
}

/// A run of segments.
#[derive(Clone, PartialEq, Message)]
pub(super) struct RunMessage {
    #[prost(message, optional, tag = "1")]
    pub(super) scan: Option<ScanMessage>,
    #[prost(uint64, tag = "2")]
    pub(super) first_doc_id: u64,
}

/// Portions that are read one after another, or the combined rows of all portions.
#[derive(Clone, PartialEq, Message)]
pub(super) struct PortionsMessage {
    #[prost(uint64, tag = "1")]
    pub(super) num_portions: u64,
    #[prost(bool, tag = "2")]
    pub(super) is_combined: bool,
    #[prost(uint64, repeated, tag = "3")]
    pub(super) first_doc_ids: Vec<u64>,
    #[prost(uint64, tag = "4")]
    pub(super) memory_bytes: u64,
    /// A `datafusion_proto` schema.
    #[prost(bytes = "vec", tag = "5")]
    pub(super) schema: Vec<u8>,
    #[prost(message, repeated, tag = "6")]
    pub(super) ordering: Vec<OrderMessage>,
}

/// A scan of Parquet files with GSST columns.
#[derive(Clone, PartialEq, Message)]
pub(super) struct ColumnsMessage {
    /// A `datafusion_proto` configuration of a scan of files, with its projection.
    #[prost(bytes = "vec", tag = "1")]
    pub(super) config: Vec<u8>,
    /// A `datafusion_proto` expression over all columns.
    #[prost(bytes = "vec", optional, tag = "2")]
    pub(super) filter: Option<Vec<u8>>,
    /// Settings under `tadoc.`.
    #[prost(message, repeated, tag = "3")]
    pub(super) options: Vec<PairMessage>,
    /// Facts about each column of the files.
    #[prost(message, repeated, tag = "4")]
    pub(super) facts: Vec<FactsMessage>,
    #[prost(uint64, tag = "5")]
    pub(super) num_rows: u64,
    #[prost(uint64, tag = "8")]
    pub(super) num_row_groups: u64,
    /// The files of the configuration, each once, with their versions.
    #[prost(message, repeated, tag = "7")]
    pub(super) files: Vec<FileMessage>,
}

/// Facts about a column of GSST files.
#[derive(Clone, PartialEq, Message)]
pub(super) struct FactsMessage {
    /// Length of the text, if it is a GSST column in one of the files.
    #[prost(uint64, optional, tag = "1")]
    pub(super) text_len_bytes: Option<u64>,
    #[prost(uint64, tag = "2")]
    pub(super) num_nulls: u64,
    #[prost(uint64, tag = "3")]
    pub(super) stored_len_bytes: u64,
    /// Part of the text whose codes have 12 bits.
    #[prost(uint64, tag = "4")]
    pub(super) twelve_len_bytes: u64,
    /// Part of the text whose width the files do not say.
    #[prost(uint64, tag = "5")]
    pub(super) unknown_len_bytes: u64,
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn sealed(location: &str) -> Vec<u8> {
        let call = CallMessage { location: location.to_owned(), ..CallMessage::default() };
        let scan = ScanMessage { call: Some(call), ..ScanMessage::default() };
        let mut bytes = Vec::new();
        seal(&NodeMessage { scan: Some(Box::new(scan)), ..NodeMessage::default() }, &mut bytes);
        bytes
    }

    #[test]
    fn other_versions_and_kinds_are_named() {
        let mut bytes = sealed("c.tadoc");
        let other_version = VERSION + 1;
        bytes[MAGIC.len()] = other_version;
        let refusal = open(&bytes).unwrap_err().to_string();
        let expected = format!("expected version {VERSION}");
        assert!(refusal.contains(&expected), "{refusal}");
        assert!(refusal.contains(&format!("got {other_version}")), "{refusal}");
        let refusal = open(b"something else").unwrap_err().to_string();
        assert!(refusal.contains("got other bytes"), "{refusal}");
    }

    proptest! {
        #[test]
        fn damaged_bytes_are_refused(location in ".{0,60}", at: usize, bit in 0u8..8, cut: usize) {
            let bytes = sealed(&location);
            prop_assert_eq!(open(&bytes).unwrap().scan.unwrap().call.unwrap().location, location);
            let mut flipped = bytes.clone();
            let at = at % bytes.len();
            flipped[at] ^= 1 << bit;
            prop_assert!(open(&flipped).is_err());
            prop_assert!(open(&bytes[..cut % bytes.len()]).is_err());
        }
    }
}
