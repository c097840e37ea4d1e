//! Regular expressions over one word, in the syntax of the regex crate. They must match the whole word.
//!
//! ```text
//! /err(or)?s?/    begins with "err": a range of the dictionary, each word of it tested
//! /(?i)us[ae]r/   begins with "USAR", "USAr", …: a range for each
//! /.*ing/         no literal at the start: every word is tested, in parallel
//! ```

use std::hash::{Hash, Hasher};

use rayon::prelude::*;
use regex_automata::meta::{BuildError, Regex};
use regex_syntax::ParserBuilder;
use regex_syntax::hir::literal::Extractor;
use regex_syntax::hir::{Class, ClassUnicode, Hir, HirKind, Look};

use crate::text::{Dictionary, INVISIBLE, TokenizerProfile, in_one_word};

use crate::query::matching::sets::WordSet;

/// Most bytes of a source. Parsing takes some 260 bytes of memory for each, and 6 KB for a Unicode
/// class.
pub(in crate::query) const MAX_SOURCE_BYTES: usize = 8 << 10;
/// Most bytes of a compiled form: enough for thousands of characters, or for a few Unicode classes.
const MAX_REGEX_BYTES: usize = 1 << 20;
/// Most prefixes that the dictionary is searched for.
const MAX_PREFIXES: usize = 64;
/// Number of words that one task tests.
const WORDS_PER_TASK: usize = 1 << 12;

/// A regular expression that is matched against whole words.
#[derive(Debug, Clone)]
pub(in crate::query) struct WordRegex {
    source: String,
    regex: Regex,
    /// Prefixes; each matching word begins with one of them.
    prefixes: Vec<Vec<u8>>,
}

/// A reason why a regular expression cannot be used.
#[derive(Debug)]
pub(in crate::query) struct RegexFault {
    /// Index of the character of the source that is at fault, or 0 if it is not known.
    pub character: usize,
    pub reason: String,
}

impl PartialEq for WordRegex {
    fn eq(&self, other: &Self) -> bool {
        self.source == other.source
    }
}

impl Eq for WordRegex {}

impl Hash for WordRegex {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.source.hash(state);
    }
}

impl WordRegex {
    /// Compiles `source`, in which `\/` is a slash.
    pub fn new(source: &str) -> Result<Self, RegexFault> {
        Self::compiled(source, false)
    }

    /// Compiles `source` for words of any case, as if it began with `(?i)`.
    pub fn for_any_case(source: &str) -> Result<Self, RegexFault> {
        Self::compiled(source, true)
    }

    fn compiled(source: &str, is_any_case: bool) -> Result<Self, RegexFault> {
        if source.len() > MAX_SOURCE_BYTES {
            let reason = format!("it has {} bytes, more than {MAX_SOURCE_BYTES}", source.len());
            return Err(RegexFault { character: 0, reason });
        }
        let mut parser = ParserBuilder::new().case_insensitive(is_any_case).build();
        let parsed = parser.parse(source).map_err(|fault| syntax_fault(source, &fault))?;
        let prefixes = prefixes_from(&parsed);
        // Built from the parsed form: a comment or a flag in the source could extend beyond its
        // end.
        let whole = Hir::concat(vec![Hir::look(Look::Start), parsed, Hir::look(Look::End)]);
        let config = Regex::config().nfa_size_limit(Some(MAX_REGEX_BYTES));
        let regex = Regex::builder().configure(config).build_from_hir(&whole);
        let regex = regex.map_err(|fault| size_fault(&fault))?;
        Ok(Self { source: source.to_owned(), regex, prefixes })
    }

    /// Returns false if no word of `profile` can match: every text that matches is empty, has a
    /// character that words do not have, or has neighbours that are always words of their own.
    pub fn can_match_word(&self, profile: TokenizerProfile) -> bool {
        let class = match profile {
            TokenizerProfile::Auto => format!(r"[\w{}]", String::from_iter(INVISIBLE)),
            TokenizerProfile::Word => r"\w".to_owned(),
            TokenizerProfile::Uax29 | TokenizerProfile::Whitespace => r"[^\s\x00]".to_owned(),
        };
        let class = regex_syntax::parse(&class).map(Hir::into_kind);
        let Ok(HirKind::Class(Class::Unicode(class))) = class else { return true };
        let parsed = ParserBuilder::new().build().parse(&self.source);
        parsed.map_or(true, |parsed| Fits::from_parsed(&parsed, profile, &class).word)
    }

