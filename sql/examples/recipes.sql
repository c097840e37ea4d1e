-- Boilerplate: what documents repeat word for word, the largest part of the corpus first
SELECT words, count, phrase
FROM repeated_phrases('demo.tadoc', min_words => 12)
LIMIT 5;

-- Templates of lines: numbers do not tell two lines of a log apart
SELECT regexp_replace(line, '[0-9]+', '#', 'g') AS template, count(*) AS lines
FROM (SELECT unnest(string_to_array(text, chr(10))) AS line FROM documents('demo.tadoc'))
WHERE line <> ''
GROUP BY template
ORDER BY lines DESC, template
LIMIT 5;

-- Columns of their own stay with the documents: here a year, made up
COPY (SELECT path, text, 2020 + doc_id % 5 AS year FROM documents('demo.tadoc'))
TO 'dated.tadoc' STORED AS TADOC;

CREATE EXTERNAL TABLE dated STORED AS TADOC LOCATION 'dated.tadoc';

-- Growth of the vocabulary: words by the year in which each was seen first
SELECT year, count(*) AS new_words
FROM (
    SELECT word, min(year) AS year
    FROM term_vector('dated', fold => true) AS t JOIN dated AS d ON t.doc_id = d.doc_id
    GROUP BY word
)
GROUP BY year
ORDER BY year;

-- Phrases over time: `tadoc plot` draws this one as lines
SELECT year, sequence, sum(count) AS count
FROM sequence_count('dated', n => 2, by_doc => true) AS s JOIN dated AS d ON s.doc_id = d.doc_id
WHERE sequence IN ('pub fn', 'let mut')
GROUP BY year, sequence
ORDER BY year, sequence;

-- Keyness: words that tell some documents from the rest (Dunning's log-likelihood ratio)
WITH words AS (
    SELECT word,
        sum(CASE WHEN path LIKE '%sql%' THEN t.count ELSE 0 END)::DOUBLE AS here,
        sum(CASE WHEN path LIKE '%sql%' THEN 0 ELSE t.count END)::DOUBLE AS there
    FROM term_vector('dated') AS t JOIN dated AS d ON t.doc_id = d.doc_id
    GROUP BY word
), totals AS (
    SELECT sum(here) AS all_here, sum(there) AS all_there FROM words
), expected AS (
    SELECT word, here, there,
        (here + there) * all_here / (all_here + all_there) AS expected_here,
        (here + there) * all_there / (all_here + all_there) AS expected_there
    FROM words CROSS JOIN totals
)
SELECT word, here, there,
    2 * (CASE WHEN here > 0 THEN here * ln(here / expected_here) ELSE 0 END
       + CASE WHEN there > 0 THEN there * ln(there / expected_there) ELSE 0 END) AS keyness
FROM expected
WHERE here > expected_here
ORDER BY keyness DESC, word
LIMIT 5;

-- Two collections: here one is cut out of the other
COPY (SELECT path, text FROM documents('demo.tadoc') WHERE path LIKE '%sql%')
TO 'here.tadoc' STORED AS TADOC;

COPY (SELECT path, text FROM documents('demo.tadoc') WHERE path NOT LIKE '%sql%')
TO 'there.tadoc' STORED AS TADOC;

-- Keyness of one collection against another: log-likelihood says how sure it is that a word tells
-- them apart (15.13 for 1 in 10,000 by chance), log_ratio how often its share of the words doubles
-- (a word that one collection lacks counts as half a word there)
WITH words AS (
    SELECT coalesce(a.word, b.word) AS word,
        coalesce(a.count, 0)::DOUBLE AS here, coalesce(b.count, 0)::DOUBLE AS there
    FROM word_count('here.tadoc', fold => true) AS a
    FULL JOIN word_count('there.tadoc', fold => true) AS b ON a.word = b.word
), totals AS (
    SELECT sum(here) AS all_here, sum(there) AS all_there FROM words
), expected AS (
    SELECT words.*, totals.*,
        (here + there) * all_here / (all_here + all_there) AS expected_here,
        (here + there) * all_there / (all_here + all_there) AS expected_there
    FROM words CROSS JOIN totals
)
SELECT word, here, there,
    2 * (CASE WHEN here > 0 THEN here * ln(here / expected_here) ELSE 0 END
       + CASE WHEN there > 0 THEN there * ln(there / expected_there) ELSE 0 END) AS log_likelihood,
    log2(greatest(here, 0.5) / all_here) - log2(greatest(there, 0.5) / all_there) AS log_ratio
FROM expected
ORDER BY log_likelihood DESC, word
LIMIT 10;

-- Neighbours of a word, and how it is used
SELECT word1, word2, count
FROM cooccurrence('demo.tadoc', window => 3, min_count => 2, fold => true)
WHERE word1 = 'error' OR word2 = 'error'
ORDER BY count DESC, word1, word2
LIMIT 5;

SELECT path, "left", match, "right"
FROM kwic('demo.tadoc', '"the corpus"', width => 4)
LIMIT 5;
