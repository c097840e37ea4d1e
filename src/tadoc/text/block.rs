//! Tokenization of a block of documents, on all threads.
//!
//! ```text
//! text     |--doc 0--|doc 1|------------- doc 2 -------------|doc 3|
//! pieces   |----------------------|-------------|------------------|   cut at document ends, cuts
//! ids      [local ids, table 0  ] [ table 1   ] [ table 0         ]    one table per thread
//! merge    sorted tokens of all tables = dictionary, and one id map per table
//! tokens   [final ids                                             ]
//! ```
//!
//! Pieces are ranges of the text, queued for the threads. A thread takes the next piece when it is done with one. A
//! piece ends at the end of a document, or inside a document at a place where the cut does not change the tokens
//! ([`next_cut`]). So the result depends neither on the number of threads nor on their timing. A document without such
//! a place (no white space behind a word) is one piece.
//!
//! Time: O(bytes) + O(V log V). Memory beyond text and result: for each distinct token of each thread 24 bytes of entry
//! and 16 to 32 bytes of slots, later 16 bytes for sorting and 4 bytes of id map. Local ids are freed piece by piece
//! while the final ids are written. A document of 257 MB of prose needs at most 470 MB with one thread and 495 MB with
//! two; 257 MB of this is text and 217 MB tokens. Blocks are shorter than 4 GiB, so that 32 bits hold every position,
//! id and dictionary offset.
//!
//! Measured (release, input in memory, 2 shared cores of a Xeon, best of 15, wall clock, MB/s): 31 MB of Gutenberg
//! prose 354 with one thread, 703 with two; 56 MB of logs (3.3 bytes per token) 330 and 596. Of one thread's time on
//! prose, token search takes 25 %, hash look-ups 63 %, the sorted dictionary 5 % (15 % at 8 MB), final ids 9 %. Ids of
//! repeated text are copied ([`repeats`](super::interner)): versioned text, of which two thirds are repeated, takes a
//! fifth less time.

use std::ops::Range;
use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Mutex, PoisonError};

use rayon::prelude::*;

use super::interner::{Entry, Interner, Repeats};
use super::tokenizer::{for_each_stored, next_cut};
use super::{Dictionary, TokenizerProfile};
use crate::error::{Error, Result};

/// Number of pieces for each thread, so that the threads finish at about the same time.
const PIECES_PER_THREAD: usize = 8;
/// Least size of a piece that is worth a table of its own.
const MIN_PIECE_BYTES: usize = 256 << 10;
/// Number of text bytes for which one id is reserved. Prose has one token in 4.7 bytes, logs one in
/// 3.3.
const RESERVE_BYTES_PER_TOKEN: usize = 4;

/// A block of documents as token ids.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TokenizedBlock {
    /// All distinct tokens of the block.
    pub dictionary: Dictionary,
    /// Ids of all documents, one document after the other, without implied blanks.
    pub tokens: Vec<u32>,
    /// Start of each document in `tokens`, and the end of the last document as an additional entry.
    pub doc_offsets: Vec<usize>,
    /// Number of tokens that are words.
    pub num_word_tokens: u64,
}

/// Tokenizes the documents in `text`, each of which ends at its entry of `doc_ends`.
///
/// It runs on the current rayon pool. The result does not depend on the number of threads.
///
/// # Errors
///
/// [`Error::InvalidArgument`] if `text` has 4 GiB or more, or if `doc_ends` is not ascending or
/// does not end at the end of `text`.
pub fn tokenize_block(profile: TokenizerProfile, text: &[u8], doc_ends: &[usize]) -> Result<TokenizedBlock> {
    check_block(text, doc_ends)?;
    let starts = piece_starts(profile, text, doc_ends, piece_bytes(text));
    tokenize_pieces(profile, text, doc_ends, &starts)
}

