//! The search through whole texts with ripgrep's own engine and printer, for the options that change lines or where
//! they end: `-U`, `-r`, `--crlf`, `--passthru`, `-M` and `--trim`.
//!
//! ```text
//! corpus ─▶ documents that may match ─▶ their texts ─▶ tasks ─▶ grep-searcher ─▶ grep-printer ─▶ output in order
//!           (demands)                                  (cores)  reads a text piece by piece
//! ```
//!
//! A text that lies in one chain is searched when its chain is open. If one goes on from chain to chain, memory is
//! that of all segments of the file. The engine holds some lines of a text, with `-U` the whole text, and the output
//! of the texts that are searched together.

use std::collections::HashMap;
use std::io::{self, Read};
use std::ops::ControlFlow;
use std::path::Path;

use grep_matcher::LineTerminator;
use grep_printer::{
    ColorSpecs, JSON, JSONBuilder, Standard, StandardBuilder, Stats, Summary, SummaryBuilder, SummaryKind,
    default_color_specs,
};
use grep_regex::{RegexMatcher, RegexMatcherBuilder};
use grep_searcher::{Searcher, SearcherBuilder};
use rayon::prelude::*;
use tadoc::Corpus;
use tadoc::query::{LineExpression, LinePattern, PathTexts, TextPattern, demands_across_lines};
use tadoc::read::{DocumentDecoder, document_len_bytes, extract_into};
use tadoc_session::{CorpusFile, Failure, Outcome};
use termcolor::Buffer;

use super::arguments::Arguments;
use super::chains::{Joins, Needs, OpenChain, Wanted, Whole};
use super::printer::{Format, Statistics, Style};
use super::selection::Selection;
use super::{CorpusSearch, Output};
use crate::tasks::{Decoded, LONG_BYTES, Meta, for_each_ahead, metas_of, num_at_once, path_of};

/// Bytes of texts for each task that are searched together, and bytes of a long document that are decoded together.
const TASK_BYTES: u64 = 1 << 20;
const PIECE_BYTES: u64 = 4 << 20;

/// The engine with its settings.
pub struct Engine<'a> {
    arguments: &'a Arguments,
    style: &'a Style,
    matcher: RegexMatcher,
    demands: Vec<Vec<TextPattern>>,
}

impl<'a> Engine<'a> {
    /// Compiles the patterns `sources`, which are read as `expression` says.
    ///
    /// # Errors
    /// A pattern cannot be parsed, or it is too large.
    pub fn new(
        arguments: &'a Arguments,
        style: &'a Style,
        sources: &[&str],
        expression: &LineExpression<'_>,
    ) -> Outcome<Self> {
        // Where lines end as everywhere, the errors are those of other searches.
        let demands = if arguments.multiline || arguments.crlf {
            demands_across_lines(sources, expression)?
        } else {
            LinePattern::any_of(sources, expression)?.demands().to_vec()
        };
        let demands = if arguments.passthru { Vec::new() } else { demands };
        Ok(Self { arguments, style, matcher: matcher(arguments, sources, expression)?, demands })
    }

    fn worker(&self) -> Worker {
        let (before, after) = self.arguments.context();
        let mut searcher = SearcherBuilder::new();
        searcher
            .line_terminator(self.line_end())
            .invert_match(self.arguments.invert_match)
            .line_number(self.style.has_numbers || self.style.format == Format::Json)
            .multi_line(self.arguments.multiline)
            .max_matches(self.arguments.max_count)
            .bom_sniffing(false);
        if self.arguments.passthru {
            searcher.passthru(true);
        } else {
            searcher.before_context(before).after_context(after);
        }
        Worker { searcher: searcher.build(), writer: self.writer() }
    }

    fn line_end(&self) -> LineTerminator {
        if self.arguments.crlf { LineTerminator::crlf() } else { LineTerminator::byte(b'\n') }
    }

