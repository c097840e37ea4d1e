//! Input shared by the benchmarks of GSST on the device: the column, its blocks, and the number of
//! runs.
//!
//! `TADOC_COLUMN` names a file with a row in each line. Without it the rows are generated. The rows
//! of a small file are repeated until they fill a block.

use std::ops::Range;

use gsst::{Block, BlockOptions, write_block};
use rayon::prelude::*;

/// Number of bytes of text. The column is repeated until it is that long.
pub const TEXT_BYTES: usize = 1 << 30;
/// Shortest column: the text of the largest block. Shorter ones are repeated, because a run of many
/// small blocks measures something else.
const MIN_COLUMN_BYTES: usize = 8 << 20;
/// Bytes that fill the outputs before a kernel writes them.
pub const POISONS: [u8; 2] = [0xA5, 0x5A];
pub const NUM_WARM_UPS: usize = 5;
pub const NUM_RUNS: usize = 31;

/// One part of the tables: the options of the blocks and the bytes of text in each block.
pub struct Case {
    pub name: &'static str,
    pub options: BlockOptions,
    pub block_bytes: usize,
}

/// Returns the column's text. A line feed ends each row except the last one.
pub fn column() -> Vec<u8> {
    let mut text = match std::env::var_os("TADOC_COLUMN") {
        Some(path) => std::fs::read(path).unwrap(),
        None => generated(),
    };
    text.pop_if(|&mut byte| byte == b'\n');
    assert!(!text.is_empty(), "TADOC_COLUMN: expected a file with rows, got an empty one");
    let num_copies = MIN_COLUMN_BYTES.div_ceil(text.len());
    vec![text; num_copies].join(&b'\n')
}

fn generated() -> Vec<u8> {
    const WORDS: [&str; 8] = ["carefully ", "final ", "deposits ", "sleep ", "the ", "regular ", "ideas\n", "haggle "];
    let word = |i: u64| WORDS[(i.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 61) as usize];
    (0..4_000_000).flat_map(|i| word(i).bytes()).collect()
}

/// Returns blocks of all rows, each of at most `block_bytes`.
pub fn blocks(rows: &[Option<&[u8]>], case: &Case) -> Vec<Block<Vec<u8>>> {
    let write = |part: Range<usize>| Block::open(write_block(&rows[part], &case.options).unwrap());
    parts(rows, case.block_bytes).into_par_iter().map(|part| write(part).unwrap()).collect()
}

fn parts(rows: &[Option<&[u8]>], block_bytes: usize) -> Vec<Range<usize>> {
    let mut parts = Vec::new();
    let mut start = 0;
    let mut len_bytes = 0;
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
