//! The search through corpora, chain by chain and task by task.
//!
//! ```text
//! chains ─▶ documents that may match ─▶ in order of text ─▶ waves of tasks ─▶ parts ─▶ printer
//! ```
//!
//! Without a limit all tasks are one wave. With one (`-l`, `-m`), waves grow from a few documents on, and texts
//! that have all their lines are left out of the next one.

use std::collections::HashMap;
use std::ops::ControlFlow;

use rayon::prelude::*;
use tadoc::Corpus;
use tadoc::query::{GrepOptions, LinePattern, PathTexts, TextLead, grep_texts};
use tadoc::read::document_len_bytes;
use tadoc_session::{CorpusFile, Outcome};

use super::chains::{Counter, Joins, Leads, Needs, OpenChain, Wanted, Whole, open};
use super::printer::{Format, Part, Printer, Statistics, Style};
use super::selection::Selection;
use super::{CorpusSearch, Output};
use crate::tasks::{Decoded, Meta, Task, for_each_ahead, metas_of, num_at_once, path_of, tasks_of};

/// Bytes of text that are gathered before they are passed on.
const FLUSH_BYTES: usize = 64 << 10;
/// Bytes of documents in the first wave of a search with a limit, and how much longer each next one is.
const FIRST_WAVE_BYTES: u64 = 256 << 10;
const WAVE_GROWTH: u64 = 4;

/// The search through a file.
struct InFile<'f> {
    file: &'f CorpusFile,
    chains: Vec<&'f [Meta<'f>]>,
    /// Read before the first line is written.
    joins: Option<Joins>,
    leads: Leads,
}

impl InFile<'_> {
    /// Returns true if a chain is known to have only the text that goes on from before.
    fn only_goes_on(&self, chain: usize) -> bool {
        self.joins.as_ref().is_some_and(|joins| joins.only_goes_on(chain))
    }
}

/// The pattern that is searched for, and the form of the output.
pub struct Asked<'a> {
    pub pattern: &'a LinePattern,
    pub style: &'a Style,
    pub options: GrepOptions<'static>,
    /// The documents that are searched, unless all are.
    pub selection: Option<&'a Selection>,
    /// Text in front of each path.
    pub prefix: String,
    /// Counts the lines of a chain, if that saves their text.
    pub counter: Option<&'a Counter>,
}

/// A search through one corpus.
pub struct Search<'a> {
    asked: Asked<'a>,
    printer: Printer<'a>,
    output: &'a mut Output,
    /// The text of the current chain that the printer has begun.
    begun: Option<usize>,
    /// True if the printer has begun the last text of the chain before, which goes on in the current one.
    is_open: bool,
    /// True if that text was searched before.
    is_last_searched: bool,
    /// Number of texts that were searched, and their bytes, if they are asked for.
    searched: Statistics,
}

impl<'a> Search<'a> {
    pub fn new(asked: Asked<'a>, printer: Printer<'a>, output: &'a mut Output) -> Self {
        let searched = Statistics::default();
        Self { asked, printer, output, begun: None, is_open: false, is_last_searched: false, searched }
    }

    /// Returns the output for texts that have a line, by path, if the printer was asked for it.
    pub fn into_found(self) -> Option<HashMap<String, Vec<u8>>> {
        self.printer.found
    }
}

impl CorpusSearch for Search<'_> {
    fn whole_corpus(&mut self, corpus: &Corpus, texts: PathTexts) -> Outcome<ControlFlow<()>> {
        let wanted = self.asked.wanted();
        let (docs, counts) = wanted.counted(corpus, wanted.candidates(corpus));
        let texts = if docs.is_empty() { texts } else { self.needs().count(texts, corpus)? };
        let flow = self.lines(corpus, &texts, docs, counts)?;
        self.end()?;
        Ok(flow)
    }

    fn file(&mut self, file: &CorpusFile) -> Outcome<ControlFlow<()>> {
        let metas = metas_of(file);
        let chains: Vec<&[Meta<'_>]> = metas.chunk_by(|_, (_, next)| next.continues).collect();
        let wanted = self.asked.wanted();
        let decoded = self.decoded();
        let open = chains.iter().map(|&chain| move || OpenChain::read(file, chain, wanted, decoded));
        let mut in_file = InFile { file, chains: chains.clone(), joins: None, leads: Leads::default() };
        let mut chain = 0;
        let mut flow = ControlFlow::Continue(());
        let is_done = for_each_ahead(open, &mut |open: OpenChain| {
            in_file.leads.has_line_ends.push(open.has_line_ends);
            let end = if self.is_complete() && in_file.only_goes_on(chain) {
                self.pass(&in_file, chain, None)?;
                None
            } else {
                self.chain(&mut in_file, chain, open)?
            };
            chain += 1;
            flow = end.unwrap_or(flow);
            Ok(if end.is_some() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) })
        })?;
        self.end()?;
        Ok(if is_done.is_break() { flow } else { ControlFlow::Continue(()) })
    }
}

