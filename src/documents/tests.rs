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
        let division = documents.into();
        let options = ReadOptions::default();
        let archives = ArchiveOptions::default();
        let mut texts = Joined::default();
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

/// Returns the texts of `file` as an input of its own, and the notes about it.
#[cfg(any(feature = "office", feature = "warc"))]
fn texts_of(path: &str, file: Vec<u8>, documents: Documents, options: ReadOptions) -> (Vec<String>, Vec<String>) {
    let len = file.len() as u64;
    let source = Source::Text { bytes: file.into(), lines_before: 0 };
    let inputs = [Input::new(source, path.to_owned(), len)];
    let mut joined = Joined::default();
    let archives = ArchiveOptions::default();
    let read = read(&inputs, &documents.into(), options, &archives, &mut columns::NoColumns, &mut joined);
    let texts = joined.docs.into_iter().map(|doc| String::from_utf8(doc).unwrap()).collect();
    (texts, read.unwrap().notes)
}

/// Pages have the characters that browsers show, and a note where bytes mean nothing.
#[cfg(all(feature = "html", feature = "warc"))]
#[test]
fn pages_of_files_and_crawls_have_their_characters_or_a_note() {
    let options = ReadOptions { html_to_text: true, ..ReadOptions::default() };
    let read = |path: &str, page: &[u8], kind: &str| {
        let head = format!("HTTP/1.1 200 OK\r\nContent-Type: {kind}\r\n\r\n");
        let len = head.len() + page.len();
        let front = format!(
            "WARC/1.0\r\nWARC-Type: response\r\nWARC-Target-URI: http://a/\r\nContent-Type: \
             application/http\r\nContent-Length: {len}\r\n\r\n{head}"
        );
        let record = [front.as_bytes(), page, b"\r\n\r\n"].concat();
        let from_file = texts_of(path, page.to_vec(), Documents::Files, options);
        (from_file, texts_of("a.warc", record, Documents::Warc, options))
    };
    let alone = |text: &str| (vec![text.to_owned()], Vec::<String>::new());
    let (file, body) = read("a.html", b"<p>caf\xe9", "text/html");
    assert_eq!((file, body), (alone("caf\u{e9}\n"), alone("caf\u{e9}\n")));
    for (path, page, kind) in [
        ("a.html", b"<meta charset=utf-8><p>caf\xe9".as_slice(), "text/html"),
        ("a.html", b"<p>\xc3\xa9caf\xe9", "text/html"),
        ("a.xhtml", b"<p>caf\xe9</p>", "application/xhtml+xml"),
    ] {
        let (file, body) = read(path, page, kind);
        for (texts, notes) in [file, body] {
            assert!(texts[0].ends_with("caf\u{fffd}\n"), "{texts:?}");
            assert!(notes.len() == 1 && notes[0].contains("mean nothing in utf-8"), "{notes:?}");
        }
    }
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
    // Some programs leave out the relationship of the strings, which have their usual name then.
    let relations = [("worksheet", "worksheets/sheet1.xml"), ("sharedStrings", "sharedStrings.xml")];
    for relations in [&relations[..], &relations[..1]] {
        let parts = [
            ("[Content_Types].xml", "<Types/>".to_owned()),
            (
                "xl/workbook.xml",
                "<workbook xmlns:r='r'><sheets><sheet name='_x0053_' r:id='r0'/></sheets></workbook>".into(),
            ),
            ("xl/_rels/workbook.xml.rels", related(relations)),
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
        let (texts, _) = texts_of("a.xlsx", file, Documents::Files, ReadOptions::default());
        assert_eq!(texts, [expected]);
    }
}

/// Texts of RTF are in the code page that is named, and those that are there twice are read once.
#[cfg(feature = "office")]
#[test]
fn rtf_has_code_pages_of_dos_and_texts_in_unicode() {
    let fonts = r"{\fonttbl{\f0 A;}{\f1\fcharset254 B;}}";
    for (rtf, expected) in [
        (r"{\rtf1\ansi{\upr{a ?}{\*\ud{a \u26085?}}} b}", "a 日 b\n"),
        (r"{\rtf1\ansi {\upr{\b x{y}}{\*\ud{z{\b \u233?}\'e9}}}\par{\*\x{\upr{a}{\*\ud{b}}}}c}", "zéé\nc\n"),
        (r"{\rtf1\ansi{\footnote{\upr{a}{\*\ud{b}}}}c}", "c\nb\n"),
        (r"{\rtf1\pca caf\'82 \'9b}", "café ø\n"),
        (r"{\rtf1\pc caf\'82 \'9b}", "café ¢\n"),
        (r"{\rtf1\mac caf\'8e}", "café\n"),
        (r"{\rtf1\ansi\ansicpg850 \'9b{\rtf1\ansicpg437 \'9b}\ansicpg866 \'80}", "ø¢А\n"),
        (&format!(r"{{\rtf1\ansi{fonts}\f0 \'a2\f1 \'9b}}"), "¢¢\n"),
    ] {
        let (texts, _) = texts_of("a.rtf", rtf.as_bytes().to_vec(), Documents::Files, ReadOptions::default());
        assert_eq!(texts, [expected], "{rtf}");
    }
}

/// Collects the timestamps of rows.
#[derive(Default)]
struct Times(Vec<Option<i64>>);

impl ColumnSink for Times {
    fn check(&self, _schema: &arrow::datatypes::Schema, _input: &str) -> Outcome {
        Ok(())
    }

    fn push(&mut self, rows: &arrow::array::RecordBatch) -> Outcome {
        use arrow::array::AsArray;

        let times = rows.column_by_name(timestamps::COLUMN).unwrap();
        self.0.extend(times.as_primitive::<arrow::datatypes::TimestampMicrosecondType>());
        Ok(())
    }

    fn num_columns(&self) -> usize {
        1
    }
}

/// Cells are decimals, floats or texts, as the column has it, and a date in any of them.
#[test]
fn cells_with_dates_in_digits_are_dates() {
    let day = Some(1_714_953_600_000_000);
    let second = |micros: i64| Some(1_714_979_289_000_000 + micros);
    for (cells, expected) in [
        (["20240506.0", "", "20240506.0"], [day, None, day]),
        (["20240506", "", "20240532"], [day, None, None]),
        (["20240506.0", "", "20240506.00"], [day, None, day]),
        (["20240506070809.123", "", "20240506070809.000"], [second(123_000), None, second(0)]),
        (["20240506070809.123456", "x", "20240506070809.5"], [second(123_456), None, second(500_000)]),
        (["1714979289.5", "1714979289.0", ""], [second(500_000), second(0), None]),
    ] {
        let file: String = cells.iter().map(|cell| format!("x,{cell}\n")).collect();
        let source = Source::Text { bytes: format!("text,d\n{file}").into_bytes().into(), lines_before: 0 };
        let inputs = [Input::new(source, "a.csv".to_owned(), 0)];
        let documents = Documents::Csv("text".to_owned());
        let timestamps = Some(Timestamps::new("d", &documents, "UTC", None).unwrap());
        let division = Division { timestamps, ..documents.into() };
        let options = ReadOptions::default();
        let mut times = Times::default();
        read(&inputs, &division, options, &ArchiveOptions::default(), &mut times, &mut Joined::default()).unwrap();
        assert_eq!(times.0, expected, "{cells:?}");
    }
}
