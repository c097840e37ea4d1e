//! Tests of office files: their text, the limits, and files that are broken.

use testkit::random::Random;

use crate::archives::zip;
use crate::harness::{Folder, Ran, new_folder};

const TYPES: &str = "<Types xmlns='urn:types'/>";
const RELATED: &str = "http://name.invalid/relationships";

/// Returns the relationships of a part: ids, kinds and targets.
fn related(parts: &[(&str, &str, &str)]) -> String {
    let each = |(id, kind, target): &(&str, &str, &str)| {
        format!("<Relationship Id='{id}' Type='{RELATED}/{kind}' Target='{target}'/>")
    };
    let parts: String = parts.iter().map(each).collect();
    format!("<Relationships xmlns='urn:relationships'>{parts}</Relationships>")
}

/// Returns a file of Office Open XML with the main part and others.
fn open_xml(main: (&str, &str), parts: &[(&str, &str)]) -> Vec<u8> {
    let root = related(&[("rId1", "officeDocument", main.0)]);
    let all = [("[Content_Types].xml", TYPES), ("_rels/.rels", &root), main];
    let all: Vec<_> = all.iter().chain(parts).map(|(name, text)| (*name, text.as_bytes())).collect();
    zip(&all)
}

fn word(body: &str) -> String {
    format!("<?xml version='1.0'?><w:document xmlns:w='w' xmlns:r='r'><w:body>{body}</w:body></w:document>")
}

fn docx(body: &str) -> Vec<u8> {
    open_xml(("word/document.xml", &word(body)), &[])
}

fn open_document(kind: &str, body: &str, styles: &str) -> Vec<u8> {
    let mimetype = format!("application/vnd.oasis.opendocument.{kind}");
    let content = format!("<office:document-content><office:body>{body}</office:body></office:document-content>");
    let styles = format!("<office:document-styles>{styles}</office:document-styles>");
    zip(&[("mimetype", mimetype.as_bytes()), ("content.xml", content.as_bytes()), ("styles.xml", styles.as_bytes())])
}

/// Ingests `name` with `bytes`, and returns the text of its document.
fn text(folder: &Folder, name: &str, bytes: impl AsRef<[u8]>) -> String {
    folder.write(name, bytes);
    let ran = folder.run(&["ingest", name, "--force", "-o", "c.tadoc"]);
    assert_eq!(ran.status, 0, "{}", ran.stderr);
    assert!(!ran.stderr.contains("warning") && !ran.stderr.contains("note"), "{}", ran.stderr);
    String::from_utf8(folder.cat("c.tadoc", name)).unwrap()
}

