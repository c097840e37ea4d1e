//! Templates of the lines of a corpus: lines that differ only in numbers, names and the like are counted together.
//!
//! ```text
//! lines                                      templates
//! [ 0.1] usb 1-1: new device found           [<*>] usb <*>: new device found          2 lines
//! [ 7.5] usb 2-1: new device found
//! [ 8.0] user alice logged in from 10.0.0.1  [<*>] user <*> logged in from <*>        2 lines
//! [ 9.2] user bob logged in from 10.0.0.7
//! ```
//!
//! Variable parts are masked by fixed rules first. Masked lines with enough equal tokens are then joined
//! (`merging`). Both steps are functions of the set of lines and of their counts: the order of documents,
//! segments and threads has no influence.
//!
//! ```text
//! grammar ──lines──▶ lines ──mask──▶ distinct masked lines ──merging──▶ templates
//!            once a rule, with its occurrences    │                        │
//!                      line_graph ◀── numbers ────┴── documents ◀──────────┘
//! ```
//!
//! A line ends at `\n`, or at the end of its document. Lines of white space alone are left out.
//! Bytes that are not UTF-8 are read as U+FFFD. Of a line, 64 KiB are looked at. Text that has
//! `<*>` itself is not told from a variable part.
//!
//! Cost: O(G), the bytes of the lines that no rule has made before, and for each document the rules with lines below
//! it. Memory is that of the distinct masked lines, with an example of each, and up to 40 bytes for each element of the
//! grammar. A corpus that needs more than the caller allows is rejected.

mod lines;
mod merging;

use std::cmp::Reverse;
use std::ops::{ControlFlow, Range};

use rayon::prelude::*;

use crate::error::{Canceller, Error, Result};
use crate::segment::Corpus;

use super::DocSelection;
use lines::{
    Breaks, LineGraph, LineReader, cut_documents, for_each_line, for_each_line_across, for_each_line_of_tokens,
};
use merging::{Budget, Facts, MaskedLines, Masker, Rules, merge};

/// Least number of positions of a part of the rules that one task reads.
const PART_POSITIONS: usize = 1 << 16;
/// Parts of the rules for each thread.
const PARTS_PER_THREAD: usize = 4;
/// Bytes of a token of a masked line while lines are merged.
const TOKEN_BYTES: u64 = 64;
/// Levels of Drain's tree that are not first words: root, number of tokens, templates.
const OTHER_LEVELS: usize = 3;

/// Visitor of documents: id, and templates with the number of their lines.
type VisitDocument<'v> = dyn FnMut(u64, &[(u32, u64)]) -> ControlFlow<()> + 'v;

/// Rules by which lines become templates.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct TemplateOptions {
    /// Share of the tokens of a line that a template has in common with it, 0 to 1. With 1 only
    /// masked lines that are equal are one template.
    pub similarity: f64,
    /// Depth of Drain's tree, 3 or more: lines of one template are equal up to their
    /// (`depth` - 3)-th word.
    pub depth: usize,
}

impl Default for TemplateOptions {
    /// Returns the settings that Drain has by default.
    fn default() -> Self {
        Self { similarity: 0.4, depth: 4 }
    }
}

impl TemplateOptions {
    /// Checks the ranges.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`].
    pub fn check(&self) -> Result<()> {
        let fault =
            |name, got: String, allowed: &str| Err(Error::InvalidArgument { name, got, allowed: allowed.to_owned() });
        if !(0.0..=1.0).contains(&self.similarity) {
            return fault("similarity", self.similarity.to_string(), "0 to 1");
        }
        if self.depth < OTHER_LEVELS {
            return fault("depth", self.depth.to_string(), "3 or more");
        }
        Ok(())
    }

    /// Returns the template of each of `lines`, masked lines that differ with their counts. A
    /// masked line is a template of a corpus with a similarity of 1.
    ///
    /// ```
    /// use tadoc::analytics::TemplateOptions;
    ///
    /// # fn main() -> tadoc::Result<()> {
    /// let lines = [("user bob left at <*>", 1), ("user amy left at <*>", 3)];
    /// let templates = TemplateOptions::default().join(&lines, &|| false)?;
    /// assert_eq!(templates, ["user <*> left at <*>"; 2]);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// The errors of [`check`](Self::check), and [`Error::Cancelled`].
    pub fn join(&self, lines: &[(&str, u64)], is_cancelled: &(dyn Fn() -> bool + Sync)) -> Result<Vec<String>> {
        self.check()?;
        let mut interrupt = Canceller::new(is_cancelled).interrupt();
        let (template_of, texts) = merge(lines, self.rules(), &mut interrupt)?;
        Ok(template_of.iter().map(|&template| texts[template as usize].clone()).collect())
    }

