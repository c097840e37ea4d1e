//! Functions about corpora, functions and codecs: `corpus_info(corpus)` has a row for each fact, from the footers
//! alone, `tadoc_functions()` every function of this crate, with its arguments, its columns and an example, and
//! `ingestion_model(link_gb_per_s)` the rate at which text arrives over a link with each codec.
//!
//! Of a living corpus with edits, the facts about texts are those of the version with its edits, for which the corpus
//! is loaded. The facts about files remain those of the files. `reuse` is G/N, the elements of the grammar over the
//! tokens of the text: the honest measure of how much work a query saves. Words and separators are counted per segment
//! and summed, so that a word of two segments counts twice in `dictionary_words`.
//!
//! Functions are read from the signatures of the table functions and from the documentation of the scalar functions,
//! their examples from `sql/examples/reference.sql`, which a test runs. So no function can be left out.
//!
//! Rates come from published measurements and from this machine's calibration, which `tadoc calibrate` measures
//! ([`throughput`](crate::throughput)). Stores from which the session has read GSST columns have rows of their own, at
//! the rate and the ratio that it has observed. Nothing else is read.

use std::sync::Arc;

use datafusion::arrow::array::{ArrayRef, Float64Array, StringViewArray};
use datafusion::common::stats::Precision;
use datafusion::error::Result;
use datafusion::logical_expr::Documentation;
use futures::FutureExt;
use futures::future::BoxFuture;

use crate::errors::{datafusion_error, task_error};
use crate::functions::strings::{list_array, views};
use crate::functions::{documented_scalars, signatures};
use crate::planning::function::{Definition, Facts, Prepared, Reads, TableFunction};
use crate::planning::signature::{self, Argument, ArgumentKind, Column, ColumnKind, Signature};
use crate::planning::{Execution, ScanSpec, no_column};
use crate::throughput::{Calibration, Row, add_observed, rows};
use tadoc::format::{FileFooter, SectionKind, SegmentMeta};
use tadoc::segment::Corpus;

/// The function `corpus_info` in SQL.
pub(super) static FACTS: Definition = Definition {
    signature: Signature {
        name: "corpus_info",
        arguments: &[signature::CORPUS, signature::VERSION],
        columns: &[signature::text("name", "the fact"), signature::text("value", "its value")],
        summary: "one row per fact; reads only footers",
    },
    bind: |_, _| Arc::new(CorpusInfo),
};

#[derive(Debug)]
pub(crate) struct CorpusInfo;

impl TableFunction for CorpusInfo {
    fn signature(&self) -> &'static Signature {
        &FACTS.signature
    }

    fn facts(&self, scan: &ScanSpec, _prepared: &Prepared) -> Facts {
        Facts { num_rows: Precision::Exact(facts(scan, &Totals::from_footers(scan)).len()), ..Facts::default() }
    }

    fn run(self: Arc<Self>, mut run: Execution) -> BoxFuture<'static, Result<()>> {
        async move {
            let scan = Arc::clone(&run.scan);
            let totals = match scan.living() {
                Some(view) if !view.has_texts_of_files() => {
                    let loaded = run.load().await?;
                    let count = move || Totals::from_corpus(&loaded.corpus);
                    tokio::task::spawn_blocking(count).await.map_err(task_error)?
                }
                _ => Totals::from_footers(&scan),
            };
            let facts = facts(&scan, &totals);
            let column = |name: &str| match name {
                "name" => Ok(views(facts.iter().map(|(name, _)| *name))),
                "value" => Ok(views(facts.iter().map(|(_, value)| value.as_str()))),
                other => no_column(other),
            };
            run.send_async(facts.len(), column).await.map(drop)
        }
        .boxed()
    }
}

/// Sums over all segments.
#[derive(Debug, Default)]
struct Totals {
    segments: u64,
    text_bytes: u64,
    tokens: u64,
    words: u64,
    dictionary_words: u64,
    dictionary_separators: u64,
    rules: u64,
    elements: u64,
}

impl Totals {
    fn from_footers(scan: &ScanSpec) -> Self {
        let segments = || scan.corpora().iter().flat_map(|open| &open.footer.segments);
        let sum = |of: fn(&SegmentMeta) -> u64| segments().map(of).fold(0, u64::saturating_add);
        Self {
            segments: segments().count() as u64,
            text_bytes: sum(|s| s.len_bytes),
            tokens: sum(|s| s.num_tokens),
            words: sum(|s| s.num_word_tokens),
            dictionary_words: sum(|s| u64::from(s.num_words)),
            dictionary_separators: sum(|s| u64::from(s.num_separators)),
            rules: sum(|s| u64::from(s.num_rules)),
            elements: sum(|s| s.num_elements),
        }
    }

