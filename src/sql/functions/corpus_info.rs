//! `corpus_info(corpus)`: one row per fact, from the footers alone.
//!
//! `reuse` is G/N, elements of the grammar over tokens of the text: the honest measure of how much
//! a query saves. Words and separators are counted per segment and summed, so that a word of two
//! segments counts twice in `dictionary_words`.

use std::sync::Arc;

use datafusion::arrow::array::{ArrayRef, StringViewArray};
use datafusion::common::stats::Precision;
use datafusion::error::Result;
use futures::FutureExt;
use futures::future::BoxFuture;

use super::TableFunction;
use crate::corpus::{FileFooter, SectionKind, SegmentMeta};
use crate::sql::scan::{Run, Scan};
use crate::sql::signature::{Signature, entry};

#[derive(Debug)]
pub(crate) struct CorpusInfo;

impl TableFunction for CorpusInfo {
    fn signature(&self) -> &'static Signature {
        const { entry("corpus_info") }
    }

    fn num_rows(&self, scan: &Scan) -> Precision<usize> {
        Precision::Exact(facts(scan).len())
    }

    fn run(self: Arc<Self>, mut run: Run) -> BoxFuture<'static, Result<()>> {
        async move {
            let facts = facts(&run.scan);
            let scan = Arc::clone(&run.scan);
            let column = |&i: &usize| -> ArrayRef {
                Arc::new(match i {
                    0 => StringViewArray::from_iter_values(facts.iter().map(|(name, _)| name)),
                    _ => StringViewArray::from_iter_values(facts.iter().map(|(_, value)| value)),
                })
            };
            let columns = scan.projection.iter().map(column).collect();
            run.output.send_columns_async(columns, facts.len()).await?;
            Ok(())
        }
        .boxed()
    }
}

fn facts(scan: &Scan) -> Vec<(&'static str, String)> {
    let footers: Vec<&FileFooter> = scan.corpora().iter().map(|open| &*open.footer).collect();
    let file_bytes: u64 = scan.corpora().iter().map(|open| open.file.meta.size).sum();
    let segments = || footers.iter().flat_map(|footer| &footer.segments);
    let sum = |of: fn(&SegmentMeta) -> u64| segments().map(of).fold(0, u64::saturating_add);
    let text_bytes = sum(|s| s.len_bytes);
    let (tokens, elements) = (sum(|s| s.num_tokens), sum(|s| s.num_elements));
    vec![
        ("files", footers.len().to_string()),
        ("segments", segments().count().to_string()),
        ("documents", scan.num_docs().to_string()),
        ("text_bytes", text_bytes.to_string()),
        ("file_bytes", file_bytes.to_string()),
        ("ratio", ratio(text_bytes, file_bytes)),
        ("tokens", tokens.to_string()),
        ("words", sum(|s| s.num_word_tokens).to_string()),
        ("dictionary_words", sum(|s| u64::from(s.num_words)).to_string()),
        ("dictionary_separators", sum(|s| u64::from(s.num_separators)).to_string()),
        ("rules", sum(|s| u64::from(s.num_rules)).to_string()),
        ("elements", elements.to_string()),
        ("reuse", ratio(elements, tokens)),
        ("dictionary_section_bytes", stored(&footers, SectionKind::Dictionary).to_string()),
        ("grammar_section_bytes", stored(&footers, SectionKind::Grammar).to_string()),
        ("documents_section_bytes", stored(&footers, SectionKind::Documents).to_string()),
        ("columns_section_bytes", stored(&footers, SectionKind::Columns).to_string()),
        ("tokenizer", distinct(&footers, |f| f.profile.to_string())),
        ("unicode_version", distinct(&footers, unicode_version)),
        ("builder", distinct(&footers, |f| f.builder.clone())),
        ("writer", distinct(&footers, |f| f.writer.clone())),
    ]
}

fn unicode_version(footer: &FileFooter) -> String {
    let (major, minor, update) = footer.unicode_version;
    format!("{major}.{minor}.{update}")
}

fn stored(footers: &[&FileFooter], kind: SectionKind) -> u64 {
    let of_segments = footers.iter().flat_map(|f| &f.segments).flat_map(|s| &s.sections);
    let all = of_segments.chain(footers.iter().flat_map(|f| &f.columns));
    all.filter(|section| section.kind == kind).map(|section| section.len).sum()
}

/// The values of all files, each once, in order of appearance.
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
