//! Tokens as ranges of the text, and runs that are too long for one token.

/// Longest token in bytes. Longer runs are split, words at a char boundary.
pub const MAX_TOKEN_BYTES: usize = 65_536;

/// A token as a range of the text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Span {
    pub(super) start: usize,
    pub(super) end: usize,
    pub(super) is_word: bool,
}

/// Emits a run. A run longer than a token may be is split, and an empty run is skipped.
#[inline(always)]
pub(super) fn emit_run<const SPACELESS: bool>(text: &[u8], run: Span, f: &mut impl FnMut(Span)) {
    let len = run.end - run.start;
    if len > MAX_TOKEN_BYTES {
        split_run::<SPACELESS>(text, run, f);
    } else if len > 0 {
        f(run);
    }
}

#[cold]
#[inline(never)]
fn split_run<const SPACELESS: bool>(text: &[u8], run: Span, f: &mut impl FnMut(Span)) {
    let mut start = run.start;
    while run.end - start > MAX_TOKEN_BYTES {
        let mut end = start + MAX_TOKEN_BYTES;
        while run.is_word && text[end] & 0xC0 == 0x80 {
            end -= 1;
        }
        f(Span { start, end, ..run });
        if SPACELESS && run.is_word {
            f(Span { start: end, end, is_word: false });
        }
        start = end;
    }
    f(Span { start, ..run });
}