    fn rules(&self) -> Rules {
        let num_first_words = self.depth.saturating_sub(OTHER_LEVELS);
        Rules { similarity: self.similarity, num_first_words }
    }
}

/// A template of lines.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogTemplate {
    /// Its tokens, joined by one blank; `<*>` stands for variable parts.
    pub text: String,
    /// Number of its lines.
    pub count: u64,
    /// Number of documents with such a line.
    pub doc_count: u64,
    /// First document with such a line.
    pub first_doc_id: u64,
    /// Last document with such a line.
    pub last_doc_id: u64,
    /// The least of its lines in byte order.
    pub example: String,
}

/// Templates of a corpus as rows. Those with most lines come first, then they are in byte order.
#[derive(Debug)]
pub struct LogTemplates {
    rows: Vec<LogTemplate>,
    documents: DocumentLines,
    memory_bytes: u64,
}

impl LogTemplates {
    /// Finds the templates of all lines of `corpus`. `is_cancelled` is asked now and then, by any
    /// thread.
    ///
    /// ```
    /// use tadoc::Corpus;
    /// use tadoc::analytics::{LogTemplates, TemplateOptions};
    /// use tadoc::build::{CorpusBuilder, IngestOptions};
    /// use tadoc::format::OpenLimits;
    ///
    /// # fn main() -> tadoc::Result<()> {
    /// let mut builder = CorpusBuilder::new(Vec::new(), IngestOptions::default())?;
    /// builder.push_document("boot.log", b"[0.1] usb 1: new device\n[0.7] usb 2: new device\n")?;
    /// let (file, _report) = builder.finish(None)?;
    /// let (_footer, corpus) = Corpus::from_bytes("logs.tadoc", &file, &OpenLimits::default())?;
    ///
    /// let options = TemplateOptions::default();
    /// let templates = LogTemplates::new(&corpus, &options, 1 << 30, &|| false)?;
    /// let template = &templates.rows()[0];
    /// assert_eq!((template.text.as_str(), template.count), ("[<*>] usb <*>: new device", 2));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] for options out of range, [`Error::Capacity`] if the work needs
    /// more than `max_memory_bytes`, and [`Error::Cancelled`].
    pub fn new(
        corpus: &Corpus,
        options: &TemplateOptions,
        max_memory_bytes: u64,
        is_cancelled: &(dyn Fn() -> bool + Sync),
    ) -> Result<Self> {
        options.check()?;
        let canceller = Canceller::new(is_cancelled);
        let budget = Budget::new(max_memory_bytes);
        let (mut documents, masked) = read_lines(corpus, &budget, canceller)?;
        let (forms, facts) = masked.into_parts();
        let lines: Vec<(&str, u64)> = forms.iter().zip(&facts).map(|(form, facts)| (&**form, facts.count)).collect();
        let num_tokens: usize = forms.iter().map(|form| 1 + form.matches(' ').count()).sum();
        budget.take(TOKEN_BYTES * num_tokens as u64)?;
        let (template_of, texts) = merge(&lines, options.rules(), &mut canceller.interrupt())?;
        let (mut rows, row_of) = counted_rows(texts, &facts, &template_of);
        documents.row_of = row_of;
        documents.count(&mut rows, canceller)?;
        Ok(Self { rows, documents, memory_bytes: budget.used_bytes() })
    }

    /// Returns the templates.
    pub fn rows(&self) -> &[LogTemplate] {
        &self.rows
    }