fn tokenize_pieces(
    profile: TokenizerProfile,
    text: &[u8],
    doc_ends: &[usize],
    starts: &[usize],
) -> Result<TokenizedBlock> {
    let mut doc_offsets = vec![0; doc_ends.len() + 1];
    let pieces = cut_pieces(text, doc_ends, starts, &mut doc_offsets[1..]);
    let (tables, interned) = intern_pieces(profile, text, pieces);
    let (dictionary, id_maps) = merge_tables(text, tables)?;
    let (tokens, num_word_tokens) = join_pieces(interned, &id_maps, doc_ends.len(), dictionary.num_words());
    Ok(TokenizedBlock { dictionary, tokens, doc_offsets, num_word_tokens })
}

fn check_block(text: &[u8], doc_ends: &[usize]) -> Result<()> {
    if u32::try_from(text.len()).is_err() {
        return Err(Error::InvalidArgument {
            name: "block",
            got: format!("{} bytes", text.len()),
            allowed: format!("blocks of at most {} bytes", u32::MAX),
        });
    }
    let last = doc_ends.last().copied().unwrap_or(0);
    if last != text.len() || !doc_ends.is_sorted() {
        return Err(Error::InvalidArgument {
            name: "doc_ends",
            got: format!("{} ends, the last {last}", doc_ends.len()),
            allowed: format!("ends that never fall, the last {}", text.len()),
        });
    }
    Ok(())
}

/// Returns the desired size of a piece. With one thread there is one piece, which saves the copy in
/// [`join_pieces`].
fn piece_bytes(text: &[u8]) -> usize {
    match rayon::current_num_threads() {
        1 => text.len(),
        num_threads => (text.len() / (num_threads * PIECES_PER_THREAD)).max(MIN_PIECE_BYTES),
    }
}

/// A range of the text that is tokenized separately.
struct TextRange<'a> {
    piece_idx: usize,
    start: usize,
    end: usize,
    /// True if the piece starts behind a word of the same document.
    after_word: bool,
    /// Ends of the documents that end in this piece.
    doc_ends: &'a [usize],
    /// Output slots for the number of tokens up to each of these ends.
    doc_offsets: &'a mut [usize],
}

/// Returns the starts of the pieces, each about `piece_bytes` behind the previous one.
fn piece_starts(profile: TokenizerProfile, text: &[u8], doc_ends: &[usize], piece_bytes: usize) -> Vec<usize> {
    let mut starts = vec![0];
    let mut wanted = piece_bytes;
    while wanted < text.len() {
        let doc_idx = doc_ends.partition_point(|&end| end < wanted);
        let doc_start = doc_idx.checked_sub(1).map_or(0, |before| doc_ends[before]);
        let doc = &text[doc_start..doc_ends[doc_idx]];
        let start = doc_start + next_cut(profile, doc, wanted - doc_start).unwrap_or(doc.len());
        if start < text.len() {
            starts.push(start);
        }
        wanted = start + piece_bytes;
    }
    starts
}

fn cut_pieces<'a>(
    text: &[u8],
    mut doc_ends: &'a [usize],
    starts: &[usize],
    mut doc_offsets: &'a mut [usize],
) -> Vec<TextRange<'a>> {
    let ends = starts[1..].iter().copied().chain([text.len()]);
    let mut is_doc_start = true;
    starts
        .iter()
        .zip(ends)
        .enumerate()
        .map(|(piece_idx, (&start, end))| {
            let num_ended = doc_ends.partition_point(|&doc_end| doc_end <= end);
            let (ended, later) = doc_ends.split_at(num_ended);
            let (offsets, later_offsets) = std::mem::take(&mut doc_offsets).split_at_mut(num_ended);
            let after_word = !is_doc_start;
            is_doc_start = ended.last() == Some(&end);
            (doc_ends, doc_offsets) = (later, later_offsets);
            TextRange { piece_idx, start, end, after_word, doc_ends: ended, doc_offsets: offsets }
        })
        .collect()
}

/// A piece as ids of the table of one thread.
struct Interned<'a> {
    piece_idx: usize,
    table_idx: usize,
    ids: Vec<u32>,
    /// Number of tokens from the start of the piece to the end of each document.
    doc_offsets: &'a mut [usize],
}

