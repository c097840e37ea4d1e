//! Tests of files with GSST columns, read by this reader and by the Parquet crate's own.

use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, AsArray, BinaryArray, BooleanArray, Int32Array, ListArray, RecordBatch, StringArray,
};
use arrow::compute::{cast, concat_batches, filter_record_batch};
use arrow::datatypes::{DataType, Field, Int32Type, Schema};
use bytes::Bytes;
use parquet::arrow::ArrowWriter;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use parquet::file::properties::{WriterProperties, WriterVersion};
use proptest::prelude::*;

use crate::arrow::{TextType, decode_selected};
use crate::{Block, BlockOptions, CodeWidth, Error, Pattern};

use super::*;

/// A row: a number, from which a list is made too, and text for two columns.
type Row = (i32, Option<String>, Option<String>);

fn batch_for(rows: &[Row], types: (TextType, TextType)) -> RecordBatch {
    let numbers = Int32Array::from_iter_values(rows.iter().map(|row| row.0));
    let lists = rows.iter().map(|row| (row.0 % 5 != 0).then(|| vec![Some(row.0); row.0 as usize % 3]));
    let lists = ListArray::from_iter_primitive::<Int32Type, _, _>(lists);
    let text = |texts: StringArray, text_type: TextType| cast(&texts, &text_type.data_type()).unwrap();
    let one = text(rows.iter().map(|row| row.1.clone()).collect(), types.0);
    let two = text(rows.iter().map(|row| row.2.clone()).collect(), types.1);
    let field = |name: &str, array: &dyn Array| Field::new(name, array.data_type().clone(), true);
    let metadata = [("who".to_owned(), "me".to_owned())];
    let schema = Schema::new_with_metadata(
        vec![
            field("one", &one).with_metadata(metadata.clone().into()),
            field("number", &numbers),
            field("list", &lists),
            field("two", &two),
        ],
        metadata.into(),
    );
    let columns: Vec<ArrayRef> = vec![one, Arc::new(numbers), Arc::new(lists), two];
    RecordBatch::try_new(Arc::new(schema), columns).unwrap()
}

fn write(batches: &[RecordBatch], options: GsstParquetOptions) -> Bytes {
    let mut writer = GsstParquetWriter::new(Vec::new(), batches[0].schema(), options).unwrap();
    batches.iter().for_each(|batch| writer.write(batch).unwrap());
    writer.finish().unwrap().into()
}

fn options(max_rows: usize, width: CodeWidth) -> GsstParquetOptions {
    GsstParquetOptions {
        block: BlockOptions::new(width),
        properties: WriterProperties::builder()
            .set_max_row_group_row_count(Some(max_rows))
            .set_data_page_row_count_limit(20)
            .set_write_batch_size(7)
            .set_writer_version(match width {
                CodeWidth::Eight => WriterVersion::PARQUET_1_0,
                CodeWidth::Twelve => WriterVersion::PARQUET_2_0,
            })
            .build(),
        ..Default::default()
    }
}

fn read(file: &Bytes, options: &ReadOptions) -> crate::Result<RecordBatch> {
    let reader = GsstParquetReader::open(file.clone())?;
    let mut batches = Vec::new();
    let mut schema = reader.schema().clone();
    for row_group_idx in 0..reader.num_row_groups() {
        let row_group = reader.read_row_group(row_group_idx, options)?;
        schema = row_group.schema().clone();
        for batch in row_group {
            batches.push(batch?);
        }
    }
    Ok(concat_batches(&schema, &batches).unwrap())
}

/// Reads a file from its footer and the ranges of `fields` alone.
fn read_ranges(file: &Bytes, fields: &[usize], options: &ReadOptions) -> RecordBatch {
    let footer = GsstFooter::read(file).unwrap();
    let mut batches = Vec::new();
    let mut schema = None;
    for row_group_idx in 0..footer.num_row_groups() {
        let mut bytes = vec![0xa5; file.len()];
        let mut starts = Vec::new();
        for range in footer.ranges(row_group_idx, fields) {
            starts.push(range.start);
            let range = range.start as usize..range.end as usize;
            bytes[range.clone()].copy_from_slice(&file[range]);
        }
        assert!(starts.iter().all(|start| *start >= footer.row_group_start(row_group_idx)));
        let reader = GsstParquetReader::with_footer(Bytes::from(bytes), footer.clone());
        let row_group = reader.read_row_group(row_group_idx, options).unwrap();
        schema = Some(row_group.schema().clone());
        batches.extend(row_group.map(|batch| batch.unwrap()));
    }
    concat_batches(&schema.unwrap(), &batches).unwrap()
}

