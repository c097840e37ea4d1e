//! Tests that batches which somebody else answers, as a device does, have the answers and errors of the cores.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::sync::Arc;

use tadoc::build::{CorpusBuilder, IngestOptions};
use tadoc::format::OpenLimits;
use tadoc::query::{WordQuery, count_batch, count_batch_by, search_batch, search_batch_by};
use tadoc::read::{
    Answers, DocPassage, DocWord, ExtractQuery, Passages, Questions, document_len_bytes, extract, extract_batch,
    extract_batch_by,
};
use tadoc::{Corpus, Error, Result};

/// Builds documents of many lengths in blocks of this size. Some of them are cut, and one segment is there twice.
fn corpus(block_bytes: usize) -> Corpus {
    let options = IngestOptions { block_bytes, ..IngestOptions::default() };
    let mut builder = CorpusBuilder::new(Vec::new(), options).unwrap();
    for doc in 0..40 {
        let text = format!("document {doc} says so, and ").repeat(doc * doc % 23);
        builder.push_document(&doc.to_string(), text.as_bytes()).unwrap();
    }
    let file = builder.finish(None).unwrap().0;
    let corpus = Corpus::from_bytes("memory", &file, &OpenLimits::default()).unwrap().1;
    let again = corpus.segments().iter().find(|segment| !segment.continues).cloned();
    let segments = corpus.segments().iter().cloned().chain(again).collect();
    Corpus::new(corpus.profile(), segments)
}

/// Answers in the place of a device: each segment is a corpus of its own.
fn on_cores(corpus: &Corpus, asked: BTreeMap<usize, Questions>) -> Result<BTreeMap<usize, Answers>> {
    let answer = |(segment_idx, questions): (usize, Questions)| {
        let segment = &corpus.segments()[segment_idx];
        let alone = Corpus::new(corpus.profile(), vec![Arc::clone(segment)]);
        let word = |asked: &DocWord| segment.dictionary.word(asked.word);
        let query = |asked: &DocWord| WordQuery { doc_id: asked.doc.into(), word: word(asked) };
        let queries = |words: &[DocWord]| words.iter().map(query).collect::<Vec<_>>();
        let answers = match &questions {
            Questions::Passages(passages) => {
                let read = |asked: &DocPassage| extract(&alone, asked.doc.into(), asked.byte_offset, asked.byte_len);
                let texts: Vec<Vec<u8>> = passages.iter().map(|asked| read(asked).unwrap()).collect();
                let texts: Vec<&[u8]> = texts.iter().map(Vec::as_slice).collect();
                let (bytes, ends) = Passages::joined(&texts, u64::MAX)?.into_parts();
                Answers::Passages { bytes, ends }
            }
            Questions::Counts(words) => Answers::Counts(count_batch(&alone, &queries(words))?),
            Questions::Places { words, max_places } => {
                let lists = search_batch(&alone, &queries(words), *max_places)?;
                let (offsets, ends) = lists.into_parts();
                Answers::Places { offsets, ends }
            }
        };
        Ok((segment_idx, answers))
    };
    asked.into_iter().map(answer).collect()
}

fn queries(corpus: &Corpus) -> Vec<ExtractQuery> {
    let mut queries = Vec::new();
    for doc_id in 0..corpus.num_docs() {
        let len = document_len_bytes(corpus, doc_id).unwrap();
        for (byte_offset, byte_len) in [(0, u64::MAX), (len, 5), (len / 2, 7), (0, 0), (len / 3, 200), (0, 1)] {
            queries.push(ExtractQuery { doc_id, byte_offset, byte_len });
        }
    }
    queries
}

#[test]
fn passages_of_segments_make_those_of_the_corpus() {
    for block_bytes in [1 << 20, 300, 64] {
        let corpus = corpus(block_bytes);
        let queries = queries(&corpus);
        let expected = extract_batch(&corpus, &queries, u64::MAX).unwrap();
        let ask = |asked| on_cores(&corpus, asked);
        let got = extract_batch_by(&corpus, &queries, u64::MAX, &ask).unwrap();
        assert!(got == expected, "{block_bytes}");
        // Errors are those of the cores, and nothing is asked.
        let nobody = |_| unreachable!("a bad query is asked");
        let beyond = [ExtractQuery { doc_id: corpus.num_docs(), byte_offset: 0, byte_len: 1 }];
        let error = |answer: Result<Passages>| answer.unwrap_err().to_string();
        assert_eq!(
            error(extract_batch_by(&corpus, &beyond, u64::MAX, &nobody)),
            error(extract_batch(&corpus, &beyond, u64::MAX))
        );
        assert_eq!(
            error(extract_batch_by(&corpus, &queries, 10, &nobody)),
            error(extract_batch(&corpus, &queries, 10))
        );
    }
}