/// Returns the tokens of each table by local id, and the pieces in text order.
fn intern_pieces<'a>(
    profile: TokenizerProfile,
    text: &[u8],
    pieces: Vec<TextRange<'a>>,
) -> (Vec<Vec<Entry>>, Vec<Interned<'a>>) {
    let num_tables = pieces.len().min(rayon::current_num_threads());
    let queue = Mutex::new(pieces.into_iter());
    let next_piece = || queue.lock().unwrap_or_else(PoisonError::into_inner).next();
    let work = |table_idx| {
        let mut interner = Interner::new(text);
        let mut interned = Vec::new();
        while let Some(piece) = next_piece() {
            interned.push(intern_piece(profile, text, piece, table_idx, &mut interner));
        }
        (interner.into_entries(), interned)
    };
    let done: Vec<_> = (0..num_tables).into_par_iter().with_max_len(1).map(work).collect();
    let (tables, interned): (Vec<_>, Vec<_>) = done.into_iter().unzip();
    let mut interned: Vec<_> = interned.into_iter().flatten().collect();
    interned.sort_unstable_by_key(|piece| piece.piece_idx);
    (tables, interned)
}

fn intern_piece<'a>(
    profile: TokenizerProfile,
    text: &[u8],
    piece: TextRange<'a>,
    table_idx: usize,
    interner: &mut Interner<'_>,
) -> Interned<'a> {
    let mut ids = Vec::with_capacity((piece.end - piece.start) / RESERVE_BYTES_PER_TOKEN);
    let mut repeats = Repeats::new(text, piece.end - piece.start);
    let mut start = piece.start;
    let mut after_word = piece.after_word;
    let mut passage = |end: usize| {
        let range = start..end;
        intern_range(profile, text, range, after_word, interner, &mut repeats, &mut ids);
        (start, after_word) = (end, false);
        ids.len() + interner.num_pending()
    };
    for (&doc_end, doc_offset) in piece.doc_ends.iter().zip(&mut *piece.doc_offsets) {
        *doc_offset = passage(doc_end);
    }
    passage(piece.end);
    interner.flush(&mut ids);
    Interned { piece_idx: piece.piece_idx, table_idx, ids, doc_offsets: piece.doc_offsets }
}

/// Appends the ids of a range within one document. Ids of repeated passages are copied.
fn intern_range(
    profile: TokenizerProfile,
    text: &[u8],
    range: Range<usize>,
    mut after_word: bool,
    interner: &mut Interner<'_>,
    repeats: &mut Repeats<'_>,
    ids: &mut Vec<u32>,
) {
    let mut start = range.start;
    while repeats.is_worthwhile() {
        if after_word && let Some((len_bytes, again)) = repeats.find(start, range.end) {
            interner.flush(ids);
            ids.extend_from_within(again);
            start += len_bytes;
            continue;
        }
        let Some(end) = repeats.passage_end(start, range.end) else { break };
        let first_id = ids.len() + interner.num_pending();
        for_each_stored(profile, &text[..end], start, after_word, |span| interner.push(span, ids));
        if after_word {
            repeats.insert(start..end, first_id..ids.len() + interner.num_pending());
        }
        (start, after_word) = (end, true);
    }
    for_each_stored(profile, &text[..range.end], start, after_word, |span| {
        interner.push(span, ids);
    });
}

/// A token of one table, with the prefix that usually decides its order.
#[derive(Clone, Copy)]
struct Candidate {
    prefix: u64,
    table_idx: u32,
    id: u32,
}

impl Candidate {
    fn entry<'a>(&self, tables: &'a [Vec<Entry>]) -> &'a Entry {
        &tables[self.table_idx as usize][self.id as usize]
    }
}

/// Maps from the ids of each table to dictionary ids. Threads write disjoint entries of them.
type IdMaps = Vec<Vec<AtomicU32>>;