/// Reads a file whose text was decoded before.
fn read_with_texts(file: &Bytes, options: &ReadOptions) -> RecordBatch {
    let reader = GsstParquetReader::open(file.clone()).unwrap();
    let gsst = reader.footer().gsst();
    let mut batches = Vec::new();
    let mut schema = None;
    for row_group_idx in 0..reader.num_row_groups() {
        let mut rows = reader.read_row_group(row_group_idx, options).unwrap();
        let from_file = gsst.row_groups()[row_group_idx].stretch_rows.clone();
        for (column_idx, column) in gsst.columns().iter().enumerate() {
            let all = ReadOptions {
                projection: Some(vec![column.field_idx]),
                batch_rows: usize::MAX,
                ..ReadOptions::default()
            };
            let whole = reader.read_row_group(row_group_idx, &all).unwrap();
            let stretches: Vec<ArrayRef> = whole.map(|batch| batch.unwrap().column(0).clone()).collect();
            assert_eq!(stretches.iter().map(|array| array.len()).collect::<Vec<_>>(), from_file);
            assert!(rows.set_text(column_idx, stretches[1..].to_vec()).is_err());
            rows.set_text(column_idx, stretches).unwrap();
        }
        assert!(rows.set_text(9, Vec::new()).is_err());
        schema = Some(rows.schema().clone());
        batches.extend(rows.map(|batch| batch.unwrap()));
    }
    concat_batches(&schema.unwrap(), &batches).unwrap()
}

/// Reads a file with the rows found before that meet the predicates on each column.
fn read_with_matches(file: &Bytes, options: &ReadOptions) -> RecordBatch {
    let reader = GsstParquetReader::open(file.clone()).unwrap();
    let gsst = reader.footer().gsst();
    let mut batches = Vec::new();
    let mut schema = None;
    for row_group_idx in 0..reader.num_row_groups() {
        let mut rows = reader.read_row_group(row_group_idx, options).unwrap();
        for (column_idx, column) in gsst.columns().iter().enumerate() {
            let is_on = |predicate: &&CodePredicate| predicate.field_idx == column.field_idx;
            let predicates: Vec<_> = options.predicates.iter().filter(is_on).cloned().collect();
            if predicates.is_empty() {
                continue;
            }
            let mut stretches = Vec::new();
            for (stretch_idx, num_rows) in gsst.row_groups()[row_group_idx].stretch_rows.iter().enumerate() {
                let mut found: Vec<u32> = (0..*num_rows as u32).collect();
                let mut text = None;
                match gsst.block_range(row_group_idx, column_idx, stretch_idx) {
                    Some(range) => {
                        let bytes = file.slice(range.start as usize..range.end as usize);
                        let block = Block::open(bytes).unwrap();
                        predicates.iter().for_each(|one| one.retain(&block, &mut found));
                        text = Some(decode_selected(&block, &found, column.text_type).unwrap());
                    }
                    None => found.clear(),
                }
                stretches.push(StretchMatches { rows: found, text });
            }
            let wrong = StretchMatches { rows: vec![u32::MAX], text: None };
            assert!(rows.set_matches(column_idx, vec![wrong; stretches.len()]).is_err());
            assert!(rows.set_matches(column_idx, stretches[1..].to_vec()).is_err());
            rows.set_matches(column_idx, stretches).unwrap();
        }
        assert!(rows.set_matches(9, Vec::new()).is_err());
        schema = Some(rows.schema().clone());
        batches.extend(rows.map(|batch| batch.unwrap()));
    }
    concat_batches(&schema.unwrap(), &batches).unwrap()
}

fn even_numbers() -> RowFilter {
    let test = |batch: &RecordBatch| {
        let numbers = batch.column(0).as_primitive::<Int32Type>();
        Ok(BooleanArray::from_unary(numbers, |number| number % 2 == 0))
    };
    RowFilter { fields: vec![1], test: Arc::new(test) }
}

