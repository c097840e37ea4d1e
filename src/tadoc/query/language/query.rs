//! The query language: words, patterns of words and phrases, joined by AND, OR, NOT and NEAR.
//!
//! ```text
//! error                occurrences of the word `error` (case-sensitive)
//! "power loss"         consecutive words with nothing but separators between them
//! well-known           an item with several words is a phrase: `well` then `known`
//! "say ""hi"""         a doubled quote inside quotes is a quote character
//!
//! error "power loss"   documents that hold both; AND may be written
//! error OR alarm       documents that hold one of them or both
//! error NOT test       documents that hold the first and not the second
//! (a OR b) NOT (c d)   parentheses group; NOT binds before AND, AND before OR
//! NEAR(power loss, 5)  both, in any order, with at most 5 words between them (10 if none is given)
//! "power loss"~5       both, in this order, with at most 5 other words among them
//! ^power ^"power loss" at the first word of a document
//!
//! pow*  p?wer  *ing    words that fit: `*` is any characters or none, `?` is one
//! "one two thr"*       the phrase whose last word begins so
//! quik~1  colour~2     words that one or two edits turn into this one
//! /err(or)?s?/         words that fit a regular expression, from their first character to the last
//! "power pl* /st.*n/"  all as parts of a phrase
//! 2\*3  \/usr/          a backslash before * ? / ~ \ makes it a character like others
//! "what?"              a question mark before the closing quote is one character or text
//! /usr/bin  x.org/p?q= text: a slash that opens no expression, a question mark in front of a parameter
//! ```
//!
//! The grammar is that of SQLite's FTS5 with more kinds of words; [`parser`](super::parser) has it. The tokenizer
//! profile of the corpus cuts items into words, so a word means the same in a query as in the text. Separators of an
//! item do not have to agree with those of the text. A slash begins a regular expression only at the start of a word,
//! after white space or a quote, and only if the next one is at the end of a word. A [folded](Query::folded) query asks
//! for words of any case.
//!
//! The hits of a query are the occurrences of its leaves (phrases, NEAR lists, phrases with gaps)
//! in the documents that meet the condition. A leaf that NOT excludes has no hits, and neither has
//! a leaf inside an alternative that does not hold in the document: of `a OR (b c)` the hits in a
//! document without `c` are those of `a`. A hit of NEAR or of a phrase with gaps is the shortest
//! stretch of words that holds all parts. Stretches that contain a shorter one are no hits.

use std::fmt;

use crate::error::Result;
use crate::text::{Dictionary, Fold, TokenizerProfile};

use super::pattern::{WordPattern, join_spellings};
use super::words::{QueryLimits, invalid};
use crate::query::language::parser::parse;
use crate::query::language::regex::RegexFault;
use crate::query::language::{Expression, Item, Leaf, Leaves, Shown};

/// A parsed query: items of one word or more, leaves made of them, and the condition that a
/// document has to meet.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Query {
    items: Vec<Item>,
    leaves: Vec<Leaf>,
    root: Expression,
}

impl Query {
    /// Parses `text` for a corpus of `profile`, within the default [`QueryLimits`]. An item that is
    /// written twice counts once, also in another spelling.
    ///
    /// # Errors
    /// As [`parse_within`](Self::parse_within).
    pub fn parse(profile: TokenizerProfile, text: &str) -> Result<Self> {
        Self::parse_within(profile, text, &QueryLimits::default())
    }

    /// Parses `text` as [`parse`](Self::parse) does, within `limits`.
    ///
    /// # Errors
    /// [`InvalidArgument`](crate::Error::InvalidArgument) named `query` for a query without items,
    /// an item without a word, a quote or regular expression that is not closed, a regular
    /// expression that is invalid, is followed by a word, or is too large, and too many patterns;
    /// [`Capacity`](crate::Error::Capacity) for a query that exceeds `limits`.
    pub fn parse_within(profile: TokenizerProfile, text: &str, limits: &QueryLimits) -> Result<Self> {
        Self::parsed(profile, text, limits, false)
    }

    /// Parses `text` as [`parse_within`](Self::parse_within) does. Phrases match only where the
    /// text before, between and behind their words is the same as in the query: `"§ 1"` not in `1`.
    /// So do the parts of NEAR. A phrase with gaps has words and blanks only.
    ///
    /// # Errors
    /// As [`parse_within`](Self::parse_within), and
    /// [`InvalidArgument`](crate::Error::InvalidArgument) for punctuation in a phrase with gaps.
    pub fn parse_exact(profile: TokenizerProfile, text: &str, limits: &QueryLimits) -> Result<Self> {
        Self::parsed(profile, text, limits, true)
    }