    /// Counts the totals of a loaded corpus. O(G).
    fn from_corpus(corpus: &Corpus) -> Self {
        let mut totals = Self { segments: corpus.segments().len() as u64, ..Self::default() };
        for segment in corpus.segments() {
            let dag = &segment.dag;
            let dictionary = &segment.dictionary;
            let terminals = &segment.weights_or_derive()[..dictionary.len() as usize];
            let num_tokens = |weights: &[u64]| weights.iter().fold(0, |sum: u64, &w| sum.saturating_add(w));
            let sums = segment.prefix_sums_or_derive();
            let len_bytes = |doc| sums.doc_len_bytes(doc);
            totals.text_bytes += dag.grammar().docs().map(len_bytes).sum::<u64>();
            totals.tokens += num_tokens(terminals);
            totals.words += num_tokens(&terminals[..dictionary.num_words() as usize]);
            totals.dictionary_words += u64::from(dictionary.num_words());
            totals.dictionary_separators += u64::from(dictionary.len() - dictionary.num_words());
            totals.rules += dag.grammar().num_rules() as u64;
            totals.elements += dag.grammar().symbols.len() as u64;
        }
        totals
    }
}

fn facts(scan: &ScanSpec, totals: &Totals) -> Vec<(&'static str, String)> {
    let footers: Vec<&FileFooter> = scan.corpora().iter().map(|open| &*open.footer).collect();
    let file_bytes: u64 = scan.corpora().iter().map(|open| open.file.meta.size).sum();
    let &Totals { text_bytes, tokens, elements, .. } = totals;
    let mut facts = vec![
        ("files", footers.len().to_string()),
        ("segments", totals.segments.to_string()),
        ("documents", scan.num_docs().to_string()),
        ("text_bytes", text_bytes.to_string()),
        ("file_bytes", file_bytes.to_string()),
        ("ratio", ratio(text_bytes, file_bytes)),
        ("tokens", tokens.to_string()),
        ("words", totals.words.to_string()),
        ("dictionary_words", totals.dictionary_words.to_string()),
        ("dictionary_separators", totals.dictionary_separators.to_string()),
        ("rules", totals.rules.to_string()),
        ("elements", elements.to_string()),
        ("reuse", ratio(elements, tokens)),
        ("list_directory_section_bytes", stored(&footers, SectionKind::ListDirectory).to_string()),
        ("word_lists_section_bytes", stored(&footers, SectionKind::WordLists).to_string()),
        ("dictionary_head_section_bytes", stored(&footers, SectionKind::DictionaryHead).to_string()),
        ("dictionary_section_bytes", stored(&footers, SectionKind::Dictionary).to_string()),
        ("word_counts_section_bytes", stored(&footers, SectionKind::WordCounts).to_string()),
        ("grammar_checksums_section_bytes", stored(&footers, SectionKind::GrammarChecksums).to_string()),
        ("grammar_section_bytes", stored(&footers, SectionKind::Grammar).to_string()),
        ("documents_section_bytes", stored(&footers, SectionKind::Documents).to_string()),
        ("document_lengths_section_bytes", stored(&footers, SectionKind::DocumentLengths).to_string()),
        ("columns_section_bytes", stored(&footers, SectionKind::Columns).to_string()),
        ("ties_section_bytes", stored(&footers, SectionKind::Ties).to_string()),
        ("tokenizer", tokenizer(scan, &footers)),
        ("unicode_version", distinct(&footers, unicode_version)),
        ("builder", distinct(&footers, |f| f.builder.clone())),
        ("layout", layout(&footers)),
        ("writer", distinct(&footers, |f| f.writer.clone())),
    ];
    if let Some(view) = scan.living() {
        facts.push(("version", view.version.number.to_string()));
        facts.push(("edits", view.num_edits().to_string()));
        facts.push(("dropped_documents", view.dropped.len().to_string()));
    }
    facts
}

fn tokenizer(scan: &ScanSpec, footers: &[&FileFooter]) -> String {
    match scan.living() {
        Some(view) => view.version.profile.to_string(),
        None => distinct(footers, |footer| footer.profile.to_string()),
    }
}

fn unicode_version(footer: &FileFooter) -> String {
    let (major, minor, update) = footer.unicode_version;
    format!("{major}.{minor}.{update}")
}

