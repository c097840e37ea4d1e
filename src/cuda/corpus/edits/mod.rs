//! A text with edits on a device: the wrapper of `kernels/corpus_edits.cu`; and batches of edits and reads,
//! where each read sees the text at its place in the batch.
//!
//! ```text
//! EditBatch ──plan──▶ changes ──windows, cuts, words──▶ splices ──▶ runs ──▶ a new CorpusText
//!            host               host, windows read on the device     device
//! ```
//!
//! The new text has the rules of the old one under a new root. The old text stays unchanged, and both can be read,
//! searched and edited. Each has its own copy of the grammar, 12 1/8 bytes per element, and of the dictionary.
//!
//! # Mixed batches
//!
//! ```text
//! operations   insert 3   search 3   append 7   extract 3   insert 3   count 3
//! states                  3 after 1             the same               3 after 5
//! new texts    one of all states that are read, which answers all reads at once;
//!              one of all documents at the end of the batch
//! ```
//!
//! A document in several states becomes several documents of the first text. So its memory grows
//! with the elements of the roots of the states that are read. Batches whose states have 2^31
//! elements or more are refused; split them into smaller ones.

#![allow(unsafe_code, reason = "launching kernels")]

mod plan;
mod text;
mod tokens;

use cudarc::driver::CudaFunction;
use rustc_hash::FxHashMap;
use tadoc::edits::{Answer, EditBatch, EditMode, Operation};
use tadoc::text::{TokenizerProfile, for_each_token};

use crate::corpus::launch::{Argument, SpliceArrays, THREADS, address, grid_for, launch, one_to_host};
use crate::corpus::search::{DeviceOffsets, DocWord};
use crate::corpus::sort::{Sorter, num_sums};
use crate::corpus::text::{PassageBatch, PassageQuery, Root};
use crate::corpus::{CorpusText, check_limit};
use crate::device::{CORPUS_EDITS, Module};
use crate::error::GpuError;
use crate::memory::DeviceBuffer;
use plan::{BatchPlan, NewDocument, OperationRef, StateRead, check_num_documents};
use text::NewText;
use tokens::Splices;

/// Largest number of elements of a text. Places of tokens need one more bit.
const MAX_SYMBOLS: u64 = (1 << 31) - 1;
const BEGINS_AND_ENDS_WITH_WORD: u8 = 3;

/// Edits of a text, checked and tokenized, on the device.
#[derive(Debug)]
pub struct CorpusEdits {
    text: CorpusText,
    splices: Splices,
    kernels: Kernels,
    sorter: Sorter,
    docs: DeviceBuffer<u32>,
    starts: DeviceBuffer<u32>,
    froms: DeviceBuffer<u64>,
    tos: DeviceBuffer<u64>,
    token_starts: DeviceBuffer<u32>,
    tokens: DeviceBuffer<u32>,
    new_edges: DeviceBuffer<u8>,
}

#[derive(Debug)]
struct Kernels {
    edges: CudaFunction,
    count: CudaFunction,
    runs: CudaFunction,
    symbols: CudaFunction,
    offsets: CudaFunction,
    blanks: CudaFunction,
    lens: CudaFunction,
    starts: CudaFunction,
}

/// Runs of positions and tokens, with their starts in the new root.
struct Runs {
    first_runs: DeviceBuffer<u32>,
    sources: DeviceBuffer<u32>,
    starts: DeviceBuffer<u64>,
    num_runs: usize,
    num_root: usize,
}

impl CorpusText {
    /// Plans the edits of `batch` on this text, whose corpus has the tokenizer `profile`. Documents
    /// are counted from the first of the segment. The mode of the batch says which text the offsets
    /// refer to.
    ///
    /// # Errors
    ///
    /// [`GpuError::Mismatch`] for a document or an offset that does not exist, and for edits that
    /// add, drop or replace documents; [`GpuError::Unsupported`], [`GpuError::OutOfMemory`],
    /// [`GpuError::Driver`].
    pub fn plan_edits(&self, profile: TokenizerProfile, batch: &EditBatch) -> Result<CorpusEdits, GpuError> {
        let edits = batch.edits.iter().map(OperationRef::Edit);
        let plan = BatchPlan::new(self, batch.mode, edits)?;
        CorpusEdits::new(self, profile, &plan.last)
    }