impl Search<'_> {
    /// Returns the work of the search.
    pub fn statistics(&self) -> Statistics {
        let Statistics { searches, bytes_searched, .. } = self.searched;
        Statistics { searches, bytes_searched, ..self.printer.statistics() }
    }

    fn needs(&self) -> Needs {
        let is_json = self.asked.style.format == Format::Json;
        let shows_lines = !matches!(self.asked.style.format, Format::Paths | Format::Counts);
        let style = self.asked.style;
        Needs {
            numbers: is_json || shows_lines && (style.has_numbers || style.has_context),
            offsets: is_json || shows_lines && style.has_offsets,
            before: self.asked.options.before,
        }
    }

    /// Returns the documents that are decoded for the output.
    fn decoded(&self) -> Decoded {
        let Needs { numbers, offsets, before } = self.needs();
        let shows_place = numbers || offsets || before > 0 || self.asked.options.after > 0;
        if shows_place { Decoded::WholeTexts } else { Decoded::Matching }
    }

    /// Writes the lines of a chain, which is open, with the documents that may have one, if it may have some.
    /// Returns the flow if the file is done.
    fn chain(&mut self, in_file: &mut InFile<'_>, chain: usize, open: OpenChain) -> Outcome<Option<ControlFlow<()>>> {
        let OpenChain { corpus, counts, .. } = open;
        let (corpus, docs) = corpus.unzip();
        let docs = docs.unwrap_or_default();
        let Some(corpus) = corpus.as_ref().filter(|_| !docs.is_empty()) else {
            self.pass(in_file, chain, corpus.as_ref())?;
            return Ok(None);
        };
        if in_file.chains.len() == 1 {
            let texts = self.needs().count(PathTexts::new(corpus), corpus)?;
            return self.lines(corpus, &texts, docs, counts).map(Some);
        }
        let InFile { file, chains, joins, leads } = in_file;
        let joins = match joins {
            Some(joins) => joins,
            None => joins.insert(Joins::read(file, chains)?),
        };
        if joins.comes_back {
            let whole = Whole::open(file, chains, self.asked.wanted(), self.needs())?;
            let wanted = self.asked.wanted();
            let (docs, counts) = wanted.counted(&whole.corpus, wanted.candidates(&whole.corpus));
            return self.lines(&whole.corpus, &whole.texts, docs, counts).map(Some);
        }
        let mut texts = joins.texts(chain, chains, corpus);
        let goes_on_from_before = joins.goes_on_from_before(chain);
        if goes_on_from_before && self.is_wanted() {
            texts = texts.with_lead(leads.lead_of(chain, file, chains, joins, self.needs())?);
        } else if goes_on_from_before {
            texts = texts.with_lead(TextLead { num_docs: 1, ..TextLead::default() });
        }
        let goes_on = joins.goes_on(chain);
        if goes_on {
            texts = texts.with_more();
        }
        let texts = self.needs().count(texts, corpus)?;
        if self.is_open {
            self.go_on(corpus, &texts)?;
        }
        self.begun = self.is_open.then_some(0);
        let flow = self.lines(corpus, &texts, docs, counts)?;
        self.is_open = goes_on && self.begun.is_some_and(|begun| begun + 1 == texts.len());
        if !self.is_open {
            self.end()?;
        }
        if goes_on && self.is_wanted() {
            leads.note(chain, texts.lead_of_next(corpus, self.asked.options.before)?);
        }
        Ok(flow.is_break().then_some(flow))
    }

    /// Passes over a chain without a line. The open text goes on in it.
    fn pass(&mut self, in_file: &InFile<'_>, chain: usize, corpus: Option<&Corpus>) -> Outcome {
        let Some(joins) = in_file.joins.as_ref().filter(|_| self.is_open) else { return Ok(()) };
        let is_json = self.asked.style.format == Format::Json;
        if is_json || self.printer.num_missing_after(self.asked.options.after) > 0 {
            let corpus = match corpus {
                Some(corpus) => corpus.clone(),
                None => open(in_file.file, in_file.chains[chain])?,
            };
            let texts = PathTexts::new(&corpus);
            // A line end follows its documents, because it has more.
            let texts = texts.with_lead(TextLead { num_docs: 1, ..TextLead::default() });
            self.go_on(&corpus, &texts)?;
        }
        self.is_open = joins.only_goes_on(chain) && joins.goes_on(chain);
        if self.is_open { Ok(()) } else { self.end() }
    }

    /// Adds the first lines of the open text in `corpus` to those that are written after the last line.
    fn go_on(&mut self, corpus: &Corpus, texts: &PathTexts) -> Outcome {
        let num_missing = self.printer.num_missing_after(self.asked.options.after);
        if num_missing > 0 {
            self.printer.add_after(&texts.first_lines(corpus, num_missing)?);
        }
        if self.asked.style.format == Format::Json {
            self.printer.lengthen(texts.len_bytes(corpus, 0)?);
        }
        Ok(())
    }

    /// Returns true if more lines of the open text are wanted, or if no text is open.
    fn is_wanted(&self) -> bool {
        !self.is_open || self.printer.num_left() > 0
    }

    /// Returns true if nothing of the open text is wanted.
    fn is_complete(&self) -> bool {
        let is_json = self.asked.style.format == Format::Json;
        self.is_open && !is_json && !self.is_wanted() && self.printer.num_missing_after(self.asked.options.after) == 0
    }

    /// Writes the lines of `docs`, or the numbers of them if each has one of `counts`. Breaks when the output needs no
    /// more.
    fn lines(
        &mut self,
        corpus: &Corpus,
        texts: &PathTexts,
        docs: Vec<u64>,
        counts: Option<Vec<u64>>,
    ) -> Outcome<ControlFlow<()>> {
        if let Some(counts) = counts {
            return self.counts(corpus, texts, docs, &counts);
        }
        let docs = texts.in_order(docs);
        if self.asked.style.format == Format::Json {
            self.note_searched(corpus, texts, &docs)?;
        }
        if self.asked.style.max_lines == u64::MAX {
            return self.wave(corpus, texts, &docs);
        }
        let mut rest = docs.as_slice();
        let mut wave_bytes = FIRST_WAVE_BYTES;
        while !rest.is_empty() {
            if self.begun.is_some() && self.printer.num_left() == 0 {
                let num_done = rest.iter().take_while(|&&doc| texts.text_for(doc) == self.begun).count();
                rest = &rest[num_done..];
            }
            let mut len_bytes = 0;
            let mut num_docs = 0;
            while num_docs < rest.len() && len_bytes < wave_bytes {
                len_bytes += document_len_bytes(corpus, rest[num_docs])?;
                num_docs += 1;
            }
            let (wave, behind) = rest.split_at(num_docs);
            if self.wave(corpus, texts, wave)?.is_break() {
                return Ok(ControlFlow::Break(()));
            }
            (rest, wave_bytes) = (behind, wave_bytes.saturating_mul(WAVE_GROWTH));
        }
        Ok(ControlFlow::Continue(()))
    }

    /// Writes the number of lines of each of `docs`, which ascend. Breaks when the output needs no more.
    fn counts(
        &mut self,
        corpus: &Corpus,
        texts: &PathTexts,
        docs: Vec<u64>,
        counts: &[u64],
    ) -> Outcome<ControlFlow<()>> {
        for doc in texts.in_order(docs.clone()) {
            let Some(text) = texts.text_for(doc) else { continue };
            self.begin(corpus, texts, text, doc)?;
            let count = docs.binary_search(&doc).map_or(0, |at| counts[at]);
            self.printer.add_count(count);
            if self.printer.text().len() >= FLUSH_BYTES {
                self.write()?;
            }
            if self.output.is_complete() {
                return Ok(ControlFlow::Break(()));
            }
        }
        Ok(ControlFlow::Continue(()))
    }

    fn note_searched(&mut self, corpus: &Corpus, texts: &PathTexts, docs: &[u64]) -> Outcome {
        let numbers = docs.iter().filter_map(|&doc| texts.text_for(doc));
        let mut last = self.is_last_searched.then_some(0);
        for text in numbers {
            if last != Some(text) {
                self.searched.searches += 1;
                self.searched.bytes_searched += texts.len_bytes(corpus, text)?;
                last = Some(text);
            }
        }
        self.is_last_searched = last.is_some_and(|last| last + 1 == texts.len()) && texts.goes_on();
        Ok(())
    }

    /// Searches `docs`, which are in order of text, in tasks.
    fn wave(&mut self, corpus: &Corpus, texts: &PathTexts, docs: &[u64]) -> Outcome<ControlFlow<()>> {
        let tasks = tasks_of(corpus, docs)?;
        for tasks in tasks.chunk_by(|one, next| !one.is_long && !next.is_long) {
            if let &[Task { docs: &[doc_id], is_long: true }] = tasks {
                self.long_document(corpus, texts, doc_id)?;
            } else {
                for tasks in tasks.chunks(num_at_once()) {
                    let asked = &self.asked;
                    let parts = tasks.par_iter().map(|task| asked.parts(corpus, texts, task.docs));
                    for part in parts.collect::<Vec<Outcome<Vec<Part>>>>() {
                        part?.into_iter().try_for_each(|part| self.join(corpus, texts, part))?;
                    }
                    self.write()?;
                    if self.output.is_complete() {
                        return Ok(ControlFlow::Break(()));
                    }
                }
            }
        }
        Ok(if self.output.is_complete() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) })
    }

    fn join(&mut self, corpus: &Corpus, texts: &PathTexts, part: Part) -> Outcome {
        self.begin(corpus, texts, part.text, part.doc_id)?;
        self.printer.join(part);
        if self.printer.text().len() >= FLUSH_BYTES { self.write() } else { Ok(()) }
    }

    /// Begins a text, which has a line in document `doc_id`, unless it is begun.
    fn begin(&mut self, corpus: &Corpus, texts: &PathTexts, text: usize, doc_id: u64) -> Outcome {
        if self.begun == Some(text) {
            return Ok(());
        }
        // Other formats do not show the length, and it takes a sum over the documents.
        let len_bytes = match self.asked.style.format {
            Format::Json => texts.len_bytes(corpus, text)? + texts.len_bytes_before(text),
            _ => 0,
        };
        self.begun = Some(text);
        self.printer.begin(&self.asked.path(corpus, doc_id), len_bytes);
        Ok(())
    }

    /// Writes the lines of a long document while it is searched.
    fn long_document(&mut self, corpus: &Corpus, texts: &PathTexts, doc_id: u64) -> Outcome {
        let Some(text) = texts.text_for(doc_id) else { return Ok(()) };
        let num_left = if self.begun == Some(text) { self.printer.num_left() } else { self.asked.style.max_lines };
        let options = GrepOptions { max_lines_per_doc: num_left, ..self.asked.options };
        let mut written = Ok(());
        grep_texts(corpus, self.asked.pattern, texts, &[doc_id], &options, &mut |line| {
            written = self.begin(corpus, texts, text, doc_id);
            self.printer.line(line);
            if written.is_ok() && self.printer.text().len() >= FLUSH_BYTES {
                written = self.write();
            }
            if written.is_ok() { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
        })?;
        written?;
        self.write()
    }

    /// Ends the last text.
    fn end(&mut self) -> Outcome {
        (self.begun, self.is_open) = (None, false);
        self.printer.end();
        self.write()
    }

    fn write(&mut self) -> Outcome {
        if self.printer.found.is_some() {
            return Ok(());
        }
        let written = self.output.write(self.printer.text(), !self.printer.text().is_empty());
        self.printer.clear();
        written
    }
}