    fn writer(&self) -> Writer {
        let buffer = if self.style.is_colored { Buffer::ansi() } else { Buffer::no_color() };
        let kind = match self.style.format {
            _ if self.arguments.quiet => SummaryKind::QuietWithMatch,
            Format::Json => return Writer::Json(self.json().build(buffer)),
            Format::Lines | Format::Headings => return Writer::Lines(self.lines().build(buffer)),
            Format::Paths => SummaryKind::PathWithMatch,
            Format::Counts if self.style.is_of_matches && !self.style.is_inverted => SummaryKind::CountMatches,
            Format::Counts => SummaryKind::Count,
        };
        let mut summary = SummaryBuilder::new();
        summary
            .kind(kind)
            .color_specs(ColorSpecs::new(&default_color_specs()))
            .path(self.style.has_paths)
            .path_terminator(self.style.path_end);
        Writer::Summary(summary.build(buffer))
    }

    fn json(&self) -> JSONBuilder {
        let mut json = JSONBuilder::new();
        json.replacement(self.replacement());
        json
    }

    fn lines(&self) -> StandardBuilder {
        let arguments = self.arguments;
        let mut lines = StandardBuilder::new();
        lines
            .byte_offset(self.style.has_offsets)
            .color_specs(ColorSpecs::new(&default_color_specs()))
            .column(self.style.has_columns)
            .heading(self.style.format == Format::Headings)
            .max_columns(arguments.max_columns.filter(|&most| most > 0))
            .max_columns_preview(arguments.max_columns_preview)
            .only_matching(arguments.only_matching)
            .path(self.style.has_paths)
            .path_terminator(self.style.path_end)
            .per_match(self.style.is_once_per_match)
            .per_match_one_line(true)
            .replacement(self.replacement())
            .trim_ascii(arguments.trim);
        lines
    }

    fn replacement(&self) -> Option<Vec<u8>> {
        self.arguments.replace.clone().map(String::into_bytes)
    }

    /// Returns the path of a text as it is written, with `prefix` in front.
    fn path(&self, prefix: &str, corpus: &Corpus, texts: &PathTexts, text: usize) -> String {
        let doc = texts.documents(text).next().unwrap_or_default();
        self.style.shown(&format!("{prefix}{}", path_of(corpus, doc)))
    }

    /// Returns the conditions on a document with a line: none if a match may lie in several documents of `texts`.
    fn demands_in(&self, texts: &PathTexts) -> &[Vec<TextPattern>] {
        let crosses = self.arguments.multiline && (0..texts.len()).any(|text| texts.is_joined(text));
        if crosses { &[] } else { &self.demands }
    }
}

/// Compiles the patterns as ripgrep does.
fn matcher(arguments: &Arguments, sources: &[&str], expression: &LineExpression<'_>) -> Outcome<RegexMatcher> {
    let mut builder = RegexMatcherBuilder::new();
    builder
        .multi_line(true)
        .unicode(true)
        .octal(false)
        .fixed_strings(expression.is_literal)
        .case_insensitive(expression.is_any_case)
        .whole_line(expression.is_line)
        .word(expression.is_word);
    if arguments.multiline {
        builder.dot_matches_new_line(arguments.multiline_dotall);
    } else {
        builder.line_terminator(Some(b'\n'));
    }
    if arguments.crlf {
        builder.crlf(true);
    }
    if arguments.crlf && arguments.multiline {
        builder.line_terminator(None);
    }
    builder.build_many(sources).map_err(|error| Failure::usage(format!("pattern: {error}")))
}

/// A searcher with a printer, which one thread uses.
struct Worker {
    searcher: Searcher,
    writer: Writer,
}

/// A printer that writes to memory.
enum Writer {
    Lines(Standard<Buffer>),
    Summary(Summary<Buffer>),
    Json(JSON<Buffer>),
}

/// The output for a text.
struct Printed {
    path: String,
    text: Vec<u8>,
    has_line: bool,
    statistics: Statistics,
}