#[test]
fn runs_of_a_paragraph_are_one_line() {
    let folder = new_folder();
    let body = "<w:p><w:pPr><w:tabs><w:tab w:val='left'/></w:tabs></w:pPr><w:r><w:t>Hello bra</w:t></w:r>\
                <w:r><w:rPr><w:b/></w:rPr><w:t>ve</w:t></w:r><w:r><w:t xml:space='preserve'> w&#xF6;rld &amp; </w:t>\
                <w:tab/><w:t>a</w:t><w:br/><w:t>b</w:t><w:noBreakHyphen/><w:t>c</w:t></w:r></w:p>\
                <w:p><w:del><w:r><w:delText>deleted</w:delText></w:r></w:del><w:ins><w:r><w:t>ins</w:t></w:r></w:ins>\
                <w:moveFrom><w:r><w:t>moved</w:t></w:r></w:moveFrom><w:r><w:instrText>PAGE</w:instrText></w:r></w:p>\
                <w:p><w:pPr><w:rPr><w:del/></w:rPr></w:pPr><w:r><w:t>one</w:t></w:r></w:p>\
                <w:p><w:r><w:t> line</w:t></w:r></w:p>\
                <w:p><w:r><w:t>out</w:t><mc:AlternateContent><mc:Choice><w:txbxContent><w:p><w:r><w:t>box</w:t></w:r></w:p>\
                </w:txbxContent></mc:Choice><mc:Fallback><w:txbxContent><w:p><w:r><w:t>box</w:t></w:r></w:p>\
                </w:txbxContent></mc:Fallback></mc:AlternateContent><w:t>side</w:t></w:r></w:p>\
                <w:tbl><w:tr><w:tc><w:p><w:r><w:t>1</w:t></w:r></w:p></w:tc><w:tc><w:p/></w:tc><w:tc><w:p><w:r><w:t>3\
                </w:t></w:r></w:p><w:p><w:r><w:t>4</w:t></w:r></w:p></w:tc></w:tr></w:tbl><w:p/>";
    let note = |kind: &str, text: &str| format!("<w:{kind}><w:p><w:r><w:t>{text}</w:t></w:r></w:p></w:{kind}>");
    let footnotes = format!(
        "<w:footnotes><w:footnote w:type='separator'><w:p><w:r><w:t>no</w:t></w:r></w:p></w:footnote>{}</w:footnotes>",
        note("footnote", "foot")
    );
    let header = note("hdr", "head");
    let comments = format!("<w:comments>{}</w:comments>", note("comment", "said"));
    let parts = related(&[
        ("rId1", "comments", "comments.xml"),
        ("rId2", "footnotes", "/word/footnotes.xml"),
        ("rId3", "header", "../word/./header1.xml"),
        ("rId4", "footer", "missing.xml"),
    ]);
    let parts = [
        ("word/_rels/document.xml.rels", parts.as_str()),
        ("word/comments.xml", &comments),
        ("word/Footnotes.xml", &footnotes),
        ("word/header1.xml", &header),
    ];
    let file = open_xml(("word/document.xml", &word(body)), &parts);
    let expected = "Hello brave wörld & \ta\nb-c\nins\none line\noutside\nbox\n1\t\t3\n4\n\nhead\nfoot\nsaid\n";
    assert_eq!(text(&folder, "a.docx", &file), expected);

    // A name is not needed, and a glob that leaves the file out asks for its members.
    assert_eq!(text(&folder, "a.bin", &file), expected);
    let ingest = ["ingest", "a.docx", "--force", "-q", "-o", "c.tadoc"];
    for more in [["--office", "members"], ["--glob", "word/*.xml"]] {
        folder.ok(&[&ingest[..], &more].concat());
        assert_eq!(folder.cat("c.tadoc", "word/document.xml"), word(body).as_bytes());
    }
    folder.ok(&[&ingest[..], &["--no-decompress"]].concat());
    assert_eq!(folder.cat("c.tadoc", "a.docx"), file);
    // The text is in UTF-8, whatever other files are in.
    folder.ok(&[&ingest[..], &["--charset", "windows-1252"]].concat());
    assert_eq!(folder.cat("c.tadoc", "a.docx"), expected.as_bytes());
    folder.ok(&[&ingest[..], &["--documents", "lines"]].concat());
    assert_eq!(folder.table_rows("c.tadoc", "SELECT text FROM d LIMIT 1 OFFSET 2"), ["ins"]);
    // Rows are those of members.
    folder.fails(
        &[&ingest[..], &["--documents", "jsonl:text"]].concat(),
        "a.docx/[Content_Types].xml: line 1: no JSON object: expected value at column 1; pass --keep-going to leave it out",
    );

    folder.write("in/b.zip", zip(&[("c/a.docx", &file)]));
    folder.ok(&["ingest", "in", "--force", "-q", "-o", "c.tadoc"]);
    assert_eq!(folder.cat("c.tadoc", "b.zip/c/a.docx"), expected.as_bytes());
    folder.ok(&["sync", "in", "corpus"]);
    assert!(folder.ok(&["sync", "in", "corpus"]).contains("1 unchanged"));
    folder.ok(&["sync", "in", "corpus", "--office", "members", "--drop-all"]);
    assert_eq!(folder.ok(&["ls", "corpus"]).lines().count(), 6);
}

