//! Statements for suites that compare the rows of two ways to answer: calls of every table function ([`CALLS`]), and
//! random statements over them, whose rows do not depend on the number of partitions or machines.
//!
//! ```text
//! source        search(@, 'scan')                     keys that tell its rows apart
//! query         GROUP BY, window, join, DISTINCT, UNION, subquery with LIMIT … over sources and queries
//! statement     query ORDER BY all its columns, mostly with LIMIT
//! ```
//!
//! Each `LIMIT` stands over an order of all columns, and each window has a total order. So rows
//! that are equal are the only ones whose order may differ, and that cannot be seen.

use crate::random::Random;

/// Calls over the corpora `@` (many segments) and `#` (a living one), and over files in the folder
/// `~`.
pub const CALLS: &[&str] = &[
    "documents(@)",
    "word_count(@)",
    "word_sort(@, fold => true)",
    "inverted_index(@)",
    "inverted_index(@, fold => 'accents,stem:english')",
    "term_vector(@)",
    "term_vector(@, top => 3, fold => true)",
    "tfidf(@)",
    "tfidf(@, top => 2)",
    "doc_term_matrix(@)",
    "tokens(@)",
    "sequence_count(@, n => 1)",
    "sequence_count(@, n => 4, fold => true)",
    "sequence_count(@, n => 2, by_doc => true)",
    "ranked_inverted_index(@, n => 2)",
    "cooccurrence(@, window => 3)",
    "cooccurrence(@, word => 'of', min_count => 2)",
    "repeated_phrases(@, min_words => 4)",
    "near_duplicates(@, threshold => 0.1, n => 2)",
    "near_duplicate_clusters(@, threshold => 0.1, n => 2)",
    "log_templates(@)",
    "log_templates(@, similarity => 1)",
    "log_templates(@, similarity => 0.6, by_doc => true)",
    "repeated_spans(@, min_words => 4)",
    "overlap(@, @, n => 2)",
    "search(@, '\"the s*\" OR scan')",
    "search(@, 'the', doc_id => 3)",
    "search(@, '\"of the\"', exact => true)",
    "term_count(@, '/(?i)T[ho].*/')",
    "kwic(@, 'of', width => 2)",
    "kwic(@, 'of', width => 2, blanks => 'keep')",
    "grep(@, '(?i)the [a-s]', context => 1)",
    "grep(@, 'THE', fold => true)",
    "collocates(@, 'of', left => 2, measure => 'mi')",
    "keyness(@, #)",
    "dispersion(@, 'the', parts => 4)",
    "context(@, 2, before => 1, after => 1)",
    "rank(@, 'scan OR file', top => 5, k1 => 1.5)",
    "word_count(@, where => 'doc_id % 3 = 1')",
    "kwic(@, 'of', width => 2, where => 'words > 20', sample => 9)",
    "keyness(@, @, where => 'doc_id % 2 = 0', reference_where => 'doc_id % 2 = 1')",
    "tfidf(#, where => 'doc_id > 1')",
    "extract(@, doc_id => 3, byte_offset => 2, byte_len => 25)",
    "corpus_info(@)",
    "corpus_verify(@)",
    "documents(#)",
    "word_count(#)",
    "search(#, 'red OR green', version => 2)",
    "term_vector(#, fold => true)",
    "corpus_verify(#)",
    "read_text('~/notes/*.md')",
    "read_lines('~/notes/*.md')",
    "ingestion_model(link_gb_per_s => 12)",
    "tadoc_functions()",
];

/// A relation with columns of whole numbers.
struct Source {
    /// The relation, as it stands behind `FROM`.
    relation: &'static str,
    /// Columns whose values together tell rows apart.
    keys: &'static [&'static str],
    /// Another column, of any type.
    other: &'static str,
}

