//! Lines of a segment, each made once for all occurrences of the rule that holds it.
//!
//! ```text
//! rule R     x y \n z w \n v      a line that begins and ends in R belongs to R: z w
//! rule S     R u R                a line across borders belongs to the rule around them: v u x y
//! document   S                    the first and the last line belong to the document
//! ```
//!
//! An element *breaks* if a line ends in it. Between two elements of a rule that break there is one line: the end of
//! the first, the elements between, and the beginning of the second. It occurs as often as the rule does. A separator
//! with several line ends holds lines, too. So a line that the grammar has in one rule is made once, however often it
//! occurs: at most N words are read, and few where lines repeat.
//!
//! ```text
//! positions  0 … G of all rules, cut into parts, in parallel; a line belongs to the part where it ends
//! ```
//!
//! Documents that are cut between segments have lines across the cut. These are made from their
//! parts, one after another. A line is its first [`MAX_LINE_BYTES`].
//!
//! # Line graph
//!
//! ```text
//! nodes     documents | separators and words | rules
//! lines     numbers of the masked lines that belong to a node
//! inner     elements in it that hold lines themselves or inside
//!
//! document 0 ─▶ R 2 times ─▶ S once in R        lines of S count twice in document 0
//! ```
//!
//! A document visits each rule below it once, parents before children. O(elements that hold lines
//! in the rules that it reaches), whatever their number of occurrences is.

use std::ops::Range;

use memchr::{memchr, memchr_iter, memrchr};

use crate::error::{Interrupt, Result};
use crate::ids::{DocId, RuleId};
use crate::segment::{Corpus, Segment};

/// Greatest number of bytes of a line that are looked at.
pub(super) const MAX_LINE_BYTES: usize = 64 << 10;
/// Position of an element that does not break.
const NONE: u32 = u32::MAX;

/// Visitor of lines: token or position, number of occurrences, bytes.
type VisitLine<'v> = dyn FnMut(u32, u64, &[u8]) -> Result<()> + 'v;

/// Elements of a segment in which a line ends.
#[derive(Debug)]
pub(super) struct Breaks<'c> {
    segment: &'c Segment,
    /// True for each element that breaks.
    do_break: Vec<bool>,
    /// First and last position with an element that breaks, by rule.
    edges: Vec<[u32; 2]>,
    /// Number of positions with an element that breaks.
    num_breaks: usize,
}

impl<'c> Breaks<'c> {
    /// Returns the bytes of memory that the breaks of `segment` take.
    pub fn memory_bytes(segment: &Segment) -> u64 {
        segment.dag.num_elements() as u64 + 8 * segment.dag.grammar().num_rules() as u64
    }

    /// Finds the breaks from children to parents, O(G + bytes of the dictionary).
    pub fn new(segment: &'c Segment) -> Self {
        let dag = &segment.dag;
        let dictionary = &segment.dictionary;
        let grammar = dag.grammar();
        let mut do_break: Vec<bool> =
            (0..dag.num_terminals()).map(|token| memchr(b'\n', dictionary.get(token)).is_some()).collect();
        do_break.resize(dag.num_elements(), false);
        let mut edges = vec![[NONE; 2]; grammar.num_rules()];
        let mut num_breaks = 0;
        for rule_id in grammar.rule_ids().rev() {
            for position in grammar.rule_range(rule_id) {
                if do_break[grammar.symbols[position] as usize] {
                    let [first, last] = &mut edges[rule_id.index()];
                    *first = (*first).min(position as u32);
                    *last = position as u32;
                    num_breaks += 1;
                }
            }
            do_break[grammar.element_for(rule_id) as usize] = edges[rule_id.index()][0] != NONE;
        }
        Self { segment, do_break, edges, num_breaks }
    }

    /// Returns the number of positions with an element that breaks. There is at most one line for
    /// each, and one for each document.
    pub fn num_breaks(&self) -> usize {
        self.num_breaks
    }

    fn symbols(&self) -> &'c [u32] {
        &self.segment.dag.grammar().symbols
    }

    fn breaks_at(&self, position: usize) -> bool {
        self.do_break[self.symbols()[position] as usize]
    }
}

