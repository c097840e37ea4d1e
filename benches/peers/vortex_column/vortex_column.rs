//! Encodes a column with the crates that Vortex 0.90 encodes strings with, fsst-rs and onpair, for
//! `benches/peers/gpu_codecs.py`: arrays in the form that Vortex's CUDA kernels read, a file each.
//!
//! ```text
//! vortex_column COLUMN FOLDER
//! ```
//!
//! COLUMN has a row in each line. All numbers are little endian. A codec has one table for the whole column,
//! which makes for the longest launches.
//!
//! | file | content |
//! | --- | --- |
//! | `rows` | `u32`: bytes of each row |
//! | `fsst.codes`, `fsst.starts` | `u8`: codes; `u32`: where the codes of each row start, and their end |
//! | `fsst.symbols`, `fsst.lengths` | `u64`, `u8`: each symbol's bytes and their number |
//! | `onpair12.codes`, `onpair12.starts` | `u16`: codes; `u32`: where the codes of each row start, and their end |
//! | `onpair12.tokens`, `onpair12.ends` | `u8`: the bytes of all tokens; `u32`: where each starts, and their end |
//! | `onpair16.…` | the same with a dictionary of up to 2^16 tokens |

use std::error::Error;
use std::fs;
use std::path::Path;

use fsst::Compressor;
use onpair::{Config, DEFAULT_CONFIG, MaxDictBits, Rows};

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().collect();
    let [_, column, folder] = arguments.as_slice() else {
        return Err("usage: vortex_column COLUMN FOLDER".into());
    };
    let folder = Path::new(folder);
    fs::create_dir_all(folder)?;
    let mut text = fs::read(column)?;
    text.pop_if(|byte| *byte == b'\n');
    let rows: Vec<&[u8]> = text.split(|byte| *byte == b'\n').collect();
    let lengths = rows.iter().map(|row| u32::try_from(row.len()));
    write(folder, "rows", &lengths.collect::<Result<Vec<u32>, _>>()?, u32::to_le_bytes)?;
    write_fsst(&rows, folder)?;
    for bits in [12, 16] {
        write_onpair(&rows, bits, folder)?;
    }
    Ok(())
}

fn write<T: Copy, const N: usize>(
    folder: &Path,
    name: &str,
    values: &[T],
    bytes_of: impl Fn(T) -> [u8; N],
) -> std::io::Result<()> {
    let bytes: Vec<u8> = values.iter().flat_map(|value| bytes_of(*value)).collect();
    fs::write(folder.join(name), bytes)
}

fn write_fsst(rows: &Vec<&[u8]>, folder: &Path) -> Result<(), Box<dyn Error>> {
    let compressor = Compressor::train(rows);
    let mut codes = Vec::new();
    let mut starts = vec![0];
    for row in rows {
        codes.extend(compressor.compress(row));
        starts.push(u32::try_from(codes.len())?);
    }
    let symbols: Vec<u64> = compressor.symbol_table().iter().map(|symbol| symbol.to_u64()).collect();
    fs::write(folder.join("fsst.codes"), &codes)?;
    fs::write(folder.join("fsst.lengths"), compressor.symbol_lengths())?;
    write(folder, "fsst.starts", &starts, u32::to_le_bytes)?;
    write(folder, "fsst.symbols", &symbols, u64::to_le_bytes)?;
    Ok(())
}

struct Lines<'a>(&'a [&'a [u8]]);

impl Rows for Lines<'_> {
    fn num_rows(&self) -> usize {
        self.0.len()
    }

    fn total_bytes(&self) -> usize {
        self.0.iter().map(|row| row.len()).sum()
    }

    fn row(&self, row_idx: usize) -> &[u8] {
        self.0[row_idx]
    }
}

fn write_onpair(rows: &[&[u8]], bits: u8, folder: &Path) -> Result<(), Box<dyn Error>> {
    let config = Config { max_dict_bits: MaxDictBits::new(bits)?, ..DEFAULT_CONFIG };
    let (dictionary, codes, starts) = onpair::compress_rows::<_, u32>(&Lines(rows), config).into_raw();
    let (tokens, ends) = dictionary.into_raw();
    fs::write(folder.join(format!("onpair{bits}.tokens")), &tokens)?;
    write(folder, &format!("onpair{bits}.ends"), &ends, u32::to_le_bytes)?;
    write(folder, &format!("onpair{bits}.codes"), &codes, u16::to_le_bytes)?;
    write(folder, &format!("onpair{bits}.starts"), &starts, u32::to_le_bytes)?;
    Ok(())
}
