//! Text as a word-level grammar (TADOC), counted, searched and read without decompressing it.
//!
//! ```text
//! documents ──text──▶ tokens ──grammar──▶ rules ──format──▶ file.tadoc     (all of it: build)
//!                                                              │ open
//!          edits ◀── analytics, query, read ◀────── segment ◀──┘
//! ```
//!
//! ```
//! use tadoc::Corpus;
//! use tadoc::build::{CorpusBuilder, IngestOptions};
//! use tadoc::format::OpenLimits;
//!
//! # fn main() -> tadoc::Result<()> {
//! let mut builder = CorpusBuilder::new(Vec::new(), IngestOptions::default())?;
//! builder.push_document("a.txt", b"to be or not to be")?;
//! builder.push_document("b.txt", b"let it be")?;
//! let (file, _report) = builder.finish(None)?;
//!
//! let (_footer, corpus) = Corpus::from_bytes("plays.tadoc", &file, &OpenLimits::default())?;
//! let counts = corpus.word_count()?;
//! assert!(counts.iter().any(|(word, count)| (word, count) == ("be", 3)));
//!
//! let hits = corpus.search("\"not to be\"")?;
//! assert_eq!((hits.len(), hits[0].doc_id, hits[0].byte_offset), (1, 0, 9));
//! # Ok(())
//! # }
//! ```
//!
//! Reading order: [`text`] (bytes to tokens), [`grammar`] (tokens to rules), [`segment`] (rules as
//! flat arrays, and the corpus as a value), [`mod@format`] (the file), [`build`] (documents to a
//! file), [`read`] (documents and passages), [`query`] (search), [`analytics`] (tasks over a
//! corpus), [`edits`] (documents that change). [`Corpus`] answers the commonest questions itself.
//!
//! The crate knows neither Arrow nor DataFusion, no runtime, no object store and no device. Those
//! are the crates around it: `tadoc-store`, `tadoc-cuda`, `datafusion-tadoc`.
//!
//! # Glossary
//!
//! One word for one idea, in code, SQL, CUDA and documents.
//!
//! | term | meaning |
//! | --- | --- |
//! | **Text** | |
//! | document | one text with an id and a path; a file, a line or a row, as chosen at ingest |
//! | file | a path on a disk or the bytes behind it, never a document |
//! | path | the name of a document inside a corpus, as bytes |
//! | location | a path, URL, glob or table name that a user writes to name a corpus |
//! | token | a unit that the tokenizer emits; the tokens of a text tile its bytes |
//! | word | a token of the word class; a dictionary entry of that class |
//! | separator | a token that is no word; the single blank between two words is implied |
//! | profile | the rule by which the tokenizer finds words: `auto`, `word`, `uax29` or `whitespace` |
//! | dictionary | the distinct words and separators of a segment, sorted, with their ids |
//! | vocabulary | the distinct words of all segments of a corpus, or their folds |
//! | fold | a map from words to words that a query applies, such as lower case |
//! | **Grammar** | |
//! | element | an entry of a right-hand side: a word, a separator or a rule |
//! | rule | a sequence of elements that stands for itself wherever it occurs |
//! | root | the rule that is the segment's text, cut into documents by splitters |
//! | splitter | the mark between two documents in the root |
//! | barrier | a place that no rule crosses while a grammar is built |
//! | round | one pass of the builder that replaces pairs by new rules |
//! | DAG | the grammar as a graph: rules are nodes, numbered with parents before children |
//! | parent, child | a rule that contains another one, and the one contained |
//! | expansion | the text of a rule |
//! | G | the number of elements on all right-hand sides, the root included |
//! | N | the number of tokens of the text; G/N says how much the grammar reuses |
//! | weight | how often a rule occurs in the corpus, or in one document |
//! | inverse grammar | for each element, the rules that contain it and the positions there |
//! | traversal | the order in which a task visits rules |
//! | top-down | weights flow from parents to children |
//! | bottom-up | tables flow from children to parents |
//! | token scan | the task reads the expanded tokens and ignores the rules |
//! | climb | to follow parents from an occurrence inside a rule up to the root |
//! | **Corpus** | |
//! | corpus | one or more segments with one profile |
//! | segment | an immutable part with its own dictionary, grammar and documents |
//! | block | at ingest, the text that becomes one segment; in GSST, rows with one symbol table |
//! | section | a part of a file with a type, a codec, a length and a checksum |
//! | codec | the way in which a section's values are stored as bytes |
//! | footer | the section that lists the sections, the schema and the totals of a file |
//! | postscript | the last bytes of a file, which locate the footer |
//! | user columns | columns of documents beside path and text, stored as Parquet in a section |
//! | **Questions** | |
//! | task | a question about a whole corpus, such as word count |
//! | sequence | n words in a row within one document (an n-gram) |
//! | window | the range of positions in which a sequence or a pair is looked for |
//! | pair | two words that occur within one window |
//! | phrase | a sequence that a query looks for |
//! | pattern | a query's condition on one word: exact, prefix, wildcard or regular expression |
//! | occurrence | one position at which a word or phrase stands |
//! | hit | an occurrence as a result: document, byte offset, length, word index |
//! | passage | a range of bytes of a document |
//! | context | the words before and after a hit |
//! | tf, df | occurrences of a word in a document; documents that contain it |
//! | rank | the place of a document in a list by falling count |
//! | **Change** | |
//! | edit | an insert, append, delete or new column value of one document |
//! | edit record | an edit that is stored and not yet part of a grammar |
//! | piece | a range of the base text or of new text, in the piece tree of an edited document |
//! | living corpus | a folder or prefix of immutable segment files and numbered versions |
//! | version | the state of a living corpus behind one commit |
//! | manifest | the file of a version: its parts and edits |
//! | part | a segment file that a version lists, or a range of it |
//! | commit | the step that creates the next version, if nobody else has |
//! | optimize | to build segments anew so that edits become part of their grammars |
//! | clean-up | to remove the files that only old versions need |
//! | **String columns** | |
//! | symbol, code | a string of 1 to 8 bytes, and the number that stands for it |
//! | escape | the code that says that a literal byte follows |
//! | split | a run of codes whose place in the text is stored, so that it decodes alone |
//! | stretch | the rows of a row group whose values stand in one block |
//! | run | consecutive things of one kind: blocks of a column, pieces of a text, rows |
//! | **Execution** | |
//! | portion | a run of segments that fits into memory and is answered before the next one |
//! | partition | DataFusion's unit of parallel work |
//! | execution | one partition of a scan while it runs |
//! | slice | rows of a result that are made and sent together |
//! | device | a GPU; the cores are the processor's |
//! | placement | the decision whether cores or a device answer a task |
//! | place | the cores or a device, as a placement decides |
//! | route | the way of stored bytes to the cores or the device that decodes them |
//! | rate | work per second, as measured or assumed by the throughput model |

pub mod accelerator;
pub mod analytics;
pub mod build;
mod corpus;
pub mod edits;
pub mod error;
pub mod format;
pub mod grammar;
pub mod ids;
pub mod query;
pub mod read;
pub mod segment;
pub mod text;

pub use error::{Error, Result};
pub use segment::Corpus;