    /// Returns the memory of the compiled form, in bytes.
    pub fn len_bytes(&self) -> usize {
        self.regex.memory_usage()
    }

    pub fn source(&self) -> &str {
        &self.source
    }

    /// Returns true if the expression matches all of `word`.
    pub fn matches(&self, word: &str) -> bool {
        self.regex.is_match(word)
    }

    /// Returns the words of `dictionary` that match.
    pub fn find(&self, dictionary: &Dictionary) -> WordSet {
        let ranges = self.prefixes.iter().map(|prefix| dictionary.words_with_prefix(prefix));
        let mut ranges: Vec<_> = ranges.collect();
        ranges.sort_unstable_by_key(|range| (range.start, std::cmp::Reverse(range.end)));
        let mut ids = Vec::new();
        let mut tested = 0;
        for range in ranges {
            // A range inside one that was tested belongs to a longer prefix.
            let rest = range.start.max(tested)..range.end.max(tested);
            tested = rest.end;
            // Each task has its own copy. Tasks would wait for each other's scratch memory
            // otherwise.
            let test = |regex: &mut Regex, id: u32| regex.is_match(dictionary.word(id.into())).then_some(id);
            let words = rest.into_par_iter().with_min_len(WORDS_PER_TASK);
            ids.par_extend(words.map_init(|| self.regex.clone(), test).flatten_iter());
        }
        WordSet::from_ids(&ids)
    }
}

/// The texts that an expression can match, anchors aside.
#[derive(Debug, Clone, Copy)]
struct Fits {
    empty: bool,
    /// A part of a word, of one character or more.
    word: bool,
}

impl Fits {
    /// Returns what can match `parsed`, of texts with characters of `class` only.
    fn from_parsed(parsed: &Hir, profile: TokenizerProfile, class: &ClassUnicode) -> Self {
        let inside = |part: &Hir| Self::from_parsed(part, profile, class);
        match parsed.kind() {
            HirKind::Empty | HirKind::Look(_) => Self { empty: true, word: false },
            HirKind::Class(Class::Bytes(_)) => Self { empty: false, word: true },
            HirKind::Literal(literal) => {
                let text = std::str::from_utf8(&literal.0);
                let word = text.map_or(true, |text| is_part_of_word(text, profile, class));
                Self { empty: false, word }
            }
            HirKind::Class(Class::Unicode(found)) => {
                let mut both = found.clone();
                both.intersect(class);
                Self { empty: false, word: !both.ranges().is_empty() }
            }
            HirKind::Repetition(repetition) => {
                let sub = inside(&repetition.sub);
                let word = sub.word && repetition.max != Some(0);
                Self { empty: sub.empty || repetition.min == 0, word }
            }
            HirKind::Capture(capture) => inside(&capture.sub),
            HirKind::Concat(parts) => {
                let parts: Vec<Self> = parts.iter().map(inside).collect();
                let can_match = parts.iter().all(|part| part.empty || part.word);
                Self {
                    empty: parts.iter().all(|part| part.empty),
                    word: can_match && parts.iter().any(|part| part.word),
                }
            }
            HirKind::Alternation(parts) => {
                parts.iter().map(inside).fold(Self { empty: false, word: false }, |all, part| Self {
                    empty: all.empty || part.empty,
                    word: all.word || part.word,
                })
            }
        }
    }
}

/// Returns true if `text` can be a part of a word.
fn is_part_of_word(text: &str, profile: TokenizerProfile, class: &ClassUnicode) -> bool {
    let ranges = class.ranges();
    let is_in_class = |c: char| ranges.iter().any(|range| (range.start()..=range.end()).contains(&c));
    // A border beside such a character does not depend on the text around the two.
    let is_alone = |c: char| c.is_alphanumeric() && !in_one_word(profile, c, c);
    let are_apart =
        |(first, second): (char, char)| (is_alone(first) || is_alone(second)) && !in_one_word(profile, first, second);
    text.chars().all(is_in_class) && !text.chars().zip(text.chars().skip(1)).any(are_apart)
}

fn prefixes_from(parsed: &Hir) -> Vec<Vec<u8>> {
    let found = Extractor::new().limit_total(MAX_PREFIXES).extract(parsed);
    let prefixes =
        found.literals().map(|literals| literals.iter().map(|literal| literal.as_bytes().to_vec()).collect::<Vec<_>>());
    prefixes.unwrap_or_else(|| vec![Vec::new()])
}

