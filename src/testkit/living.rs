//! A model of a living corpus: plain texts, and steps that change them.

use std::time::Duration;

use tadoc::build::{CorpusBuilder, IngestOptions};
use tadoc::edits::{Edit, EditBatch};
use tadoc::format::{OpenLimits, SegmentLayout};
use tadoc::text::TokenizerProfile;
use tadoc::{Error, Result};
use tadoc_store::{Change, CommitKind, LivingStore, RetryPolicy, Storage, StoreOptions, Version, WrittenPart};

use crate::random::Random;

/// Texts by document id, with `None` for dropped documents.
pub type Texts = Vec<Option<Vec<u8>>>;

/// Returns store options that retry at once.
pub fn eager() -> StoreOptions {
    let retry = RetryPolicy { max_attempts: 60, first_wait: Duration::ZERO, max_wait: Duration::ZERO };
    StoreOptions { retry, ..StoreOptions::default() }
}

/// A commit or a clean-up.
#[derive(Debug, Clone)]
pub enum Step {
    Append(Vec<&'static str>),
    Edit(Vec<Edit>),
    Optimize,
    CleanUp,
}

pub fn add(text: &str) -> Edit {
    Edit::AddDocument { path: "added".into(), content: text.into() }
}

pub fn append(doc_id: u64, text: &str) -> Edit {
    Edit::AppendText { doc_id, text: text.into() }
}

pub fn batch(edits: Vec<Edit>) -> EditBatch {
    EditBatch { edits, ..EditBatch::default() }
}

/// Returns steps of every kind, including steps that build on each other.
pub fn workload() -> Vec<Step> {
    let insert = Edit::InsertText { doc_id: 0, offset_bytes: 1, text: b"\xff mid".to_vec() };
    let delete = Edit::DeleteText { doc_id: 1, offset_bytes: 0, len_bytes: 3 };
    let replace = Edit::ReplaceDocument { doc_id: 2, content: b"anew ".repeat(60) };
    vec![
        Step::Append(vec!["to be or not to be", "that is the question"]),
        Step::Edit(vec![append(0, ", that"), insert, add("a third")]),
        Step::Append(vec!["a fourth, in a file"]),
        Step::Edit(vec![delete, replace, Edit::DropDocument { doc_id: 3 }]),
        Step::Optimize,
        Step::Edit(vec![add("a fifth"), append(4, " grows")]),
        Step::CleanUp,
        Step::Edit(vec![append(1, " last")]),
    ]
}

/// Returns step `i` of a writer that runs beside readers.
pub fn round(i: usize) -> Step {
    match i % 4 {
        0 => Step::Append(vec!["one", "two words"]),
        1 => Step::Edit(vec![append(0, " more"), add("three")]),
        2 => Step::Edit(vec![append(2, "!")]),
        _ => Step::Optimize,
    }
}

/// Applies `edits` in sequence. Added documents get the ids from `next_id` on.
fn apply(texts: &mut Texts, edits: &[Edit], mut next_id: usize) {
    for edit in edits {
        let at = edit.doc_id().map_or(next_id, |id| id as usize);
        if let Edit::AddDocument { content, .. } = edit {
            texts[at] = Some(content.clone());
            next_id += 1;
            continue;
        }
        let Some(text) = &mut texts[at] else { panic!("{edit:?} of a dropped document") };
        match edit {
            Edit::InsertText { offset_bytes, text: added, .. } => {
                drop(text.splice(*offset_bytes as usize..*offset_bytes as usize, added.clone()));
            }
            Edit::AppendText { text: added, .. } => text.extend(added),
            Edit::DeleteText { offset_bytes, len_bytes, .. } => {
                drop(text.drain(*offset_bytes as usize..(offset_bytes + len_bytes) as usize));
            }
            Edit::ReplaceDocument { content, .. } => text.clone_from(content),
            Edit::DropDocument { .. } => texts[at] = None,
            Edit::AddDocument { .. } | Edit::SetColumns { .. } => {}
        }
    }
}

/// Returns the texts after `step`.
pub fn after(texts: &Texts, step: &Step) -> Texts {
    let mut texts = texts.clone();
    match step {
        Step::Append(added) => texts.extend(added.iter().map(|text| Some(text.as_bytes().into()))),
        Step::Edit(edits) => {
            let next_id = texts.len();
            let num_added = edits.iter().filter(|edit| edit.doc_id().is_none()).count();
            texts.resize(next_id + num_added, None);
            apply(&mut texts, edits, next_id);
        }
        Step::Optimize | Step::CleanUp => {}
    }
    texts
}

/// Reads the texts of `version`.
pub async fn texts(store: &LivingStore, version: &Version) -> Result<Texts> {
    let corpus = store.corpus(version, &OpenLimits::default()).await?;
    let text = |doc_id| {
        if corpus.is_dropped(doc_id) { Ok(None) } else { corpus.extract(doc_id, 0, u64::MAX).map(Some) }
    };
    (0..corpus.num_docs()).map(text).collect()
}

/// Returns one of the layouts of segments, at random but always the same for a `seed`.
pub fn any_layout(seed: u64) -> SegmentLayout {
    let indexed = SegmentLayout::Indexed { max_lists_percent: 10 };
    *Random(seed).pick(&[SegmentLayout::Small, SegmentLayout::INDEXED, indexed])
}

/// Writes a segment file of `texts`, in any layout. Dropped documents become empty ones.
pub async fn write_texts(store: &LivingStore, texts: Texts) -> Result<WrittenPart> {
    let num_bytes = texts.iter().flatten().map(Vec::len).sum::<usize>();
    let layout = any_layout((num_bytes + texts.len()) as u64);
    store
        .write_part(move |out| {
            let options = IngestOptions { layout, ..IngestOptions::default() };
            let mut builder = CorpusBuilder::new(out, options)?;
            for (id, text) in texts.iter().enumerate() {
                builder.push_document(&format!("{id}.txt"), text.as_deref().unwrap_or_default())?;
            }
            Ok(builder.finish(None)?.1.footer)
        })
        .await
}

/// Builds the change that compresses `version` anew.
pub async fn optimization(store: &LivingStore, version: &Version) -> Result<Change> {
    let texts = texts(store, version).await?;
    let mut dropped: Vec<std::ops::Range<u64>> = Vec::new();
    for id in (0..texts.len()).filter(|&id| texts[id].is_none()).map(|id| id as u64) {
        match dropped.last_mut() {
            Some(range) if range.end == id => range.end += 1,
            _ => dropped.push(id..id + 1),
        }
    }
    let written = write_texts(store, texts).await?;
    Ok(Change::optimize(version, vec![written.part], dropped))
}

pub async fn run(store: &LivingStore, step: &Step) -> Result<()> {
    let base = store.latest().await?;
    let change = match step {
        Step::Append(added) => {
            let texts = added.iter().map(|text| Some(text.as_bytes().to_vec())).collect();
            Change::append(CommitKind::Append, &[write_texts(store, texts).await?])
        }
        Step::Edit(edits) => Change::edit(CommitKind::Edit, &batch(edits.clone())),
        Step::Optimize => optimization(store, &base).await?,
        Step::CleanUp => return store.clean_up(Duration::ZERO, false).await.map(drop),
    };
    store.commit(&base, &change).await.map(drop)
}

/// The versions that were acknowledged, and the one whose commit may or may not have happened.
#[derive(Debug, Default)]
pub struct Ledger {
    /// Texts of versions 1, 2, ….
    pub acknowledged: Vec<Texts>,
    /// Texts of the next version, if its commit failed.
    pub in_flight: Option<Texts>,
    /// True if a clean-up has begun.
    pub has_cleaned: bool,
}

impl Ledger {
    /// Creates a corpus in `storage` and runs `steps` up to the first failure.
    pub async fn write(&mut self, storage: impl Storage, steps: &[Step]) -> Result<()> {
        self.in_flight = Some(Texts::new());
        let store = LivingStore::create(storage, TokenizerProfile::default(), eager()).await?;
        self.acknowledged.extend(self.in_flight.take());
        for step in steps {
            self.has_cleaned |= matches!(step, Step::CleanUp);
            let texts = after(&self.acknowledged[self.acknowledged.len() - 1], step);
            let is_commit = !matches!(step, Step::CleanUp);
            self.in_flight = is_commit.then_some(texts);
            run(&store, step).await?;
            self.acknowledged.extend(self.in_flight.take());
        }
        Ok(())
    }