#[test]
fn answers_of_another_shape_are_errors() {
    let corpus = corpus(300);
    let queries = queries(&corpus);
    let spoil: [fn(&mut BTreeMap<usize, Answers>); 4] = [
        |answers| drop(answers.pop_first()),
        |answers| *answers.values_mut().next().unwrap() = Answers::Counts(vec![1]),
        |answers| match answers.values_mut().next() {
            Some(Answers::Passages { ends, .. }) => drop(ends.pop()),
            other => panic!("{other:?}"),
        },
        |answers| match answers.values_mut().next() {
            Some(Answers::Passages { bytes, .. }) => drop(bytes.pop()),
            other => panic!("{other:?}"),
        },
    ];
    for spoil in spoil {
        let ask = |asked| {
            let mut answers = on_cores(&corpus, asked)?;
            spoil(&mut answers);
            Ok(answers)
        };
        let got = extract_batch_by(&corpus, &queries, u64::MAX, &ask);
        assert!(matches!(got, Err(Error::External { .. })), "{got:?}");
    }
}

#[test]
fn joined_questions_have_the_answers_of_each() {
    let corpus = corpus(64);
    let asked = RefCell::new(BTreeMap::new());
    let ask = |questions: BTreeMap<usize, Questions>| {
        *asked.borrow_mut() = questions.clone();
        on_cores(&corpus, questions)
    };
    extract_batch_by(&corpus, &queries(&corpus), u64::MAX, &ask).unwrap();
    assert!(asked.borrow().len() > 1);
    for (segment_idx, questions) in asked.take() {
        let Questions::Passages(passages) = questions else { panic!("{questions:?}") };
        let (first, last) = passages.split_at(passages.len() / 3);
        let [first, last] = [first, last].map(|part| Questions::Passages(part.to_vec()));
        let answer = |questions: &Questions| {
            let asked = BTreeMap::from([(segment_idx, questions.clone())]);
            on_cores(&corpus, asked).unwrap().remove(&segment_idx).unwrap()
        };
        let mut both = first.clone();
        both.append(last.clone()).unwrap();
        let answers = answer(&both);
        assert_eq!(answers.part(0..first.len()).unwrap(), answer(&first));
        assert_eq!(answers.part(first.len()..both.len()).unwrap(), answer(&last));
        assert!(answers.part(0..both.len() + 1).is_err());
        assert!(both.append(Questions::Counts(Vec::new())).is_err());
    }
}

#[test]
fn words_of_segments_make_those_of_the_corpus() {
    for block_bytes in [1 << 20, 300, 64] {
        let corpus = corpus(block_bytes);
        let words = ["document", "says", "nowhere", "17", "says"];
        let for_doc = |doc_id| words.map(|word| WordQuery { doc_id, word });
        let queries: Vec<WordQuery<'_>> = (0..corpus.num_docs()).flat_map(for_doc).collect();
        // Before the segments keep counts and ask nobody.
        let wrong = |_| Ok(BTreeMap::from([(0, Answers::Counts(vec![1; 999]))]));
        assert!(matches!(count_batch_by(&corpus, &queries, &wrong), Err(Error::External { .. })));
        assert!(matches!(search_batch_by(&corpus, &queries, 9, &wrong), Err(Error::External { .. })));
        let ask = |asked| on_cores(&corpus, asked);
        let expected = count_batch(&corpus, &queries).unwrap();
        assert!(count_batch_by(&corpus, &queries, &ask).unwrap() == expected, "{block_bytes}");
        assert!(expected.iter().sum::<u64>() > 100);
        let expected = search_batch(&corpus, &queries, u64::MAX).unwrap();
        assert!(search_batch_by(&corpus, &queries, u64::MAX, &ask).unwrap() == expected);
        assert!(search_batch_by(&corpus, &queries, 100, &ask).is_err());
        // Of "says", which is asked twice, one question is asked.
        let num_asked = Cell::new(0);
        let counting = |asked: BTreeMap<usize, Questions>| {
            num_asked.set(asked.values().map(Questions::len).sum::<usize>());
            on_cores(&corpus, asked)
        };
        search_batch_by(&corpus, &queries, u64::MAX, &counting).unwrap();
        assert!(num_asked.get() <= 3 * queries.len() / 5 * corpus.segments().len());
        let nobody = |_| unreachable!("a bad query is asked");
        let two = [WordQuery { doc_id: 0, word: "two words" }];
        let error = count_batch_by(&corpus, &two, &nobody).unwrap_err().to_string();
        assert_eq!(error, count_batch(&corpus, &two).unwrap_err().to_string());
    }
}
