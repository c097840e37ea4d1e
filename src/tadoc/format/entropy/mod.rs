//! Entropy coding: symbols by adaptive rANS, whatever has no shape as plain bits.
//!
//! ```text
//! stream  symbols_len LEB128 | symbols | bits
//! symbols per 65,536 symbols: state u64, then u32 words in the order the decoder wants them
//! bits    low bits first, zero to the end of the last byte
//! ```
//!
//! [`Distribution`] learns the probabilities of 16 or 32 symbols as it codes; [`Encoder`] and
//! [`Decoder`] make the same updates and so agree without any table in the file. Its halves,
//! [`SymbolEncoder`] and [`BitEncoder`], need not run in step. rANS (Duda, arXiv:1311.2540) runs
//! backwards, so the encoder keeps one batch of intervals and turns it round.
//!
//! Decoding takes 7 to 10 ns a symbol on one core, encoding 8 to 10. Limits: 2^32 - 1 plain bits
//! a number at most 32 wide; a decoder that runs dry reads zeros and says so at the end.

mod distribution;
mod numbers;
mod rans;

pub(in crate::format) use distribution::Distribution;
pub(in crate::format) use rans::{
    BitEncoder, Decoder, Encoder, MAGNITUDES, MAX_SYMBOLS_PER_BYTE, SYMBOLS, SymbolEncoder,
    finish_stream,
};