    /// Returns the punctuation that [`parse_within`](Self::parse_within) ignores, in order.
    ///
    /// # Errors
    /// As [`parse_within`](Self::parse_within).
    pub fn ignored_punctuation(profile: TokenizerProfile, text: &str, limits: &QueryLimits) -> Result<Vec<String>> {
        Ok(parse(profile, text, limits, false)?.map_or_else(Vec::new, |parsed| parsed.punctuation))
    }

    /// Returns the words of `text` that stand between two parts and would be operators in capitals,
    /// such as `or` in `heart or soul`, each once and as it is written.
    ///
    /// ```
    /// use tadoc::query::{Query, QueryLimits};
    /// use tadoc::text::TokenizerProfile;
    ///
    /// let words = |text| {
    ///     Query::small_operators(TokenizerProfile::Word, text, &QueryLimits::default())
    /// };
    /// assert_eq!(words("heart or soul")?, ["or"]);
    /// assert!(words("heart OR soul \"trial and error\"")?.is_empty());
    /// # Ok::<(), tadoc::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`parse_within`](Self::parse_within).
    pub fn small_operators(profile: TokenizerProfile, text: &str, limits: &QueryLimits) -> Result<Vec<String>> {
        let parsed = parse(profile, text, limits, false)?;
        Ok(parsed.map_or_else(Vec::new, |parsed| parsed.small_operators))
    }

    fn parsed(profile: TokenizerProfile, text: &str, limits: &QueryLimits, is_exact: bool) -> Result<Self> {
        let Some(parsed) = parse(profile, text, limits, is_exact)? else {
            return Err(invalid("an empty query".into(), "words or \"quoted phrases\""));
        };
        let mut items = parsed.items;
        let mut leaves = parsed.leaves;
        let mut root = parsed.root;
        if join_spellings(&mut items) {
            (items, leaves, root) = Leaves::replaced(&items, &leaves, &root);
        }
        Ok(Self { items, leaves, root })
    }

    /// Returns the query for words that match after `fold`. Words are folded as [`Fold::text`]
    /// does, the characters of a wildcard one by one for case and accents (`?` is one character of
    /// the folded word). A regular expression is treated as if it began with `(?i)` where case is
    /// folded, and matches the folded word where accents are dropped or words are stemmed. Items
    /// that become equal count once.
    ///
    /// ```
    /// use tadoc::query::Query;
    /// use tadoc::text::{Fold, TokenizerProfile};
    ///
    /// let query = Query::parse(TokenizerProfile::Word, "Élan")?.folded(&Fold::CASE)?;
    /// assert!(query.items()[0][0].matches("ÉLAN"));
    /// # Ok::<(), tadoc::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`InvalidArgument`](crate::Error::InvalidArgument) for a regular expression that is too
    /// large in any case.
    pub fn folded(self, fold: &Fold) -> Result<Self> {
        if *fold == Fold::NONE {
            return Ok(self);
        }
        let folded = |pattern: &WordPattern| {
            let allowed = "a shorter regular expression, or fold => false";
            let fault = |fault: RegexFault| invalid(format!("{pattern} in any case: {}", fault.reason), allowed);
            pattern.folded(fold).map_err(fault)
        };
        let items = self.items.iter().map(|item| item.iter().map(folded).collect());
        let items: Vec<Item> = items.collect::<Result<_>>()?;
        let (items, leaves, root) = Leaves::replaced(&items, &self.leaves, &self.root);
        Ok(Self { items, leaves, root })
    }

    /// Creates the query for `word`, whose characters have no special meaning.
    pub fn for_word(word: &str) -> Self {
        Self {
            items: vec![vec![WordPattern::exact(word.to_owned())]],
            leaves: vec![Leaf::Phrase(0)],
            root: Expression::Leaf(0),
        }
    }

    /// Returns the items, each as the patterns of its words.
    pub fn items(&self) -> &[Item] {
        &self.items
    }

    /// Returns true if each word of the query is a word of a dictionary, in one of few spellings.
    pub fn is_exact(&self) -> bool {
        self.items.iter().flatten().all(|word| word.as_spellings().is_some())
    }

    /// Returns true if each leaf is one word, wherever it stands. The number of each word in a
    /// document then decides everything.
    pub fn is_of_words(&self) -> bool {
        let is_word = |leaf: &Leaf| matches!(leaf, Leaf::Phrase(item) if self.items[*item].len() == 1);
        self.leaves.iter().all(is_word)
    }

