//! Tokens that are the segments of UAX #29 word boundaries.
//!
//! Each stretch of valid UTF-8 without NUL is segmented on its own. A segment with an alphanumeric
//! character is a word of its own, so words may touch; neighbouring other segments, invalid bytes
//! and NUL merge into one separator.

use unicode_segmentation::UnicodeSegmentation;

use super::tokenizer::{Span, emit_run};

/// Calls `f` with each token of `text`, in order.
pub(super) fn for_each_segment(text: &[u8], mut f: impl FnMut(Span)) {
    let mut separator_start = 0;
    let mut at = 0;
    for chunk in text.utf8_chunks() {
        for (stretch_idx, stretch) in chunk.valid().split('\0').enumerate() {
            at += usize::from(stretch_idx > 0);
            for segment in stretch.split_word_bounds() {
                let end = at + segment.len();
                if segment.chars().any(char::is_alphanumeric) {
                    let separator = Span { start: separator_start, end: at, is_word: false };
                    emit_run::<false>(text, separator, &mut f);
                    emit_run::<false>(text, Span { start: at, end, is_word: true }, &mut f);
                    separator_start = end;
                }
                at = end;
            }
        }
        at += chunk.invalid().len();
    }
    emit_run::<false>(text, Span { start: separator_start, end: at, is_word: false }, &mut f);
}
