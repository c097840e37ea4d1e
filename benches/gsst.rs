//! Benchmark of GSST on one core beside fsst-rs on the same rows. Goals: decoding, encoding and
//! training at least as fast as fsst-rs. It also measures single rows, and predicates on blocks
//! beside decoding and searching.
//!
//! Command: `TADOC_COLUMN=l_comment.txt cargo bench --bench gsst`, with a row in each line, or a
//! folder of such files, `TADOC_CORPORA=../shared/corpora/f-dbtext`. Without either variable the
//! rows are generated, and the rates mean little. A block is the first 8 MiB of a column. Rates are
//! in bytes of text. The output begins with encoded sizes, which include all bytes of a block.
//! fsst-rs keeps no lengths of rows and no checksum, so its codes stand beside a block of ours with
//! fsst-rs's symbol table. Every decoded byte and every answer is compared before it is timed.

#![allow(clippy::unwrap_used, missing_docs)]

use std::hint::black_box;
use std::path::{Path, PathBuf};

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use fsst::Compressor;
use gsst::{
    Block, BlockOptions, CodeWidth, Parse, Pattern, Symbol, SymbolTable, num_rows_that_fit, write_block,
    write_block_with,
};

/// Number of single rows in one iteration.
const NUM_PICKED: usize = 10_000;
/// Files of a folder that are not columns.
const NO_COLUMNS: [&str; 2] = ["PROVENANCE.md", "LICENSE"];

/// A column, its encoding by both codecs, and their trained tables.
struct Column {
    name: String,
    rows: Vec<Vec<u8>>,
    table: SymbolTable,
    block: Block<Vec<u8>>,
    peer: Compressor,
    /// Codes of fsst-rs, and the end of each row's codes.
    codes: Vec<u8>,
    code_ends: Vec<u64>,
}

impl Column {
    fn new(name: String, text: &[u8]) -> Self {
        let text = text.strip_suffix(b"\n").unwrap_or(text);
        let rows: Vec<Vec<u8>> = text.split(|&byte| byte == b'\n').map(<[u8]>::to_vec).collect();
        let fitting = num_rows_that_fit(&rows.iter().map(|row| Some(&row[..])).collect::<Vec<_>>());
        let rows = rows[..fitting].to_vec();
        let options = BlockOptions::default();
        let borrowed: Vec<_> = rows.iter().map(|row| Some(&row[..])).collect();
        let plain: Vec<_> = rows.iter().map(|row| &row[..]).collect();
        let table = SymbolTable::train(CodeWidth::Eight, &borrowed, &options.training);
        let block = Block::open(write_block_with(&table, &borrowed, &options).unwrap()).unwrap();
        let peer = Compressor::train(&plain);
        let mut codes = Vec::new();
        let mut code_ends = Vec::new();
        peer.compress_bulk_into::<4>(&plain, &mut codes, &mut code_ends);
        let column = Self { name, table, block, peer, codes, code_ends, rows };
        column.print_sizes();
        column
    }

    fn borrowed(&self) -> Vec<Option<&[u8]>> {
        self.rows.iter().map(|row| Some(&row[..])).collect()
    }

    fn plain(&self) -> Vec<&[u8]> {
        self.rows.iter().map(|row| &row[..]).collect()
    }

    fn text(&self) -> Vec<u8> {
        self.rows.concat()
    }

    fn len_bytes(&self) -> usize {
        self.block.text_len_bytes()
    }

    /// Prints the bytes of text per stored byte, rows and checksum included.
    fn print_sizes(&self) {
        let symbols = self.peer.symbol_table().iter().zip(self.peer.symbol_lengths());
        let symbols = symbols
            .map(|(symbol, &len_bytes)| Symbol::new(&symbol.to_u64().to_le_bytes()[..usize::from(len_bytes)]).unwrap());
        let table = SymbolTable::new(CodeWidth::Eight, symbols.collect()).unwrap();
        let greedy = BlockOptions::default();
        let optimal = BlockOptions { parse: Parse::Optimal, ..greedy };
        let size = |table, options| write_block_with(table, &self.borrowed(), options).unwrap().len();
        let ratio = |len_bytes: usize| self.len_bytes() as f64 / len_bytes as f64;
        println!(
            "{}: {} bytes; codes of fsst-rs {:.3}, block with its table {:.3}, with ours {:.3}, \
             optimal parse {:.3}",
            self.name,
            self.len_bytes(),
            ratio(self.codes.len()),
            ratio(size(&table, &greedy)),
            ratio(size(&self.table, &greedy)),
            ratio(size(&self.table, &optimal)),
        );
    }
}