    /// Returns the ids of the words of `dictionary` that match a word of the query, ascending.
    pub fn word_ids(&self, dictionary: &Dictionary) -> Vec<u32> {
        let mut ids = Vec::new();
        for pattern in self.items.iter().flatten() {
            ids.extend(pattern.find(dictionary).ids());
        }
        ids.sort_unstable();
        ids.dedup();
        ids
    }

    /// Returns the leaves, whose items are indexes of [`items`](Self::items).
    pub fn leaves(&self) -> &[Leaf] {
        &self.leaves
    }

    /// Returns true if each leaf is a word or a phrase, wherever it stands.
    pub fn is_of_phrases(&self) -> bool {
        self.leaves.iter().all(|leaf| matches!(leaf, Leaf::Phrase(_)))
    }

    /// Returns the query in which each leaf is one word that no text has, for segments made from the
    /// [numbers of leaves](crate::query::leaf_segment).
    #[must_use]
    pub fn with_leaf_words(&self) -> Self {
        let leaves = 0..self.leaves.len();
        Self {
            items: leaves.clone().map(|leaf| vec![WordPattern::exact(Self::leaf_word(leaf))]).collect(),
            leaves: leaves.map(Leaf::Phrase).collect(),
            root: self.root.clone(),
        }
    }

    /// Returns the word for leaf `leaf`. It has a blank, which no word of a text has. Words of leaves are in order.
    pub(in crate::query) fn leaf_word(leaf: usize) -> String {
        format!(" {leaf:020}")
    }

    /// Returns the query for one leaf of this query.
    pub(in crate::query) fn leaf_alone(&self, leaf: usize) -> Self {
        let (items, leaves, root) = Leaves::replaced(&self.items, &self.leaves[leaf..leaf + 1], &Expression::Leaf(0));
        Self { items, leaves, root }
    }

    /// Returns the bytes of memory of the query, roughly.
    pub(in crate::query) fn memory_bytes(&self) -> usize {
        let words = self.items.iter().flatten();
        let from_words = words.map(|word| 64 + word.compiled_bytes() + word.to_string().len());
        size_of::<Self>() + 64 * self.leaves.len() + from_words.sum::<usize>()
    }

    /// Returns the query for documents with any leaf of this query, also those that NOT excludes.
    #[must_use]
    pub fn any_leaf(self) -> Self {
        let root = Expression::any((0..self.leaves.len()).map(Expression::Leaf).collect());
        Self { root, ..self }
    }

    /// Returns true if the query is one phrase or word.
    pub(in crate::query) fn is_phrase(&self) -> bool {
        matches!((&self.root, self.leaves.as_slice()), (Expression::Leaf(_), [Leaf::Phrase(_)]))
    }

    /// Returns true if the query has one leaf, so that its hits are those of the leaf.
    pub fn is_leaf(&self) -> bool {
        matches!(self.root, Expression::Leaf(_))
    }

    /// Returns the condition that a document has to meet.
    pub fn root(&self) -> &Expression {
        &self.root
    }
}

impl fmt::Display for Query {
    /// Writes the query in normal form: each item in quotes, its words joined by one blank; AND as
    /// a blank; folded words in lower case.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let items = &self.items;
        let leaves = &self.leaves;
        let expression = &self.root;
        Shown { items, leaves, expression }.fmt(formatter)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::Error;

    fn normal(text: &str) -> Result<String> {
        Query::parse(TokenizerProfile::Word, text).map(|query| query.to_string())
    }