#[test]
fn slides_have_their_notes_behind_them() {
    let folder = new_folder();
    let shape = |text: &str| format!("<p:sp><p:txBody><a:p><a:pPr/>{text}</a:p></p:txBody></p:sp>");
    let run = |text: &str| format!("<a:r><a:rPr lang='en'/><a:t>{text}</a:t></a:r>");
    let slide = |show: &str, text: &str| format!("<p:sld show='{show}'>{}{}</p:sld>", shape(text), shape(&run("x")));
    let one = slide("1", &(run("fir") + &run("st")));
    let two = slide("0", &(run("hid") + "<a:br/>" + &run("den")));
    let number = "<a:fld type='slidenum'><a:t>1</a:t></a:fld>";
    let notes = format!("<p:notes>{}</p:notes>", shape(&(run("note") + number)));
    let comments = "<p:cmLst><p:cm><p:text>a comment</p:text></p:cm></p:cmLst>";
    let slides = related(&[("rId2", "slide", "slides/slide1.xml"), ("rId3", "slide", "slides/slide2.xml")]);
    let behind =
        related(&[("rId1", "notesSlide", "../notesSlides/notes.xml"), ("rId2", "comments", "../comments.xml")]);
    let main = "<p:presentation xmlns:r='r'><p:sldIdLst><p:sldId id='256' r:id='rId3'/><p:sldId id='257' r:id='rId2'/>\
                <p:sldId id='258' r:id='none'/></p:sldIdLst></p:presentation>";
    let parts = [
        ("ppt/_rels/presentation.xml.rels", slides.as_str()),
        ("ppt/slides/slide1.xml", &one),
        ("ppt/slides/slide2.xml", &two),
        ("ppt/slides/_rels/slide1.xml.rels", &behind),
        ("ppt/notesSlides/notes.xml", &notes),
        ("ppt/comments.xml", comments),
    ];
    let file = open_xml(("ppt/presentation.xml", main), &parts);
    assert_eq!(text(&folder, "a.pptx", file), "hid\nden\nx\nfirst\nx\nnote\na comment\n");
}

#[test]
fn rows_of_workbooks_are_lines() {
    let folder = new_folder();
    let main = "<workbook xmlns:r='r'><sheets><sheet name='First &lt;one' r:id='rId1'/>\
                <sheet name='Second' state='hidden' r:id='rId2'/></sheets></workbook>";
    let strings = "<sst><si><t>shared</t></si><si><r><t>ri</t></r><r><t>ch</t></r><rPh><t>reading</t></rPh></si></sst>";
    let first = "<worksheet><sheetData><row r='2'><c r='A2' t='s'><v>0</v></c><c r='C2'><f>1+1</f><v>2</v></c>\
                 <c r='D2'><v>1.1000000000000001</v></c></row><row r='5'><c r='B5'/></row>\
                 <row><c t='s'><v>1</v></c><c t='inlineStr'><is><t>in&#10;line</t></is></c><c t='b'><v>1</v></c>\
                 <c t='e'><v>#N/A</v></c><c t='str'><v>of formula</v></c><c><v>1E+100</v></c><c t='s'><v>7</v></c></row>\
                 </sheetData></worksheet>";
    let comments = "<comments><commentList><comment><text><r><t>a </t></r><r><t>note</t></r></text></comment>\
                    </commentList></comments>";
    let sheets = related(&[
        ("rId1", "worksheet", "worksheets/sheet1.xml"),
        ("rId2", "worksheet", "worksheets/sheet2.xml"),
        ("rId3", "sharedStrings", "sharedStrings.xml"),
    ]);
    let behind = related(&[("rId1", "comments", "/xl/comments1.xml")]);
    let parts = [
        ("xl/_rels/workbook.xml.rels", sheets.as_str()),
        ("xl/sharedStrings.xml", strings),
        ("xl/worksheets/sheet1.xml", first),
        ("xl/worksheets/sheet2.xml", "<worksheet/>"),
        ("xl/worksheets/_rels/sheet1.xml.rels", &behind),
        ("xl/comments1.xml", comments),
    ];
    let file = open_xml(("xl/workbook.xml", main), &parts);
    let rows = "shared\t\t2\t1.1\nrich\tin line\tTRUE\t#N/A\tof formula\t1E+100\n";
    assert_eq!(text(&folder, "a.xlsx", file), format!("First <one\n{rows}a note\nSecond\n"));
}

