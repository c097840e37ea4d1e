//! Encoder of word lists.
//!
//! Codes are made for all lists, and then the lists are cut down to the budget: words of few documents
//! get lists of regions, those of the fewest documents first, and the longest lists are left out.
//!
//! ```text
//! words of      1 document    2 and 3    4 to 7    …    others
//! in full       counts of classes        …              …           ┐ sums of these are the counts of
//! by regions    counts of classes        …                          ┘ every choice, and its bits
//! ```
//!
//! Entries are looked at once for the counts and once to be written, and once more if lists are left out. It needs
//! O(entries) time.

use crate::format::cursor::push_varint;
use crate::format::entropy::prefix_code::{BitWriter, Class, Code, classes_by_len};

use super::{
    ALL_EQUAL, ALL_ONES, CountContext, DF, EQUAL_COUNT, FIRST_MEAN, FORM, GROUP_WORDS, GapContext, MIN_SKIPPED_DOCS,
    NUM_CLASSES, NUM_CONTEXTS, NUM_MEANS, REGIONS, Regions, USED_BYTES, WIDTH_BITS, WordDocuments, class_of,
    lists_others, regions_with,
};

/// Classes of the numbers of documents for which words may have lists of regions: up to 63 documents.
const MAX_NEAR_CLASS: u8 = 6;
/// Greatest part of the documents of a segment that such a word has. More are soon all regions.
const MAX_NEAR_PART: u32 = 8;

/// Returns the bytes of the directory and of the lists of `documents`, which take at most `max_bytes`:
/// words of few documents have lists of `regions`, and the longest lists are left out, as far as it
/// needs.
pub(in crate::format) fn encode(documents: &WordDocuments, regions: &Regions, max_bytes: usize) -> (Vec<u8>, Vec<u8>) {
    let classes = classes_by_len();
    let max_bits = 8 * max_bytes as u64;
    let region_of_doc = regions.by_doc();
    let mut lists = Lists { documents, num_regions: regions.len(), region_of_doc: &region_of_doc, near_class: 0 };
    let choices = Choices::new(&lists);
    let mut used = choices.counts(0);
    let mut codes = codes_for(&classes, &used);
    if used.num_bits(&codes) > max_bits {
        lists.near_class = choices.near_class_within(&classes, max_bits);
        used = choices.counts(lists.near_class);
        codes = codes_for(&classes, &used);
    }
    let is_listed = if used.num_bits(&codes) > max_bits {
        words_within(&lists.bits(&codes), max_bits)
    } else {
        vec![true; documents.num_words() as usize]
    };
    let mut directory = Vec::new();
    regions.push(&mut directory);
    push_codes(&used.with_unlisted(), &codes, &mut directory);
    let mut bytes = Vec::new();
    for first in (0..documents.num_words()).step_by(GROUP_WORDS as usize) {
        let mut writer = Writer { codes: &codes, classes: &classes, bits: BitWriter::default() };
        for word in first..documents.num_words().min(first + GROUP_WORDS) {
            if is_listed[word as usize] {
                lists.write_word(&mut writer, word);
            } else {
                writer.put(DF, 0);
            }
        }
        let group = writer.bits.finish();
        push_varint(&mut directory, group.len() as u64);
        directory.extend(crc32c::crc32c(&group).to_le_bytes());
        bytes.extend(group);
    }
    (directory, bytes)
}

fn codes_for(classes: &[Class], counts: &ClassCounts) -> Vec<Code> {
    counts.with_unlisted().iter().map(|counts| Code::for_counts(classes, counts)).collect()
}

/// Appends the used contexts and their codes to `directory`.
fn push_codes(counts: &[[u64; NUM_CLASSES]], codes: &[Code], directory: &mut Vec<u8>) {
    let used_at = directory.len();
    directory.resize(used_at + USED_BYTES, 0);
    for (context, counts) in counts.iter().enumerate() {
        if counts.iter().any(|&count| count > 0) {
            directory[used_at + context / 8] |= 1 << (context % 8);
            codes[context].push_lens(directory);
        }
    }
}

/// Returns true for each word that stays listed if the longest lists are left out until the others have
/// at most `max_bits`.
fn words_within(bits: &[u64], max_bits: u64) -> Vec<bool> {
    let mut num_bits: u64 = bits.iter().sum();
    let mut is_listed = vec![true; bits.len()];
    if num_bits <= max_bits {
        return is_listed;
    }
    let mut longest: Vec<usize> = (0..bits.len()).collect();
    longest.sort_by_key(|&word| std::cmp::Reverse(bits[word]));
    for word in longest {
        if num_bits <= max_bits {
            break;
        }
        num_bits -= bits[word];
        is_listed[word] = false;
    }
    is_listed
}

