-- The tour that `tadoc demo` takes. Run it again from the folder of the corpus with
-- tadoc sql -f tour.sql

-- How much text there is. Sizes come from the grammar; no text is read.
SELECT count(*) AS documents, sum(bytes) AS bytes, sum(words) AS words
FROM documents('demo.tadoc');

-- The most frequent words of all documents.
SELECT word, count
FROM word_count('demo.tadoc')
ORDER BY count DESC, word LIMIT 8;

-- Where a phrase is used most. Words in double quotes must stand side by side.
SELECT path, count(*) AS times
FROM search('demo.tadoc', '"the caller must"')
GROUP BY path ORDER BY times DESC, path LIMIT 5;

-- Read a passage without reading its document: 120 bytes of document 0 from byte 0.
SELECT text
FROM extract('demo.tadoc', 0, 0, 120);

-- LIKE and other predicates run on the grammar first; only candidates are decoded.
SELECT path, bytes
FROM documents('demo.tadoc')
WHERE text LIKE '%fn main()%' AND path LIKE '%/examples/%'
ORDER BY bytes DESC, path LIMIT 5;

-- In how many documents words occur.
SELECT word, doc_count
FROM inverted_index('demo.tadoc')
WHERE word IN ('async', 'unsafe', 'macro_rules', 'panic', 'todo')
ORDER BY doc_count DESC, word;

-- Any SQL goes with it: the share of each folder in the text, and its hits for a word.
SELECT split_part(d.path, '/', 1) AS folder, count(DISTINCT d.doc_id) AS documents,
       count(s.doc_id) AS unsafe_hits
FROM documents('demo.tadoc') d LEFT JOIN search('demo.tadoc', 'unsafe') s ON s.doc_id = d.doc_id
GROUP BY folder ORDER BY unsafe_hits DESC, folder LIMIT 5;

-- What the corpus is made of. G/N says how much of the text is repetition.
SELECT * FROM corpus_info('demo.tadoc');