/// Somebody searches a workbook for a day that it shows.
#[test]
fn dates_of_workbooks_are_found_as_dates() {
    let folder = new_folder();
    let styles = "<styleSheet><numFmts><numFmt numFmtId='164' formatCode='dd\\.mm\\.yyyy\\ hh:mm'/>\
                  <numFmt numFmtId='165' formatCode='0.0\" d\"'/></numFmts>\
                  <cellStyleXfs><xf numFmtId='14'/></cellStyleXfs><cellXfs><xf numFmtId='0'/><xf numFmtId='14'/>\
                  <xf numFmtId='164'/><xf numFmtId='165'/><xf numFmtId='46'/><xf numFmtId='20'/></cellXfs></styleSheet>";
    let cells: String = [(0, "45418"), (1, "45418"), (2, "45418.29732638889"), (3, "45418.5"), (4, "1.5"), (5, "0.25")]
        .iter()
        .map(|(style, value)| format!("<c s='{style}'><v>{value}</v></c>"))
        .collect();
    let sheet = format!("<worksheet><sheetData><row>{cells}<c><v>7</v></c></row></sheetData></worksheet>");
    let related = related(&[("rId1", "worksheet", "s.xml"), ("rId2", "styles", "styles.xml")]);
    let file = |properties: &str| {
        let main = format!("<workbook>{properties}<sheets><sheet name='S' r:id='rId1'/></sheets></workbook>");
        let parts = [("xl/_rels/workbook.xml.rels", related.as_str()), ("xl/s.xml", &sheet), ("xl/styles.xml", styles)];
        open_xml(("xl/workbook.xml", &main), &parts)
    };
    let row = "45418\t2024-05-06\t2024-05-06 07:08:09\t45418.5\t1.5\t06:00:00\t7\n";
    assert_eq!(text(&folder, "a.xlsx", file("<workbookPr date1904='0'/>")), format!("S\n{row}"));
    assert_eq!(folder.rows("SELECT count(*) FROM search('c.tadoc', '\"2024-05-06\"')"), ["2"]);
    let row = row.replace("2024-05-06", "2028-05-07");
    assert_eq!(text(&folder, "a.xlsx", file("<workbookPr date1904='1'/>")), format!("S\n{row}"));
}

