//! Names of the faults that the device finds in blocks, by the numbers of `kernels/gsst_run.cuh`.

use std::fmt;

/// A check of `kernels/gsst_check.cu` or `kernels/gsst_rows.cu` that can fail.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum BlockCheck {
    /// The numbers of codes of all rows do not sum to that of the block.
    CodeCounts,
    /// The lengths of the texts of all rows do not sum to that of the block.
    TextLengths,
    /// A row without codes has text.
    EmptyRow,
    /// A null row has codes.
    NullRow,
    /// A code has no symbol.
    Code,
    /// The length of a split's text differs from the stored one.
    SplitText,
    /// The bits of a split's tiles differ from its escapes.
    SplitTiles,
    /// The end of a split and the start of the next disagree about an escape, or the last code is
    /// an escape.
    SplitLiteral,
    /// A row ends inside an escape.
    RowInEscape,
    /// The length of a row's text differs from that of its codes.
    RowText,
    /// The text is not UTF-8.
    Utf8,
    /// A row starts inside a UTF-8 character.
    RowInCharacter,
    /// A number that this build does not know.
    Unknown,
}

/// All checks with their names in the kernels, by number from 1.
pub(super) const CHECKS: [(BlockCheck, &str); 12] = [
    (BlockCheck::CodeCounts, "CHECK_CODE_COUNTS"),
    (BlockCheck::TextLengths, "CHECK_TEXT_LENGTHS"),
    (BlockCheck::EmptyRow, "CHECK_EMPTY_ROW"),
    (BlockCheck::NullRow, "CHECK_NULL_ROW"),
    (BlockCheck::Code, "CHECK_CODE"),
    (BlockCheck::SplitText, "CHECK_SPLIT_TEXT"),
    (BlockCheck::SplitTiles, "CHECK_SPLIT_TILES"),
    (BlockCheck::SplitLiteral, "CHECK_SPLIT_LITERAL"),
    (BlockCheck::RowInEscape, "CHECK_ROW_IN_ESCAPE"),
    (BlockCheck::RowText, "CHECK_ROW_TEXT"),
    (BlockCheck::Utf8, "CHECK_UTF8"),
    (BlockCheck::RowInCharacter, "CHECK_ROW_IN_CHARACTER"),
];

impl BlockCheck {
    /// Returns the check for a number that a kernel reported.
    pub(super) fn from_number(number: u32) -> Self {
        let place = (number as usize).checked_sub(1);
        place.and_then(|at| CHECKS.get(at)).map_or(Self::Unknown, |(check, _)| *check)
    }
}

impl fmt::Display for BlockCheck {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            Self::CodeCounts => "numbers of codes do not sum up to that of the block",
            Self::TextLengths => "lengths of texts do not sum up to that of the block",
            Self::EmptyRow => "a row without codes has text",
            Self::NullRow => "a null row has codes",
            Self::Code => "a code has no symbol",
            Self::SplitText => "a split's text has another length than stored",
            Self::SplitTiles => "the bits of a split's tiles are not those of its escapes",
            Self::SplitLiteral => "an escape at the end of a split does not fit the next one",
            Self::RowInEscape => "a row ends inside an escape",
            Self::RowText => "a row's length of text is not that of its codes",
            Self::Utf8 => "the text is not UTF-8",
            Self::RowInCharacter => "a row starts inside a character",
            Self::Unknown => "a fault this build has no name for",
        })
    }
}