/// Calls `visit` with each line inside a separator or word of the segment, with that token and with
/// the number of its occurrences.
pub(super) fn for_each_line_of_tokens(breaks: &Breaks<'_>, visit: &mut VisitLine<'_>) -> Result<()> {
    let weights = breaks.segment.weights_or_derive();
    for token in 0..breaks.segment.dag.num_terminals() {
        if !breaks.do_break[token as usize] {
            continue;
        }
        let bytes = breaks.segment.dictionary.get(token);
        let ends: Vec<usize> = memchr_iter(b'\n', bytes).collect();
        for ends in ends.windows(2) {
            let line = &bytes[ends[0] + 1..ends[1]];
            visit(token, weights[token as usize], &line[..line.len().min(MAX_LINE_BYTES)])?;
        }
    }
    Ok(())
}

/// Calls `visit` with each line that belongs to a rule or a document and ends in `part` of the
/// positions, with the position where it ends and with the number of occurrences of the rule or
/// document. The parts of a document that is cut between segments have no first and no last line.
pub(super) fn for_each_line(
    corpus: &Corpus,
    segment_idx: usize,
    breaks: &Breaks<'_>,
    part: Range<usize>,
    interrupt: &mut Interrupt<'_>,
    visit: &mut VisitLine<'_>,
) -> Result<()> {
    let grammar = breaks.segment.dag.grammar();
    let weights = breaks.segment.weights_or_derive();
    let overlap = |range: &Range<usize>| range.start.max(part.start)..range.end.min(part.end);
    let mut line = Line::default();
    let first = grammar.doc_offsets.partition_point(|&at| at as usize <= part.start);
    for doc in DocId::range(first.saturating_sub(1)..grammar.num_docs()) {
        let range = breaks.segment.dag.doc_range(doc);
        if range.start >= part.end {
            break;
        }
        let is_whole = is_whole(corpus, segment_idx, doc);
        let owner = Owner { part: overlap(&range), range, count: 1, is_whole };
        owner.for_each_line(breaks, &mut line, interrupt, visit)?;
    }
    let first = grammar.rule_offsets.partition_point(|&at| at as usize <= part.start);
    for rule_id in (first.saturating_sub(1).max(1)..grammar.num_rules()).map(|at| at as u32) {
        let rule_id = RuleId::from(rule_id);
        let range = grammar.rule_range(rule_id);
        if range.start >= part.end {
            break;
        }
        let count = weights[grammar.element_for(rule_id) as usize];
        let part = overlap(&range);
        let owner = Owner { range, part, count, is_whole: false };
        owner.for_each_line(breaks, &mut line, interrupt, visit)?;
    }
    Ok(())
}