fn stored(footers: &[&FileFooter], kind: SectionKind) -> u64 {
    let segment_sections = footers.iter().flat_map(|f| &f.segments).flat_map(|s| &s.sections);
    let all = segment_sections.chain(footers.iter().flat_map(|f| f.columns.iter().chain(&f.others)));
    all.filter(|section| section.kind == kind).map(|section| section.len).sum()
}

/// Returns the name of the layout of all segments, `mixed` if they differ, or nothing without segments.
fn layout(footers: &[&FileFooter]) -> String {
    let mut layouts = footers.iter().flat_map(|f| &f.segments).map(SegmentMeta::layout);
    match layouts.next() {
        Some(first) if layouts.all(|layout| layout == first) => first.to_string(),
        Some(_) => "mixed".to_owned(),
        None => String::new(),
    }
}

/// Returns the values of all files, each once, in order of appearance.
fn distinct(footers: &[&FileFooter], of: impl Fn(&FileFooter) -> String) -> String {
    let mut values: Vec<String> = Vec::new();
    for value in footers.iter().map(|footer| of(footer)) {
        if !values.contains(&value) {
            values.push(value);
        }
    }
    values.join(", ")
}

fn ratio(numerator: u64, denominator: u64) -> String {
    match denominator {
        0 => "0".into(),
        _ => format!("{:.4}", numerator as f64 / denominator as f64),
    }
}

/// Statements of which each shows one function or more.
const EXAMPLES: &str = include_str!("../../../sql/examples/reference.sql");

/// The function `tadoc_functions` in SQL.
pub(super) static FUNCTIONS: Definition = Definition {
    signature: Signature {
        name: "tadoc_functions",
        arguments: &[],
        columns: &[
            signature::text("function", "its name"),
            signature::text("kind", "table or scalar"),
            signature::text("summary", "the answer in one line"),
            signature::text("signature", "how it is called"),
            signature::column("arguments", ColumnKind::TextList, "each argument, explained"),
            signature::column(
                "columns",
                ColumnKind::TextList,
                "each column with its type, explained; the type of the answer of a scalar",
            ),
            signature::text("example", "a statement with this function"),
        ],
        summary: "every function of this crate, with arguments, columns and an example",
    },
    bind: |_, _| Arc::new(TadocFunctions),
};

#[derive(Debug)]
struct TadocFunctions;

impl TableFunction for TadocFunctions {
    fn signature(&self) -> &'static Signature {
        &FUNCTIONS.signature
    }

    fn reads(&self) -> Reads {
        Reads::Nothing
    }

    fn run(self: Arc<Self>, mut run: Execution) -> BoxFuture<'static, Result<()>> {
        async move {
            let scalars = documented_scalars().map(|(answer, about)| Described::scalar(answer, about));
            let rows: Vec<Described> = signatures().map(Described::table).chain(scalars).collect();
            run.send_async(rows.len(), |name| column(name, &rows)).await.map(drop)
        }
        .boxed()
    }
}

/// A function as a row shows it.
struct Described {
    name: String,
    kind: &'static str,
    summary: String,
    signature: String,
    arguments: Vec<String>,
    columns: Vec<String>,
    example: String,
}

impl Described {
    fn table(signature: &'static Signature) -> Self {
        let argument = |argument: &Argument| match argument.default {
            None => format!("{}: {}", argument.name, argument.summary),
            Some(default) => format!("{} => {default}: {}", argument.name, argument.summary),
        };
        let column = |column: &Column| format!("{} {}: {}", column.name, column.kind.data_type(), column.summary);
        Self {
            name: signature.name.to_owned(),
            kind: "table",
            summary: signature.summary.to_owned(),
            signature: signature.to_string(),
            arguments: signature.arguments.iter().map(argument).collect(),
            columns: signature.columns.iter().map(column).collect(),
            example: example_of(signature.name),
        }
    }

    fn scalar(answer: String, about: &Documentation) -> Self {
        let usage = &about.syntax_example;
        let name = usage.split_once('(').map_or(usage.as_str(), |(name, _)| name);
        let arguments = about.arguments.iter().flatten();
        Self {
            name: name.to_owned(),
            kind: "scalar",
            summary: about.description.clone(),
            signature: usage.clone(),
            arguments: arguments.map(|(name, summary)| format!("{name}: {summary}")).collect(),
            columns: vec![answer],
            example: example_of(name),
        }
    }
}

/// Returns the first statement of the examples that calls the function `name`, on one line.
fn example_of(name: &str) -> String {
    let call = format!(" {name}(");
    let lines = EXAMPLES.lines().filter(|line| !line.starts_with("--"));
    let code: Vec<&str> = lines.map(str::trim).filter(|line| !line.is_empty()).collect();
    let code = code.join(" ");
    let example = code.split(';').find(|statement| statement.contains(&call));
    example.unwrap_or_default().trim().to_owned()
}

