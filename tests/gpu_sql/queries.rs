//! Queries for tasks with kernels, over a corpus `{}`.

/// Queries that need whole documents in each segment.
pub const WHOLE_DOCUMENTS: [&str; 24] = [
    "SELECT * FROM sequence_count('{}', 2)",
    "SELECT * FROM sequence_count('{}', 3, fold => true)",
    "SELECT sequence, count FROM sequence_count('{}', 3) WHERE count > 3 LIMIT 11",
    "SELECT count FROM sequence_count('{}', 5) ORDER BY count DESC LIMIT 5",
    "SELECT sum(count), count(*) FROM sequence_count('{}', 4)",
    "SELECT sequence, count FROM sequence_count('{}', 2) ORDER BY sequence",
    "SELECT * FROM sequence_count('{}', 3, by_doc => true)",
    "SELECT * FROM sequence_count('{}', 2, by_doc => true, fold => true)",
    "SELECT * FROM sequence_count('{}', 1, by_doc => true) WHERE count > 2",
    "SELECT doc_id, sequence FROM sequence_count('{}', 4, by_doc => true) WHERE doc_id IN (2, 3, 29) AND count = 1",
    "SELECT count(*), sum(count), max(doc_id) FROM sequence_count('{}', 3, by_doc => true)",
    "SELECT * FROM cooccurrence('{}')",
    "SELECT * FROM cooccurrence('{}', fold => true)",
    "SELECT * FROM cooccurrence('{}', 3, 4)",
    "SELECT * FROM cooccurrence('{}', 2, 3, true)",
    "SELECT word2, count FROM cooccurrence('{}', 7) WHERE count > 5 LIMIT 13",
    "SELECT * FROM ranked_inverted_index('{}')",
    "SELECT * FROM ranked_inverted_index('{}', 1)",
    "SELECT * FROM ranked_inverted_index('{}', 2, fold => true)",
    "SELECT sequence, doc_id, count FROM ranked_inverted_index('{}', 2) WHERE doc_id IN (2, 3, 29)",
    "SELECT sequence, rank FROM ranked_inverted_index('{}', 2) WHERE doc_id % 5 = 3",
    "SELECT sequence, rank, doc_id FROM ranked_inverted_index('{}', 2) ORDER BY sequence, rank",
    "SELECT doc_id, count, rank FROM ranked_inverted_index('{}', 1) WHERE count > 2",
    "SELECT count(*), sum(rank) FROM ranked_inverted_index('{}', 4, fold => true)",
];

/// All other queries.
pub const QUERIES: [&str; 15] = [
    "SELECT * FROM term_vector('{}')",
    "SELECT * FROM term_vector('{}', fold => true)",
    "SELECT doc_id, word, count FROM term_vector('{}', 3) WHERE doc_id % 7 = 2",
    "SELECT word, count FROM term_vector('{}', 2, true) WHERE doc_id IN (3, 5, 21)",
    "SELECT doc_id, word FROM term_vector('{}') LIMIT 9",
    "SELECT * FROM doc_term_matrix('{}')",
    "SELECT word_ids FROM doc_term_matrix('{}', true) WHERE doc_id BETWEEN 4 AND 30",
    "SELECT * FROM inverted_index('{}')",
    "SELECT * FROM inverted_index('{}', fold => true)",
    "SELECT word, doc_count FROM inverted_index('{}') WHERE doc_count > 20 AND word >= 'r'",
    "SELECT doc_ids FROM inverted_index('{}') WHERE word LIKE '%e%' LIMIT 4",
    "SELECT * FROM tfidf('{}')",
    "SELECT * FROM tfidf('{}', 3, fold => true)",
    "SELECT word, df, score FROM tfidf('{}', top => 2) WHERE doc_id > 10",
    "SELECT count(*), sum(tf) FROM tfidf('{}', fold => true)",
];