/// Receiver of numbers in their contexts.
trait Sink {
    fn put(&mut self, context: usize, number: u32);
}

/// Counts the classes of the numbers of each context.
#[derive(Clone)]
struct ClassCounts(Vec<[u64; NUM_CLASSES]>);

impl ClassCounts {
    fn new() -> Self {
        Self(vec![[0; NUM_CLASSES]; NUM_CONTEXTS])
    }

    fn add(&mut self, other: &Self) {
        for (counts, others) in self.0.iter_mut().zip(&other.0) {
            counts.iter_mut().zip(others).for_each(|(count, other)| *count += other);
        }
    }

    /// Returns the bits of the counted numbers.
    fn num_bits(&self, codes: &[Code]) -> u64 {
        let context_bits = |(counts, code): (&[u64; NUM_CLASSES], &Code)| {
            let used = (0u8..).zip(counts).filter(|(_, count)| **count > 0);
            used.map(|(class, count)| count * code.num_bits(class)).sum::<u64>()
        };
        self.0.iter().zip(codes).map(context_bits).sum()
    }

    /// Returns the counts with a word that is not listed, which has the number 0.
    fn with_unlisted(&self) -> Vec<[u64; NUM_CLASSES]> {
        let mut counts = self.0.clone();
        counts[DF][0] += 1;
        counts
    }
}

impl Sink for ClassCounts {
    #[inline]
    fn put(&mut self, context: usize, number: u32) {
        self.0[context][usize::from(class_of(number))] += 1;
    }
}

/// Number of classes of words that may have lists of regions.
const NUM_NEAR_CLASSES: usize = MAX_NEAR_CLASS as usize + 1;

/// Counts of the numbers of all lists, for each choice of words with lists of regions.
struct Choices {
    /// Of words that may have lists of regions, by class: their lists in full.
    full: [ClassCounts; NUM_NEAR_CLASSES],
    /// Their lists of regions.
    near: [ClassCounts; NUM_NEAR_CLASSES],
    /// Of the other words.
    others: ClassCounts,
}

impl Choices {
    fn new(lists: &Lists<'_>) -> Self {
        let none = || std::array::from_fn(|_| ClassCounts::new());
        let mut choices = Self { full: none(), near: none(), others: ClassCounts::new() };
        let near = Lists { near_class: MAX_NEAR_CLASS, ..*lists };
        for word in 0..lists.documents.num_words() {
            let may_be_near = near.is_near(word);
            let class = usize::from(lists.class_for(word));
            let full = if may_be_near { &mut choices.full[class] } else { &mut choices.others };
            lists.put_word(full, word);
            if may_be_near {
                near.put_word(&mut choices.near[class], word);
            }
        }
        choices
    }

    /// Returns the counts if words up to `near_class` have lists of regions.
    fn counts(&self, near_class: u8) -> ClassCounts {
        let near = &self.near[..=usize::from(near_class)];
        let full = &self.full[usize::from(near_class) + 1..];
        let mut sum = self.others.clone();
        near.iter().chain(full).for_each(|counts| sum.add(counts));
        sum
    }

    /// Returns the least class of words whose lists must be of regions so that all have at most
    /// `max_bits`, or the greatest class that is allowed.
    fn near_class_within(&self, classes: &[Class], max_bits: u64) -> u8 {
        let all_full = self.counts(0);
        let all_near = self.counts(MAX_NEAR_CLASS);
        let full_codes = codes_for(classes, &all_full);
        let near_codes = codes_for(classes, &all_near);
        let mut left = i128::from(all_full.num_bits(&full_codes));
        let mut class = 0;
        while class < MAX_NEAR_CLASS && left > i128::from(max_bits) {
            class += 1;
            let full = &self.full[usize::from(class)];
            let near = &self.near[usize::from(class)];
            left -= i128::from(full.num_bits(&full_codes)) - i128::from(near.num_bits(&near_codes));
        }
        class
    }
}

/// Adds up the bits of numbers.
struct BitCount<'a> {
    codes: &'a [Code],
    num_bits: u64,
}

impl Sink for BitCount<'_> {
    fn put(&mut self, context: usize, number: u32) {
        self.num_bits += self.codes[context].num_bits(class_of(number));
    }
}

/// Writes numbers.
struct Writer<'a> {
    codes: &'a [Code],
    classes: &'a [Class],
    bits: BitWriter,
}