    #[test]
    fn parses_words_and_phrases() {
        let cases = [
            ("error", "\"error\""),
            ("  error\n", "\"error\""),
            ("error \"power loss\"", "\"error\" \"power loss\""),
            ("error\"power loss\"now", "\"error\" \"power loss\" \"now\""),
            ("well-known", "\"well known\""),
            ("a a \"a\"", "\"a\""),
            ("e\u{301}té été \"été\"", "\"e\u{301}té\""),
            ("don't don’t \"don’t go\" \"don't go\"", "\"don t\" \"don t go\""),
            ("été \u{2126} \u{3a9}", "\"été\" \"\u{2126}\""),
            ("\"say \"\"hi\"\"\"", "\"say hi\""),
            ("Ünï_1", "\"Ünï_1\""),
            ("pow* p?wer *ing", "\"pow*\" \"p?wer\" \"*ing\""),
            ("well-kno**", "\"well kno*\""),
            ("a.*", "\"a *\""),
            ("\"one two thr\"*", "\"one two thr*\""),
            ("\"a\"* \"b c.\" * d", "\"a*\" \"b c*\" \"d\""),
            ("\"a?\"*\"b*\"*", "\"a?*\" \"b*\""),
            ("\"a\"*b \"c\"**", "\"a\" \"*b\" \"c\" \"*\""),
            ("a\\*b c\\?", "\"a b\" \"c\""),
            ("/err(or)?s?/\"x\"", "\"/err(or)?s?/\" \"x\""),
            ("/a|\"b/ c", "\"/a|\"\"b/\" \"c\""),
            ("\"power /l./ a/b/c \"", "\"power /l./ a b c\""),
            ("and/or/", "\"and or\""),
            ("\\/usr/bin", "\"usr bin\""),
            ("C:\\temp", "\"C temp\""),
            ("/a|\\/b/", "\"/a|\\/b/\""),
            ("/usr/bin \"/usr/local/lib\" \"/etc\"", "\"usr bin\" \"usr local lib\" \"etc\""),
            ("\"sum= /\" /a", "\"sum\" \"a\""),
            ("\"what?\" \"who is on first??\"", "\"/what.?/\" \"who is on /first.?.?/\""),
            ("\"b*-w?t?\"", "\"b* /w.t.?/\""),
            ("https://x.org/p?q=1 \"a?b-c=\"", "\"https x org p q 1\" \"a b c\""),
            ("a?b ?a a? \"a? b\" /a?/", "\"a?b\" \"?a\" \"a? \" \"a? b\" \"/a?/\""),
        ];
        for (text, expected) in cases {
            assert_eq!(normal(text).unwrap(), expected, "{text}");
        }
        let whitespace = Query::parse(TokenizerProfile::Whitespace, "\"say \"\"hi\"\"\"").unwrap();
        let words = whitespace.items()[0].iter().map(|word| word.as_spellings().map(|words| &words[0][..]));
        assert!(words.eq([Some("say"), Some("\"hi\"")]));
        let path = Query::parse(TokenizerProfile::Whitespace, "\\/usr/b?n\\\\ 2\\*3").unwrap();
        assert_eq!(path.to_string(), "\"\\/usr\\/b?n\\\\\" \"2\\*3\"");
        assert!(path.items()[0][0].matches("/usr/bin\\") && path.items()[1][0].matches("2*3"));
        for (text, shown) in [
            ("日* don't.a*", "\"日*\" \"don't.a*\""),
            ("日本語* *日本 日*本?", "\"日 本 語*\" \"*日 本\" \"日* 本 ? \""),
            ("日?語 ?日 日*?語 日??", "\"日 ? 語\" \"? 日\" \"日* ? 語\" \"日 ? ? \""),
            ("東京*ワー カ?カナ カ*日 a*カ", "\"東 京 *ワー\" \"カ?カナ\" \"カ* 日\" \"a* カ\""),
            ("日 * \"本 *語\"", "\"日\" \"*\" \"本 *語\""),
            ("\"a 日\"* NEAR(\"カ\"* b)", "\"a 日*\" NEAR(\"カ*\" \"b\", 10)"),
        ] {
            let query = Query::parse(TokenizerProfile::Uax29, text).unwrap();
            assert_eq!(query.to_string(), shown, "{text}");
            assert_eq!(Query::parse(TokenizerProfile::Uax29, shown).unwrap(), query, "{text}");
        }
        let katakana = Query::parse(TokenizerProfile::Uax29, "カタ*").unwrap();
        assert!(katakana.items()[0][0].matches("カタカナ"));
        for (text, expected) in [
            ("/日本/", "no word of profile uax29 can match it"),
            ("日本語~1", "`~1` at character 4 behind words that touch"),
        ] {
            let fault = Query::parse(TokenizerProfile::Uax29, text).unwrap_err().to_string();
            assert!(fault.contains(expected), "{fault}");
        }
    }