#[test]
fn texts_of_open_document_are_read() {
    let folder = new_folder();
    let body = "<office:text><text:tracked-changes><text:p>deleted</text:p></text:tracked-changes>\
                <text:h>He<text:span>ad</text:span></text:h>\n<text:p>  a\n b<text:s text:c='2'/> c<text:tab/>d\
                <text:line-break/> e<text:note><text:note-citation>1</text:note-citation><text:note-body><text:p>foot\
                </text:p></text:note-body></text:note> f<office:annotation><dc:creator>ann</dc:creator><text:p>said\
                </text:p></office:annotation></text:p><text:p>out<draw:frame><draw:text-box><text:p>box</text:p>\
                </draw:text-box><svg:title>title</svg:title></draw:frame>side</text:p><table:table><table:table-row>\
                <table:table-cell><text:p>1</text:p></table:table-cell><table:table-cell/><table:table-cell>\
                <text:p>3</text:p></table:table-cell></table:table-row></table:table></office:text>";
    let styles = "<style:style><style:header-style/></style:style><style:master-page><style:header><text:p>top</text:p>\
                  </style:header><draw:frame><draw:text-box><text:p>number</text:p></draw:text-box></draw:frame>\
                  </style:master-page>";
    let expected = "Head\na b   c\td\ne f\noutside\nbox\n1\t\t3\ntop\nfoot\nsaid\n";
    assert_eq!(text(&folder, "a.odt", open_document("text", body, styles)), expected);

    let cell = |attributes: &str, text: &str| format!("<table:table-cell {attributes}>{text}</table:table-cell>");
    let rows = [
        cell("", "<text:p>a</text:p><text:p>b</text:p>"),
        cell("table:number-columns-repeated='2'", ""),
        cell("table:number-columns-repeated='2' office:value='0.5'", "<text:p>50 %</text:p>"),
        cell("office:value='7'", "<office:annotation><text:p>noted</text:p></office:annotation>"),
        cell("table:number-columns-repeated='16000'", ""),
    ];
    let row = |times: u32, cells: &str| {
        format!("<table:table-row table:number-rows-repeated='{times}'>{cells}</table:table-row>")
    };
    let sheet = row(2, &rows.concat()) + &row(1_048_000, &cell("", ""));
    let body =
        format!("<office:spreadsheet><table:table table:name='Sheet 1'>{sheet}</table:table></office:spreadsheet>");
    let expected = "Sheet 1\na b\t\t\t50 %\t50 %\t7\na b\t\t\t50 %\t50 %\t7\nnoted\n";
    assert_eq!(text(&folder, "a.ods", open_document("spreadsheet", &body, "")), expected);

    let page = |text: &str| format!("<draw:page><draw:text-box><text:p>{text}</text:p></draw:text-box></draw:page>");
    let body = format!("<office:presentation>{}{}</office:presentation>", page("one"), page("two"));
    assert_eq!(text(&folder, "a.odp", open_document("presentation", &body, "")), "one\ntwo\n");
}

#[test]
fn rtf_is_text_in_its_character_sets() {
    let folder = new_folder();
    let file: &[u8] = b"{\\rtf1\\ansi\\ansicpg1250\\deff0{\\fonttbl{\\f0\\fnil Times;}{\\f1\\fnil\\fcharset204 Arial;}}{\\colortbl;\\red0;}\r\n\
          {\\*\\generator Word;}{\\header top\\par}Hello bra{\\b ve}\\par\r\n caf\\'e9 \xb9 {\\f1 \\'e4\\'e0} \\u8364?\\u-10179?\\u-8704? \\{x\\}\\~y\\_z\\tab\\\
          emdash\\line b{\\deleted gone}{\\footnote note}\\par{\\pict 0102\\bin3 }{}}{\\field{\\*\\fldinst PAGE}{\\fldrslt 7}}\\par\\trowd\\intbl\\cell 2\\cell\
          \\row\\uc2\\u233\\'c3\\'a9last}\n";
    let expected = "Hello brave\n caf\u{e9} \u{105} \u{434}\u{430} €😀 {x}\u{a0}y-z\t—\nb\n7\n\t2\nélast\ntop\nnote\n";
    assert_eq!(text(&folder, "a.rtf", file), expected);
    folder.ok(&["ingest", "a.rtf", "--force", "-q", "-o", "c.tadoc", "--office", "members"]);
    assert_eq!(folder.cat("c.tadoc", "a.rtf"), file);
    let deep = [b"{\\rtf1 ".as_slice(), &b"{".repeat(2000), &b"}".repeat(2001)].concat();
    for (file, reason) in [
        (&file[..200], "it ends inside a group"),
        (b"{\\rtf1 \\'0g}", "a character has no code"),
        (b"{\\rtf1 \\aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa}", "a control word is too long"),
        (&deep, "more than 1000 deep"),
    ] {
        let ran = ran(&folder, file, &[]);
        let told = "warning: a.docx: the office file is broken, and its bytes are the document (";
        assert!(ran.stderr.starts_with(told) && ran.stderr.contains(reason), "{reason}: {}", ran.stderr);
        assert_eq!((ran.status, folder.cat("c.tadoc", "a.docx").as_slice()), (0, file), "{reason}");
    }
    let random = &mut Random(9);
    for _ in 0..40 {
        let mut bytes = file.to_vec();
        let at = 6 + random.below(bytes.len() - 6);
        bytes[at] = b"{}\\'*u-19"[random.below(9)];
        let ran = ran(&folder, &bytes, &[]);
        assert_eq!(ran.status, 0, "{}", ran.stderr);
    }
}