pub(in crate::query) fn size_fault(fault: &BuildError) -> RegexFault {
    let reason = match fault.size_limit() {
        Some(limit) => format!("its compiled size is more than {limit} bytes"),
        None => fault.to_string(),
    };
    RegexFault { character: 0, reason }
}

pub(in crate::query) fn syntax_fault(source: &str, fault: &regex_syntax::Error) -> RegexFault {
    let (offset, reason) = match fault {
        regex_syntax::Error::Parse(fault) => (fault.span().start.offset, fault.kind().to_string()),
        regex_syntax::Error::Translate(fault) => (fault.span().start.offset, fault.kind().to_string()),
        other => (0, other.to_string()),
    };
    let before = source.get(..offset).unwrap_or(source);
    RegexFault { character: before.chars().count(), reason }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(1000))]

        #[test]
        fn finds_the_words_that_fit(
            words in prop::collection::btree_set("[abA]{1,5}", 0..40),
            source in "(\\(\\?i\\))?([ab.]|a\\*|[ab]\\?|\\(a\\|b\\)|\\(ab\\|a\\|b\\)|\\[ab\\]\\+|\\^|\\$|\\\\b){0,5}",
        ) {
            let mut offsets = vec![0];
            words.iter().for_each(|word| offsets.push(offsets[offsets.len() - 1] + word.len() as u32));
            let arena: String = words.iter().map(String::as_str).collect();
            let num_words = words.len() as u32;
            let dictionary = Dictionary::from_parts(num_words, offsets, arena.into()).unwrap();
            let whole = regex::Regex::new(&format!("^(?:{source})$")).unwrap();
            let slow: Vec<u32> = (0..num_words)
                .zip(&words)
                .filter(|(_, word)| whole.is_match(word))
                .map(|(id, _)| id)
                .collect();
            let found = WordRegex::new(&source).unwrap().find(&dictionary);
            prop_assert_eq!(found.ids().collect::<Vec<_>>(), slow, "{}", source);
        }
    }

    #[test]
    fn expressions_that_no_word_matches_are_known() {
        use TokenizerProfile::{Uax29, Whitespace, Word};
        for (source, profile, can_match) in [
            ("a-b", Word, false),
            ("a-b", Whitespace, true),
            ("(a|-)b?", Word, true),
            ("(-|:)b", Word, false),
            ("-?b", Word, true),
            ("-?", Word, false),
            ("(-a)*", Word, false),
            ("x{0}", Word, false),
            ("^$", Whitespace, false),
            ("", Word, false),
            ("^a$", Word, true),
            ("日本", Word, true),
            ("日本", Uax29, false),
            ("日|本", Uax29, true),
            ("タワー", Uax29, true),
            ("काक", Uax29, true),
            ("can't", Uax29, true),
        ] {
            let regex = WordRegex::new(source).unwrap();
            assert_eq!(regex.can_match_word(profile), can_match, "{source} {profile}");
        }
    }

    #[test]
    fn a_source_cannot_reach_behind_its_end() {
        let regex = WordRegex::new("(?x) ab # c").unwrap();
        assert!(regex.matches("ab") && !regex.matches("abc") && !regex.matches("xab"));
        let regex = WordRegex::new("a|b").unwrap();
        assert!(regex.matches("a") && !regex.matches("ax") && !regex.matches("xb"));
        assert!(WordRegex::new(r"a\/b").unwrap().matches("a/b"));
        assert_eq!(WordRegex::new("ab)").unwrap_err().character, 2);
    }

    #[test]
    fn large_ones_are_refused_before_they_take_memory() {
        let reason = |source: &str| WordRegex::new(source).unwrap_err().reason;
        assert!(reason(r"\w{500}{500}").contains("size"));
        assert!(reason(&r"\w".repeat(MAX_SOURCE_BYTES / 2)).contains("size"));
        assert!(reason(&"a".repeat(10 << 20)).contains("10485760 bytes, more than 8192"));
        assert!(reason(&format!("{}a{}", "(".repeat(300), ")".repeat(300))).contains("nest"));
        assert!(WordRegex::new(&"a".repeat(MAX_SOURCE_BYTES)).is_ok());
    }
}