/// Builds the dictionary of all tables, and for each table the map from its ids to dictionary ids.
fn merge_tables(text: &[u8], tables: Vec<Vec<Entry>>) -> Result<(Dictionary, IdMaps)> {
    let for_table = |table: &Vec<Entry>| table.iter().map(|_| AtomicU32::new(0)).collect();
    let id_maps: IdMaps = tables.par_iter().map(for_table).collect();
    let mut arena = Vec::new();
    let mut offsets = vec![0];
    let mut num_words = 0;
    for is_word in [true, false] {
        let candidates = sorted_candidates(text, &tables, is_word);
        let parts: Vec<Distinct> = (0..candidates.len().div_ceil(PART_LEN))
            .into_par_iter()
            .map(|part| Distinct::new(text, &tables, &candidates, part * PART_LEN))
            .collect();
        let mut first_ids = Vec::with_capacity(parts.len());
        for part in &parts {
            first_ids.push(offsets.len() as u32 - 1);
            let start = arena.len() as u32;
            arena.extend_from_slice(&part.arena);
            offsets.extend(part.ends.iter().map(|end| start + end));
        }
        let parts = candidates.par_chunks(PART_LEN).zip(parts).zip(first_ids);
        parts.for_each(|((candidates, part), first_id)| part.number(candidates, first_id, &id_maps));
        if is_word {
            num_words = offsets.len() as u32 - 1;
        }
    }
    arena.shrink_to_fit();
    offsets.shrink_to_fit();
    Ok((Dictionary::from_parts(num_words, offsets, arena.into())?, id_maps))
}

/// Number of sorted candidates that a thread merges at a time.
const PART_LEN: usize = 1 << 14;

/// Distinct tokens of a part of the sorted candidates, without the last token of the part before.
struct Distinct {
    arena: Vec<u8>,
    /// End of each token in `arena`.
    ends: Vec<u32>,
    /// For each candidate of the part, true if it differs from the one before it.
    is_first: Vec<bool>,
}

impl Distinct {
    /// Finds the tokens of the part of `candidates` that begins at `start`.
    fn new(text: &[u8], tables: &[Vec<Entry>], candidates: &[Candidate], start: usize) -> Self {
        let part = &candidates[start..candidates.len().min(start + PART_LEN)];
        let mut last = start.checked_sub(1).map(|before| candidates[before].entry(tables));
        let mut distinct =
            Self { arena: Vec::new(), ends: Vec::with_capacity(part.len()), is_first: Vec::with_capacity(part.len()) };
        for candidate in part {
            let entry = candidate.entry(tables);
            let is_first = last.is_none_or(|last| last.compare(entry, text).is_ne());
            if is_first {
                entry.append_to(&mut distinct.arena, text);
                distinct.ends.push(distinct.arena.len() as u32);
                last = Some(entry);
            }
            distinct.is_first.push(is_first);
        }
        distinct
    }

    /// Writes the ids of the `candidates` of this part, whose first new token has `first_id`.
    fn number(&self, candidates: &[Candidate], first_id: u32, id_maps: &IdMaps) {
        let mut next_id = first_id;
        for (candidate, &is_first) in candidates.iter().zip(&self.is_first) {
            next_id += u32::from(is_first);
            let id = &id_maps[candidate.table_idx as usize][candidate.id as usize];
            id.store(next_id - 1, Relaxed);
        }
    }
}

/// Returns the words, or the separators, of all tables in byte order.
fn sorted_candidates(text: &[u8], tables: &[Vec<Entry>], is_word: bool) -> Vec<Candidate> {
    let for_table = |(table_idx, table): (usize, &Vec<Entry>)| {
        let for_class = |(id, entry): (usize, &Entry)| {
            (entry.is_word() == is_word).then(|| Candidate {
                prefix: entry.order_prefix(),
                table_idx: table_idx as u32,
                id: id as u32,
            })
        };
        table.iter().enumerate().filter_map(for_class).collect::<Vec<_>>()
    };
    let mut candidates: Vec<Candidate> = tables.par_iter().enumerate().flat_map_iter(for_table).collect();
    candidates.par_sort_unstable_by(|a, b| {
        a.prefix.cmp(&b.prefix).then_with(|| a.entry(tables).compare(b.entry(tables), text))
    });
    candidates
}

