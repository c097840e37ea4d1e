-- What the corpus holds, read from its footer
SELECT name, value
FROM corpus_info('demo.tadoc')
WHERE name IN ('documents', 'text_bytes', 'file_bytes', 'ratio', 'words', 'reuse');

-- Documents by kind of file; no text is decoded for it
SELECT split_part(path, '.', -1) AS ending, count(*) AS documents, sum(words) AS words
FROM documents('demo.tadoc')
GROUP BY ending
ORDER BY words DESC, ending
LIMIT 5;

-- The most frequent words, from one sweep over the grammar
SELECT word, count
FROM word_count('demo.tadoc')
ORDER BY count DESC, word
LIMIT 10;

-- The same without regard to case, long words only
SELECT word, count
FROM word_count('demo.tadoc', fold => true)
WHERE char_length(word) > 7
ORDER BY count DESC, word
LIMIT 5;

-- Words that the most documents share
SELECT word, doc_count
FROM inverted_index('demo.tadoc')
ORDER BY doc_count DESC, word
LIMIT 5;

-- Files where a phrase occurs most often
SELECT path, count(*) AS hits
FROM search('demo.tadoc', '"pub fn"')
GROUP BY path
ORDER BY hits DESC, path
LIMIT 5;

-- Documents by what their text says; only those that can match are decoded
SELECT path, bytes
FROM documents('demo.tadoc')
WHERE text LIKE '%unsafe%' AND bytes < 50000
ORDER BY bytes DESC, path
LIMIT 5;

-- One passage, without decoding its document
SELECT text
FROM extract('demo.tadoc', doc_id => 0, byte_offset => 0, byte_len => 120);
