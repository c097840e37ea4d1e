//! What benches of GSST on the device share: the column, its blocks, and how often they run.
//!
//! `TADOC_COLUMN` names a file with a row in each line; without it the rows are generated.

use std::ops::Range;

use gsst::{Block, BlockOptions, write_block};
use rayon::prelude::*;

/// Text of the column, repeated until it is as long.
pub const TEXT_BYTES: usize = 1 << 30;
/// What outputs are filled with before a kernel writes them.
pub const POISONS: [u8; 2] = [0xA5, 0x5A];
pub const NUM_WARM_UPS: usize = 5;
pub const NUM_RUNS: usize = 31;

/// One part of the tables: how blocks are written, and how much text each has.
pub struct Case {
    pub name: &'static str,
    pub options: BlockOptions,
    pub block_bytes: usize,
}

/// The column's text, its rows ended by line feeds, without the last one.
pub fn column() -> Vec<u8> {
    let mut text = match std::env::var_os("TADOC_COLUMN") {
        Some(path) => std::fs::read(path).unwrap(),
        None => generated(),
    };
    text.pop_if(|&mut byte| byte == b'\n');
    text
}

fn generated() -> Vec<u8> {
    const WORDS: [&str; 8] =
        ["carefully ", "final ", "deposits ", "sleep ", "the ", "regular ", "ideas\n", "haggle "];
    let word = |i: u64| WORDS[(i.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 61) as usize];
    (0..4_000_000).flat_map(|i| word(i).bytes()).collect()
}

/// Blocks of all rows, each of `block_bytes` at most.
pub fn blocks(rows: &[Option<&[u8]>], case: &Case) -> Vec<Block<Vec<u8>>> {
    let write = |part: Range<usize>| Block::open(write_block(&rows[part], &case.options).unwrap());
    parts(rows, case.block_bytes).into_par_iter().map(|part| write(part).unwrap()).collect()
}

fn parts(rows: &[Option<&[u8]>], block_bytes: usize) -> Vec<Range<usize>> {
    let (mut parts, mut start, mut len_bytes) = (Vec::new(), 0, 0);
    for (i, row) in rows.iter().enumerate() {
        let row_bytes = row.map_or(0, <[u8]>::len);
        if len_bytes + row_bytes > block_bytes {
            parts.push(std::mem::replace(&mut start, i)..i);
            len_bytes = 0;
        }
        len_bytes += row_bytes;
    }
    parts.push(start..rows.len());
    parts
}
