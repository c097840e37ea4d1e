//! Tests of what lies in the file: names of columns, checksums, and files of the first version.

use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, AsArray, BinaryViewArray, Int32Array, ListArray, RecordBatch, StringArray, StringViewArray,
    StructArray,
};
use arrow::compute::concat_batches;
use arrow::datatypes::{Field, Fields, Int32Type, Schema};
use bytes::Bytes;
use parquet::arrow::ArrowWriter;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use parquet::file::properties::WriterProperties;

use crate::arrow::TextType;
use crate::{BlockOptions, CodeWidth, Error, Pattern};

use super::*;

const FIRST_VERSION: [(CodeWidth, &[u8]); 2] = [
    (CodeWidth::Eight, include_bytes!("golden/first_version_8_bits.parquet")),
    (CodeWidth::Twelve, include_bytes!("golden/first_version_12_bits.parquet")),
];

fn write(batch: &RecordBatch, options: GsstParquetOptions) -> Bytes {
    let mut writer = GsstParquetWriter::new(Vec::new(), batch.schema(), options).unwrap();
    writer.write(batch).unwrap();
    writer.finish().unwrap().into()
}

fn read(file: &Bytes, options: &ReadOptions) -> crate::Result<RecordBatch> {
    let reader = GsstParquetReader::open(file.clone())?;
    let mut batches = Vec::new();
    for row_group_idx in 0..reader.num_row_groups() {
        for batch in reader.read_row_group(row_group_idx, options)? {
            batches.push(batch?);
        }
    }
    let schema = batches.first().map_or(reader.schema().clone(), RecordBatch::schema);
    Ok(concat_batches(&schema, &batches).unwrap())
}

fn names(schema: &Schema) -> Vec<&str> {
    schema.fields().iter().map(|field| field.name().as_str()).collect()
}

/// Rows of the golden files.
fn golden_rows() -> RecordBatch {
    let level = |row: i32| ["ERROR", "INFO", "WARN"][row as usize % 3];
    let numbers = Int32Array::from_iter_values(0..40);
    let lists = (0..40).map(|row| (row % 5 != 0).then(|| vec![Some(row); row as usize % 3]));
    let lists = ListArray::from_iter_primitive::<Int32Type, _, _>(lists);
    let one: StringArray = (0..40).map(|row| (row % 7 > 0).then(|| level(row))).collect();
    let line = |row: i32| format!("line {row} of the log: {}", level(row));
    let two = BinaryViewArray::from_iter_values((0..40).map(|row| line(row).into_bytes()));
    let field = |name: &str, array: &dyn Array| Field::new(name, array.data_type().clone(), true);
    let metadata = [("who".to_owned(), "me".to_owned())];
    let fields = vec![
        field("one", &one).with_metadata(metadata.clone().into()),
        field("number", &numbers),
        field("list", &lists),
        field("two", &two),
    ];
    let schema = Schema::new_with_metadata(fields, metadata.into());
    let columns: Vec<ArrayRef> = vec![Arc::new(one), Arc::new(numbers), Arc::new(lists), Arc::new(two)];
    RecordBatch::try_new(Arc::new(schema), columns).unwrap()
}

#[test]
fn files_of_the_first_version_still_open() {
    let rows = golden_rows();
    for (width, file) in FIRST_VERSION {
        let file = Bytes::from_static(file);
        let footer = GsstFooter::read(&file).unwrap();
        assert!(is_gsst_file(footer.parquet()));
        assert_eq!(FooterSeal::find(footer.parquet()).unwrap(), None);
        assert_eq!(read(&file, &ReadOptions::default()).unwrap(), rows);
        let [one, two] = footer.gsst().columns() else { panic!() };
        assert_eq!((one.field_idx, one.text_type, one.width), (0, TextType::Utf8, None));
        assert_eq!((two.field_idx, two.text_type, two.width), (3, TextType::BinaryView, None));
        let test = CodeTest::IsIn(vec![b"ERROR".to_vec()]);
        let predicates = vec![CodePredicate { field_idx: 0, test, is_negated: false }];
        let how = ReadOptions { predicates, ..ReadOptions::default() };
        assert_eq!(read(&file, &how).unwrap().num_rows(), 12);
        // The same rows of today have the same blocks.
        let properties = WriterProperties::builder().set_max_row_group_row_count(Some(25)).build();
        let block = BlockOptions::new(width);
        let today = write(&rows, GsstParquetOptions { block, properties, ..GsstParquetOptions::default() });
        let today = GsstFooter::read(&today).unwrap();
        for column in 0..2 {
            assert_eq!(today.gsst().totals(column), footer.gsst().totals(column));
        }
        assert_eq!(today.gsst().columns()[0].width, Some(width));
    }
}

