//! Rules that hold lines, as a graph, and the lines of each document.
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

use crate::ids::DocId;
use crate::segment::Segment;

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

    /// Builds the graph. `of_tokens` has tokens and the numbers of their lines, `of_positions` has
    /// the positions where other lines end, both ascending.
    pub fn new(segment: &Segment, of_tokens: &[(u32, u32)], of_positions: &[(u32, u32)]) -> Self {
        let (dag, grammar) = (&segment.dag, segment.dag.grammar());
        let mut graph = Self {
            num_docs: grammar.num_docs(),
            num_terminals: grammar.num_terminals,
            line_ends: Vec::new(),
            lines: Vec::with_capacity(of_tokens.len() + of_positions.len()),
            inner_ends: Vec::new(),
            inner: Vec::new(),
        };
        let below = |end: usize| of_positions.partition_point(|&(at, _)| (at as usize) < end);
        let holds = holding_elements(segment, of_tokens, of_positions);
        let mut lines = of_positions.iter().map(|&(_, line)| line);
        for doc in grammar.docs() {
            let range = dag.doc_range(doc);
            graph.push_lines(&mut lines, below(range.end) - below(range.start));
            graph.push_inner(&holds, &grammar.symbols[range]);
        }
        let mut tokens = of_tokens.iter().peekable();
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

    fn lines_of(&self, node: usize) -> &[u32] {
        &self.lines[range_of(&self.line_ends, node)]
    }

    fn inner_of(&self, node: usize) -> &[u32] {
        &self.inner[range_of(&self.inner_ends, node)]
    }
}

fn range_of(ends: &[u32], node: usize) -> Range<usize> {
    let start = node.checked_sub(1).map_or(0, |before| ends[before]);
    start as usize..ends[node] as usize
}

/// Returns for each element, by id, if a line belongs to it or to an element inside.
fn holding_elements(
    segment: &Segment,
    of_tokens: &[(u32, u32)],
    of_positions: &[(u32, u32)],
) -> Vec<bool> {
    let grammar = segment.dag.grammar();
    let mut holds = vec![false; segment.dag.num_elements()];
    of_tokens.iter().for_each(|&(token, _)| holds[token as usize] = true);
    let mut left = of_positions.len();
    for rule_id in grammar.rule_ids().skip(1).rev() {
        let range = grammar.rule_range(rule_id);
        let behind = left;
        while left > 0 && of_positions[left - 1].0 as usize >= range.start {
            left -= 1;
        }
        holds[grammar.element_of(rule_id) as usize] =
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
    /// Calls `visit` with the number of each masked line of document `doc`, and with a number of its
    /// occurrences. A line that belongs to several rules comes several times.
    pub fn for_each_line(
        &mut self,
        graph: &LineGraph,
        doc: DocId,
        visit: &mut dyn FnMut(u32, u64),
    ) {
        let num_elements = graph.line_ends.len() - graph.num_docs;
        if self.counts.len() < num_elements {
            self.counts.resize(num_elements, 0);
        }
        graph.lines_of(doc.index()).iter().for_each(|&line| visit(line, 1));
        self.reach(graph, doc);
        // Rules are numbered parents before children. Tokens are children of all.
        let num_tokens = self.reached.partition_point(|&element| element < graph.num_terminals);
        let (tokens, rules) = self.reached.split_at(num_tokens);
        for &element in rules.iter().chain(tokens) {
            let count = std::mem::take(&mut self.counts[element as usize]);
            let node = graph.num_docs + element as usize;
            for &inner in graph.inner_of(node) {
                let inner = &mut self.counts[inner as usize];
                // Elements that are reached have a count of 1 too much.
                *inner = inner.saturating_add(count - 1);
            }
            graph.lines_of(node).iter().for_each(|&line| visit(line, count - 1));
        }
    }

    /// Lists the elements below `doc` in ascending order, and gives each a count of 1 beside those in
    /// the document itself.
    fn reach(&mut self, graph: &LineGraph, doc: DocId) {
        self.reached.clear();
        for &element in graph.inner_of(doc.index()) {
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
            for &inner in graph.inner_of(graph.num_docs + element as usize) {
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