    #[test]
    fn parses_expressions() {
        let cases = [
            ("a AND b", "\"a\" \"b\""),
            ("a OR b c", "\"a\" OR \"b\" \"c\""),
            ("a b NOT c d", "\"a\" \"b\" NOT \"c\" \"d\""),
            ("a OR b NOT c AND d", "\"a\" OR (\"b\" NOT \"c\") \"d\""),
            ("(a OR b) c", "(\"a\" OR \"b\") \"c\""),
            ("a NOT b NOT c", "\"a\" NOT \"b\" NOT \"c\""),
            ("(a NOT b) NOT (c OR d)", "\"a\" NOT \"b\" NOT \"c\" NOT \"d\""),
            ("a NOT (b NOT c)", "\"a\" NOT (\"b\" NOT \"c\")"),
            ("((a)) (b (a))", "\"a\" \"b\""),
            ("a OR (b OR a)", "\"a\" OR \"b\""),
            ("a and \"AND\" or not", "\"a\" \"and\" \"AND\" \"or\" \"not\""),
            ("ANDY ORB", "\"ANDY\" \"ORB\""),
            ("main(int argc", "\"main int\" \"argc\""),
            ("(main(argc) OR x)", "\"main argc\" OR \"x\""),
            ("NEAR(a b)", "NEAR(\"a\" \"b\", 10)"),
            ("NEAR (\"a b\" c* /d/, 3)", "NEAR(\"a b\" \"c*\" \"/d/\", 3)"),
            ("NEAR(a a, 3)", "\"a\""),
            ("NEARBY near(a)", "\"NEARBY\" \"near a\""),
            ("near (a b) near(a b", "\"near\" \"a\" \"b\" \"near a\""),
            ("near(a,b) Nearly(a)", "\"near a b\" \"Nearly a\""),
            ("NEAR(\"a b\"* c, 3)", "NEAR(\"a b*\" \"c\", 3)"),
            ("NEAR(c \"a b\" *)", "NEAR(\"c\" \"a b*\", 10)"),
            ("(^\"a b\"* OR \"c\"*)", "^\"a b*\" OR \"c*\""),
            ("well-known -5 --all \"a\"-b x-", "\"well known\" \"5\" \"all\" \"a\" \"b\" \"x\""),
            ("\"-a b~\" c\\~ a~d", "\"a b\" \"c\" \"a d\""),
            ("\"a b c\"~4", "\"a b c\"~4"),
            ("\"a\"~4 \"b c\"~0", "\"a\" \"b c\""),
            ("quik~1 \"x colour~2 y\"", "\"quik~1\" \"x colour~2 y\""),
            ("well-known~1", "\"well known~1\""),
            ("a~b \\~1 \"~1 (~5%)\" (~5%)", "\"a b\" \"1\" \"1 5\" \"5\""),
            ("'tis +a w/ <b> NEAR(a)", "\"tis\" \"a\" \"w\" \"b\""),
            ("a! !5 \"!a b\" x!b", "\"a\" \"5\" \"a b\" \"x b\""),
            ("[a] {a b} a&&b \"a^2\" [a TO b", "\"a\" \"b\" \"a b\" \"a 2\" \"TO\""),
            ("^a b^c", "^\"a\" \"b c\""),
            ("a OR ^\"b c\" ^d*", "\"a\" OR ^\"b c\" ^\"d*\""),
            ("a^\"b\"", "\"a\" \"b\""),
            ("\"^a\" (^/b/)", "\"a\" ^\"/b/\""),
            ("std::io 12:30 http://x C:\\x", "\"std io\" \"12 30\" \"http x\" \"C x\""),
            ("(path::join path: text:) (a:b)", "\"path join\" \"path\" \"text\" \"a b\""),
            ("mypath:a \"path:a\"", "\"mypath a\" \"path a\""),
        ];
        for (text, expected) in cases {
            assert_eq!(normal(text).unwrap(), expected, "{text}");
            assert_eq!(normal(expected).unwrap(), expected, "{text}");
        }
        let escaped = Query::parse(TokenizerProfile::Whitespace, "\"PROGRA\\~1\"").unwrap();
        assert_eq!(escaped.items()[0][0].as_spellings(), Some(&["PROGRA~1".to_owned()][..]));
        assert_eq!(escaped.to_string(), "\"PROGRA\\~1\"");
    }

    #[test]
    fn operators_in_small_letters_are_words_and_noted_between_parts() {
        let cases: [(&str, &[&str]); 18] = [
            ("heart or soul", &["or"]),
            ("what or why or how", &["or"]),
            ("to be or not to be", &["or", "not"]),
            ("Heart And soul", &["And"]),
            ("(a and b) OR c not \"d e\"", &["and", "not"]),
            ("power near storm", &["near"]),
            ("NEAR(a or b, 3)", &["or"]),
            ("a or (b c)", &["or"]),
            ("a or NEAR(b c)", &["or"]),
            ("a or", &[]),
            ("or a", &[]),
            ("a or OR b", &[]),
            ("NEAR(a or, 3)", &[]),
            ("(a or) b", &[]),
            ("\"heart or soul\"", &[]),
            ("heart \"or\" soul", &[]),
            ("heart or* nota oracle-or", &[]),
            ("heart OR soul AND a NOT b", &[]),
        ];
        for (text, expected) in cases {
            let limits = QueryLimits::default();
            let found = Query::small_operators(TokenizerProfile::Word, text, &limits).unwrap();
            assert_eq!(found, expected, "{text}");
        }
        assert_eq!(normal("heart or soul").unwrap(), "\"heart\" \"or\" \"soul\"");
    }