fn columns() -> Vec<Column> {
    let read = |path: &Path| {
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        Column::new(name, &std::fs::read(path).unwrap())
    };
    if let Some(path) = std::env::var_os("TADOC_COLUMN") {
        return vec![read(Path::new(&path))];
    }
    let Some(folder) = std::env::var_os("TADOC_CORPORA") else {
        return vec![Column::new("generated".to_owned(), &generated())];
    };
    let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let is_column = |path: &PathBuf| {
        let name = path.file_name().unwrap().to_string_lossy();
        path.is_file() && !name.starts_with('.') && !NO_COLUMNS.contains(&&*name)
    };
    let mut paths: Vec<PathBuf> = entries.filter(is_column).collect();
    paths.sort();
    paths.iter().map(|path| read(path)).collect()
}

fn generated() -> Vec<u8> {
    const WORDS: [&str; 8] = ["carefully ", "final ", "deposits ", "sleep ", "the ", "regular ", "ideas\n", "haggle "];
    let word = |i: u64| WORDS[(i.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 61) as usize];
    (0..600_000).flat_map(|i| word(i).bytes()).collect()
}

fn encode(criterion: &mut Criterion, columns: &[Column]) {
    let mut group = criterion.benchmark_group("gsst/encode");
    for column in columns {
        let rows = column.borrowed();
        let plain = column.plain();
        let options = BlockOptions::default();
        group.throughput(Throughput::Bytes(column.len_bytes() as u64));
        group.bench_function(BenchmarkId::new(&column.name, "train_fsst"), |bencher| {
            bencher.iter(|| Compressor::train(black_box(&plain)));
        });
        group.bench_function(BenchmarkId::new(&column.name, "train"), |bencher| {
            bencher.iter(|| SymbolTable::train(CodeWidth::Eight, &rows, &options.training));
        });
        let bulk = |peer: &Compressor| {
            let mut codes = Vec::new();
            let mut code_ends = Vec::new();
            peer.compress_bulk_into::<4>(&plain, &mut codes, &mut code_ends);
            (codes, code_ends)
        };
        group.bench_function(BenchmarkId::new(&column.name, "codes_fsst"), |bencher| {
            bencher.iter(|| bulk(black_box(&column.peer)));
        });
        group.bench_function(BenchmarkId::new(&column.name, "block"), |bencher| {
            bencher.iter(|| write_block_with(black_box(&column.table), &rows, &options).unwrap());
        });
        group.bench_function(BenchmarkId::new(&column.name, "train_and_codes_fsst"), |bencher| {
            bencher.iter(|| bulk(&Compressor::train(black_box(&plain))));
        });
        group.bench_function(BenchmarkId::new(&column.name, "train_and_block"), |bencher| {
            bencher.iter(|| write_block(black_box(&rows), &options).unwrap());
        });
    }
}

fn decode(criterion: &mut Criterion, columns: &[Column]) {
    let mut group = criterion.benchmark_group("gsst/decode");
    for column in columns {
        let expected = column.text();
        group.throughput(Throughput::Bytes(column.len_bytes() as u64));
        let decompressor = column.peer.decompressor();
        let mut decoded = Vec::with_capacity(expected.len() + 64);
        assert_eq!(decompressor.decompress(&column.codes), expected);
        group.bench_function(BenchmarkId::new(&column.name, "fsst"), |bencher| {
            bencher.iter(|| {
                let spare = decoded.spare_capacity_mut();
                decompressor.decompress_into(black_box(&column.codes), spare)
            });
        });
        column.block.decode_text(&mut decoded);
        assert_eq!(decoded, expected);
        group.bench_function(BenchmarkId::new(&column.name, "block"), |bencher| {
            bencher.iter(|| {
                decoded.clear();
                black_box(&column.block).decode_text(&mut decoded);
            });
        });
        group.bench_function(BenchmarkId::new(&column.name, "block_with_offsets"), |bencher| {
            bencher.iter(|| black_box(&column.block).decode_all());
        });
    }
}