/// Calls `visit` with the lines of document `doc_id` across the borders of its parts. `breaks` has
/// the breaks of each segment.
pub(super) fn for_each_line_across(
    corpus: &Corpus,
    breaks: &[Breaks<'_>],
    doc_id: u64,
    visit: &mut dyn FnMut(&[u8]) -> Result<()>,
) -> Result<()> {
    let mut line = Line::default();
    for (segment_idx, doc) in corpus.doc_parts(doc_id) {
        let breaks = &breaks[segment_idx];
        let range = breaks.segment.dag.doc_range(doc);
        line.is_after_word = false;
        let Some(first) = range.clone().find(|&at| breaks.breaks_at(at)) else {
            line.push_all(breaks, range);
            continue;
        };
        let last = range.clone().rev().find(|&at| breaks.breaks_at(at)).unwrap_or(first);
        line.push_all(breaks, range.start..first);
        line.push_head(breaks, breaks.symbols()[first]);
        visit(&line.bytes)?;
        line.begin_behind(breaks, breaks.symbols()[last]);
        line.push_all(breaks, last + 1..range.end);
    }
    visit(&line.bytes)
}

/// Returns the ids of the documents that are cut between segments, ascending.
pub(super) fn cut_documents(corpus: &Corpus) -> Vec<u64> {
    let firsts = 0..corpus.segments().len();
    let mut ids: Vec<u64> = firsts.map(|segment_idx| corpus.first_doc_id(segment_idx)).collect();
    ids.dedup();
    ids.retain(|&id| corpus.doc_parts(id).nth(1).is_some());
    ids
}

/// Returns true if all of the document lies in the segment.
fn is_whole(corpus: &Corpus, segment_idx: usize, doc: DocId) -> bool {
    let num_docs = corpus.segments()[segment_idx].dag.grammar().num_docs();
    let is_inside = doc.index() > 0 && doc.index() + 1 < num_docs;
    is_inside || corpus.doc_parts(corpus.doc_id(segment_idx, doc)).nth(1).is_none()
}

/// A rule or a document, whose lines are made.
struct Owner {
    /// Positions of its elements.
    range: Range<usize>,
    /// Positions of these where lines end that are wanted.
    part: Range<usize>,
    /// Number of occurrences.
    count: u64,
    /// True if a line begins at its start, and one ends at its end.
    is_whole: bool,
}

impl Owner {
    fn for_each_line(
        &self,
        breaks: &Breaks<'_>,
        line: &mut Line,
        interrupt: &mut Interrupt<'_>,
        visit: &mut VisitLine<'_>,
    ) -> Result<()> {
        let before = self.range.start..self.part.start;
        let mut last = before.rev().find(|&at| breaks.breaks_at(at));
        for at in self.part.clone() {
            interrupt.check()?;
            if !breaks.breaks_at(at) {
                continue;
            }
            if self.begin(last, breaks, line, at) {
                line.push_head(breaks, breaks.symbols()[at]);
                visit(at as u32, self.count, &line.bytes)?;
            }
            last = Some(at);
        }
        let is_last_part = !self.part.is_empty() && self.part.end == self.range.end;
        if self.is_whole && is_last_part && self.begin(last, breaks, line, self.range.end) {
            visit(self.range.end as u32 - 1, self.count, &line.bytes)?;
        }
        Ok(())
    }

    /// Writes the line behind the break at position `last`, up to the element at `end`. Returns
    /// false if it begins elsewhere.
    fn begin(&self, last: Option<usize>, breaks: &Breaks<'_>, line: &mut Line, end: usize) -> bool {
        let start = match last {
            Some(last) => {
                line.begin_behind(breaks, breaks.symbols()[last]);
                last + 1
            }
            None => {
                line.clear();
                self.range.start
            }
        };
        let is_here = last.is_some() || self.is_whole;
        if is_here {
            line.push_all(breaks, start..end);
        }
        is_here
    }
}

/// A line while it is made.
#[derive(Debug, Default)]
struct Line {
    bytes: Vec<u8>,
    is_after_word: bool,
    /// Positions that are still to be expanded, the next ones last.
    frames: Vec<Range<usize>>,
}

impl Line {
    fn clear(&mut self) {
        self.bytes.clear();
        self.is_after_word = false;
    }

    /// Begins with the text of `element`, which breaks, behind its last line end.
    fn begin_behind(&mut self, breaks: &Breaks<'_>, mut element: u32) {
        self.clear();
        self.frames.clear();
        let dag = &breaks.segment.dag;
        while let Some(rule_id) = dag.rule_of(element) {
            let last = breaks.edges[rule_id.index()][1] as usize;
            self.frames.push(last + 1..dag.rule_range(rule_id).end);
            element = breaks.symbols()[last];
        }
        let token = breaks.segment.dictionary.get(element);
        let start = memrchr(b'\n', token).map_or(0, |end| end + 1);
        self.push_token(&token[start..], false);
        self.is_after_word = dag.ends_with_word(element);
        self.push_frames(breaks);
    }

    /// Appends the elements at `range`, which do not break.
    fn push_all(&mut self, breaks: &Breaks<'_>, range: Range<usize>) {
        self.frames.clear();
        self.frames.push(range);
        self.push_frames(breaks);
    }

    /// Appends the text of `element`, which breaks, up to its first line end.
    fn push_head(&mut self, breaks: &Breaks<'_>, mut element: u32) {
        let dag = &breaks.segment.dag;
        while let Some(rule_id) = dag.rule_of(element) {
            let first = breaks.edges[rule_id.index()][0] as usize;
            self.push_all(breaks, dag.rule_range(rule_id).start..first);
            element = breaks.symbols()[first];
        }
        let token = breaks.segment.dictionary.get(element);
        let end = memchr(b'\n', token).unwrap_or(token.len());
        self.push_token(&token[..end], dag.begins_with_word(element));
    }

    /// Appends the positions that are left, or as many as the line has room for.
    fn push_frames(&mut self, breaks: &Breaks<'_>) {
        let dag = &breaks.segment.dag;
        let dictionary = &breaks.segment.dictionary;
        let symbols = breaks.symbols();
        while self.bytes.len() < MAX_LINE_BYTES
            && let Some(range) = self.frames.last_mut()
        {
            let Some(position) = range.next() else {
                self.frames.pop();
                continue;
            };
            let element = symbols[position];
            match dag.rule_of(element) {
                Some(rule_id) => self.frames.push(dag.rule_range(rule_id)),
                None => self.push_token(dictionary.get(element), element < dag.num_words()),
            }
        }
    }

    fn push_token(&mut self, token: &[u8], is_word: bool) {
        if is_word && self.is_after_word {
            self.bytes.push(b' ');
        }
        self.bytes.extend_from_slice(token);
        self.bytes.truncate(MAX_LINE_BYTES);
        self.is_after_word = is_word;
    }
}

/// Lines of the documents and rules of a segment.
#[derive(Debug)]
pub(super) struct LineGraph {
    num_docs: usize,
    num_terminals: u32,
    /// Ends of the lines of each node in `lines`.
    line_ends: Vec<u32>,
    lines: Vec<u32>,
    /// Ends of the elements of each node in `inner`.
    inner_ends: Vec<u32>,
    inner: Vec<u32>,
}

impl LineGraph {
    /// Returns the bytes of memory that a graph with `num_lines` lines takes while it is built and
    /// read, if lines end at `num_breaks` positions.
    pub fn memory_bytes(segment: &Segment, num_lines: usize, num_breaks: usize) -> u64 {
        let num_elements = segment.dag.num_elements() as u64;
        let num_docs = segment.dag.grammar().num_docs() as u64;
        // Ends, marks of elements that hold lines, and counts of elements while a document is read.
        num_elements * (8 + 1 + 8) + num_docs * 8 + 12 * (num_lines + num_breaks) as u64
    }

    /// Builds the graph. `by_token` has tokens and the numbers of their lines, `by_position` has
    /// the positions where other lines end, both ascending.
    pub fn new(segment: &Segment, by_token: &[(u32, u32)], by_position: &[(u32, u32)]) -> Self {
        let dag = &segment.dag;
        let grammar = segment.dag.grammar();
        let mut graph = Self {
            num_docs: grammar.num_docs(),
            num_terminals: grammar.num_terminals,
            line_ends: Vec::new(),
            lines: Vec::with_capacity(by_token.len() + by_position.len()),
            inner_ends: Vec::new(),
            inner: Vec::new(),
        };
        let below = |end: usize| by_position.partition_point(|&(at, _)| (at as usize) < end);
        let holds = holding_elements(segment, by_token, by_position);
        let mut lines = by_position.iter().map(|&(_, line)| line);
        for doc in grammar.docs() {
            let range = dag.doc_range(doc);
            graph.push_lines(&mut lines, below(range.end) - below(range.start));
            graph.push_inner(&holds, &grammar.symbols[range]);
        }
        let mut tokens = by_token.iter().peekable();
        for token in 0..grammar.num_terminals {
            while let Some(&(_, line)) = tokens.next_if(|&&(of, _)| of == token) {
                graph.lines.push(line);
            }
            graph.push_lines(&mut lines, 0);
            graph.push_inner(&holds, &[]);
        }
        for rule_id in grammar.rule_ids() {
            // The lines of the root are those of documents.
            let range = if u32::from(rule_id) == 0 { 0..0 } else { grammar.rule_range(rule_id) };
            graph.push_lines(&mut lines, below(range.end) - below(range.start));
            graph.push_inner(&holds, &grammar.symbols[range]);
        }
        graph
    }

    fn push_lines(&mut self, lines: &mut impl Iterator<Item = u32>, num_lines: usize) {
        self.lines.extend(lines.take(num_lines));
        self.line_ends.push(self.lines.len() as u32);
    }

    fn push_inner(&mut self, holds: &[bool], elements: &[u32]) {
        self.inner.extend(elements.iter().filter(|&&element| holds[element as usize]));
        self.inner_ends.push(self.inner.len() as u32);
    }

    fn lines_for(&self, node: usize) -> &[u32] {
        &self.lines[range_for(&self.line_ends, node)]
    }

    fn inner_for(&self, node: usize) -> &[u32] {
        &self.inner[range_for(&self.inner_ends, node)]
    }
}

fn range_for(ends: &[u32], node: usize) -> Range<usize> {
    let start = node.checked_sub(1).map_or(0, |before| ends[before]);
    start as usize..ends[node] as usize
}

/// Returns for each element, by id, if a line belongs to it or to an element inside.
fn holding_elements(segment: &Segment, by_token: &[(u32, u32)], by_position: &[(u32, u32)]) -> Vec<bool> {
    let grammar = segment.dag.grammar();
    let mut holds = vec![false; segment.dag.num_elements()];
    by_token.iter().for_each(|&(token, _)| holds[token as usize] = true);
    let mut left = by_position.len();
    for rule_id in grammar.rule_ids().skip(1).rev() {
        let range = grammar.rule_range(rule_id);
        let behind = left;
        while left > 0 && by_position[left - 1].0 as usize >= range.start {
            left -= 1;
        }
        holds[grammar.element_for(rule_id) as usize] =
            left < behind || grammar.symbols[range].iter().any(|&element| holds[element as usize]);
    }
    holds
}

/// Reads the lines of documents, with memory that it uses again.
#[derive(Debug, Default)]
pub(super) struct LineReader {
    /// Occurrences in the document, by element; 0 before and after a document is read.
    counts: Vec<u64>,
    reached: Vec<u32>,
}

impl LineReader {
    /// Calls `visit` with the number of each masked line of document `doc`, and with a number of
    /// its occurrences. A line that belongs to several rules comes several times.
    pub fn for_each_line(&mut self, graph: &LineGraph, doc: DocId, visit: &mut dyn FnMut(u32, u64)) {
        let num_elements = graph.line_ends.len() - graph.num_docs;
        if self.counts.len() < num_elements {
            self.counts.resize(num_elements, 0);
        }
        graph.lines_for(doc.index()).iter().for_each(|&line| visit(line, 1));
        self.reach(graph, doc);
        // Rules are numbered parents before children. Tokens are children of all.
        let num_tokens = self.reached.partition_point(|&element| element < graph.num_terminals);
        let (tokens, rules) = self.reached.split_at(num_tokens);
        for &element in rules.iter().chain(tokens) {
            let count = std::mem::take(&mut self.counts[element as usize]);
            let node = graph.num_docs + element as usize;
            for &inner in graph.inner_for(node) {
                let inner = &mut self.counts[inner as usize];
                // Elements that are reached have a count of 1 too much.
                *inner = inner.saturating_add(count - 1);
            }
            graph.lines_for(node).iter().for_each(|&line| visit(line, count - 1));
        }
    }

    /// Lists the elements below `doc` in ascending order, and gives each a count of 1 beside those
    /// in the document itself.
    fn reach(&mut self, graph: &LineGraph, doc: DocId) {
        self.reached.clear();
        for &element in graph.inner_for(doc.index()) {
            let count = &mut self.counts[element as usize];
            if *count == 0 {
                self.reached.push(element);
                *count = 1;
            }
            *count += 1;
        }
        let mut at = 0;
        while let Some(&element) = self.reached.get(at) {
            at += 1;
            for &inner in graph.inner_for(graph.num_docs + element as usize) {
                let count = &mut self.counts[inner as usize];
                if *count == 0 {
                    self.reached.push(inner);
                    *count = 1;
                }
            }
        }
        self.reached.sort_unstable();
    }
}
