//! Tests that the device finds as many different rows as a set of the CPU, whatever their hashes are.

use std::collections::HashSet;

use gsst::{BlockOptions, CodeWidth, SealedBlock, write_block};
use tadoc_cuda::{Device, DistinctRows, GpuError, GsstScanner, RowForm, ScanOptions, SharedColumn};
use testkit::device::{WIDTHS, open_device};
use testkit::random::Random;

type Rows = Vec<Option<Vec<u8>>>;

/// A set on the device, beside one on the host.
struct Sets {
    scanner: GsstScanner,
    on_device: DistinctRows,
    expected: HashSet<Vec<u8>>,
}

impl Sets {
    /// Makes empty sets that keep only the bits `hash_mask` of hashes, or returns `None` without a device.
    fn new(hash_mask: u64) -> Option<Self> {
        open_device()?;
        let device = Device::open(0).unwrap();
        let scanner = GsstScanner::new(&device, ScanOptions::default()).unwrap();
        let on_device = DistinctRows::new(&device).unwrap().with_hash_mask(hash_mask);
        Some(Self { scanner, on_device, expected: HashSet::new() })
    }

    fn column(&self, blocks: &[Rows], width: CodeWidth, form: RowForm) -> SharedColumn {
        let sealed = blocks.iter().map(|rows| {
            let rows: Vec<Option<&[u8]>> = rows.iter().map(Option::as_deref).collect();
            SealedBlock::open(write_block(&rows, &BlockOptions::new(width)).unwrap()).unwrap()
        });
        let sealed: Vec<SealedBlock<Vec<u8>>> = sealed.collect();
        self.scanner.decode_to_device(&sealed, form, false).unwrap().share().unwrap()
    }

    /// Adds a column of some blocks to both sets and compares the numbers of new rows.
    #[track_caller]
    fn add(&mut self, blocks: &[Rows], width: CodeWidth, case: &str) {
        let column = self.column(blocks, width, RowForm::Offsets);
        let before = self.expected.len();
        self.expected.extend(blocks.iter().flatten().flatten().cloned());
        let num_new = self.expected.len() - before;
        assert_eq!(self.on_device.add(&column).unwrap(), num_new as u64, "{case}");
        assert_eq!(self.on_device.num_rows(), self.expected.len() as u64, "{case}");
    }
}

/// All bits, few bits, none, only those of tags, and only those of slots.
const HASH_MASKS: [u64; 5] = [u64::MAX, 0x8000_0000_0000_0003, 0, 0xffff << 48, 0xffff_ffff];

fn random_rows(random: &mut Random, num_rows: usize, num_values: usize) -> Rows {
    let row = |_| {
        let number = random.below(num_values);
        // Values have equal prefixes and ends at all places of a word, and one is empty.
        let len = number % 23;
        let value = [&b"furiously regular deposits"[..len], &number.to_le_bytes()[..number.div_ceil(256).min(4)]];
        (!random.one_in(11)).then(|| if number == 0 { Vec::new() } else { value.concat() })
    };
    (0..num_rows).map(row).collect()
}

#[test]
fn random_columns_have_the_numbers_of_a_set() {
    for (i, hash_mask) in HASH_MASKS.into_iter().enumerate() {
        let Some(mut sets) = Sets::new(hash_mask) else { return };
        let mut random = Random(i as u64 + 1);
        for width in WIDTHS {
            for num_rows in [0, 1, 31, 32, 33, 255, 256, 257, 700] {
                let blocks: Vec<Rows> = (0..3).map(|_| random_rows(&mut random, num_rows, 900)).collect();
                sets.add(&blocks, width, &format!("{hash_mask:#x}, {width:?}, {num_rows} rows in each of 3 blocks"));
            }
        }
    }
}

#[test]
fn rows_without_nulls_and_rows_of_nulls_only() {
    let Some(mut sets) = Sets::new(u64::MAX) else { return };
    let text = |text: &str| Some(text.as_bytes().to_vec());
    sets.add(&[vec![None, None]], CodeWidth::Eight, "nulls");
    assert_eq!(sets.on_device.num_kept(), 0);
    sets.add(&[vec![text(""), None, text("")]], CodeWidth::Eight, "one empty text");
    sets.add(&[vec![text("a"), text("b"), text("a")]], CodeWidth::Eight, "no nulls");
    assert_eq!(sets.on_device.num_kept(), 2);
    sets.add(&[vec![text("b"), text(""), text("a")]], CodeWidth::Twelve, "nothing new");
    assert_eq!(sets.on_device.num_kept(), 2);
    // The number of the column that went is that of the next one.
    sets.add(&[vec![text("c"), text("b")]], CodeWidth::Eight, "one new text");
    sets.add(&[vec![text("c"), text("a\0"), text("a")]], CodeWidth::Eight, "a zero behind a text");
}

#[test]
fn tables_grow() {
    for hash_mask in [u64::MAX, 0xffff_ffff] {
        let Some(mut sets) = Sets::new(hash_mask) else { return };
        for column in 0..6 {
            // Each column has a third of the rows of the one before.
            let first = column * 40_000;
            let rows = (first..first + 60_000).map(|number| Some(format!("row {number}").into_bytes()));
            let rows: Rows = rows.collect();
            let blocks: Vec<Rows> = rows.chunks(20_000).map(<[_]>::to_vec).collect();
            sets.add(&blocks, CodeWidth::Eight, &format!("{hash_mask:#x}, column {column}"));
        }
        assert_eq!(sets.on_device.num_rows(), 260_000);
    }
}

#[test]
fn long_rows_differ_by_one_byte() {
    for hash_mask in HASH_MASKS {
        let Some(mut sets) = Sets::new(hash_mask) else { return };
        let mut random = Random(7);
        for len in [255, 256, 257, 263, 264, 265, 511, 513, 4096, 100_001] {
            let base = random.words(len);
            let mut rows: Rows = vec![Some(base.clone()), Some(base[1..].to_vec()), Some(b"short".to_vec())];
            for at in [0, 1, 7, 8, len / 2, len - 1] {
                let mut other = base.clone();
                other[at] ^= 1;
                rows.push(Some(other));
            }
            rows.push(Some(base));
            sets.add(&[rows.clone(), rows], CodeWidth::Eight, &format!("{hash_mask:#x}, {len} bytes"));
        }
    }
}

#[test]
fn errors_leave_the_set_as_it_was() {
    let Some(mut sets) = Sets::new(u64::MAX) else { return };
    let rows: Rows = (0..100_000).map(|number| Some(format!("row {number}").into_bytes())).collect();
    let blocks: Vec<Rows> = rows.chunks(50_000).map(<[_]>::to_vec).collect();
    let views = sets.column(&blocks, CodeWidth::Eight, RowForm::Views);
    assert!(matches!(sets.on_device.add(&views), Err(GpuError::Mismatch { what: "bytes of offsets", .. })));
    let device = Device::open(0).unwrap().with_max_bytes(3 << 20);
    let mut little = DistinctRows::new(&device).unwrap();
    let column = sets.column(&blocks, CodeWidth::Eight, RowForm::Offsets);
    for _ in 0..2 {
        assert!(matches!(little.add(&column), Err(GpuError::OutOfMemory { what: "table of rows", .. })));
        assert_eq!((little.num_rows(), little.num_kept()), (0, 0));
    }
    let few = sets.column(&blocks[..0], CodeWidth::Eight, RowForm::Offsets);
    assert_eq!(little.add(&few).unwrap(), 0);
    sets.add(&blocks, CodeWidth::Eight, "the same rows with room");
}