impl<'a> Asked<'a> {
    /// Returns the conditions on a document with a line.
    fn wanted(&self) -> Wanted<'a> {
        Wanted { demands: self.pattern.demands(), selection: self.selection, counter: self.counter }
    }
}

impl Asked<'_> {
    /// Prints the lines of `docs` as parts of their texts.
    fn parts(&self, corpus: &Corpus, texts: &PathTexts, docs: &[u64]) -> Outcome<Vec<Part>> {
        let mut parts = Vec::new();
        let mut open: Option<OpenPart<'_>> = None;
        grep_texts(corpus, self.pattern, texts, docs, &self.options, &mut |line| {
            let is_same = open
                .as_ref()
                .is_some_and(|open| open.doc_id == line.doc_id || texts.text_for(line.doc_id) == Some(open.text));
            if !is_same {
                parts.extend(open.take().and_then(OpenPart::finish));
            }
            let open = open.get_or_insert_with(|| {
                let path = self.path(corpus, line.doc_id);
                let text = texts.text_for(line.doc_id).unwrap_or_default();
                let printer = Printer::for_part(self.style, self.pattern, &path);
                OpenPart { text, doc_id: line.doc_id, printer }
            });
            open.doc_id = line.doc_id;
            open.printer.line(line);
            ControlFlow::Continue(())
        })?;
        parts.extend(open.and_then(OpenPart::finish));
        Ok(parts)
    }

    fn path(&self, corpus: &Corpus, doc_id: u64) -> String {
        format!("{}{}", self.prefix, path_of(corpus, doc_id))
    }
}

/// A part of a text that a task prints.
struct OpenPart<'a> {
    text: usize,
    /// The document of its last line.
    doc_id: u64,
    printer: Printer<'a>,
}

impl OpenPart<'_> {
    fn finish(self) -> Option<Part> {
        self.printer.into_part(self.text, self.doc_id)
    }
}