    #[test]
    fn names_the_place_of_a_fault_in_an_expression() {
        let deep = format!("{}a{}", "(".repeat(257), ")".repeat(257));
        let cases = [
            ("a AND b OR (c", "not closed, at character 12"),
            ("a) b", "closes nothing, at character 2"),
            ("AND a", "AND with nothing before it, at character 1"),
            ("a OR OR b", "OR with nothing before it, at character 6"),
            ("NOT a", "NOT with nothing before it, at character 1"),
            ("a NOT", "nothing behind the last operator or parenthesis, at character 6"),
            ("a ()", "nothing before the parenthesis at character 4"),
            ("device NEAR context", "NEAR without a list, at character 8"),
            ("a NEAR/5 b", "NEAR without a list, at character 3"),
            ("NEAR()", "NEAR without words, at character 1"),
            ("NEAR(a b, x)", "`x)` at character 11"),
            ("NEAR(a b, 9999999)", "up to 1000000"),
            ("NEAR(a OR b)", "inside NEAR, at character 8"),
            ("NEAR(a b, 3", "not closed, at character 1"),
            ("NEAR(\"a b\"~2 c)", "inside NEAR, at character 11"),
            ("\"a b\"~5x", "at character 7"),
            ("\"a b\"~x", "at character 7"),
            ("\"a b\"~-1", "at character 7"),
            ("\"a b\"~", "at character 7"),
            ("word~3", "an edit distance of 1 or 2"),
            ("a word~ b", "`word~` at character 3, expected word~1 or word~2"),
            ("word~1*", "`*` at character 7, behind an edit distance"),
            ("\"word~1~1\"", "`~` at character 8, behind an edit distance"),
            ("word~1.5", "`.` at character 7, behind an edit distance"),
            ("\"a b\" ~5", "`~5` at character 7, expected a number of edits or words directly behind"),
            ("a !bc", "`!bc` at character 3, expected NOT before what is excluded"),
            ("!(a b)", "`!(a` at character 1, expected NOT before what is excluded"),
            ("a && b", "`&&` at character 3, expected AND between parts"),
            ("a || b", "`||` at character 3, expected OR between parts"),
            ("a b^2.5", "`b^2.5` at character 3, expected parts without weights"),
            ("\"a b\"^2", "`^` directly behind a part, at character 6"),
            ("(a b)^2", "`^` directly behind a part, at character 6"),
            ("*:*", "`*:*` at character 1, expected words; documents(corpus) lists all documents"),
            ("“power loss”", "`“power` at character 1, expected straight double quotes"),
            ("«a b»", "`«a` at character 1, expected straight double quotes"),
            ("x 'a b'", "`'a` at character 3, expected straight double quotes"),
            ("a NEAR(b, 3)", "NEAR with a number for one part, at character 3"),
            ("a w/3 b", "`w/3` at character 3, expected NEAR(a b, 5)"),
            ("a AROUND(3) b", "`AROUND(3)` at character 3, expected NEAR(a b, 5)"),
            ("a <2> b", "`<2>` at character 3, expected NEAR(a b, 5)"),
            ("a <-> b", "`<->` at character 3, which holds no word in profile word, expected one phrase"),
            ("\"a\" + \"b\"", "`+` at character 5, which holds no word in profile word, expected one phrase"),
            ("+(a b)", "`+(a` at character 1, expected parts without a sign"),
            ("+\"a b\"", "`+` at character 1, expected parts without a sign"),
            ("a | b", "expected OR between parts"),
            ("a & b", "expected AND between parts, or nothing"),
            ("path : a", "`:` at character 6"),
            ("author:\"a b\"", "`author:` at character 1, expected a query without column filters"),
            ("{path text}:a", "`text}:a` at character 7, expected a query without column filters"),
            ("content:a", "`content:` before a word, at character 1"),
            ("ANY(a b)", "one behind a word, as in f(a, opens no group"),
            ("pow*~", "`pow*~` at character 1, expected word~1"),
            ("x [a TO b]", "`[a` at character 3, expected words or patterns; a query has no ranges"),
            ("[word=\"a\"]", "`[word=` at character 1, expected words, patterns such as pre*"),
            ("{2020-01-01 TO *}", "`{2020-01-01` at character 1"),
            ("(a b~)", "write \\~ for the character"),
            ("a -bc", "`-bc` at character 3, expected NOT before what is excluded"),
            ("-\"a b\"", "`-` at character 1, expected NOT before what is excluded"),
            ("(-a b)", "`-a` at character 2"),
            ("NEAR(a -b)", "`-b` at character 8"),
            ("x near(a b, 3)", "`near` before a list, at character 3"),
            ("Near (a b, 3)", "`Near` before a list, at character 1"),
            ("\"a /b/\"*", "`*` at character 8, behind a phrase whose last part is no word"),
            ("\"a b~1\" *", "`*` at character 9, behind a phrase"),
            ("a ^", "`^` without a word or phrase behind it, at character 3"),
            ("^ a", "`^` without a word or phrase behind it, at character 1"),
            ("^^a", "`^` without a word or phrase behind it, at character 1"),
            ("^(a)", "`^` without a word or phrase behind it, at character 1"),
            ("^NEAR(a b)", "`^` without a word or phrase behind it, at character 1"),
            ("^\"a b\"~5", "`^` before a phrase with gaps, at character 1"),
            ("NEAR(a ^b)", "`^b)` inside NEAR, at character 8"),
            ("a path:power", "`path:` before a word, at character 3"),
            ("Title:\"a b\"", "write \"title:word\" in quotes"),
            ("NEAR(a text:b)", "`text:` before a word, at character 8"),
            ("^doc_id:1", "`doc_id:` before a word, at character 2"),
            ("pow*~1", "behind no word"),
            ("/I\\/O error/", "at character 1: no word of profile word can match it"),
            (deep.as_str(), "at most 256 deep"),
        ];
        for (text, expected) in cases {
            let fault = normal(text).unwrap_err();
            assert!(matches!(fault, Error::InvalidArgument { name: "query", .. }));
            assert!(fault.to_string().contains(expected), "{text}: {fault}");
        }
    }