#[test]
fn other_readers_do_not_find_the_column() {
    let level: ArrayRef = Arc::new(StringArray::from(vec!["ERROR"; 1000]));
    let batch = RecordBatch::try_from_iter([("level", level)]).unwrap();
    let file = write(&batch, GsstParquetOptions::default());
    let other = ParquetRecordBatchReaderBuilder::try_new(file.clone()).unwrap();
    assert_eq!(names(other.schema()), ["level (tadoc GSST codes)"]);
    let ours = GsstParquetReader::open(file).unwrap();
    assert_eq!(names(ours.schema()), ["level"]);
}

#[test]
fn names_of_the_user_are_kept_and_no_name_is_there_twice() {
    let texts = |text: &str| -> ArrayRef { Arc::new(StringViewArray::from(vec![text; 3])) };
    let numbers: ArrayRef = Arc::new(Int32Array::from(vec![1, 2, 3]));
    let nested_fields = Fields::from(vec![
        Field::new("a", texts("").data_type().clone(), true),
        Field::new("a (tadoc GSST codes)", texts("").data_type().clone(), true),
    ]);
    let nested: ArrayRef = Arc::new(StructArray::new(nested_fields, vec![texts("inner"), texts("more")], None));
    let columns = vec![
        ("a", texts("one")),
        ("A (TADOC gsst codes)", numbers.clone()),
        ("a (tadoc GSST codes 2)", texts("two")),
        ("a", texts("three")),
        ("a.b", texts("four")),
        ("", texts("five")),
        ("n (tadoc GSST codes)", nested),
        ("n", texts("six")),
    ];
    let batch = RecordBatch::try_from_iter(columns).unwrap();
    let file = write(&batch, GsstParquetOptions::default());
    assert_eq!(read(&file, &ReadOptions::default()).unwrap(), batch);
    let other = ParquetRecordBatchReaderBuilder::try_new(file.clone()).unwrap();
    let expected = [
        "a (tadoc GSST codes 3)",
        "A (TADOC gsst codes)",
        "a (tadoc GSST codes 2) (tadoc GSST codes)",
        "a (tadoc GSST codes 4)",
        "a.b (tadoc GSST codes)",
        " (tadoc GSST codes)",
        "n (tadoc GSST codes)",
        "n (tadoc GSST codes 2)",
    ];
    assert_eq!(names(other.schema()), expected);
    let how = ReadOptions {
        projection: Some(vec![7, 1, 3]),
        predicates: vec![CodePredicate {
            field_idx: 3,
            test: CodeTest::Like(Pattern::contains(b"hre")),
            is_negated: false,
        }],
        ..ReadOptions::default()
    };
    assert_eq!(read(&file, &how).unwrap(), batch.project(&[7, 1, 3]).unwrap());
}

#[test]
fn columns_named_like_codes_in_plain_files_are_plain() {
    let text: ArrayRef = Arc::new(StringArray::from(vec!["a", "b"]));
    let bytes: ArrayRef = Arc::new(BinaryViewArray::from_iter_values([b"a", b"b"]));
    for column in [text, bytes] {
        let batch = RecordBatch::try_from_iter([("x (tadoc GSST codes)", column)]).unwrap();
        let mut writer = ArrowWriter::try_new(Vec::new(), batch.schema(), None).unwrap();
        writer.write(&batch).unwrap();
        let file = Bytes::from(writer.into_inner().unwrap());
        assert!(!is_gsst_file(GsstFooter::read(&file).unwrap().parquet()));
        assert_eq!(read(&file, &ReadOptions::default()).unwrap(), batch);
    }
}

