//! Segments of a corpus file that have what is looked for, opened a few at a time.
//!
//! ```text
//! segments   | a | b | c ..|.. d |     .. a document that was cut at a block border
//! chains     | a | b | c       d |     documents lie in one chain
//! ```
//!
//! A *chain* is a run of segments that share a document, mostly one segment. As many chains as there
//! are cores are opened side by side: first their dictionaries, then the rest of those whose words
//! may match. They are closed before the next ones are opened.

use std::ops::ControlFlow;
use std::sync::Arc;

use bytes::Bytes;
use rayon::prelude::*;
use tadoc::Corpus;
use tadoc::format::{OpenLimits, SegmentMeta, StoredDictionary, read_segment_with};
use tadoc::query::{SegmentWords, TextPattern, segments_for_texts};
use tadoc::segment::Segment;
use tadoc::text::Dictionary;
use tadoc_session::{CorpusFile, Outcome};

/// Calls `visit` with each chain of `file` that may have a document whose text matches, for each
/// entry of `demands`, one of its patterns, in order, until `visit` breaks. If `docs` is given, a chain
/// has at least one of these documents, whose ids ascend. Without both, all documents are expected to
/// be decoded.
///
/// # Errors
/// The file cannot be read or is damaged, and the errors of `visit`.
pub fn for_each_chain(
    file: &CorpusFile,
    demands: &[Vec<TextPattern>],
    docs: Option<&[u64]>,
    visit: &mut dyn FnMut(&Corpus) -> Outcome<ControlFlow<()>>,
) -> Outcome<ControlFlow<()>> {
    let metas: Vec<Meta<'_>> = file.footer.segments.iter().enumerate().collect();
    let of_docs = docs.map(|docs| file.footer.segments_of(docs));
    let has_doc = |(place, _): &Meta<'_>| of_docs.as_ref().is_none_or(|of_docs| of_docs[*place]);
    let chains = metas.chunk_by(|_, (_, next)| next.continues);
    let chains: Vec<_> = chains.filter(|chain| chain.iter().any(has_doc)).collect();
    for chains in chains.chunks(rayon::current_num_threads()) {
        let read = read_words(file, &chains.concat())?;
        let words = read.iter().map(|((_, meta), dictionary)| SegmentWords {
            dictionary,
            num_docs: meta.num_docs,
            continues: meta.continues,
        });
        let words: Vec<SegmentWords<'_>> = words.collect();
        let mut is_needed = segments_for_texts(demands, file.footer.profile, &words).into_iter();
        let needed = read.into_iter().filter(|_| is_needed.next().unwrap_or_default());
        let segments = read_rest(file, needed.collect())?;
        if demands.is_empty() && docs.is_none() {
            segments.par_iter().for_each(|segment| segment.prepare_to_decode_all());
        }
        for chain in segments.chunk_by(|_, next| next.continues) {
            let corpus = Corpus::new(file.footer.profile, chain.to_vec());
            if visit(&corpus)?.is_break() {
                return Ok(ControlFlow::Break(()));
            }
        }
    }
    Ok(ControlFlow::Continue(()))
}

/// A segment's place in its file, and its sections.
type Meta<'f> = (usize, &'f SegmentMeta);

/// Reads the dictionaries of segments.
fn read_words<'f>(file: &CorpusFile, metas: &[Meta<'f>]) -> Outcome<Vec<(Meta<'f>, Dictionary)>> {
    let read = |&meta: &Meta<'f>| Ok((meta, file.read(meta.1.dictionary_range())?));
    let stored: Vec<(Meta<'f>, Bytes)> = metas.iter().map(read).collect::<Outcome<_>>()?;
    let decode = |(meta, bytes): (Meta<'f>, Bytes)| {
        let limits = OpenLimits::default();
        let dictionary = StoredDictionary::new(&file.name, &file.footer, meta.0, bytes)?;
        Ok((meta, dictionary.decode(&limits)?))
    };
    Ok(stored.into_par_iter().map(decode).collect::<tadoc::Result<_>>()?)
}

/// Reads what is left of segments of which the dictionaries were read.
fn read_rest(file: &CorpusFile, read: Vec<(Meta<'_>, Dictionary)>) -> Outcome<Vec<Arc<Segment>>> {
    let rest = |(meta, dictionary): (Meta<'_>, Dictionary)| {
        Ok((meta.0, dictionary, file.read(meta.1.rest_range())?))
    };
    let stored: Vec<(usize, Dictionary, Bytes)> =
        read.into_iter().map(rest).collect::<Outcome<_>>()?;
    let decode = |(segment_idx, dictionary, bytes): (usize, Dictionary, Bytes)| {
        let (limits, footer) = (OpenLimits::default(), &file.footer);
        read_segment_with(&file.name, footer, segment_idx, &bytes, dictionary, &limits)
            .map(Arc::new)
    };
    Ok(stored.into_par_iter().map(decode).collect::<tadoc::Result<_>>()?)
}