    fn texts_of(&self, number: u64) -> Option<&Texts> {
        self.acknowledged.iter().chain(&self.in_flight).nth(number as usize - 1)
    }

    /// Checks that `storage` holds the acknowledged versions, or one commit more, and that further
    /// steps succeed.
    pub async fn check(&self, storage: impl Storage + Clone) -> Result<()> {
        let store = match LivingStore::open(storage.clone(), eager()).await {
            Err(Error::Missing { .. }) if self.acknowledged.is_empty() => {
                LivingStore::create(storage, TokenizerProfile::default(), eager()).await?
            }
            store => store?,
        };
        let latest = store.latest().await?;
        let num_acknowledged = self.acknowledged.len() as u64;
        let is_next = latest.number == num_acknowledged + 1 && self.in_flight.is_some();
        assert!(is_next || latest.number == num_acknowledged, "{latest:?}");
        let mut numbers = Vec::new();
        for version in store.history().await? {
            match store.version(version.number).await {
                Err(Error::Missing { .. }) if self.has_cleaned => continue,
                version => {
                    let version = version?;
                    let found = texts(&store, &version).await?;
                    assert_eq!(Some(&found), self.texts_of(version.number), "{version:?}");
                    numbers.push(version.number);
                }
            }
        }
        if self.has_cleaned {
            assert_eq!(numbers.last(), Some(&latest.number))
        } else {
            assert!(numbers.iter().copied().eq(1..=latest.number), "{numbers:?}")
        }
        // Further steps must succeed.
        let expected = after(self.texts_of(latest.number).unwrap(), &Step::Edit(vec![add("on")]));
        run(&store, &Step::Edit(vec![add("on")])).await?;
        run(&store, &Step::Optimize).await?;
        run(&store, &Step::CleanUp).await?;
        let latest = store.latest().await?;
        assert_eq!(texts(&store, &latest).await?, expected);
        assert_eq!(store.history().await?.len(), 1);
        Ok(())
    }
}