impl Sink for Writer<'_> {
    #[inline]
    fn put(&mut self, context: usize, number: u32) {
        let class_idx = class_of(number);
        let place = number - self.classes[usize::from(class_idx)].start;
        self.codes[context].push(&mut self.bits, class_idx, place);
    }
}

/// Lists that are written, each in its form.
struct Lists<'a> {
    documents: &'a WordDocuments,
    num_regions: u32,
    region_of_doc: &'a [u32],
    /// Words whose number of documents has this class, or a smaller one, have lists of regions.
    near_class: u8,
}

impl Lists<'_> {
    /// Returns the bits of the list of each word.
    fn bits(&self, codes: &[Code]) -> Vec<u64> {
        let word_bits = |word: u32| {
            let mut count = BitCount { codes, num_bits: 0 };
            self.put_word(&mut count, word);
            count.num_bits
        };
        (0..self.documents.num_words()).map(word_bits).collect()
    }

    fn class_for(&self, word: u32) -> u8 {
        class_of(self.documents.list(word).0.len() as u32)
    }

    fn is_near(&self, word: u32) -> bool {
        let num_docs = self.documents.list(word).0.len() as u32;
        self.class_for(word) <= self.near_class && num_docs <= self.documents.num_docs / MAX_NEAR_PART
    }

    /// Writes the list of `word`.
    fn write_word(&self, writer: &mut Writer<'_>, word: u32) {
        self.put_head(writer, word);
        if !self.is_near(word) && self.documents.list(word).0.len() as u32 >= MIN_SKIPPED_DOCS {
            let mut body = BitCount { codes: writer.codes, num_bits: 0 };
            self.put_body(&mut body, word);
            let width = (u64::BITS - body.num_bits.leading_zeros()) as u8;
            writer.bits.push(width.into(), WIDTH_BITS);
            writer.bits.push(body.num_bits, width);
        }
        self.put_body(writer, word);
    }

    fn put_word(&self, sink: &mut impl Sink, word: u32) {
        self.put_head(sink, word);
        self.put_body(sink, word);
    }

    fn put_head(&self, sink: &mut impl Sink, word: u32) {
        let (docs, counts) = self.documents.list(word);
        if self.is_near(word) {
            sink.put(DF, regions_with(self.region_of_doc, docs).count() as u32);
            sink.put(FORM, REGIONS);
        } else {
            sink.put(DF, docs.len() as u32);
            sink.put(FORM, form_of(counts));
        }
    }

    fn put_body(&self, sink: &mut impl Sink, word: u32) {
        let (docs, counts) = self.documents.list(word);
        let num_docs = self.documents.num_docs;
        if self.is_near(word) {
            let num_listed = regions_with(self.region_of_doc, docs).count() as u32;
            let context = GapContext::for_regions(num_listed, self.num_regions);
            put_ascending(sink, regions_with(self.region_of_doc, docs), context);
            return;
        }
        let num_listed = docs.len() as u32;
        if lists_others(num_listed, num_docs) {
            let mut present = docs.iter().copied().peekable();
            let others = (0..num_docs).filter(|doc| present.next_if_eq(doc).is_none());
            put_ascending(sink, others, GapContext::for_docs(num_docs - num_listed, num_docs));
        } else {
            put_ascending(sink, docs.iter().copied(), GapContext::for_docs(num_listed, num_docs));
        }
        put_counts(sink, counts);
    }
}

fn put_ascending(sink: &mut impl Sink, numbers: impl Iterator<Item = u32>, mut context: GapContext) {
    let mut next = 0;
    for number in numbers {
        sink.put(context.index(), number - next);
        context.follow(number - next);
        next = number + 1;
    }
}

fn put_counts(sink: &mut impl Sink, counts: &[u32]) {
    match form_of(counts) {
        ALL_ONES => {}
        ALL_EQUAL => sink.put(EQUAL_COUNT, counts.first().copied().unwrap_or(1)),
        form => {
            let mut context = CountContext::new(form);
            for &count in counts {
                sink.put(context.index(), count - 1);
                context.follow(count - 1);
            }
        }
    }
}

/// Returns the form of the counts of a word.
fn form_of(counts: &[u32]) -> u32 {
    let first = counts.first().copied().unwrap_or(1);
    if counts.iter().all(|&count| count == first) {
        return if first == 1 { ALL_ONES } else { ALL_EQUAL };
    }
    let sum: u64 = counts.iter().map(|&count| u64::from(count)).sum();
    // Twice the mean, so that means between 1 and 2 have forms of their own.
    let mean = (2 * sum / counts.len() as u64).ilog2();
    FIRST_MEAN + (mean - 1).min(NUM_MEANS as u32 - 1)
}