    /// Returns this text after the edits of `batch`.
    ///
    /// # Errors
    ///
    /// The errors of [`plan_edits`](Self::plan_edits) and [`CorpusEdits::write`].
    pub fn with_edits(&self, profile: TokenizerProfile, batch: &EditBatch) -> Result<Self, GpuError> {
        self.plan_edits(profile, batch)?.write()
    }
}

impl CorpusEdits {
    fn new(text: &CorpusText, profile: TokenizerProfile, documents: &[NewDocument]) -> Result<Self, GpuError> {
        check_num_documents(documents)?;
        let device = text.device();
        let splices = Splices::new(text, profile, documents)?;
        check_limit("tokens of edits", splices.tokens.len(), MAX_SYMBOLS as usize)?;
        let module = Module::load(device, CORPUS_EDITS)?;
        let class = |is_word: bool| if is_word { BEGINS_AND_ENDS_WITH_WORD } else { 0 };
        let new_edges: Vec<u8> = splices.new_terminals.iter().map(|&(is_word, _)| class(is_word)).collect();
        Ok(Self {
            kernels: Kernels::new(&module)?,
            sorter: Sorter::new(device)?,
            docs: device.copy_for("documents of edits", &splices.docs)?,
            starts: device.copy_for("edits of documents", &splices.starts)?,
            froms: device.copy_for("offsets of edits", &splices.froms)?,
            tos: device.copy_for("offsets of edits", &splices.tos)?,
            token_starts: device.copy_for("tokens of edits", &splices.token_starts)?,
            tokens: device.copy_for("tokens of edits", &splices.tokens)?,
            new_edges: device.copy_for("tokens of edits", &new_edges)?,
            text: text.clone(),
            splices,
        })
    }

    /// Returns the number of splices, that is, of token ranges that are replaced.
    fn num_splices(&self) -> usize {
        self.splices.froms.len()
    }

    /// Returns the ids of the words that the edits add to the text.
    pub(super) fn new_words(&self) -> FxHashMap<&[u8], u32> {
        let new = self.splices.new_terminals.iter().zip(self.text.num_terminals()..);
        new.filter(|((is_word, _), _)| *is_word).map(|((_, bytes), id)| (&**bytes, id)).collect()
    }

    /// Builds the new text. Returns once the work is enqueued, before it is done.
    ///
    /// # Errors
    ///
    /// [`GpuError::Mismatch`] if the new text has 2^31 elements or more, or if the old one has
    /// tokens that its tokenizer would cut; [`GpuError::OutOfMemory`], [`GpuError::Driver`].
    pub fn write(&self) -> Result<CorpusText, GpuError> {
        let device = self.text.device();
        let old = &self.text;
        let num_new = self.splices.new_terminals.len();
        let num_elements = old.num_elements() + num_new;
        check_limit("elements and rules of a text", num_elements, MAX_SYMBOLS as usize)?;
        let edges: DeviceBuffer<u8> = device.alloc("edges of elements", num_elements)?;
        let arguments = [
            Argument::Long(address(device, old.edges())),
            Argument::Long(address(device, &self.new_edges)),
            Argument::Short(old.num_terminals()),
            Argument::Short(num_new as u32),
            Argument::Short(num_elements as u32),
            Argument::Long(address(device, &edges)),
        ];
        // SAFETY: the arguments match the kernel; there is room for each element.
        unsafe { launch(device, &self.kernels.edges, grid_for(num_elements), THREADS, &arguments) }?;
        let splices = Argument::Splices(self.arrays(&edges));
        let runs = self.runs(splices)?;
        let num_rules_symbols = old.num_symbols() - old.num_root();
        let num_symbols = runs.num_root as u64 + num_rules_symbols as u64;
        check_limit("elements of a text", num_symbols as usize, MAX_SYMBOLS as usize)?;
        self.text_of(splices, edges, &runs, num_symbols as usize)
    }

