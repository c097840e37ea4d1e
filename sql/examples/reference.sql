-- One statement for each function, in the order of the reference in sql/README.md

-- Documents, without their text
SELECT doc_id, path, bytes, words FROM documents('demo.tadoc') LIMIT 3;

-- How often each word occurs
SELECT word, count FROM word_count('demo.tadoc', fold => true) WHERE count > 100 LIMIT 3;

SELECT word, count FROM word_sort('demo.tadoc') WHERE word LIKE 'vocab%';

-- The documents of a word
SELECT word, doc_count, doc_ids FROM inverted_index('demo.tadoc') WHERE word = 'postings';

-- The most frequent words of each document, and those that tell most about it
SELECT doc_id, word, count FROM term_vector('demo.tadoc', top => 2) WHERE doc_id < 2;

SELECT doc_id, word, tf, df, score FROM tfidf('demo.tadoc', top => 2) WHERE doc_id < 2;

-- Words as numbers: rows of a sparse matrix, and the words in order
SELECT doc_id, word_ids, counts FROM doc_term_matrix('demo.tadoc') WHERE doc_id = 1;

SELECT doc_id, word_index, word_id, word FROM tokens('demo.tadoc') LIMIT 3;

-- Sequences of words: how often, and the documents that repeat each most
SELECT sequence, count FROM sequence_count('demo.tadoc', n => 4) ORDER BY count DESC, sequence LIMIT 3;

SELECT sequence, doc_id, count, rank
FROM ranked_inverted_index('demo.tadoc', n => 2, fold => true)
WHERE sequence = 'the corpus' AND rank <= 3;

-- Words that stand near each other
SELECT word1, word2, count FROM cooccurrence('demo.tadoc', window => 3, min_count => 20)
WHERE word1 = 'corpus' OR word2 = 'corpus';

SELECT word2, count FROM cooccurrence('demo.tadoc', window => 3, word => 'corpus') ORDER BY count DESC, word2 LIMIT 5;

-- Words that tell a corpus from another
SELECT word, count, reference_count, score, log_ratio FROM keyness('demo.tadoc', 'plays.tadoc') LIMIT 5;

-- How evenly a query is spread
SELECT count, range, parts, dp, dp_norm, juilland_d FROM dispersion('demo.tadoc', 'corpus', parts => 10);

-- What is repeated
SELECT phrase, words, count FROM repeated_phrases('demo.tadoc', min_words => 20, min_count => 3) LIMIT 1;

-- Documents that have most of their sequences in common
SELECT path_a, path_b, similarity FROM near_duplicates('demo.tadoc', threshold => 0.2, n => 3) ORDER BY similarity DESC LIMIT 3;
SELECT path, first_doc_id, docs, is_kept FROM near_duplicate_clusters('demo.tadoc', threshold => 0.2, n => 3) LIMIT 3;

-- Lines that differ only in their variable parts
SELECT template, count, doc_count, example FROM log_templates('demo.tadoc') LIMIT 3;

-- Text that stands at an earlier place, too
SELECT path, byte_offset, byte_len, num_words, span, copy FROM repeated_spans('demo.tadoc', min_words => 20) LIMIT 3;

-- How much of some texts a corpus has: here those of another corpus
SELECT text_id, num_ngrams, num_found, share, longest_match_words, docs, doc_ids
FROM overlap('demo.tadoc', 'plays.tadoc', n => 2, fold => true);

-- Places of a query, how many, and what stands around them
SELECT path, byte_offset, byte_len, word_index FROM search('demo.tadoc', '"byte order"') LIMIT 3;

SELECT path, count FROM term_count('demo.tadoc', 'segment* Rule', fold => true) ORDER BY count DESC, path LIMIT 3;

SELECT "left", match, "right" FROM kwic('demo.tadoc', '"grammar of" *', width => 3) LIMIT 3;

SELECT "left", match, "right" FROM kwic('demo.tadoc', 'corpus') ORDER BY left_words[1], right_words[1] LIMIT 3;

SELECT path, score FROM rank('demo.tadoc', 'grammar OR segment', top => 3);

-- Lines that match a regular expression
SELECT path, line_number, line FROM grep('demo.tadoc', 'pub (struct|enum) \w*Plan\b') LIMIT 3;

-- Texts that meet a query, their best parts and their words
SELECT path, snippet(text, 'grammar NEAR(rule segment)', '[', ']', '…', 8) FROM documents('demo.tadoc')
WHERE matches(text, 'grammar AND segment') LIMIT 3;

SELECT highlight('power was lost', 'lost', '[', ']');

-- Words that belong to those of a query
SELECT word, count, corpus_count, score FROM collocates('demo.tadoc', 'corpus', left => 3, right => 3) LIMIT 5;

-- One passage, and passages, counts and places for a column of questions
SELECT text FROM extract('demo.tadoc', 0, 0, 80);

SELECT doc_id, extract_text('demo.tadoc', doc_id, 0, 40), count_word('demo.tadoc', doc_id, 'corpus'),
    search_word('demo.tadoc', doc_id, 'corpus')
FROM documents('demo.tadoc')
LIMIT 2;

-- Facts of the file, and whether it is whole
SELECT name, value FROM corpus_info('demo.tadoc');

SELECT file, segment, section, status FROM corpus_verify('demo.tadoc');

-- The lines around line 3 of a file whose lines are documents
SELECT doc_id, distance, text FROM context('plays.tadoc', 0, before => 1, after => 1);

-- Plain files as rows
SELECT path, bytes FROM read_text('text/*.txt');

SELECT path, line_number, text FROM read_lines('lines/*');

-- All functions, with their arguments and an example
SELECT function, signature, example FROM tadoc_functions() WHERE kind = 'table';

-- The words of a text, as an ingest cuts it
SELECT tokenize('To be, or not to be', 'word');

-- Measures of a text for training data, and its language
SELECT path, text_quality(text)['repeated_lines'] FROM documents('demo.tadoc') LIMIT 3;
SELECT path, language(text)['code'] FROM documents('demo.tadoc') LIMIT 3;

-- Fields of a text: by a pattern, as logfmt, and of JSON
SELECT parse('user ann took 12 ms', 'user {name} took {ms:int} ms');

SELECT grok('from 10.0.0.1 in 1.5 ms', 'from %{IP:client} in %{NUMBER:ms:float}');

SELECT logfmt('level=info msg="disk full"', 'msg');

SELECT json_get('{"a": {"b": ["c"]}}', 'a.b[0]');

SELECT json_get_int('{"n": 3}', 'n'), json_get_float('{"n": 1.5}', 'n'), json_get_bool('{"n": true}', 'n');

-- How fast text arrives with each codec behind a link of 6 GB/s
SELECT codec, regime, predicted_gb_per_s, binding_stage FROM ingestion_model(6.0) LIMIT 3;