fn rows_strategy() -> impl Strategy<Value = Vec<Row>> {
    let text = || {
        prop_oneof![
            1 => Just(None),
            1 => Just(Some(String::new())),
            4 => "[a-c]{0,6}".prop_map(Some),
            1 => "\\PC{0,90}".prop_map(Some),
        ]
    };
    proptest::collection::vec((0..1000, text(), text()), 1..150)
}

proptest! {
    #[test]
    fn files_read_back(
        rows in rows_strategy(),
        types in (0usize..6, 0usize..6),
        max_rows in 1usize..80,
        cut in 0.0..1.0,
        is_twelve: bool,
        batch_rows in 1usize..40,
        projection in proptest::option::of(proptest::collection::vec(0usize..4, 0..5)),
    ) {
        let batch = batch_for(&rows, (TextType::ALL[types.0], TextType::ALL[types.1]));
        let cut = (cut * rows.len() as f64) as usize;
        let batches = [batch.slice(0, cut), batch.slice(cut, rows.len() - cut)];
        let width = if is_twelve { CodeWidth::Twelve } else { CodeWidth::Eight };
        let file = write(&batches, options(max_rows, width));
        let mut how = ReadOptions { batch_rows, ..Default::default() };
        prop_assert_eq!(read(&file, &how).unwrap(), batch.clone());
        check_as_other_readers_do(&file, &batch);

        if let Some(projection) = projection {
            how.projection = Some(projection.clone());
            prop_assert_eq!(read(&file, &how).unwrap(), batch.project(&projection).unwrap());
        }
        how.predicates = vec![
            CodePredicate {
                field_idx: 0,
                test: CodeTest::Like(Pattern::contains(b"a")),
                is_negated: is_twelve,
            },
            CodePredicate {
                field_idx: 3,
                test: CodeTest::IsIn(vec![b"ab".to_vec(), b"b".to_vec(), vec![]]),
                is_negated: !is_twelve,
            },
        ];
        let is_kept = |row: &Row| {
            let (Some(one), Some(two)) = (&row.1, &row.2) else { return false };
            one.contains('a') != is_twelve && ["ab", "b", ""].contains(&&two[..]) == is_twelve
        };
        let kept = BooleanArray::from_iter(rows.iter().map(|row| Some(is_kept(row))));
        let mut expected = filter_record_batch(&batch, &kept).unwrap();
        if let Some(projection) = &how.projection {
            expected = expected.project(projection).unwrap();
        }
        prop_assert_eq!(read(&file, &how).unwrap(), expected);

        how.row_filter = Some(even_numbers());
        let is_kept = |row: &Row| is_kept(row) && row.0 % 2 == 0;
        let kept = BooleanArray::from_iter(rows.iter().map(|row| Some(is_kept(row))));
        let mut expected = filter_record_batch(&batch, &kept).unwrap();
        if let Some(projection) = &how.projection {
            expected = expected.project(projection).unwrap();
        }
        prop_assert_eq!(read(&file, &how).unwrap(), expected.clone());
        let fields: Vec<usize> = match &how.projection {
            Some(projection) => projection.iter().copied().chain([0, 1, 3]).collect(),
            None => (0..4).collect(),
        };
        prop_assert_eq!(read_ranges(&file, &fields, &how), expected.clone());
        prop_assert_eq!(read_with_texts(&file, &how), expected.clone());
        prop_assert_eq!(read_with_matches(&file, &how), expected);
    }

    #[test]
    fn damaged_files_give_the_answer_or_an_error(
        rows in rows_strategy(),
        damage in proptest::collection::vec((0.0..1.0, 1u8..), 1..4),
    ) {
        let batch = batch_for(&rows, (TextType::Utf8, TextType::BinaryView));
        let file = write(std::slice::from_ref(&batch), options(60, CodeWidth::Eight));
        let mut bytes = file.to_vec();
        for (part, flip) in damage {
            let at = (part * bytes.len() as f64) as usize;
            bytes[at] ^= flip;
        }
        check_damaged(bytes, &batch);
    }
}