impl Worker {
    fn search(&mut self, matcher: &RegexMatcher, path: String, text: impl Read) -> io::Result<Printed> {
        let Self { searcher, writer } = self;
        let mut statistics = Statistics::default();
        let has_line = match writer {
            Writer::Lines(lines) => {
                let mut sink = lines.sink_with_path(matcher, Path::new(&path));
                searcher.search_reader(matcher, text, &mut sink)?;
                sink.has_match()
            }
            Writer::Summary(summary) => {
                let mut sink = summary.sink_with_path(matcher, Path::new(&path));
                searcher.search_reader(matcher, text, &mut sink)?;
                sink.has_match()
            }
            Writer::Json(json) => {
                let mut sink = json.sink_with_path(matcher, Path::new(&path));
                searcher.search_reader(matcher, text, &mut sink)?;
                statistics = statistics_from(sink.stats());
                sink.has_match()
            }
        };
        let buffer = match writer {
            Writer::Lines(lines) => lines.get_mut(),
            Writer::Summary(summary) => summary.get_mut(),
            Writer::Json(json) => json.get_mut(),
        };
        let text = buffer.as_slice().to_vec();
        buffer.clear();
        Ok(Printed { path, text, has_line, statistics })
    }
}

fn statistics_from(stats: &Stats) -> Statistics {
    Statistics {
        elapsed: stats.elapsed(),
        searches: stats.searches(),
        searches_with_match: stats.searches_with_match(),
        bytes_searched: stats.bytes_searched(),
        bytes_printed: stats.bytes_printed(),
        matched_lines: stats.matched_lines(),
        matches: stats.matches(),
    }
}

/// The bytes of a text: its documents, each followed by a line end if it is joined.
struct TextReader<'c> {
    corpus: &'c Corpus,
    docs: Vec<u64>,
    next_doc: usize,
    is_joined: bool,
    decoder: DocumentDecoder,
    /// A long document, of which so many bytes were read.
    long: Option<(u64, u64)>,
    bytes: Vec<u8>,
    at: usize,
}

impl<'c> TextReader<'c> {
    fn new(corpus: &'c Corpus, texts: &PathTexts, text: usize) -> Self {
        Self {
            corpus,
            docs: texts.documents(text).collect(),
            next_doc: 0,
            is_joined: texts.is_joined(text),
            decoder: DocumentDecoder::new(corpus.clone(), u64::MAX),
            long: None,
            bytes: Vec::new(),
            at: 0,
        }
    }

    /// Decodes the next bytes. There are none at the end.
    fn fill(&mut self) -> tadoc::Result<()> {
        (self.bytes, self.at) = (Vec::new(), 0);
        while self.bytes.is_empty() {
            if let Some((doc_id, num_read)) = self.long {
                self.fill_from_long(doc_id, num_read)?;
                continue;
            }
            let Some(&doc_id) = self.docs.get(self.next_doc) else { return Ok(()) };
            self.next_doc += 1;
            if document_len_bytes(self.corpus, doc_id)? >= LONG_BYTES {
                self.long = Some((doc_id, 0));
                continue;
            }
            self.decoder.append_document(doc_id)?;
            self.bytes = self.decoder.take();
            if self.is_joined {
                self.bytes.push(b'\n');
            }
        }
        Ok(())
    }

    fn fill_from_long(&mut self, doc_id: u64, num_read: u64) -> tadoc::Result<()> {
        let len_bytes = document_len_bytes(self.corpus, doc_id)?;
        let piece_bytes = PIECE_BYTES.min(len_bytes - num_read);
        extract_into(self.corpus, doc_id, num_read, piece_bytes, u64::MAX, &mut self.bytes)?;
        let num_read = num_read + piece_bytes;
        self.long = (num_read < len_bytes).then_some((doc_id, num_read));
        if self.long.is_none() && self.is_joined {
            self.bytes.push(b'\n');
        }
        Ok(())
    }
}

impl Read for TextReader<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.at == self.bytes.len() {
            self.fill().map_err(io::Error::other)?;
        }
        let rest = &self.bytes[self.at..];
        let len = rest.len().min(buffer.len());
        buffer[..len].copy_from_slice(&rest[..len]);
        self.at += len;
        Ok(len)
    }
}

/// A search at one location.
pub struct WholeSearch<'a> {
    pub engine: &'a Engine<'a>,
    pub selection: Option<&'a Selection>,
    /// Text in front of each path.
    pub prefix: &'a str,
    pub output: &'a mut Output,
    /// If asked for: the output for texts that have a line, by path. It is not written then.
    pub found: Option<HashMap<String, Vec<u8>>>,
    pub statistics: Statistics,
}