/// Returns random text, and how XML writes it.
fn random_text(random: &mut Random) -> (String, String) {
    let signs = [("a", "a"), ("B", "<![CDATA[B]]>"), ("ö", "&#246;"), ("字", "字"), ("<", "&lt;"), ("&", "&amp;")];
    let chosen: Vec<_> = (0..random.below(6)).map(|_| signs[random.below(signs.len())]).collect();
    (chosen.iter().map(|sign| sign.0).collect(), chosen.iter().map(|sign| sign.1).collect())
}

#[test]
fn random_texts_are_those_that_were_written() {
    let folder = new_folder();
    let random = &mut Random(45);
    for _ in 0..20 {
        let [mut of_word, mut of_sheet, mut of_odt, mut lines, mut rows] = <[String; 5]>::default();
        for number in 1..=random.below(40) {
            let (mut runs, mut spans, mut cells, mut line, mut row) =
                <(String, String, String, String, String)>::default();
            for column in 0..random.below(8) {
                let (plain, coded) = random_text(random);
                runs += &format!("<w:r><w:rPr/><w:t>{coded}</w:t></w:r>");
                spans += &format!("<text:span>{coded}</text:span>");
                let name = (b'A' + column as u8) as char;
                cells += &format!("<c r='{name}{number}' t='inlineStr'><is><t>{coded}</t></is></c>");
                line += &plain;
                row += &format!("{plain}\t");
            }
            of_word += &format!("<w:p>{runs}</w:p>");
            of_odt += &format!("<text:p>{spans}</text:p>");
            of_sheet += &format!("<row r='{number}'>{cells}</row>");
            lines += &(line + "\n");
            let row = row.trim_end_matches('\t');
            if !row.is_empty() {
                rows += &format!("{row}\n");
            }
        }
        let files: [(&str, Vec<u8>, String); 3] = [
            ("a.docx", docx(&of_word), lines.clone()),
            ("a.odt", open_document("text", &of_odt, ""), lines),
            ("a.xlsx", workbook(&of_sheet), format!("S\n{rows}")),
        ];
        for (name, file, expected) in files {
            assert_eq!(text(&folder, name, file), expected, "{name}");
        }
    }
}

fn workbook(rows: &str) -> Vec<u8> {
    let sheet = format!("<worksheet><sheetData>{rows}</sheetData></worksheet>");
    let parts = [("xl/_rels/workbook.xml.rels", related(&[("rId1", "worksheet", "s.xml")])), ("xl/s.xml", sheet)];
    let parts = [(parts[0].0, parts[0].1.as_str()), (parts[1].0, parts[1].1.as_str())];
    open_xml(("xl/workbook.xml", "<workbook><sheet name='S' r:id='rId1'/></workbook>"), &parts)
}

/// Ingests `a.docx` with `bytes`.
fn ran(folder: &Folder, bytes: &[u8], options: &[&str]) -> Ran {
    folder.write("a.docx", bytes);
    folder.run(&[&["ingest", "a.docx", "--force", "-o", "c.tadoc"], options].concat())
}