/// Checks that reading returns the right rows or an error, and never panics.
fn check_damaged(bytes: Vec<u8>, batch: &RecordBatch) {
    let bytes = Bytes::from(bytes);
    if let Ok(rows) = read(&bytes, &ReadOptions::default()) {
        assert_eq!(&rows, batch);
    }
    let filter = Some(even_numbers());
    let how = ReadOptions { projection: Some(vec![0]), row_filter: filter, ..Default::default() };
    if let Ok(rows) = read(&bytes, &how) {
        let numbers = batch.column(1).as_primitive::<Int32Type>();
        let even = BooleanArray::from_unary(numbers, |number| number % 2 == 0);
        assert_eq!(rows, filter_record_batch(&batch.project(&[0]).unwrap(), &even).unwrap());
    }
}

#[test]
fn every_byte_of_a_file_may_be_damaged() {
    let rows: Vec<Row> =
        (0..40).map(|row| (row, (row % 7 > 0).then(|| format!("row {row}")), Some("b".repeat(row as usize)))).collect();
    let batch = batch_for(&rows, (TextType::Utf8View, TextType::LargeBinary));
    let file = write(std::slice::from_ref(&batch), options(25, CodeWidth::Twelve));
    for at in 0..file.len() {
        for flip in [0x01, 0x80, 0xff] {
            let mut bytes = file.to_vec();
            bytes[at] ^= flip;
            check_damaged(bytes, &batch);
        }
    }
    for len_bytes in 0..file.len() {
        assert!(GsstParquetReader::open(file.slice(..len_bytes)).is_err());
    }
}

/// An index with a correct checksum may hold anything. Reading must not panic, and text must belong
/// to the right rows.
#[test]
fn an_index_may_say_anything() {
    let rows: Vec<Row> = (0..40).map(|row| (row, Some(format!("row {row}")), None)).collect();
    let batch = batch_for(&rows, (TextType::Utf8View, TextType::LargeBinary));
    let file = write(std::slice::from_ref(&batch), options(25, CodeWidth::Eight));
    let start = file.windows(8).position(|digits| digits == b"47535358").unwrap();
    let len_digits = file[start..].iter().take_while(|byte| byte.is_ascii_hexdigit()).count() & !1;
    let text = std::str::from_utf8(&file[start..start + len_digits]).unwrap();
    let byte_at = |at: usize| u8::from_str_radix(&text[2 * at..2 * at + 2], 16).unwrap();
    let index: Vec<u8> = (0..len_digits / 2).map(byte_at).collect();
    let footer = GsstFooter::read(&file).unwrap();
    let seal = FooterSeal::find(footer.parquet()).unwrap().unwrap();
    for at in 8..index.len() {
        for flip in [0x01, 0x10, 0x80, 0xff] {
            let mut changed = index.clone();
            changed[at] ^= flip;
            let checksum = crc32c::crc32c(&changed[8..]);
            changed[4..8].copy_from_slice(&checksum.to_le_bytes());
            let digits: String = changed.iter().map(|byte| format!("{byte:02x}")).collect();
            let mut bytes = file.to_vec();
            bytes[start..start + len_digits].copy_from_slice(digits.as_bytes());
            let sealed = seal.range(bytes.len() as u64).unwrap().start as usize;
            metadata::close_seal(&mut bytes[sealed..]).unwrap();
            if let Ok(read) = read(&bytes.into(), &ReadOptions::default()) {
                assert_eq!(read.column(1), batch.column(1));
                assert_eq!(read.num_rows(), batch.num_rows());
            }
        }
    }
    let mut changed = file.to_vec();
    changed[start + 30] ^= 1;
    let error = GsstParquetReader::open(Bytes::from(changed)).err().unwrap();
    assert!(matches!(error, Error::Checksum { .. } | Error::Format { .. }));
}