    fn arrays(&self, edges: &DeviceBuffer<u8>) -> SpliceArrays {
        let device = self.text.device();
        SpliceArrays {
            docs: address(device, &self.docs),
            splice_starts: address(device, &self.starts),
            froms: address(device, &self.froms),
            tos: address(device, &self.tos),
            token_starts: address(device, &self.token_starts),
            tokens: address(device, &self.tokens),
            edges: address(device, edges),
            num_docs: self.splices.docs.len() as u32,
            num_gaps: self.num_gaps() as u32,
            num_new: self.splices.new_terminals.len() as u32,
            num_old_root: self.text.num_root() as u32,
        }
    }

    fn num_gaps(&self) -> usize {
        self.splices.docs.len() + self.num_splices()
    }

    /// Counts the runs, allocates room for them, writes them and sums their lengths.
    fn runs(&self, splices: Argument) -> Result<Runs, GpuError> {
        let device = self.text.device();
        let num_gaps = self.num_gaps();
        let text = self.text.arrays();
        let first_runs: DeviceBuffer<u32> = device.alloc("runs of edits", num_gaps + 1)?;
        let num_inner: DeviceBuffer<u32> = device.alloc("runs of edits", num_gaps)?;
        let sums = device.alloc("runs of edits", num_sums(num_gaps))?;
        let is_misplaced: DeviceBuffer<u32> = device.alloc("runs of edits", 1)?;
        let [first_runs_at, num_inner_at, is_misplaced_at] =
            [&first_runs, &num_inner, &is_misplaced].map(|b| Argument::Long(address(device, b)));
        let counting = [text, splices, first_runs_at, num_inner_at, is_misplaced_at];
        // SAFETY: the arguments match the kernel. The text has a validated grammar, and the planned
        // splices lie in its documents.
        unsafe {
            launch(device, &self.kernels.count, grid_for(num_gaps), THREADS, &counting)?;
            self.sorter.scan_narrow(&first_runs, num_gaps, &sums)?;
        }
        let is_cut = one_to_host(device, &is_misplaced, 0)?;
        check_limit("tokens that the tokenizer would cut", is_cut as usize, 0)?;
        let num_runs = one_to_host(device, &first_runs, num_gaps)? as usize;
        let sources: DeviceBuffer<u32> = device.alloc("runs of edits", num_runs)?;
        let starts: DeviceBuffer<u64> = device.alloc("runs of edits", num_runs + 1)?;
        let sums = device.alloc("runs of edits", num_sums(num_runs))?;
        let writing = [
            text,
            splices,
            first_runs_at,
            num_inner_at,
            Argument::Long(address(device, &sources)),
            Argument::Long(address(device, &starts)),
            is_misplaced_at,
        ];
        // SAFETY: same argument as for the kernel above; there is room for the counted runs.
        unsafe {
            launch(device, &self.kernels.runs, grid_for(num_gaps), THREADS, &writing)?;
            self.sorter.scan_wide(&starts, num_runs, &sums)?;
        }
        let num_root = one_to_host(device, &starts, num_runs)?;
        let num_root = usize::try_from(num_root).unwrap_or(usize::MAX);
        check_limit("elements of a text", num_root, MAX_SYMBOLS as usize)?;
        Ok(Runs { first_runs, sources, starts, num_runs, num_root })
    }