fn column(name: &str, rows: &[Described]) -> Result<ArrayRef> {
    let text = |of: fn(&Described) -> &str| -> Result<ArrayRef> { Ok(views(rows.iter().map(of))) };
    let list = |of: fn(&Described) -> &Vec<String>| -> Result<ArrayRef> {
        let texts: Vec<&str> = rows.iter().flat_map(of).map(String::as_str).collect();
        let ends = rows.iter().scan(0, |end, row| {
            *end += of(row).len();
            Some(*end)
        });
        Ok(Arc::new(list_array(views(texts.into_iter()), ends, None)?))
    };
    match name {
        "function" => text(|row| &row.name),
        "kind" => text(|row| row.kind),
        "summary" => text(|row| &row.summary),
        "signature" => text(|row| &row.signature),
        "arguments" => list(|row| &row.arguments),
        "columns" => list(|row| &row.columns),
        "example" => text(|row| &row.example),
        other => no_column(other),
    }
}

/// The function `ingestion_model` in SQL.
pub(super) static INGESTION_MODEL: Definition = Definition {
    signature: Signature {
        name: "ingestion_model",
        arguments: &[signature::required(
            "link_gb_per_s",
            ArgumentKind::Number,
            "speed of the link that stored bytes come over, in GB/s",
        )],
        columns: &[
            signature::text("codec", "codec, with device and text of its measurement"),
            signature::text("regime", "serial, overlapped, to_host, resident or cpu"),
            signature::number("ratio", "text : stored bytes"),
            signature::number("decode_gb_per_s", "text decoded per second; NULL where nothing is decoded").nullable(),
            signature::number("predicted_gb_per_s", "text that arrives per second"),
            signature::text("binding_stage", "the stage that works longest"),
        ],
        summary: "how fast text arrives with each codec, fastest first in each regime",
    },
    bind: |arguments, _| Arc::new(IngestionModel::new(arguments.number("link_gb_per_s").unwrap_or_default())),
};

#[derive(Debug)]
pub(crate) struct IngestionModel {
    link_gb_per_s: f64,
}

impl IngestionModel {
    pub(crate) fn new(link_gb_per_s: f64) -> Self {
        Self { link_gb_per_s }
    }
}

impl TableFunction for IngestionModel {
    fn signature(&self) -> &'static Signature {
        &INGESTION_MODEL.signature
    }

    fn reads(&self) -> Reads {
        Reads::Nothing
    }

    fn prepare(&self, _scan: &ScanSpec) -> Result<Prepared> {
        if self.link_gb_per_s > 0.0 {
            Ok(Prepared::default())
        } else {
            Err(self.signature().error("link_gb_per_s: got 0, expected a number above 0"))
        }
    }

    fn run(self: Arc<Self>, mut run: Execution) -> BoxFuture<'static, Result<()>> {
        async move {
            let calibration = Calibration::load().map_err(datafusion_error)?;
            let mut rows = rows(self.link_gb_per_s, &calibration).map_err(datafusion_error)?;
            let stores = run.plan.devices.stores().all();
            add_observed(&mut rows, &stores, &calibration).map_err(datafusion_error)?;
            run.send_async(rows.len(), |name| rate_column(name, &rows)).await.map(drop)
        }
        .boxed()
    }
}

fn rate_column(name: &str, rows: &[Row]) -> Result<ArrayRef> {
    let text =
        |of: fn(&Row) -> String| -> ArrayRef { Arc::new(StringViewArray::from_iter_values(rows.iter().map(of))) };
    let number = |of: fn(&Row) -> Option<f64>| -> ArrayRef { Arc::new(Float64Array::from_iter(rows.iter().map(of))) };
    Ok(match name {
        "codec" => text(|row| row.codec.clone()),
        "regime" => text(|row| row.regime.to_string()),
        "ratio" => number(|row| Some(row.ratio)),
        "decode_gb_per_s" => number(|row| row.decode_gb_per_s),
        "predicted_gb_per_s" => number(|row| Some(row.predicted_gb_per_s)),
        "binding_stage" => text(|row| row.binding.to_string()),
        other => return no_column(other),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_function_has_an_example_that_calls_it() {
        let names = signatures().map(|signature| signature.name.to_owned());
        let scalars = documented_scalars().map(|(answer, about)| Described::scalar(answer, about).name);
        for name in names.chain(scalars) {
            let example = example_of(&name);
            assert!(example.starts_with("SELECT") && !example.contains('\n'), "{name}: {example}");
        }
    }
}
