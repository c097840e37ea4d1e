//! Tests of the kinds of documents, of left-out readers and of batches.

use super::*;

#[test]
fn kinds_are_read_and_written() {
    for kind in "files lines jsonl:text csv:a,b tsv:a parquet:x:y arrow:t avro:t warc mbox".split(' ') {
        assert_eq!(kind.parse::<Documents>().unwrap().to_string(), kind);
    }
    for bad in ["", "file", "jsonl", "csv:", "tsv", "arrow", "avro", "warc:x", "files:x"] {
        assert!(bad.parse::<Documents>().is_err(), "{bad}");
    }
}

#[cfg(not(all(feature = "mail", feature = "office", feature = "warc")))]
#[test]
fn readers_that_are_left_out_name_their_features() {
    let kind = |bytes: &'static [u8], documents: Documents| {
        let source = Source::Text { bytes: bytes.into(), lines_before: 0 };
        let inputs = [Input::new(source, "a.zip".to_owned(), 0)];
        let (division, options) = (documents.into(), ReadOptions::default());
        let (archives, mut texts) = (ArchiveOptions::default(), Joined::default());
        let columns = &mut columns::NoColumns;
        let read = read(&inputs, &division, options, &archives, columns, &mut texts);
        read.map(|_| ()).unwrap_err().kind()
    };
    #[cfg(not(feature = "mail"))]
    assert_eq!(kind(b"From a", Documents::Mbox), FailureKind::LeftOut { feature: "mail" });
    #[cfg(not(feature = "warc"))]
    assert_eq!(kind(b"WARC/1.0", Documents::Warc), FailureKind::LeftOut { feature: "warc" });
    #[cfg(not(feature = "office"))]
    assert_eq!(kind(b"PK\x03\x04", Documents::Files), FailureKind::LeftOut { feature: "office" });
}

#[test]
fn documents_of_a_batch_tile_its_text() {
    let mut batch = Batch::default();
    for text in ["one", "", "two"] {
        batch.text.extend_from_slice(text.as_bytes());
        batch.end_document(&"p".into());
    }
    let texts = |batch: &Batch| -> Vec<(Vec<u8>, bool)> {
        batch.iter().map(|part| (part.text.to_vec(), part.is_last)).collect()
    };
    let expected = |last| [(b"one".to_vec(), true), (Vec::new(), true), (b"two".to_vec(), last)];
    assert_eq!(texts(&batch), expected(true));
    batch.goes_on = true;
    assert_eq!(texts(&batch), expected(false));
}

/// A sink that joins the parts of documents again.
#[derive(Default)]
struct Joined {
    docs: Vec<Vec<u8>>,
    is_open: bool,
    num_batches: usize,
}

impl Sink for Joined {
    fn take(&mut self, batch: Batch) -> Outcome {
        assert!(batch.text.len() <= BATCH_BYTES);
        self.num_batches += 1;
        for part in batch.iter() {
            match self.docs.last_mut().filter(|_| self.is_open) {
                Some(doc) => doc.extend_from_slice(part.text),
                None => self.docs.push(part.text.to_vec()),
            }
            self.is_open = !part.is_last;
        }
        Ok(())
    }
}

#[test]
fn long_documents_are_divided() {
    let docs: Vec<Vec<u8>> = [3, BATCH_BYTES - 3, 0, 2 * BATCH_BYTES, 5 * BATCH_BYTES + 1, 7]
        .iter()
        .enumerate()
        .map(|(idx, &len)| vec![idx as u8; len])
        .collect();
    let mut joined = Joined::default();
    let mut gather = Gather::new(&mut joined, &Faults::default());
    docs.iter().for_each(|doc| gather.push(&"p".into(), doc).unwrap());
    gather.flush().unwrap();
    assert!(joined.docs == docs && !joined.is_open && joined.num_batches >= 9);
}

/// Returns the texts of `file` as an input of its own.
#[cfg(feature = "office")]
fn texts_of(path: &str, file: Vec<u8>) -> Vec<String> {
    let len = file.len() as u64;
    let source = Source::Text { bytes: file.into(), lines_before: 0 };
    let inputs = [Input::new(source, path.to_owned(), len)];
    let (options, archives) = (ReadOptions::default(), ArchiveOptions::default());
    let mut joined = Joined::default();
    let division = Documents::Files.into();
    read(&inputs, &division, options, &archives, &mut columns::NoColumns, &mut joined).unwrap();
    joined.docs.into_iter().map(|doc| String::from_utf8(doc).unwrap()).collect()
}

/// Cells, comments and names of sheets have characters by their numbers, and drawings and slides have none.
#[cfg(feature = "office")]
#[test]
fn characters_of_workbooks_stand_for_their_numbers() {
    use std::io::Write;

    let related = |parts: &[(&str, &str)]| -> String {
        let one = |(idx, (kind, target)): (usize, &(&str, &str))| {
            format!("<Relationship Id='r{idx}' Type='http://x/{kind}' Target='{target}'/>")
        };
        format!("<Relationships>{}</Relationships>", parts.iter().enumerate().map(one).collect::<String>())
    };
    let strings = "<sst><si><t>power failure_x000D_\nnext</t></si><si><r><t>_x00</t></r><r><t>41_ _x0042_</t></r></si>\
                   <si><t>_x005F_x000D_</t></si></sst>";
    let rows = "<worksheet><sheetData><row><c t='s'><v>0</v></c><c t='s'><v>1</v></c><c t='s'><v>2</v></c></row><row>\
                <c t='inlineStr'><is><t>a_x000D_\nb_x005F_x000D_</t></is></c><c t='str'><v>_x0043_</v></c>\
                <c><v>_x0031_</v></c></row></sheetData></worksheet>";
    let comments = "<comments><comment><text><r><t>c_x000A_d</t></r></text></comment></comments>";
    let parts = [
        ("[Content_Types].xml", "<Types/>".to_owned()),
        (
            "xl/workbook.xml",
            "<workbook xmlns:r='r'><sheets><sheet name='_x0053_' r:id='r0'/></sheets></workbook>".into(),
        ),
        (
            "xl/_rels/workbook.xml.rels",
            related(&[("worksheet", "worksheets/sheet1.xml"), ("sharedStrings", "sharedStrings.xml")]),
        ),
        ("xl/sharedStrings.xml", strings.into()),
        ("xl/worksheets/sheet1.xml", rows.into()),
        (
            "xl/worksheets/_rels/sheet1.xml.rels",
            related(&[("comments", "/xl/comments1.xml"), ("drawing", "/xl/drawing1.xml")]),
        ),
        ("xl/comments1.xml", comments.into()),
        ("xl/drawing1.xml", "<wsDr><p><r><t>_x0045_</t></r></p></wsDr>".into()),
    ];
    let mut zip = zip::ZipWriter::new(std::io::Cursor::new(Vec::new()));
    for (name, text) in parts {
        zip.start_file(name, zip::write::SimpleFileOptions::default()).unwrap();
        zip.write_all(text.as_bytes()).unwrap();
    }
    let file = zip.finish().unwrap().into_inner();
    let expected = "S\npower failure next\t_x0041_ B\t_x000D_\na b_x000D_\tC\t1\nc d\n_x0045_\n";
    assert_eq!(texts_of("a.xlsx", file), [expected]);
}