    /// Builds the text from these runs and the rules.
    fn text_of(
        &self,
        splices: Argument,
        edges: DeviceBuffer<u8>,
        runs: &Runs,
        num_symbols: usize,
    ) -> Result<CorpusText, GpuError> {
        let device = self.text.device();
        let old = &self.text;
        let num_docs = self.splices.docs.len();
        let num_root = runs.num_root;
        let num_rules = old.num_rules();
        let new = NewText {
            symbols: device.alloc("elements of rules", num_symbols)?,
            rule_offsets: device.alloc("offsets of rules", num_rules + 1)?,
            doc_offsets: device.alloc("offsets of documents", num_docs + 1)?,
            starts: device.alloc("starts of elements", num_symbols + 1)?,
            blanks: device.alloc("blanks between elements", num_symbols / 32 + 1)?,
            doc_lens: self.splices.doc_lens.clone(),
            root: Root { num_root, num_symbols, edges },
        };
        let sums = device.alloc("lengths of elements", num_sums(num_root))?;
        let dictionary = old.with_terminals(&self.splices.new_terminals)?;
        let [symbols, rule_offsets, doc_offsets, blanks] =
            [&new.symbols, &new.rule_offsets, &new.doc_offsets, &new.blanks]
                .map(|buffer| Argument::Long(address(device, buffer)));
        let [run_starts, starts] = [&runs.starts, &new.starts].map(|buffer| Argument::Long(address(device, buffer)));
        let [sources, first_runs, token_offsets] = [&runs.sources, &runs.first_runs, &dictionary.offsets]
            .map(|buffer| Argument::Long(address(device, buffer)));
        let text = old.arrays();
        let [num_runs, num_symbols_at, num_root_at, num_rules_at] =
            [runs.num_runs, num_symbols, num_root, num_rules].map(|n| Argument::Short(n as u32));
        let num_terminals = old.num_terminals() + self.splices.new_terminals.len() as u32;
        let writing = [text, splices, sources, run_starts, num_runs, num_symbols_at, symbols];
        let placing = [text, splices, first_runs, run_starts, num_runs, num_rules_at, rule_offsets, doc_offsets];
        let blanking = [text, splices, symbols, doc_offsets, num_symbols_at, blanks];
        let measuring = [text, symbols, blanks, token_offsets, Argument::Short(num_terminals), num_root_at, starts];
        let moving = [text, Argument::Short(old.num_root() as u32), num_root_at, num_symbols_at, starts];
        let kernels = &self.kernels;
        // SAFETY: the arguments match the kernels. Buffers have the stated lengths, runs lie in the
        // old text and among the tokens, and each kernel reads only the output of earlier ones.
        unsafe {
            launch(device, &kernels.symbols, grid_for(num_symbols), THREADS, &writing)?;
            let num_offsets = num_rules.max(num_docs) + 1;
            launch(device, &kernels.offsets, grid_for(num_offsets), THREADS, &placing)?;
            launch(device, &kernels.blanks, grid_for(num_symbols / 32 + 1), THREADS, &blanking)?;
            launch(device, &kernels.lens, grid_for(num_root), THREADS, &measuring)?;
            self.sorter.scan_wide(&new.starts, num_root, &sums)?;
            launch(device, &kernels.starts, grid_for(num_symbols - num_root), THREADS, &moving)?;
        }
        Ok(old.edited(new, dictionary))
    }
}

impl Kernels {
    fn new(module: &Module) -> Result<Self, GpuError> {
        Ok(Self {
            edges: module.kernel("corpus_edits_edges")?,
            count: module.kernel("corpus_edits_count")?,
            runs: module.kernel("corpus_edits_runs")?,
            symbols: module.kernel("corpus_edits_symbols")?,
            offsets: module.kernel("corpus_edits_offsets")?,
            blanks: module.kernel("corpus_edits_blanks")?,
            lens: module.kernel("corpus_edits_lens")?,
            starts: module.kernel("corpus_edits_starts")?,
        })
    }
}

/// A planned batch of edits and reads of a text.
#[derive(Debug)]
pub struct MixedBatch {
    states: CorpusEdits,
    last: CorpusEdits,
    passages: Vec<PassageQuery>,
    words: Vec<DocWord>,
    kinds: Vec<Kind>,
}

/// The kinds of operations.
#[derive(Debug, Clone, Copy)]
enum Kind {
    Edit,
    Extract,
    Search,
    Count,
}

/// The text at the end of a batch and the results of its reads, in device memory.
#[derive(Debug)]
pub struct MixedResults {
    text: CorpusText,
    passages: PassageBatch,
    words: DeviceOffsets,
    kinds: Vec<Kind>,
}

