//! Entropy coding: adaptive rANS for symbols, plain bits for values without a distribution.
//!
//! ```text
//! stream  symbols_len LEB128 | symbols | bits
//! symbols per 65,536 symbols: state u64, then u32 words in the order of the decoder
//! bits    low bits first, zero to the end of the last byte
//! ```
//!
//! [`Distribution`] learns the probabilities of 16 or 32 symbols while coding. [`Encoder`] and
//! [`Decoder`] make the same updates, so the file needs no table. Their halves, for symbols and for
//! bits, can run independently and with more states. rANS (Duda, arXiv:1311.2540) runs
//! backwards, so the encoder stores one batch of intervals and reverses it.
//!
//! Four states decode twice as fast as one. Limits: 2^32 - 1 plain bits, at most 32 bits for each
//! number. A decoder past the end reads zeros and reports this at the end.
//!
//! [`prefix_code`] is the coder of lists that must be decoded fast, [`monotone`] that of ascending
//! numbers of which single ones are read.

mod distribution;
pub(in crate::format) mod monotone;
pub(in crate::format) mod prefix_code;
mod rans;

pub(in crate::format) use distribution::{Distribution, Interval};
pub(in crate::format) use rans::{
    BitDecoder, BitEncoder, Decoder, Encoder, MAX_SYMBOLS_PER_BYTE, SymbolDecoder, SymbolEncoder, push_part, take_part,
};