    /// Calls `visit` with each of `docs` that has lines, until it breaks: with its id, and with the
    /// rows of its templates and their numbers of lines in the document, by ascending row.
    pub fn for_each_document(&self, docs: &DocSelection, visit: &mut VisitDocument<'_>) {
        let mut reader = LineReader::default();
        let mut counts = vec![0u64; self.rows.len()];
        let mut rows: Vec<(u32, u64)> = Vec::new();
        for doc_id in docs.iter() {
            rows.clear();
            self.documents.for_each_line(&mut reader, doc_id, &mut |row, count| {
                let sum = &mut counts[row as usize];
                if *sum == 0 && count > 0 {
                    rows.push((row, 0));
                }
                *sum = sum.saturating_add(count);
            });
            rows.sort_unstable();
            for (row, count) in &mut rows {
                *count = std::mem::take(&mut counts[*row as usize]);
            }
            if !rows.is_empty() && visit(doc_id, &rows).is_break() {
                return;
            }
        }
    }

    /// Returns the most bytes of memory that the rows and the search for them took.
    pub fn memory_bytes(&self) -> usize {
        self.memory_bytes as usize
    }
}

/// Lines of all documents, as numbers of masked lines, and their templates.
#[derive(Debug)]
struct DocumentLines {
    corpus: Corpus,
    /// Graph of each segment.
    graphs: Vec<LineGraph>,
    /// Documents and masked lines across borders of segments, ascending by document.
    across: Vec<(u64, u32)>,
    /// Row of each masked line.
    row_of: Vec<u32>,
}

impl DocumentLines {
    /// Calls `visit` with the row of each line of document `doc_id` and a number of its
    /// occurrences.
    fn for_each_line(&self, reader: &mut LineReader, doc_id: u64, visit: &mut dyn FnMut(u32, u64)) {
        let first = self.across.partition_point(|&(of, _)| of < doc_id);
        let across = self.across[first..].iter().take_while(|&&(of, _)| of == doc_id);
        across.for_each(|&(_, line)| visit(self.row_of[line as usize], 1));
        for (segment_idx, doc) in self.corpus.doc_parts(doc_id) {
            reader.for_each_line(&self.graphs[segment_idx], doc, &mut |line, count| {
                visit(self.row_of[line as usize], count);
            });
        }
    }

    /// Counts the documents of all `rows`.
    fn count(&self, rows: &mut [LogTemplate], canceller: Canceller<'_>) -> Result<()> {
        let mut reader = LineReader::default();
        let mut interrupt = canceller.interrupt();
        for doc_id in 0..self.corpus.num_docs() {
            interrupt.check()?;
            self.for_each_line(&mut reader, doc_id, &mut |row, _| {
                let row = &mut rows[row as usize];
                if row.doc_count == 0 {
                    row.first_doc_id = doc_id;
                } else if row.last_doc_id == doc_id {
                    return;
                }
                (row.doc_count, row.last_doc_id) = (row.doc_count + 1, doc_id);
            });
        }
        Ok(())
    }
}

/// Masks the lines of all segments. Rows are not known yet.
fn read_lines(corpus: &Corpus, budget: &Budget, canceller: Canceller<'_>) -> Result<(DocumentLines, MaskedLines)> {
    let segments = corpus.segments();
    let break_bytes: u64 = segments.iter().map(|segment| Breaks::memory_bytes(segment)).sum();
    budget.take(break_bytes)?;
    let breaks: Vec<Breaks<'_>> = segments.par_iter().map(|segment| Breaks::new(segment)).collect();
    let mut masked = MaskedLines::default();
    let mut graphs = Vec::with_capacity(segments.len());
    for (segment_idx, (segment, breaks)) in segments.iter().zip(&breaks).enumerate() {
        let grammar = segment.dag.grammar();
        budget.take(8 * (breaks.num_breaks() + grammar.num_docs()) as u64)?;
        let mut from_tokens = Lines::new(budget);
        for_each_line_of_tokens(breaks, &mut |token, count, line| from_tokens.add(token, count, line))?;
        let from_tokens = from_tokens.numbered_in(&mut masked);
        let parts: Vec<Lines<'_>> = parts_for(grammar.symbols.len())
            .into_par_iter()
            .map(|part| {
                let mut lines = Lines::new(budget);
                let mut interrupt = canceller.interrupt();
                let visit = &mut |at, count, line: &[u8]| lines.add(at, count, line);
                for_each_line(corpus, segment_idx, breaks, part, &mut interrupt, visit)?;
                Ok(lines)
            })
            .collect::<Result<_>>()?;
        let parts = parts.into_iter().map(|part| part.numbered_in(&mut masked));
        let by_position: Vec<(u32, u32)> = parts.collect::<Vec<_>>().concat();
        let num_lines = from_tokens.len() + by_position.len();
        budget.take(LineGraph::memory_bytes(segment, num_lines, breaks.num_breaks()))?;
        graphs.push(LineGraph::new(segment, &from_tokens, &by_position));
    }
    let mut across = Vec::new();
    let mut lines = Lines::new(budget);
    for doc_id in cut_documents(corpus) {
        let first = lines.numbers.len();
        for_each_line_across(corpus, &breaks, doc_id, &mut |line| lines.add(0, 1, line))?;
        across.extend(std::iter::repeat_n(doc_id, lines.numbers.len() - first));
    }
    let numbers = lines.numbered_in(&mut masked).into_iter().map(|(_, line)| line);
    let across = across.into_iter().zip(numbers).collect();
    Ok((DocumentLines { corpus: corpus.clone(), graphs, across, row_of: Vec::new() }, masked))
}