/// Checks that the Parquet crate alone reads ordinary columns, and nulls and runs of GSST columns.
fn check_as_other_readers_do(file: &Bytes, batch: &RecordBatch) {
    let builder = ParquetRecordBatchReaderBuilder::try_new(file.clone()).unwrap();
    let schema = builder.schema().clone();
    let footer = builder.metadata().clone();
    let batches: Vec<_> = builder.with_batch_size(1000).build().unwrap().map(Result::unwrap).collect();
    let read = concat_batches(&schema, &batches).unwrap();
    assert_eq!(read.column(1), batch.column(1));
    assert_eq!(read.column(2), batch.column(2));
    let metadata = GsstMetadata::new(&footer, &schema).unwrap();
    assert_eq!(metadata.schema(), &batch.schema());
    for (column_idx, column) in metadata.columns().iter().enumerate() {
        let stored: &BinaryArray = read.column(column.field_idx).as_binary();
        let written = batch.column(column.field_idx);
        assert_eq!(stored.logical_nulls(), written.logical_nulls());
        let name = schema.field(column.field_idx).metadata().get("ARROW:extension:name");
        assert_eq!(name.unwrap(), EXTENSION_NAME);
        let stored_name = schema.field(column.field_idx).name();
        let name = batch.schema().field(column.field_idx).name().clone();
        assert_eq!(stored_name, &format!("{name} (tadoc GSST codes)"));
        assert!(batch.schema().index_of(stored_name).is_err() && schema.index_of(&name).is_err());
        let mut first_row = 0;
        for (row_group_idx, row_group) in metadata.row_groups().iter().enumerate() {
            let num_rows: usize = row_group.stretch_rows.iter().sum();
            let values = stored.slice(first_row, num_rows);
            let range = metadata.run_range(row_group_idx, column_idx).unwrap();
            let run = file.slice(range.start as usize..range.end as usize);
            assert_eq!(values.iter().flatten().next().unwrap_or_default(), &run);
            assert!(values.iter().flatten().skip(1).all(<[u8]>::is_empty));
            let statistics = metadata.statistics(row_group_idx, column_idx).unwrap();
            assert_eq!((statistics.num_rows, statistics.num_nulls), (num_rows, values.null_count()));
            first_row += num_rows;
            let chunk = footer.row_group(row_group_idx).column(if column_idx == 0 { 0 } else { 3 });
            assert!(chunk.statistics().is_none());
        }
    }
}

#[test]
fn long_text_is_cut_into_stretches() {
    let rows: Vec<Row> = (0..40_000)
        .map(|row| {
            let long = format!("http://www.example.org/{row}/").repeat(12);
            (row, (row >= 30_000).then(|| format!("{row}")), Some(long))
        })
        .collect();
    let batch = batch_for(&rows, (TextType::Utf8View, TextType::Utf8));
    let file = write(std::slice::from_ref(&batch), GsstParquetOptions::default());
    let reader = GsstParquetReader::open(file.clone()).unwrap();
    let [row_group] = reader.footer().gsst().row_groups() else { unreachable!() };
    assert!(row_group.stretch_rows.len() > 1);
    let first = reader.footer().gsst().block_range(0, 1, 0).unwrap();
    let second = reader.footer().gsst().block_range(0, 1, 1).unwrap();
    assert_eq!(first.end, second.start);
    assert!(reader.footer().gsst().block_range(0, 0, 0).is_none(), "only nulls");
    let bytes = file.slice(second.start as usize..second.end as usize);
    assert_eq!(Block::open(bytes).unwrap().num_rows(), row_group.stretch_rows[1]);
    assert_eq!(read(&file, &ReadOptions::default()).unwrap(), batch);
    check_as_other_readers_do(&file, &batch);
    let one = CodePredicate { field_idx: 0, test: CodeTest::IsIn(vec![b"39999".to_vec()]), is_negated: false };
    let how = ReadOptions { predicates: vec![one], text_as_views: true, ..Default::default() };
    let found = read(&file, &how).unwrap();
    assert_eq!(found.num_rows(), 1);
    assert_eq!(found.column(3).data_type(), &DataType::Utf8View);
    assert_eq!(found.column(1).as_primitive::<Int32Type>().value(0), 39_999);
}

