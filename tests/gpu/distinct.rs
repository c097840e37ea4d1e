//! Tests that the device finds as many different rows as a map of the CPU, and the most frequent of them, whatever their
//! hashes are.

use std::collections::HashMap;

use gsst::{BlockOptions, CodeWidth, Pattern, SealedBlock, write_block};
use tadoc_cuda::{Device, DistinctRows, GpuError, GsstScanner, RowForm, ScanOptions, SharedColumn};
use testkit::device::{WIDTHS, open_device};
use testkit::random::Random;

type Rows = Vec<Option<Vec<u8>>>;

/// A set on the device, beside a map of the host with the count of each row.
struct Sets {
    scanner: GsstScanner,
    on_device: DistinctRows,
    expected: HashMap<Vec<u8>, u64>,
}

impl Sets {
    /// Makes empty sets that keep only the bits `hash_mask` of hashes, or returns `None` without a device.
    fn new(hash_mask: u64) -> Option<Self> {
        open_device()?;
        let device = Device::open(0).unwrap();
        let scanner = GsstScanner::new(&device, ScanOptions::default()).unwrap();
        let on_device = DistinctRows::new(&device).unwrap().with_hash_mask(hash_mask).with_counts();
        Some(Self { scanner, on_device, expected: HashMap::new() })
    }

    fn column(&self, blocks: &[Rows], width: CodeWidth, form: RowForm) -> SharedColumn {
        self.scanner.decode_to_device(&sealed(blocks, width), form, false).unwrap().share().unwrap()
    }

    /// Adds a column of some blocks to both sets, and compares the numbers of new rows and the most frequent rows.
    #[track_caller]
    fn add(&mut self, blocks: &[Rows], width: CodeWidth, case: &str) {
        let column = self.column(blocks, width, RowForm::Offsets);
        self.add_column(&column, blocks.iter().flatten().flatten(), case);
        for num_rows in [0, 1, 7, 100, usize::MAX] {
            for with_ties in [false, true] {
                self.check_frequent(num_rows, with_ties, case);
            }
        }
    }

    #[track_caller]
    fn add_column<'a>(&mut self, column: &SharedColumn, rows: impl Iterator<Item = &'a Vec<u8>>, case: &str) {
        let before = self.expected.len();
        for row in rows {
            *self.expected.entry(row.clone()).or_default() += 1;
        }
        let num_new = self.expected.len() - before;
        assert_eq!(self.on_device.add(column).unwrap(), num_new as u64, "{case}");
        assert_eq!(self.on_device.num_rows(), self.expected.len() as u64, "{case}");
    }

    /// Checks that the `num_rows` most frequent rows are found, with their counts, and only few others.
    #[track_caller]
    fn check_frequent(&self, num_rows: usize, with_ties: bool, case: &str) {
        let case = format!("{case}, {num_rows} most frequent rows, ties: {with_ties}");
        let found = self.on_device.most_frequent(num_rows, with_ties).unwrap().unwrap();
        let bounds = found.offsets.windows(2).map(|bound| bound[0] as usize..bound[1] as usize);
        let counts: HashMap<Vec<u8>, u64> =
            bounds.map(|bound| found.text[bound].to_vec()).zip(found.counts.iter().copied()).collect();
        assert_eq!(counts.len(), found.counts.len(), "{case}: a row comes twice");
        assert!(counts.iter().all(|(row, count)| self.expected.get(row) == Some(count)), "{case}");
        let mut expected: Vec<u64> = self.expected.values().copied().collect();
        expected.sort_unstable_by_key(|count| std::cmp::Reverse(*count));
        expected.truncate(num_rows);
        let Some(&last) = expected.last() else { return assert!(counts.is_empty(), "{case}") };
        assert!(counts.len() >= expected.len(), "{case}");
        let is_missing = |(row, count): (&Vec<u8>, &u64)| {
            let is_wanted = *count > last || (with_ties && *count == last);
            is_wanted && !counts.contains_key(row)
        };
        assert!(!self.expected.iter().any(is_missing), "{case}");
        // Counts below 64 are told apart, others by 3 %.
        assert!(counts.values().all(|count| *count + last / 32 >= last), "{case}");
        if last < 64 && !with_ties {
            assert_eq!(counts.len(), expected.len(), "{case}");
        }
    }
}