/// Cuts positions into parts for parallel tasks.
fn parts_for(num_positions: usize) -> Vec<Range<usize>> {
    let num_parts = PARTS_PER_THREAD * rayon::current_num_threads();
    let len = num_positions.div_ceil(num_parts).max(PART_POSITIONS);
    (0..num_positions).step_by(len).map(|start| start..num_positions.min(start + len)).collect()
}

/// Masked lines of one task, and where they are.
struct Lines<'b> {
    budget: &'b Budget,
    masker: Masker,
    /// Masked form of the last line.
    form: String,
    masked: MaskedLines,
    /// Position or token of each line that is not blank, and the number of its form.
    numbers: Vec<(u32, u32)>,
}

impl<'b> Lines<'b> {
    fn new(budget: &'b Budget) -> Self {
        let (masker, form, masked, numbers) = Default::default();
        Self { budget, masker, form, masked, numbers }
    }

    fn add(&mut self, at: u32, count: u64, line: &[u8]) -> Result<()> {
        let line = String::from_utf8_lossy(line);
        self.masker.mask(&line, &mut self.form);
        if !self.form.is_empty() {
            let number = self.masked.add(&self.form, &line, count, self.budget)?;
            self.numbers.push((at, number));
        }
        Ok(())
    }

    /// Moves the lines to `all`, and returns where they are with their numbers there.
    fn numbered_in(self, all: &mut MaskedLines) -> Vec<(u32, u32)> {
        let renumbered = all.absorb(self.masked, self.budget);
        let numbers = self.numbers.into_iter();
        numbers.map(|(at, number)| (at, renumbered[number as usize])).collect()
    }
}

/// Returns the templates in order of rows, with the lines of their masked forms, and the row of
/// each form. Documents are not counted yet.
fn counted_rows(texts: Vec<String>, facts: &[Facts], template_of: &[u32]) -> (Vec<LogTemplate>, Vec<u32>) {
    let mut joined: Vec<Option<Facts>> = vec![None; texts.len()];
    for (&template, facts) in template_of.iter().zip(facts) {
        match &mut joined[template as usize] {
            Some(known) => known.join(facts.count, &facts.example),
            empty => *empty = Some(facts.clone()),
        }
    }
    let templates = texts.into_iter().zip(joined).enumerate();
    let mut rows: Vec<(usize, LogTemplate)> = templates
        .filter_map(|(template, (text, facts))| {
            let Facts { count, example } = facts?;
            let doc_count = 0;
            let first_doc_id = 0;
            let last_doc_id = 0;
            let row = LogTemplate { text, count, doc_count, first_doc_id, last_doc_id, example };
            Some((template, row))
        })
        .collect();
    rows.sort_unstable_by(|(_, a), (_, b)| (Reverse(a.count), &a.text).cmp(&(Reverse(b.count), &b.text)));
    let mut row_of_template = vec![0; rows.len()];
    for (row, (template, _)) in rows.iter().enumerate() {
        row_of_template[*template] = row as u32;
    }
    let row_of = template_of.iter().map(|&template| row_of_template[template as usize]).collect();
    (rows.into_iter().map(|(_, row)| row).collect(), row_of)
}