/// Pyarrow keeps all keys when it writes some of the columns that it has read.
#[test]
fn keys_of_another_file_are_no_matter() {
    let rows = golden_rows();
    let file = write(&rows, GsstParquetOptions::default());
    let footer = GsstFooter::read(&file).unwrap();
    let pairs = footer.parquet().file_metadata().key_value_metadata().unwrap();
    let kept = pairs.iter().filter(|pair| pair.key != "ARROW:schema").cloned().collect();
    let properties = WriterProperties::builder().set_key_value_metadata(Some(kept)).build();
    let text: ArrayRef = Arc::new(StringArray::from(vec!["a"; 40]));
    let columns = [("text", text), ("number", rows.column(1).clone())];
    let others = RecordBatch::try_from_iter(columns).unwrap();
    let mut writer = ArrowWriter::try_new(Vec::new(), others.schema(), Some(properties)).unwrap();
    writer.write(&others).unwrap();
    let copied = Bytes::from(writer.into_inner().unwrap());
    assert!(!is_gsst_file(GsstFooter::read(&copied).unwrap().parquet()));
    assert_eq!(read(&copied, &ReadOptions::default()).unwrap().columns(), others.columns());
}

/// Damage that hides the keys of the footer does not make codes an ordinary column.
#[test]
fn a_footer_without_its_keys_is_refused() {
    let text: ArrayRef = Arc::new(StringArray::from(vec!["a", "b"]));
    let batch = RecordBatch::try_from_iter([("x", text)]).unwrap();
    let file = write(&batch, GsstParquetOptions::default());
    for hidden in [vec![INDEX_KEY], vec![SEAL_KEY], vec![INDEX_KEY, SEAL_KEY, "ARROW:schema"]] {
        let mut damaged = file.to_vec();
        for key in hidden {
            // The byte in front of a key is its length.
            let key = [&[key.len() as u8], key.as_bytes()].concat();
            let place = damaged.windows(key.len()).rposition(|bytes| bytes == key).unwrap();
            damaged[place + 1] ^= 1;
        }
        let error = GsstParquetReader::open(Bytes::from(damaged)).err().unwrap();
        assert!(matches!(error, Error::Format { .. } | Error::Checksum { .. }), "{error}");
    }
}

/// Files without GSST columns have checksums, too, and other readers see the same file.
#[test]
fn a_flipped_bit_anywhere_is_found() {
    let rows = golden_rows();
    let numbers = rows.project(&[1, 2]).unwrap();
    for batch in [rows, numbers] {
        let properties = WriterProperties::builder()
            .set_max_row_group_row_count(Some(25))
            .set_data_page_row_count_limit(10)
            .set_write_batch_size(5)
            .set_bloom_filter_enabled(true)
            .build();
        let file = write(&batch, GsstParquetOptions { properties, ..Default::default() });
        assert_eq!(read(&file, &ReadOptions::default()).unwrap(), batch);
        let mut num_found = 0;
        for at in (0..file.len()).step_by(5) {
            let mut damaged = file.to_vec();
            damaged[at] ^= 1 << (at % 8);
            match read(&damaged.into(), &ReadOptions::default()) {
                Ok(rows) => assert_eq!(rows, batch, "byte {at}"),
                Err(_) => num_found += 1,
            }
        }
        assert!(num_found > file.len() / 5 / 3, "{num_found} of {}", file.len() / 5);
    }
}

#[test]
fn damaged_chunks_and_footers_have_errors_of_their_own() {
    let numbers: ArrayRef = Arc::new(Int32Array::from_iter_values(0..1000));
    let text: ArrayRef = Arc::new(StringArray::from(vec!["a"; 1000]));
    let batch = RecordBatch::try_from_iter([("n", numbers), ("x", text)]).unwrap();
    let file = write(&batch, GsstParquetOptions::default());
    let footer = GsstFooter::read(&file).unwrap();
    let (start, len_bytes) = footer.parquet().row_group(0).column(0).byte_range();
    let mut damaged = file.to_vec();
    damaged[(start + len_bytes / 2) as usize] ^= 4;
    let damaged = Bytes::from(damaged);
    let error = read(&damaged, &ReadOptions::default()).err().unwrap();
    let is_of_chunk = matches!(error, Error::Checksum { section: "column chunk", offset, .. }
        if offset == start);
    assert!(is_of_chunk, "{error}");
    // The other column is read, and no damaged one.
    let how = ReadOptions { projection: Some(vec![1]), ..ReadOptions::default() };
    assert_eq!(read(&damaged, &how).unwrap().column(0).as_string::<i32>().value(7), "a");

    let created_by = b"parquet-rs";
    let at = file.windows(created_by.len()).rposition(|bytes| bytes == created_by).unwrap();
    let mut damaged = file.to_vec();
    damaged[at] ^= 1;
    let error = GsstParquetReader::open(Bytes::from(damaged)).err().unwrap();
    assert!(matches!(error, Error::Checksum { section: "footer", .. }), "{error}");
}