impl CorpusText {
    /// Plans the edits and reads of `operations` on this text, whose corpus has the tokenizer
    /// `profile`. Offsets of reads refer to the text at their place in the batch, in either mode.
    ///
    /// # Errors
    ///
    /// The errors of [`plan_edits`](Self::plan_edits), and [`GpuError::Mismatch`] for a search that
    /// is not one word.
    pub fn plan_mixed(
        &self,
        profile: TokenizerProfile,
        mode: EditMode,
        operations: &[Operation],
    ) -> Result<MixedBatch, GpuError> {
        let plan = BatchPlan::new(self, mode, operations.iter().map(OperationRef::from))?;
        let states = CorpusEdits::new(self, profile, &plan.states)?;
        let last = CorpusEdits::new(self, profile, &plan.last)?;
        let kinds = operations.iter().map(Kind::from_operation).collect();
        let mut passages = Vec::new();
        let mut words = Vec::new();
        let new_words = states.new_words();
        for &StateRead { state: doc, read } in &plan.reads {
            match read {
                Operation::Extract { offset_bytes: offset, len_bytes, .. } => {
                    passages.push(PassageQuery { doc, offset: *offset, len_bytes: *len_bytes });
                }
                Operation::Search { word, .. } | Operation::Count { word, .. } => {
                    check_word(profile, word)?;
                    let new = || new_words.get(word.as_bytes()).copied();
                    words.push(DocWord { doc, word: self.word_id(word.as_bytes()).or_else(new) });
                }
                Operation::Edit(_) => {}
            }
        }
        drop(new_words);
        Ok(MixedBatch { states, last, passages, words, kinds })
    }
}

impl Kind {
    fn from_operation(operation: &Operation) -> Self {
        match operation {
            Operation::Edit(_) => Self::Edit,
            Operation::Extract { .. } => Self::Extract,
            Operation::Search { .. } => Self::Search,
            Operation::Count { .. } => Self::Count,
        }
    }
}

impl MixedBatch {
    /// Applies the edits and answers the reads. The original text stays unchanged.
    ///
    /// # Errors
    ///
    /// The errors of [`CorpusEdits::write`], and those of the reads.
    pub fn run(&self) -> Result<MixedResults, GpuError> {
        let states = self.states.write()?;
        let reader = states.passages()?;
        let mut passages = reader.batch(&self.passages)?;
        reader.run(&mut passages)?;
        let finder = states.words()?;
        let words = finder.find(&mut finder.batch(&self.words)?, u64::MAX)?;
        let text = self.last.write()?;
        Ok(MixedResults { text, passages, words, kinds: self.kinds.clone() })
    }
}

impl MixedResults {
    /// Returns the text after all edits.
    pub fn text(&self) -> &CorpusText {
        &self.text
    }

    /// Copies the answers to the host, in the order of the operations.
    ///
    /// # Errors
    ///
    /// [`GpuError::Driver`], also for faults of the work.
    pub fn to_host(&self) -> Result<Vec<Answer>, GpuError> {
        let passages = self.passages.to_host()?;
        let words = self.words.to_host()?;
        let mut passage = 0..;
        let mut word = 0..;
        let mut next_words = || words.get(word.next().unwrap_or_default());
        let mut next_passage = || passages.get(passage.next().unwrap_or_default());
        let answer = |kind: &Kind| match kind {
            Kind::Edit => Answer::Edited,
            Kind::Extract => Answer::Text(next_passage().to_vec()),
            Kind::Search => Answer::Offsets(next_words().to_vec()),
            Kind::Count => Answer::Count(next_words().len() as u64),
        };
        Ok(self.kinds.iter().map(answer).collect())
    }
}

/// Checks that `word` is exactly one word. Anything else would never be found.
fn check_word(profile: TokenizerProfile, word: &str) -> Result<(), GpuError> {
    let mut num_tokens = 0;
    let mut is_word = false;
    for_each_token(profile, word.as_bytes(), |token| {
        num_tokens += 1;
        is_word = token.is_word;
    });
    check_limit("searches for what is not one word", usize::from(num_tokens != 1 || !is_word), 0)
}