fn decode_single_rows(criterion: &mut Criterion, columns: &[Column]) {
    let mut group = criterion.benchmark_group("gsst/decode_row");
    group.throughput(Throughput::Elements(NUM_PICKED as u64));
    for column in columns {
        let pick = |i: usize| (i.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 16) % column.rows.len();
        let picked: Vec<usize> = (0..NUM_PICKED).map(pick).collect();
        let decompressor = column.peer.decompressor();
        let codes_of = |row: usize| {
            let start = row.checked_sub(1).map_or(0, |before| column.code_ends[before] as usize);
            &column.codes[start..column.code_ends[row] as usize]
        };
        let longest = column.rows.iter().map(Vec::len).max().unwrap_or_default();
        let mut text = Vec::with_capacity(longest + 64);
        group.bench_function(BenchmarkId::new(&column.name, "fsst"), |bencher| {
            bencher.iter(|| {
                for &row in &picked {
                    let spare = text.spare_capacity_mut();
                    let len_bytes = decompressor.decompress_into(codes_of(row), spare);
                    assert_eq!(len_bytes, column.rows[row].len());
                }
            });
        });
        group.bench_function(BenchmarkId::new(&column.name, "block"), |bencher| {
            bencher.iter(|| {
                for &row in &picked {
                    text.clear();
                    column.block.decode_row(row, &mut text).unwrap();
                    assert_eq!(text.len(), column.rows[row].len());
                }
            });
        });
    }
}

/// Returns patterns with their names, each with the literal that other tools search for.
fn patterns(column: &Column) -> Vec<(&'static str, Pattern, Vec<u8>)> {
    let row = &column.rows[column.rows.len() / 2];
    let start = row.len() / 4;
    let end = row.len().min(row.len() / 4 + 8);
    let needle = row[start..end].to_vec();
    let prefix = row[..row.len().min(4)].to_vec();
    let short = needle[..needle.len().min(1)].to_vec();
    vec![
        ("contains_1", Pattern::contains(&short), short),
        ("contains_8", Pattern::contains(&needle), needle),
        ("starts_with_4", Pattern::starts_with(&prefix), prefix),
        ("equals", Pattern::equals(row), row.clone()),
    ]
}

fn predicates(criterion: &mut Criterion, columns: &[Column]) {
    let mut group = criterion.benchmark_group("gsst/predicate");
    for column in columns {
        group.throughput(Throughput::Bytes(column.len_bytes() as u64));
        let decompressor = column.peer.decompressor();
        for (name, pattern, literal) in patterns(column) {
            let expected = column.rows.iter().filter(|row| pattern.matches(row)).count();
            group.bench_function(format!("{}/{name}/block", column.name), |bencher| {
                bencher.iter(|| {
                    let mask = column.block.rows_like(black_box(&pattern));
                    assert_eq!(mask.num_set(), expected);
                });
            });
            // fsst-rs needs at least this work: decode everything, then search once without regard
            // to rows.
            let finder = memchr::memmem::Finder::new(&literal);
            group.bench_function(format!("{}/{name}/fsst_and_memmem", column.name), |bencher| {
                bencher.iter(|| {
                    let text = decompressor.decompress(black_box(&column.codes));
                    finder.find_iter(&text).count()
                });
            });
        }
    }
}

fn gsst(criterion: &mut Criterion) {
    let columns = columns();
    encode(criterion, &columns);
    decode(criterion, &columns);
    decode_single_rows(criterion, &columns);
    predicates(criterion, &columns);
}

criterion_group!(benches, gsst);
criterion_main!(benches);
