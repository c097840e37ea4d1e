//! `ranked_inverted_index(corpus [, n] [, fold])`: the documents of each sequence of n words, those that
//! repeat it most first.

use std::sync::Arc;

use datafusion::error::Result;
use futures::FutureExt;
use futures::future::BoxFuture;

use super::TableFunction;
use super::inverted_index::shown_choice;
use super::sequence_rows::{
    COUNT, check_at_least, for_each_counted, length, task_memory_bytes, texts,
};
use super::strings::{fold_of, int64, shown_fold};
use crate::analytics::{self, Fold, TraversalTask};
use crate::sql::corpora::LoadedCorpus;
use crate::sql::failure::datafusion_error;
use crate::sql::scan::{Run, Scan};
use crate::sql::signature::{Signature, entry};

const SEQUENCE: usize = 0;
const DOC_ID: usize = 1;
const COUNT_POSITION: usize = 2;

#[derive(Debug)]
pub(crate) struct RankedInvertedIndex {
    num_words: usize,
    fold: Fold,
}

impl RankedInvertedIndex {
    pub(crate) fn new(num_words: Option<u64>, is_folded: bool) -> Self {
        Self { num_words: length(num_words, 3), fold: fold_of(is_folded) }
    }
}

impl TableFunction for RankedInvertedIndex {
    fn signature(&self) -> &'static Signature {
        const { entry("ranked_inverted_index") }
    }

    fn arguments(&self) -> Vec<(&'static str, String)> {
        let n = ("n", self.num_words.to_string());
        [n].into_iter().chain(shown_fold(self.fold)).collect()
    }

    fn claims_column(&self, column: &str) -> bool {
        column == COUNT
    }

    fn prepare(&self, _scan: &Scan) -> Result<()> {
        check_at_least(self.signature(), "n", self.num_words, 1)
    }

    fn explain(&self, scan: &Scan) -> Vec<(&'static str, String)> {
        let traversal = shown_choice(scan, TraversalTask::DocumentSequences, self.num_words);
        vec![scan.device(), ("traversal", traversal)]
    }

    fn run(self: Arc<Self>, run: Run) -> BoxFuture<'static, Result<()>> {
        async move {
            let loaded = run.load().await?;
            run.blocking(move |run| send_rows(run, &loaded, &self)).await
        }
        .boxed()
    }
}

fn send_rows(mut run: Run, loaded: &LoadedCorpus, asked: &RankedInvertedIndex) -> Result<()> {
    let &RankedInvertedIndex { num_words, fold } = asked;
    let vocabulary = loaded.vocabulary(fold)?;
    let memory_bytes = task_memory_bytes(&run);
    let traversal = run.scan.options.traversal;
    let index = analytics::RankedInvertedIndex::with_vocabulary(
        vocabulary,
        num_words,
        traversal,
        memory_bytes,
    )
    .map_err(datafusion_error)?;
    // For each row its sequence, too.
    let of_rows = || (0..index.len()).flat_map(|row| index.places_of(row).map(move |_| row as u32));
    let reservation = run.reservation("RankedInvertedIndex");
    reservation.try_grow(index.memory_bytes() + 4 * index.doc_ids().len())?;
    let sequences: Vec<u32> = of_rows().collect();
    let append = |row, text: &mut String| index.sequences().append_text(row, text);
    for_each_counted(&mut run, index.counts(), |run, rows| {
        let sequence = |row: &usize| sequences[*row] as usize;
        let rank = |row: &usize| (row - index.places_of(sequence(row)).start + 1) as u64;
        run.send(rows.len(), |column| match column {
            SEQUENCE => texts(rows.iter().map(sequence), append),
            DOC_ID => int64(rows.iter().map(|&row| index.doc_ids()[row])),
            COUNT_POSITION => int64(rows.iter().map(|&row| index.counts()[row])),
            _ => int64(rows.iter().map(rank)),
        })
    })
}