/// Relations over the corpora `@` (many segments) and `#` (a living one).
const SOURCES: &[Source] = &[
    Source { relation: "documents(@)", keys: &["doc_id"], other: "words" },
    Source { relation: "documents(@)", keys: &["doc_id", "bytes"], other: "path" },
    Source { relation: "search(@, 'scan')", keys: &["doc_id", "byte_offset"], other: "line" },
    Source { relation: "search(@, '\"of the\"')", keys: &["doc_id", "byte_offset"], other: "path" },
    Source { relation: "kwic(@, 'scan', width => 1)", keys: &["doc_id"], other: "\"left\"" },
    Source { relation: "grep(@, 'fn ')", keys: &["doc_id", "line_number"], other: "line" },
    Source { relation: "term_vector(@)", keys: &["doc_id", "count"], other: "word" },
    Source { relation: "tokens(@)", keys: &["doc_id", "word_index"], other: "word" },
    Source { relation: "term_count(@, 'the')", keys: &["doc_id", "count"], other: "path" },
    Source { relation: "word_count(@)", keys: &["count"], other: "word" },
    Source { relation: "inverted_index(@)", keys: &["doc_count"], other: "word" },
    Source { relation: "sequence_count(@, n => 2, by_doc => true)", keys: &["doc_id", "count"], other: "sequence" },
    Source { relation: "documents(#)", keys: &["doc_id"], other: "path" },
    Source { relation: "term_vector(#)", keys: &["doc_id", "count"], other: "word" },
];

/// Returns the numbers of the statements that a test asks: `default` of them, or as many as `PLANS` says. `PLANS` may
/// also be a range, as 50..80.
pub fn seeds(default: u64) -> std::ops::Range<u64> {
    let Ok(asked) = std::env::var("PLANS") else { return 0..default };
    let number = |text: &str| text.parse().unwrap_or_else(|_| panic!("PLANS is {asked}, expected 50 or 50..80"));
    match asked.split_once("..") {
        Some((first, end)) => number(first)..number(end),
        None => 0..number(&asked),
    }
}

/// Returns the statement with number `seed`.
pub fn statement(seed: u64) -> String {
    let mut random = Random(seed);
    let query = query(&mut random, 2);
    let limit = if random.one_in(4) { String::new() } else { limit(&mut random) };
    let order = order(&mut random);
    format!("SELECT a, b FROM ({query}) ORDER BY {order}{limit}")
}

/// Returns an order of all columns.
fn order(random: &mut Random) -> &'static str {
    let orders = ["a, b", "a, b", "b, a", "a DESC, b", "b DESC, a DESC", "a, b DESC NULLS LAST"];
    orders[random.below(orders.len())]
}

fn limit(random: &mut Random) -> String {
    let skipped = if random.one_in(4) { format!(" OFFSET {}", random.below(5)) } else { String::new() };
    format!(" LIMIT {}{skipped}", 1 + random.below(12))
}

/// Returns a query with the columns `a`, a number, and `b`, a text.
fn query(random: &mut Random, depth: usize) -> String {
    if depth == 0 {
        return rows_of_source(random);
    }
    let kind = random.below(12);
    let below = query(random, depth - 1);
    match kind {
        0 | 1 => grouped(random, &below),
        2 => format!("SELECT DISTINCT a, b FROM ({below})"),
        3 => windowed(random, &below),
        4 => joined(random, &below, depth),
        5 => {
            let union = if random.one_in(2) { "UNION" } else { "UNION ALL" };
            format!("SELECT a, b FROM ({below}) {union} SELECT a, b FROM ({})", query(random, depth - 1))
        }
        6 | 7 => {
            let order = order(random);
            format!("SELECT a, b FROM ({below}) ORDER BY {order}{}", limit(random))
        }
        8 => {
            let not = if random.one_in(2) { "NOT " } else { "" };
            let other = query(random, depth - 1);
            format!(
                "SELECT a, b FROM ({below}) WHERE a {not}IN (SELECT z FROM (SELECT a AS z FROM ({other})) WHERE z IS NOT NULL)"
            )
        }
        9 => {
            let aggregate = random.pick(&["min", "max", "count"]);
            format!("SELECT {aggregate}(a) AS a, max(b) AS b FROM ({below})")
        }
        10 => {
            let other = query(random, depth - 1);
            format!("SELECT a, b FROM ({below}) WHERE a <= (SELECT max(a) FROM ({other}))")
        }
        _ => {
            let constant = random.below(9);
            format!("SELECT a, b FROM ({below}) WHERE a = {constant}")
        }
    }
}