#[test]
fn files_without_gsst_columns_are_plain_parquet() {
    let rows: Vec<Row> = (0..90).map(|row| (row, Some(row.to_string()), None)).collect();
    let batch = batch_for(&rows, (TextType::Utf8, TextType::Utf8View));
    let mut plain = ArrowWriter::try_new(Vec::new(), batch.schema(), None).unwrap();
    plain.write(&batch).unwrap();
    let plain = Bytes::from(plain.into_inner().unwrap());
    let none = GsstColumns::Named(Vec::new());
    let ours =
        write(std::slice::from_ref(&batch), GsstParquetOptions { columns: none, ..options(50, CodeWidth::Eight) });
    for file in [plain, ours] {
        assert_eq!(read(&file, &ReadOptions::default()).unwrap(), batch);
        let reader = GsstParquetReader::open(file).unwrap();
        assert!(reader.footer().gsst().columns().is_empty());
        let predicate =
            CodePredicate { field_idx: 0, test: CodeTest::Like(Pattern::contains(b"a")), is_negated: false };
        let how = ReadOptions { predicates: vec![predicate], ..Default::default() };
        let error = reader.read_row_group(0, &how).err().unwrap();
        assert!(matches!(error, Error::InvalidArgument { name: "predicate", .. }));
        let error = reader.read_row_group(9, &ReadOptions::default()).err().unwrap();
        assert!(matches!(error, Error::OutOfRange { what: "row group", .. }));
    }
}

#[test]
fn only_named_columns_are_gsst_and_wrong_names_are_refused() {
    let batch = batch_for(&[(1, Some("a".into()), Some("b".into()))], (TextType::Utf8, TextType::Utf8));
    let named =
        |name: &str| GsstParquetOptions { columns: GsstColumns::Named(vec![name.to_owned()]), ..Default::default() };
    let file = write(std::slice::from_ref(&batch), named("two"));
    let reader = GsstParquetReader::open(file.clone()).unwrap();
    assert_eq!(
        reader.footer().gsst().columns(),
        [GsstColumn { field_idx: 3, text_type: TextType::Utf8, width: Some(CodeWidth::Eight) }]
    );
    assert_eq!(read(&file, &ReadOptions::default()).unwrap(), batch);
    for name in ["number", "three"] {
        let refused = GsstParquetWriter::new(Vec::new(), batch.schema(), named(name)).err().unwrap();
        assert!(matches!(refused, Error::InvalidArgument { name: "GSST columns", .. }));
    }
}

#[test]
fn batches_of_another_schema_and_long_values_are_refused() {
    let batch = batch_for(&[(1, None, None)], (TextType::Utf8, TextType::Utf8));
    let new = || GsstParquetWriter::new(Vec::new(), batch.schema(), Default::default()).unwrap();
    let other = batch.project(&[0, 1]).unwrap();
    assert!(matches!(new().write(&other), Err(Error::InvalidArgument { name: "batch", .. })));
    let long = batch_for(&[(1, Some("a".repeat((1 << 23) + 1)), None)], (TextType::Utf8, TextType::Utf8));
    assert!(matches!(new().write(&long), Err(Error::Capacity { .. })));
    let longest = batch_for(&[(1, Some("a".repeat(1 << 23)), None)], (TextType::Utf8, TextType::Utf8));
    assert_eq!(
        read(&write(std::slice::from_ref(&longest), Default::default()), &ReadOptions::default()).unwrap(),
        longest
    );
    let empty = Bytes::from(new().finish().unwrap());
    assert_eq!(GsstParquetReader::open(empty).unwrap().num_row_groups(), 0);
}

#[test]
fn rewritten_files_are_found_out() {
    let rows: Vec<Row> = (0..90).map(|row| (row, Some(format!("row {row}")), None)).collect();
    let batch = batch_for(&rows, (TextType::Utf8, TextType::Utf8));
    let file = write(&[batch], options(50, CodeWidth::Eight));
    let builder = ParquetRecordBatchReaderBuilder::try_new(file).unwrap();
    let kept = builder.schema().clone();
    let batches: Vec<_> = builder.build().unwrap().map(Result::unwrap).collect();
    let without: Schema = kept.as_ref().clone().with_metadata(Default::default());
    for schema in [kept, Arc::new(without)] {
        let mut writer = ArrowWriter::try_new(Vec::new(), schema.clone(), None).unwrap();
        for batch in &batches {
            writer.write(&batch.clone().with_schema(schema.clone()).unwrap()).unwrap();
        }
        let error = GsstParquetReader::open(Bytes::from(writer.into_inner().unwrap())).err().unwrap();
        assert!(matches!(error, Error::Format { section: "GSST index", .. }));
        assert!(error.to_string().contains("another program"));
    }
}