    #[test]
    fn refuses_what_cannot_match() {
        let cases = [
            ("", "empty query"),
            (" \t", "empty query"),
            ("\"power loss", "not closed"),
            ("a \"", "not closed"),
            ("a \"\"", "no word"),
            ("…", "grep finds any text"),
            ("a - b", "`-` at character 3"),
            ("a \"b", "at character 3"),
            ("x /a(b", "regular expression that is not closed, at character 3"),
            ("/[a]/b", "followed by `b` at character 6"),
            ("\"a /b+/c\"", "followed by `c` at character 8"),
            ("//", "it is empty"),
            ("/x{0}/", "no word of profile word can match it"),
            ("a /^$/", "at character 3: no word of profile word can match it"),
            ("ab /c(/", "at character 6: unclosed group"),
            ("\"\"\"a /[/\"", "unclosed character class"),
            ("/\\w{1000}{1000}/", "size"),
            (&format!("/{}/", "a".repeat(10_000)), "it has 10000 bytes, more than 8192"),
            (&"a* ".repeat(257), "at most 256 wildcards and regular expressions"),
            (&"\"a\"* ".repeat(257), "at most 256 wildcards and regular expressions"),
            (&"/[a-z]{2000}/ ".repeat(250), "compiled"),
        ];
        for (text, expected) in cases {
            let fault = normal(text).unwrap_err();
            assert!(matches!(fault, Error::InvalidArgument { name: "query", .. }));
            assert!(fault.to_string().contains(expected), "{text}: {fault}");
        }
    }

    #[test]
    fn limits_are_named_and_errors_are_short() {
        let limits = QueryLimits { max_bytes: 12, max_terms: 3 };
        let parse = |text: &str| Query::parse_within(TokenizerProfile::Word, text, &limits);
        assert_eq!(parse("a b \"a b\"").unwrap_err().to_string().matches("max_query_terms").count(), 1);
        assert_eq!(parse("a b a").unwrap().items().len(), 2);
        assert!(parse("aaaa bbbb ccc").unwrap_err().to_string().contains("tadoc.max_query_bytes"));
        let long = "- ".repeat(1000) + &"/".repeat(1000);
        assert!(normal(&format!("\"{long}\"")).unwrap_err().to_string().len() < 500);
        assert!(normal(&format!("/{}/x", "(".repeat(9000))).unwrap_err().to_string().len() < 500);
    }

