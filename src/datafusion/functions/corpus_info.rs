//! The function `corpus_info(corpus)`: one row per fact, from the footers alone.
//!
//! For a living corpus with edits, the facts about texts are those of the version with its edits,
//! for which the corpus is loaded. The facts about files remain those of the files.
//!
//! `reuse` is G/N, the elements of the grammar over the tokens of the text: the honest measure of
//! how much work a query saves. Words and separators are counted per segment and summed, so that a
//! word of two segments counts twice in `dictionary_words`.

use std::sync::Arc;

use datafusion::common::stats::Precision;
use datafusion::error::Result;
use futures::FutureExt;
use futures::future::BoxFuture;

use super::strings::views;
use crate::errors::task_error;
use crate::planning::function::{Definition, Facts, Prepared, TableFunction};
use crate::planning::signature::{self, Signature};
use crate::planning::{Execution, ScanSpec, no_column};
use tadoc::format::{FileFooter, SectionKind, SegmentMeta};
use tadoc::segment::Corpus;

/// The function `corpus_info` in SQL.
pub(super) static DEFINITION: Definition = Definition {
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
        &DEFINITION.signature
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
            let (dag, dictionary) = (&segment.dag, &segment.dictionary);
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
    let of_segments = footers.iter().flat_map(|f| &f.segments).flat_map(|s| &s.sections);
    let all = of_segments.chain(footers.iter().flat_map(|f| f.columns.iter().chain(&f.others)));
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