#[test]
fn broken_files_have_a_warning_and_their_members() {
    let folder = new_folder();
    let deep = format!("{}{}", "<w:p>".repeat(1001), "</w:p>".repeat(1001));
    let bomb = "<!DOCTYPE w [<!ENTITY a 'aaaaaaaaaa'><!ENTITY b '&a;&a;&a;&a;&a;&a;&a;&a;&a;&a;'>]><w:document><w:p><w:t>&b;\
                </w:t></w:p></w:document>";
    let whole = word("<w:p><w:r><w:t>text</w:t></w:r></w:p>");
    for (main, reason) in [
        (word("<w:p><w:r></w:p></w:r>"), "expected `</w:r>`"),
        (word(&deep), "more than 1000 deep"),
        (bomb.to_owned(), "entities that XML does not know"),
        (word("<w:p><w:t>&#x110000;</w:t></w:p>"), "is not a valid codepoint"),
        (whole[..whole.len() - 20].to_owned(), "word/document.xml"),
        (whole.replace("</w:body></w:document>", ""), "it ends inside an element"),
        (String::new(), "it has no element"),
        ("no XML".to_owned(), "it has no element"),
    ] {
        let file = open_xml(("word/document.xml", &main), &[]);
        let ran = ran(&folder, &file, &[]);
        assert_eq!(ran.status, 0, "{reason}: {}", ran.stderr);
        let told = "warning: a.docx: the office file is broken, and its members are documents (word/document.xml: ";
        assert!(ran.stderr.starts_with(told) && ran.stderr.contains(reason), "{reason}: {}", ran.stderr);
        assert_eq!(folder.cat("c.tadoc", "word/document.xml"), main.as_bytes(), "{reason}");
    }
    let deep = format!("{}x{}", "<w:sdt>".repeat(990), "</w:sdt>".repeat(990));
    assert_eq!(text(&folder, "a.docx", docx(&deep)), "");
    // Zip files of other programs have such a list of types, too.
    let other = zip(&[("[Content_Types].xml", TYPES.as_bytes()), ("a.nuspec", b"<package/>")]);
    let ran = ran(&folder, &other, &["-q"]);
    assert_eq!((ran.status, ran.stderr.as_str()), (0, ""));
    assert_eq!(folder.cat("c.tadoc", "a.nuspec"), b"<package/>");
}

#[test]
fn cut_and_changed_files_are_read_or_named() {
    let folder = new_folder();
    let file = docx("<w:p><w:r><w:t>text</w:t></w:r></w:p>");
    let random = &mut Random(57);
    for round in 0..60 {
        let mut bytes = file.clone();
        if round % 2 == 0 {
            bytes.truncate(random.below(file.len()));
        } else {
            let at = random.below(bytes.len());
            bytes[at] ^= 1 << random.below(8);
        }
        for options in [&[][..], &["--keep-going"]] {
            let ran = ran(&folder, &bytes, options);
            assert!(ran.status < 2, "{}", ran.stderr);
            assert!(!ran.stderr.contains("panicked"), "{}", ran.stderr);
            assert!(ran.status == 0 || ran.stderr.contains("a.docx"), "{}", ran.stderr);
        }
    }
}

#[test]
fn bombs_end_at_limits_that_name_their_way_out() {
    let folder = new_folder();
    let repeated = "<office:spreadsheet><table:table table:name='s'><table:table-row \
                    table:number-rows-repeated='1048576'><table:table-cell table:number-columns-repeated='16384'>\
                    <text:p>bomb</text:p></table:table-cell></table:table-row></table:table></office:spreadsheet>";
    let far = "<row><c r='XFD1'><v>1</v></c></row>".repeat(20_000);
    let blanks = "<office:text><text:p>a<text:s text:c='99999999999'/></text:p></office:text>";
    let long = format!("<w:p><w:t>{}</w:t></w:p>", "x".repeat(300_000));
    let held = format!("<w:txbxContent>{}</w:txbxContent>", "<w:p><w:t>x</w:t></w:p>".repeat(70_000));
    let small = &["--max-row-size", "100000"][..];
    for (name, file, options, way_out) in [
        ("sheet", open_document("spreadsheet", repeated, ""), &[][..], "pass a larger --max-expansion"),
        ("columns", workbook(&far), &[], "pass a larger --max-expansion"),
        ("blanks", open_document("text", blanks, ""), &[], "pass a larger --max-row-size, or --office members"),
        ("token", docx(&long), small, "pass a larger --max-row-size, or --office members"),
        ("box", docx(&held), small, "pass a larger --max-row-size, or --office members"),
    ] {
        let ran = ran(&folder, &file, options);
        assert_eq!(ran.status, 1, "{name}: {}", ran.stderr);
        assert!(ran.stderr.starts_with("error: a.docx: ") && ran.stderr.contains(way_out), "{name}: {}", ran.stderr);
    }
}