    #[test]
    fn many_words_are_parsed_in_linear_time() {
        let words = |num_words: u32| (0..num_words).map(|i| format!("w{i} ")).collect::<String>();
        let limits = QueryLimits { max_terms: 100_000, ..QueryLimits::default() };
        let query = Query::parse_within(TokenizerProfile::Word, &words(100_000), &limits).unwrap();
        assert_eq!(query.items().len(), 100_000);
        assert!(matches!(normal(&words(10_001)), Err(Error::Capacity { requested: 10_001, .. })));
        let stars = normal(&"a*".repeat(30_000)).unwrap();
        assert_eq!(stars.len(), 60_002);
    }

    #[test]
    fn folded_queries_fit_words_of_any_case() {
        let folded =
            |text: &str| Query::parse(TokenizerProfile::Whitespace, text).unwrap().folded(&Fold::CASE).unwrap();
        let cases = [
            ("tea", "TeA", true),
            ("ΣΑΣ", "σας", true),
            ("i\u{307}x", "İX", true),
            ("K", "\u{212a}", true),
            ("straße", "STRASSE", false),
            ("P?W*", "power", true),
            ("ΑΣ*", "ας", true),
            ("ας*", "ΑΣΑ", true),
            ("?x", "İX", false),
            ("??x", "İX", true),
            ("/É[r-s]+/", "éRS", true),
            ("/(?-i)a/", "A", false),
            ("/(?x) a # b/", "A", true),
        ];
        for (pattern, word, fits) in cases {
            assert_eq!(folded(pattern).items()[0][0].matches(word), fits, "{pattern} {word}");
        }
        assert_eq!(folded("Power POWER p* P* /A/ /a/").to_string(), "\"power\" \"p*\" \"/A/\" \"/a/\"");
        // The longest regular expression that is accepted unfolded. With both cases it is twice as
        // large.
        let wide = |len: usize| Query::parse(TokenizerProfile::Word, &format!("/[a-z]{{{len}}}/"));
        let lens = std::iter::successors(Some(500usize), |len| Some(len + len / 4));
        let longest = lens.map_while(|len| wide(len).ok()).last().unwrap();
        let fault = longest.folded(&Fold::CASE).unwrap_err().to_string();
        assert!(fault.contains("in any case") && fault.contains("size"), "{fault}");
    }

    proptest! {
        #[test]
        fn the_normal_form_is_stable(text in "[ab1\" \n.é*?/\\\\日_'~-]{0,24}") {
            for profile in ["auto", "word", "uax29", "whitespace"] {
                let profile: TokenizerProfile = profile.parse().unwrap();
                if let Ok(query) = Query::parse(profile, &text) {
                    let again = Query::parse(profile, &query.to_string());
                    prop_assert_eq!(again.unwrap(), query);
                }
            }
        }

        #[test]
        fn a_star_behind_a_phrase_is_a_star_behind_its_last_word(
            words in prop::collection::vec("[ab日_?*]{1,3}", 1..4),
            blanks in "[ \t]{0,2}",
            rest in "( [ab\"~()-]{0,6})?",
        ) {
            let phrase = words.join(" ");
            for profile in ["auto", "word", "whitespace"] {
                let parsed = |text: &str| {
                    let query = Query::parse(profile.parse().unwrap(), text);
                    query.map_err(|fault| matches!(fault, Error::InvalidArgument { .. }))
                };
                let outside = parsed(&format!("\"{phrase}\"{blanks}*"));
                prop_assert_eq!(outside, parsed(&format!("\"{phrase}*\"")));
                let outside = parsed(&format!("\"{phrase}\"{blanks}*{rest}"));
                let inside = parsed(&format!("\"{phrase}*\"{rest}"));
                prop_assert_eq!(outside.is_ok(), inside.is_ok());
                if let (Ok(outside), Ok(inside)) = (outside, inside) {
                    prop_assert_eq!(outside, inside);
                }
            }
        }

        #[test]
        fn minus_signs_and_tildes_inside_of_text_are_text(
            words in prop::collection::vec("[ab]{1,3}", 2..5),
            signs in prop::collection::vec("[-~]", 4),
        ) {
            let joined = words.iter().zip(&signs).map(|(word, sign)| format!("{word}{sign}"));
            let joined: String = joined.collect();
            let joined = joined.trim_end_matches(['-', '~']);
            prop_assert_eq!(normal(joined).unwrap(), format!("\"{}\"", words.join(" ")));
            let quoted = normal(&format!("\"-{joined}~\"")).unwrap();
            prop_assert_eq!(quoted, format!("\"{}\"", words.join(" ")));
        }
    }
}