/// Returns the final ids of all pieces and the number of words among them. Makes document offsets
/// absolute. There is room for one id more for each document, because the grammar has a barrier behind each.
fn join_pieces(
    mut pieces: Vec<Interned<'_>>,
    id_maps: &[Vec<AtomicU32>],
    num_docs: usize,
    num_words: u32,
) -> (Vec<u32>, u64) {
    if let [piece] = pieces.as_mut_slice() {
        let mut tokens = std::mem::take(&mut piece.ids);
        let id_map = &id_maps[piece.table_idx];
        tokens.iter_mut().for_each(|token| *token = id_map[*token as usize].load(Relaxed));
        tokens.shrink_to(tokens.len() + num_docs);
        let num_word_tokens = count_words(&tokens, num_words);
        return (tokens, num_word_tokens);
    }
    let num_tokens = pieces.iter().map(|piece| piece.ids.len()).sum();
    let mut tokens = vec![0; num_tokens + num_docs];
    tokens.truncate(num_tokens);
    let mut rest = tokens.as_mut_slice();
    let mut num_before = 0;
    let mut jobs = Vec::with_capacity(pieces.len());
    for piece in pieces {
        let (target, behind) = rest.split_at_mut(piece.ids.len());
        jobs.push((num_before, piece, target));
        num_before += jobs[jobs.len() - 1].2.len();
        rest = behind;
    }
    let join = |(num_before, piece, target): (usize, Interned<'_>, &mut [u32])| {
        piece.doc_offsets.iter_mut().for_each(|offset| *offset += num_before);
        let id_map = &id_maps[piece.table_idx];
        for (token, id) in target.iter_mut().zip(piece.ids) {
            *token = id_map[id as usize].load(Relaxed);
        }
        count_words(target, num_words)
    };
    let num_word_tokens = jobs.into_par_iter().with_max_len(1).map(join).sum();
    (tokens, num_word_tokens)
}

