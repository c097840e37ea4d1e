//! Model of the answers of a living corpus: plain documents, counted one by one.

use std::collections::BTreeMap;
use std::fmt;

use testkit::random::Random;

/// Path and text of a document. The text has words with blanks between them.
pub type Document = (String, String);

/// Documents of one moment, by id.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Model {
    pub documents: BTreeMap<u64, Document>,
    pub next_id: u64,
}

impl Model {
    pub fn add(&mut self, document: Document) {
        self.documents.insert(self.next_id, document);
        self.next_id += 1;
    }

    pub fn any_id(&self, random: &mut Random) -> u64 {
        let ids: Vec<u64> = self.documents.keys().copied().collect();
        *random.pick(&ids)
    }

    /// Returns the id and the words of each document.
    fn words(&self) -> impl Iterator<Item = (u64, Vec<&str>)> {
        self.documents.iter().map(|(id, (_, text))| (*id, text.split(' ').collect()))
    }
}

/// Returns the text of a new document. All documents share some words, and few share others.
pub fn text(random: &mut Random) -> String {
    let num_words = 1 + random.below(60);
    let word = |_| match random.below(3) {
        0 => "the".to_owned(),
        1 => format!("w{}", random.below(20)),
        _ => format!("caf\u{e9}{}", random.below(300)),
    };
    (0..num_words).map(word).collect::<Vec<_>>().join(" ")
}

/// A question to a corpus.
#[derive(Debug, Clone)]
pub enum Question {
    Documents,
    Totals,
    Like(String),
    WordCount,
    InvertedIndex,
    TermVector,
    Tfidf,
    Pairs,
    Search(String),
    TermCount(String),
}

impl Question {
    pub fn any(random: &mut Random) -> Self {
        let word = format!("w{}", random.below(21));
        match random.below(10) {
            0 => Self::Documents,
            1 => Self::Totals,
            2 => Self::Like(word),
            3 => Self::WordCount,
            4 => Self::InvertedIndex,
            5 => Self::TermVector,
            6 => Self::Tfidf,
            7 => Self::Pairs,
            8 => Self::Search(word),
            _ => Self::TermCount(word),
        }
    }

    /// Returns the statement for the corpus at `place`.
    pub fn sql(&self, place: &str) -> String {
        match self {
            Self::Documents => format!("SELECT doc_id, path, text FROM documents('{place}')"),
            Self::Totals => {
                format!("SELECT count(*), sum(bytes), sum(words) FROM documents('{place}')")
            }
            Self::Like(word) => {
                format!("SELECT doc_id FROM documents('{place}') WHERE text LIKE '%{word}%'")
            }
            Self::WordCount => format!("SELECT word, count FROM word_count('{place}')"),
            Self::InvertedIndex => {
                format!("SELECT word, doc_count, doc_ids[-1] FROM inverted_index('{place}')")
            }
            Self::TermVector => format!("SELECT doc_id, word, count FROM term_vector('{place}')"),
            Self::Tfidf => format!("SELECT doc_id, word, tf, df FROM tfidf('{place}')"),
            Self::Pairs => format!("SELECT sequence, count FROM sequence_count('{place}', n => 2)"),
            Self::Search(word) => {
                format!("SELECT doc_id, byte_offset, word_index FROM search('{place}', '{word}')")
            }
            Self::TermCount(word) => {
                format!("SELECT doc_id, path, count FROM term_count('{place}', '{word}')")
            }
        }
    }

    /// Returns the expected rows for `model`, in the order of their text.
    pub fn answer(&self, model: &Model) -> Vec<String> {
        let mut rows: Vec<String> = match self {
            Self::Documents => {
                let row = |(id, (path, text)): (&u64, &Document)| format!("{id},{path},{text}");
                model.documents.iter().map(row).collect()
            }
            Self::Totals => totals(model),
            Self::Like(word) => {
                let has_it = |(_, (_, text)): &(&u64, &Document)| text.contains(word.as_str());
                model.documents.iter().filter(has_it).map(|(id, _)| id.to_string()).collect()
            }
            Self::WordCount => {
                let words = model.words().flat_map(|(_, words)| words);
                shown(&counted(words))
            }
            Self::InvertedIndex => {
                let index = index(model);
                let row = |(word, ids): (&&str, &Vec<u64>)| format!("{word},{},{}", ids.len(), ids[ids.len() - 1]);
                index.iter().map(row).collect()
            }
            Self::TermVector => {
                let rows = |(id, words): (u64, Vec<&str>)| {
                    let row = |row: String| format!("{id},{row}");
                    shown(&counted(words)).into_iter().map(row).collect::<Vec<_>>()
                };
                model.words().flat_map(rows).collect()
            }
            Self::Tfidf => {
                let index = index(model);
                let rows = |(id, words): (u64, Vec<&str>)| {
                    let row = |(word, tf)| format!("{id},{word},{tf},{}", index[word].len());
                    counted(words).into_iter().map(row).collect::<Vec<_>>()
                };
                model.words().flat_map(rows).collect()
            }
            Self::Pairs => {
                let pairs = model
                    .words()
                    .flat_map(|(_, words)| words.windows(2).map(|pair| pair.join(" ")).collect::<Vec<_>>());
                shown(&counted(pairs))
            }
            Self::Search(word) => model.words().flat_map(|(id, words)| places(id, &words, word)).collect(),
            Self::TermCount(word) => {
                let row = |(id, words): (u64, Vec<&str>)| {
                    let count = words.iter().filter(|found| *found == word).count();
                    (count > 0).then(|| format!("{id},{},{count}", model.documents[&id].0))
                };
                model.words().filter_map(row).collect()
            }
        };
        rows.sort_unstable();
        rows
    }
}

fn totals(model: &Model) -> Vec<String> {
    let num_docs = model.documents.len();
    // A sum over no rows is NULL.
    if num_docs == 0 {
        return vec!["0,,".to_owned()];
    }
    let num_bytes: usize = model.documents.values().map(|(_, text)| text.len()).sum();
    let num_words: usize = model.words().map(|(_, words)| words.len()).sum();
    vec![format!("{num_docs},{num_bytes},{num_words}")]
}

fn counted<T: Ord>(of: impl IntoIterator<Item = T>) -> BTreeMap<T, usize> {
    let mut counts = BTreeMap::new();
    of.into_iter().for_each(|item| *counts.entry(item).or_default() += 1);
    counts
}

fn shown<T: fmt::Display>(counts: &BTreeMap<T, usize>) -> Vec<String> {
    counts.iter().map(|(item, count)| format!("{item},{count}")).collect()
}

/// Returns the ids of the documents that contain each word.
fn index(model: &Model) -> BTreeMap<&str, Vec<u64>> {
    let mut index: BTreeMap<&str, Vec<u64>> = BTreeMap::new();
    for (id, words) in model.words() {
        counted(words).into_keys().for_each(|word| index.entry(word).or_default().push(id));
    }
    index
}

fn places(id: u64, words: &[&str], wanted: &str) -> Vec<String> {
    let mut rows = Vec::new();
    let mut byte_offset = 0;
    for (word_index, word) in words.iter().enumerate() {
        if *word == wanted {
            rows.push(format!("{id},{byte_offset},{word_index}"));
        }
        byte_offset += word.len() + 1;
    }
    rows
}
