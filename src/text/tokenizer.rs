//! Cutting bytes into word and separator tokens: first, straightforward version.

use std::fmt;
use std::str::FromStr;

use unicode_segmentation::UnicodeSegmentation;

use crate::error::{Error, Result};

/// Longest token in bytes; longer runs are split, words at a char boundary.
pub const MAX_TOKEN_BYTES: usize = 65_536;

/// Unicode version of the tables behind the profile `word`.
pub const UNICODE_VERSION: (u8, u8, u8) = (16, 0, 0);

/// What a word is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[repr(u8)]
pub enum TokenizerProfile {
    /// A maximal match of Unicode `\w+`.
    #[default]
    Word = 0,
    /// Word boundaries of UAX #29.
    Uax29 = 1,
    /// A maximal run of characters that are neither white space nor NUL.
    Whitespace = 2,
}

impl TokenizerProfile {
    const ALL: [Self; 3] = [Self::Word, Self::Uax29, Self::Whitespace];

    /// The number stored in a file.
    pub fn as_u8(self) -> u8 {
        self as u8
    }

    /// The profile stored under this number.
    pub fn from_u8(stored: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|profile| profile.as_u8() == stored)
    }

    /// Name as used in SQL and on the command line.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Word => "word",
            Self::Uax29 => "uax29",
            Self::Whitespace => "whitespace",
        }
    }

    /// Version of the Unicode tables that decide where this profile's words end.
    pub fn unicode_version(self) -> (u8, u8, u8) {
        let (major, minor, patch) = unicode_segmentation::UNICODE_VERSION;
        match self {
            Self::Word => UNICODE_VERSION,
            Self::Uax29 => (major as u8, minor as u8, patch as u8),
            Self::Whitespace => char::UNICODE_VERSION,
        }
    }
}

impl fmt::Display for TokenizerProfile {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.as_str())
    }
}

impl FromStr for TokenizerProfile {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self> {
        Self::ALL.into_iter().find(|profile| profile.as_str() == name).ok_or_else(|| {
            Error::InvalidArgument {
                name: "tokenizer",
                got: name.to_owned(),
                allowed: "one of word, uax29, whitespace".to_owned(),
            }
        })
    }
}

/// One token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Token<'a> {
    /// Its bytes; valid UTF-8 where it is a word.
    pub bytes: &'a [u8],
    /// Whether it is a word; otherwise a separator.
    pub is_word: bool,
}

/// Calls `f` with each token of `text`, in order; concatenated they are `text`.
pub fn for_each_token<'a>(profile: TokenizerProfile, text: &'a [u8], mut f: impl FnMut(Token<'a>)) {
    let mut run_start = 0;
    let mut run_is_word = false;
    let mut at = 0;
    // Each piece: (length, class, whether it is a token on its own).
    let mut piece = |len: usize, is_word: bool, own: bool| {
        if at > run_start && (is_word != run_is_word || (own && is_word)) {
            split(&text[run_start..at], run_is_word, &mut f);
            run_start = at;
        }
        run_is_word = is_word;
        at += len;
    };
    for chunk in text.utf8_chunks() {
        for (idx, stretch) in chunk.valid().split('\0').enumerate() {
            if idx > 0 {
                piece(1, false, false);
            }
            match profile {
                TokenizerProfile::Uax29 => {
                    for segment in stretch.split_word_bounds() {
                        piece(segment.len(), segment.chars().any(char::is_alphanumeric), true);
                    }
                }
                TokenizerProfile::Word => stretch.chars().for_each(|c| {
                    piece(
                        c.len_utf8(),
                        regex_syntax::try_is_word_character(c).unwrap_or(false),
                        false,
                    );
                }),
                TokenizerProfile::Whitespace => {
                    stretch.chars().for_each(|c| piece(c.len_utf8(), !c.is_whitespace(), false))
                }
            }
        }
        piece(chunk.invalid().len(), false, false);
    }
    if at > run_start {
        split(&text[run_start..at], run_is_word, &mut f);
    }
}

fn split<'a>(mut run: &'a [u8], is_word: bool, f: &mut impl FnMut(Token<'a>)) {
    while run.len() > MAX_TOKEN_BYTES {
        let mut cut = MAX_TOKEN_BYTES;
        while is_word && run[cut] & 0xC0 == 0x80 {
            cut -= 1;
        }
        f(Token { bytes: &run[..cut], is_word });
        run = &run[cut..];
    }
    f(Token { bytes: run, is_word });
}