fn count_words(tokens: &[u32], num_words: u32) -> u64 {
    tokens.iter().map(|token| u64::from(*token < num_words)).sum()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::super::tokenizer::tests::{any_profile, fast_tokens, odd_text};
    use super::*;

    /// Decodes a block as the reader does: with a blank between two neighbouring words of a
    /// document.
    fn decode(block: &TokenizedBlock) -> Vec<Vec<u8>> {
        let decode_doc = |tokens: &[u32]| {
            let mut text = Vec::new();
            let mut after_word = false;
            for &token in tokens {
                let is_word = block.dictionary.is_word(token);
                text.extend_from_slice(if is_word && after_word { b" " } else { b"" });
                text.extend_from_slice(block.dictionary.get(token));
                after_word = is_word;
            }
            text
        };
        block.doc_offsets.windows(2).map(|ends| decode_doc(&block.tokens[ends[0]..ends[1]])).collect()
    }

    /// Builds the block by its definition: all tokens of each document, then the spaceless model.
    fn slow_block(profile: TokenizerProfile, docs: &[&[u8]]) -> TokenizedBlock {
        let mut stored: Vec<(bool, Vec<u8>)> = Vec::new();
        let mut doc_offsets = vec![0];
        for doc in docs {
            let tokens = fast_tokens(profile, doc);
            for (idx, (bytes, is_word)) in tokens.iter().enumerate() {
                let after_word = idx > 0 && tokens[idx - 1].1;
                let before_word = tokens.get(idx + 1).is_some_and(|next| next.1);
                if *is_word && after_word {
                    stored.push((true, Vec::new()));
                }
                if *is_word || bytes != b" " || !after_word || !before_word {
                    stored.push((!is_word, bytes.clone()));
                }
            }
            doc_offsets.push(stored.len());
        }
        let distinct: Vec<_> = stored.iter().cloned().collect::<BTreeSet<_>>().into_iter().collect();
        let mut bytes = Vec::new();
        let mut offsets = vec![0];
        for (_, token) in &distinct {
            bytes.extend_from_slice(token);
            offsets.push(bytes.len() as u32);
        }
        let num_words = distinct.partition_point(|(is_separator, _)| !is_separator) as u32;
        let dictionary = Dictionary::from_parts(num_words, offsets, bytes.into()).unwrap();
        let id = |token| distinct.binary_search(token).unwrap() as u32;
        TokenizedBlock {
            dictionary,
            tokens: stored.iter().map(id).collect(),
            doc_offsets,
            num_word_tokens: stored.iter().filter(|(is_separator, _)| !is_separator).count() as u64,
        }
    }

    fn ends_from(docs: &[&[u8]]) -> Vec<usize> {
        docs.iter()
            .scan(0, |end, doc| {
                *end += doc.len();
                Some(*end)
            })
            .collect()
    }

    fn with_threads<T: Send>(num_threads: usize, work: impl FnOnce() -> T + Send) -> T {
        rayon::ThreadPoolBuilder::new().num_threads(num_threads).build().unwrap().install(work)
    }

    /// Works like [`tokenize_block`], with a given size of pieces.
    fn tokenize_in_pieces(
        profile: TokenizerProfile,
        text: &[u8],
        doc_ends: &[usize],
        piece_bytes: usize,
    ) -> TokenizedBlock {
        let starts = piece_starts(profile, text, doc_ends, piece_bytes);
        tokenize_pieces(profile, text, doc_ends, &starts).unwrap()
    }

    /// Cuts a text into documents at arbitrary places, including inside characters.
    fn docs_from(text: &[u8], cuts: &[prop::sample::Index]) -> Vec<usize> {
        let mut ends: Vec<_> = cuts.iter().map(|cut| cut.index(text.len() + 1)).collect();
        ends.push(text.len());
        ends.sort_unstable();
        ends
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(600))]

        #[test]
        fn any_documents_decode_and_agree_with_the_definition(
            text in prop_oneof![odd_text(), prop::collection::vec(any::<u8>(), 0..200)],
            cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..6),
            piece_bytes in 1_usize..200,
            profile in any_profile(),
        ) {
            let doc_ends = docs_from(&text, &cuts);
            let starts = [0].iter().chain(&doc_ends);
            let docs: Vec<&[u8]> =
                starts.zip(&doc_ends).map(|(&start, &end)| &text[start..end]).collect();
            let block = tokenize_block(profile, &text, &doc_ends).unwrap();
            prop_assert_eq!(decode(&block), &docs[..]);
            prop_assert_eq!(&block, &slow_block(profile, &docs));
            prop_assert_eq!(block, tokenize_in_pieces(profile, &text, &doc_ends, piece_bytes));
        }
    }

    proptest! {
        #[test]
        fn repeated_passages_agree_with_the_definition(
            passages in prop::collection::vec(odd_text(), 1..4),
            order in prop::collection::vec((any::<prop::sample::Index>(), 0_usize..3), 1..60),
            cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..4),
            piece_bytes in 500_usize..9_000,
            profile in any_profile(),
        ) {
            let mut text = Vec::new();
            for (passage, num_words) in order {
                text.extend_from_slice(&passages[passage.index(passages.len())]);
                text.extend_from_slice(" a line of words that is long enough".repeat(3).as_bytes());
                text.extend_from_slice(" x y".repeat(num_words).as_bytes());
                text.push(b'\n');
            }
            let doc_ends = docs_from(&text, &cuts);
            let starts = [0].iter().chain(&doc_ends);
            let docs: Vec<&[u8]> =
                starts.zip(&doc_ends).map(|(&start, &end)| &text[start..end]).collect();
            let block = with_threads(1, || tokenize_block(profile, &text, &doc_ends).unwrap());
            prop_assert_eq!(&block, &slow_block(profile, &docs));
            prop_assert_eq!(block, tokenize_in_pieces(profile, &text, &doc_ends, piece_bytes));
        }
    }

    #[test]
    fn any_number_of_threads_gives_the_same_block() {
        let line = "The same words, the same \u{e9}tudes 日本 in_every line;\tand\r\n x  y. No 12345\n";
        let numbered: Vec<u8> = (0..40_000).flat_map(|idx| format!("{idx} {line}").into_bytes()).collect();
        let one_doc = vec![numbered.len()];
        let many_docs: Vec<_> = (1..=numbered.len()).filter(|end| end % 1_000 == 0).collect();
        let many_docs = [many_docs, one_doc.clone()].concat();
        for profile in TokenizerProfile::ALL {
            for doc_ends in [&one_doc, &many_docs] {
                let tokenize = || tokenize_block(profile, &numbered, doc_ends).unwrap();
                let block = with_threads(1, tokenize);
                assert_eq!(decode(&block).concat(), numbered);
                for num_threads in [2, 3, 7] {
                    assert!(with_threads(num_threads, tokenize) == block, "{num_threads} threads");
                }
            }
        }
    }

    #[test]
    fn a_million_empty_documents() {
        let block = tokenize_block(TokenizerProfile::Word, b"", &vec![0; 1_000_000]).unwrap();
        assert_eq!(block.doc_offsets, vec![0; 1_000_001]);
        assert!(block.tokens.is_empty() && block.dictionary.is_empty());
        let no_docs = tokenize_block(TokenizerProfile::Word, b"", &[]).unwrap();
        assert_eq!(no_docs.doc_offsets, [0]);
        let mut doc_ends = vec![0; 1_000_000];
        doc_ends.extend(vec![3; 1_000_000]);
        let block = tokenize_block(TokenizerProfile::Word, b"a b", &doc_ends).unwrap();
        assert_eq!(block.tokens, [0, 1]);
        assert_eq!(block.doc_offsets[1_000_000..1_000_002], [0, 2]);
    }

    #[test]
    fn a_mebibyte_without_a_blank() {
        for unit in ["q", "日本", "\u{0}", "é-"] {
            let text = unit.repeat((1 << 20) / unit.len()).into_bytes();
            for profile in TokenizerProfile::ALL {
                let tokenize = || tokenize_block(profile, &text, &[text.len()]).unwrap();
                let block = with_threads(3, tokenize);
                assert_eq!(decode(&block).concat(), text, "{unit} {profile}");
                assert_eq!(block, slow_block(profile, &[&text]));
            }
        }
    }

    #[test]
    fn blanks_between_words_are_implied_but_not_across_documents() {
        let docs: [&[u8]; 4] = [b"a b ", b" c", b"a, b  c", b" "];
        let text = docs.concat();
        let block = tokenize_block(TokenizerProfile::Word, &text, &ends_from(&docs)).unwrap();
        assert_eq!(block.dictionary.bytes().as_ref(), b"abc   , ".as_ref());
        assert_eq!(block.dictionary.num_words(), 3);
        assert_eq!(block.tokens, [0, 1, 3, 3, 2, 0, 5, 1, 4, 2, 3]);
        assert_eq!(block.doc_offsets, [0, 3, 5, 10, 11]);
        assert_eq!(block.num_word_tokens, 6);
        assert_eq!(decode(&block), docs);
    }

    #[test]
    fn touching_words_have_an_empty_separator() {
        let text = "日本 a".as_bytes();
        let block = tokenize_block(TokenizerProfile::Uax29, text, &[text.len()]).unwrap();
        assert_eq!(block.dictionary.separator_id(b""), Some(3));
        assert_eq!(block.tokens, [1, 3, 2, 0]);
    }

    #[test]
    fn refuses_ends_that_are_not() {
        for doc_ends in [&[][..], &[2], &[4], &[2, 1, 3], &[3, 2]] {
            let result = tokenize_block(TokenizerProfile::Word, b"a b", doc_ends);
            assert!(matches!(result, Err(Error::InvalidArgument { name: "doc_ends", .. })));
        }
    }
}