fn sealed(blocks: &[Rows], width: CodeWidth) -> Vec<SealedBlock<Vec<u8>>> {
    let sealed = blocks.iter().map(|rows| {
        let rows: Vec<Option<&[u8]>> = rows.iter().map(Option::as_deref).collect();
        SealedBlock::open(write_block(&rows, &BlockOptions::new(width)).unwrap()).unwrap()
    });
    sealed.collect()
}

/// All bits, few bits, none, only those of tags, and only those of slots.
const HASH_MASKS: [u64; 5] = [u64::MAX, 0x8000_0000_0000_0003, 0, 0xffff << 48, 0xffff_ffff];

fn random_rows(random: &mut Random, num_rows: usize, num_values: usize) -> Rows {
    let row = |_| {
        // Small numbers are frequent.
        let number = random.below(num_values);
        let number = random.below(number + 1);
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
fn a_row_that_comes_often_is_counted_once_for_each_time() {
    let Some(mut sets) = Sets::new(u64::MAX) else { return };
    let text = |number: usize| Some(format!("row {number}").into_bytes());
    // Each row comes twice as often as the next one, in runs and mixed.
    let rows: Rows = (0..17).flat_map(|number| vec![text(number); 1 << (16 - number)]).collect();
    let mixed: Rows = (1..100_000_usize).map(|number| text(number.trailing_zeros() as usize)).collect();
    sets.add(&[rows.clone(), mixed, vec![None; 1000]], CodeWidth::Eight, "many times");
    sets.add(&[rows], CodeWidth::Twelve, "and again");
    assert_eq!(sets.on_device.num_nulls(), 1000);
    assert_eq!(sets.on_device.num_kept(), 1);
}

#[test]
fn rows_that_match_stay_on_the_device() {
    for width in WIDTHS {
        let Some(mut sets) = Sets::new(u64::MAX) else { return };
        let mut random = Random(5);
        let blocks: Vec<Rows> = (0..3).map(|_| random_rows(&mut random, 3000, 900)).collect();
        let sealed = sealed(&blocks, width);
        for part in ["regular", "furiously r", "", "no such text"] {
            let tests = [sets.scanner.matcher().like(&Pattern::contains(part.as_bytes())).unwrap()];
            let submit = |is_text_wanted| sets.scanner.submit_matching(&sealed, &tests, is_text_wanted).unwrap();
            let expected = submit(true).wait().unwrap();
            let error = submit(false).wait_on_device().unwrap_err();
            assert!(matches!(error, GpuError::Mismatch { what: "text of rows that match", .. }), "{error}");
            let column = submit(true).wait_on_device().unwrap();
            let rows = column.to_host().unwrap();
            assert_eq!((rows.num_rows(), rows.num_nulls()), (expected.rows().len(), 0), "{width:?} {part}");
            assert_eq!(rows.text(), expected.text().unwrap(), "{width:?} {part}");
            let offsets: Vec<u32> = expected.offsets().unwrap().collect();
            assert_eq!(rows.offsets(), Some(&offsets[..]), "{width:?} {part}");
            let all = blocks.iter().flatten().flatten();
            let matching = all.filter(|row| part.is_empty() || String::from_utf8_lossy(row).contains(part));
            sets.add_column(&column.share().unwrap(), matching, part);
            sets.check_frequent(10, true, part);
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
    let error = little.most_frequent(1, false).unwrap_err();
    assert!(matches!(error, GpuError::Mismatch { what: "counts of rows", .. }), "{error}");
}