impl CorpusSearch for WholeSearch<'_> {
    fn file(&mut self, file: &CorpusFile) -> Outcome<ControlFlow<()>> {
        let metas = metas_of(file);
        let chains: Vec<&[Meta<'_>]> = metas.chunk_by(|_, (_, next)| next.continues).collect();
        let joins = Joins::read(file, &chains)?;
        if !joins.are_apart() {
            // Nothing is known of lines in texts that are not read, so all are.
            let needs = Needs { numbers: true, offsets: true, before: 1 };
            let wanted = Wanted { demands: &[], selection: self.selection, counter: None };
            let whole = Whole::open(file, &chains, wanted, needs)?;
            return self.whole_corpus(&whole.corpus, whole.texts);
        }
        let engine = self.engine;
        let selection = self.selection;
        let joins = &joins;
        let chains = &chains;
        let open = chains.iter().enumerate().map(|(number, &chain)| {
            move || {
                let texts = joins.texts_of_paths(number, file, chains)?;
                let is_joined = (0..texts.len()).any(|text| texts.is_joined(text));
                let wanted = Wanted { demands: engine.demands_in(&texts), selection, counter: None };
                let decoded = if is_joined { Decoded::WholeTexts } else { Decoded::Matching };
                OpenChain::read(file, chain, wanted, decoded)
            }
        });
        for_each_ahead(open, &mut |open: OpenChain| match open.corpus {
            Some((corpus, docs)) => self.corpus(&corpus, &PathTexts::new(&corpus), docs),
            None => Ok(ControlFlow::Continue(())),
        })
    }

    fn whole_corpus(&mut self, corpus: &Corpus, texts: PathTexts) -> Outcome<ControlFlow<()>> {
        let docs = self.wanted(&texts).candidates(corpus);
        self.corpus(corpus, &texts, docs)
    }
}

impl WholeSearch<'_> {
    fn wanted(&self, texts: &PathTexts) -> Wanted<'_> {
        Wanted { demands: self.engine.demands_in(texts), selection: self.selection, counter: None }
    }

    /// Writes the lines of the texts of `docs`. Breaks when the output needs no more.
    fn corpus(&mut self, corpus: &Corpus, texts: &PathTexts, docs: Vec<u64>) -> Outcome<ControlFlow<()>> {
        let mut numbers: Vec<usize> = docs.into_iter().filter_map(|doc| texts.text_for(doc)).collect();
        numbers.sort_unstable();
        numbers.dedup();
        let mut rest = numbers.as_slice();
        while !rest.is_empty() {
            let mut num_texts = 0;
            let mut len_bytes = 0;
            while num_texts < rest.len() && len_bytes < TASK_BYTES * num_at_once() as u64 {
                len_bytes += texts.len_bytes(corpus, rest[num_texts])?;
                num_texts += 1;
            }
            let (now, behind) = rest.split_at(num_texts);
            rest = behind;
            let engine = self.engine;
            let prefix = self.prefix;
            let search = |(worker, matcher): &mut (Worker, RegexMatcher), &text: &usize| {
                let path = engine.path(prefix, corpus, texts, text);
                worker.search(matcher, path, TextReader::new(corpus, texts, text))
            };
            let printed = now.par_iter().map_init(|| (engine.worker(), engine.matcher.clone()), search);
            for printed in printed.collect::<Vec<io::Result<Printed>>>() {
                self.write(printed?)?;
                if self.output.is_complete() {
                    return Ok(ControlFlow::Break(()));
                }
            }
        }
        Ok(ControlFlow::Continue(()))
    }

    fn write(&mut self, printed: Printed) -> Outcome {
        self.statistics += printed.statistics;
        if let Some(found) = &mut self.found {
            if printed.has_line {
                found.entry(printed.path).or_default().extend(printed.text);
            }
            return Ok(());
        }
        if printed.text.is_empty() {
            return self.output.write(b"", printed.has_line);
        }
        let separator = self.engine.style.separator();
        self.output.write(&[separator.as_bytes(), &printed.text].concat(), printed.has_line)
    }
}