fn rows_of_source(random: &mut Random) -> String {
    let Source { relation, keys, other } = random.pick(SOURCES);
    let key = random.pick(keys);
    match random.below(5) {
        0 => {
            let last = keys[keys.len() - 1];
            format!("SELECT {key} AS a, max({last})::varchar AS b FROM {relation} GROUP BY {key}")
        }
        1 => format!("SELECT DISTINCT {key} AS a, 'all' AS b FROM {relation}"),
        2 => {
            let most = 3 + random.below(40);
            format!("SELECT {key} AS a, {other}::varchar AS b FROM {relation} WHERE {key} < {most}")
        }
        _ => format!("SELECT {key} AS a, {other}::varchar AS b FROM {relation}"),
    }
}

fn grouped(random: &mut Random, below: &str) -> String {
    match random.below(4) {
        0 => format!("SELECT a, count(*)::varchar AS b FROM ({below}) GROUP BY a"),
        1 => format!("SELECT max(a) AS a, b FROM ({below}) GROUP BY b"),
        2 => format!(
            "SELECT a, array_to_string(array_agg(b ORDER BY b), ',') AS b FROM ({below}) WHERE a < 4 GROUP BY a"
        ),
        _ => format!("SELECT count(*) AS a, b FROM ({below}) GROUP BY a, b HAVING count(*) > 0"),
    }
}

fn windowed(random: &mut Random, below: &str) -> String {
    let window = match random.below(4) {
        0 => "ORDER BY a, b",
        1 => "ORDER BY a DESC, b",
        2 => "PARTITION BY a ORDER BY b",
        _ => "PARTITION BY b ORDER BY a",
    };
    // Functions that the planner reverses, that skip nulls, and that leave rows out.
    let value = random.pick(&[
        "lag(a)",
        "lead(a)",
        "row_number()",
        "sum(a)",
        "rank()",
        "first_value(a)",
        "nth_value(a, 2)",
        "lag(b, 2, 'none')",
        "lag(nullif(a % 3, 0)) IGNORE NULLS",
        "lead(nullif(a % 3, 0)) IGNORE NULLS",
        "last_value(nullif(a % 3, 0)) IGNORE NULLS",
        "count(*) FILTER (WHERE a % 2 = 0)",
    ]);
    // Functions of one statement that need opposite orders: the planner reverses one of them.
    let other = match random.below(3) {
        0 => "row_number() OVER (PARTITION BY b ORDER BY a)",
        1 => "row_number() OVER (PARTITION BY b ORDER BY a DESC)",
        _ => "0",
    };
    // Rows that are equal would share a running sum otherwise.
    format!(
        "SELECT a, concat({value} OVER ({window}), ' ', {other})::varchar AS b FROM (SELECT DISTINCT a, b FROM ({below}))"
    )
}

fn joined(random: &mut Random, below: &str, depth: usize) -> String {
    let join = random.pick(&["JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN", "LEFT SEMI JOIN", "LEFT ANTI JOIN"]);
    let other = query(random, depth - 1);
    // Few rows on one side, so that the product stays small.
    let few = format!("SELECT a, b FROM ({other}) ORDER BY a, b LIMIT {}", 1 + random.below(30));
    let (a, b) = match *join {
        "RIGHT JOIN" => ("y.a", "x.b"),
        _ if join.contains("SEMI") || join.contains("ANTI") => ("x.a", "x.b"),
        _ => ("x.a", "y.b"),
    };
    let on = random.pick(&["x.a = y.a", "x.a = y.a AND x.b <> y.b", "x.a = y.a AND x.b = y.b"]);
    format!("SELECT {a} AS a, {b} AS b FROM ({below}) x {join} ({few}) y ON {on}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statements_are_told_apart_by_their_numbers() {
        assert_eq!(statement(7), statement(7));
        let all: std::collections::HashSet<String> = (0..100).map(statement).collect();
        assert!(all.len() > 95);
    }
}
