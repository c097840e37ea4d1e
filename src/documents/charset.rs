//! Pages and texts of any character set as UTF-8.
//!
//! ```text
//! page    byte order mark ─▶ Content-Type ─▶ <?xml encoding="…"?> ─▶ <meta charset=…>: the first one
//! text    --charset auto: byte order mark      --charset NAME: byte order mark, or else that one
//! ```
//!
//! Sources: the WHATWG standards of HTML (which bytes say what) and of encodings (names and tables, by the
//! crate encoding_rs). A declaration stands in the first [`HEAD_BYTES`] bytes. A page of HTML that says
//! nothing is in UTF-8 if its first character beyond ASCII is, and otherwise in windows-1252, as browsers
//! take it; XML that says nothing is in UTF-8. U+FFFD stands for bytes that mean nothing, which the user is
//! told. Time is linear in the bytes, and memory is constant.

use std::cell::Cell;
use std::io::{self, BufRead, Read};
use std::rc::Rc;
use std::str::FromStr;

use encoding_rs::{CoderResult, Decoder, Encoding, UTF_8, UTF_16BE, UTF_16LE, WINDOWS_1252};
#[cfg(feature = "html")]
use html5gum::emitters::callback::{CallbackEmitter, CallbackEvent};
#[cfg(feature = "html")]
use html5gum::{IoReader, Span, Tokenizer};

/// Bytes of a page that may have a declaration.
const HEAD_BYTES: usize = 1024;
/// Bytes that are decoded at once. An encoding needs room for a few characters.
const PART_BYTES: usize = 16 << 10;
/// Most bytes of a character in UTF-8.
const MAX_CHAR_BYTES: usize = 4;
/// Byte order mark of UTF-8.
pub const MARK: &[u8] = b"\xef\xbb\xbf";

/// Facts about the character set of a page that are known from elsewhere.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Given<'a> {
    /// The page is in UTF-8 already, whatever it says.
    Utf8,
    /// The page or part of XML was sent with this type, if any.
    ContentType(Option<&'a str>),
    /// The page of HTML was sent with this type, if any.
    Html(Option<&'a str>),
    /// A text of this character set.
    Charset(Charset),
}

/// Character set of texts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Charset {
    /// Any: the bytes stay.
    Keep,
    /// UTF-16 or UTF-8 by the byte order mark, which is left out, and UTF-8 without one.
    Mark,
    /// This one, unless a byte order mark tells another one.
    Named(&'static Encoding),
}

impl Charset {
    /// Returns true if the byte `\n` is a line end, and nothing else is, in texts of this character set.
    pub fn has_plain_lines(self) -> bool {
        match self {
            Self::Keep => true,
            Self::Mark => false,
            Self::Named(encoding) => encoding.is_ascii_compatible(),
        }
    }
}

impl FromStr for Charset {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let encoding = match text {
            "keep" => return Ok(Self::Keep),
            "auto" => return Ok(Self::Mark),
            name => Encoding::for_label_no_replacement(name.as_bytes()),
        };
        encoding.map(Self::Named).ok_or_else(|| {
            "expected keep, auto, or a name of the WHATWG's standard of encodings, such as windows-1252, \
             shift_jis or utf-16le"
                .to_owned()
        })
    }
}

/// A reader of a page or text as UTF-8.
pub struct Utf8Page<R> {
    inner: R,
    /// Bytes that were read to find a declaration, and the number of those that were taken.
    head: Vec<u8>,
    head_taken: usize,
    /// Decoder of a page, unless its bytes stay.
    decoder: Option<Decoder>,
    /// True up to the first character beyond ASCII of a page that names no character set.
    is_undecided: bool,
    text: Vec<u8>,
    text_taken: usize,
    is_at_end: bool,
    damage: Damage,
}

/// Name of a character set, once a text has bytes that mean nothing in it.
pub type Damage = Rc<Cell<Option<&'static str>>>;

impl<R: BufRead> Utf8Page<R> {
    /// Returns true if the page begins with `<?xml`.
    pub fn has_xml_declaration(&self) -> bool {
        self.head.strip_prefix(MARK).unwrap_or(&self.head).starts_with(b"<?xml")
    }

    /// Reads the beginning of the page.
    ///
    /// # Errors
    /// The errors of `inner`.
    pub fn new(mut inner: R, given: Given<'_>) -> io::Result<Self> {
        let mut head = Vec::new();
        if given != Given::Utf8 {
            (&mut inner).take(HEAD_BYTES as u64).read_to_end(&mut head)?;
        }
        let declared = declared(&head, given);
        let is_undecided = declared.is_none() && matches!(given, Given::Html(_));
        let encoding = declared.unwrap_or(UTF_8);
        // Text in UTF-8 is checked.
        let stays = matches!(given, Given::Utf8 | Given::Charset(Charset::Keep | Charset::Mark));
        let is_decoded = encoding != UTF_8 || !stays;
        let head_taken = if !is_decoded && head.starts_with(MARK) { MARK.len() } else { 0 };
        let decoder = is_decoded.then(|| encoding.new_decoder_with_bom_removal());
        let text = Vec::new();
        let text_taken = 0;
        let is_at_end = false;
        let damage = Damage::default();
        Ok(Self { inner, head, head_taken, decoder, is_undecided, text, text_taken, is_at_end, damage })
    }

    /// Returns the place of the name of the character set, which is set once U+FFFD stands in the text.
    pub fn damage(&self) -> Damage {
        Rc::clone(&self.damage)
    }

    fn decode(&mut self) -> io::Result<()> {
        self.text.resize(PART_BYTES, 0);
        let mut len = 0;
        while !self.is_at_end {
            let is_head = self.head_taken < self.head.len();
            let mut bytes = if is_head { &self.head[self.head_taken..] } else { self.inner.fill_buf()? };
            let is_last = bytes.is_empty();
            if self.is_undecided && !is_last {
                bytes = &bytes[..bytes.len().min(PART_BYTES)];
                let num_plain = bytes.iter().position(|byte| !byte.is_ascii()).unwrap_or(bytes.len());
                if num_plain == 0 {
                    self.decide()?;
                    continue;
                }
                bytes = &bytes[..num_plain];
            }
            let Some(decoder) = &mut self.decoder else { return Ok(()) };
            let (result, taken, written, is_damaged) = decoder.decode_to_utf8(bytes, &mut self.text[len..], is_last);
            if is_head {
                self.head_taken += taken
            } else {
                self.inner.consume(taken)
            }
            len += written;
            if is_damaged {
                self.damage.set(Some(decoder.encoding().name()));
            }
            self.is_at_end = is_last && result == CoderResult::InputEmpty;
            if result == CoderResult::OutputFull {
                break;
            }
        }
        self.text.truncate(len);
        self.text_taken = 0;
        Ok(())
    }

    /// Decides the character set by the next character, which is not of ASCII.
    fn decide(&mut self) -> io::Result<()> {
        self.head.drain(..self.head_taken);
        self.head_taken = 0;
        let num_missing = MAX_CHAR_BYTES.saturating_sub(self.head.len());
        (&mut self.inner).take(num_missing as u64).read_to_end(&mut self.head)?;
        let is_utf8 = self.head.utf8_chunks().next().is_some_and(|chunk| !chunk.valid().is_empty());
        if !is_utf8 {
            self.decoder = Some(WINDOWS_1252.new_decoder_without_bom_handling());
        }
        self.is_undecided = false;
        Ok(())
    }
}

impl<R: BufRead> Read for Utf8Page<R> {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        if self.decoder.is_none() {
            let mut head = self.head.get(self.head_taken..).unwrap_or_default();
            if head.is_empty() {
                return self.inner.read(bytes);
            }
            let len = head.read(bytes)?;
            self.head_taken += len;
            return Ok(len);
        }
        if self.text_taken == self.text.len() {
            self.decode()?;
        }
        let len = self.text.get(self.text_taken..).unwrap_or_default().read(bytes)?;
        self.text_taken += len;
        Ok(len)
    }
}

/// Returns the encoding that is known of a page that begins with `head`.
fn declared(head: &[u8], given: Given<'_>) -> Option<&'static Encoding> {
    let content_type = match given {
        Given::Utf8 | Given::Charset(Charset::Keep) => return None,
        Given::Charset(Charset::Named(encoding)) => {
            return Encoding::for_bom(head).map(|(marked, _)| marked).or(Some(encoding));
        }
        Given::Charset(Charset::Mark) => return from_mark(head),
        Given::ContentType(content_type) | Given::Html(content_type) => content_type,
    };
    let from_type = || content_type.and_then(|kind| charset_in(kind.as_bytes()));
    from_mark(head).or_else(from_type).or_else(|| from_xml(head)).or_else(|| from_meta(head))
}

/// Returns the encoding that the byte order mark in front of a text tells. The bytes of UTF-32 stay.
fn from_mark(head: &[u8]) -> Option<&'static Encoding> {
    match head {
        [0xff, 0xfe, 0, 0, ..] => Some(UTF_8),
        _ => Encoding::for_bom(head).map(|(encoding, _)| encoding),
    }
}

/// Returns the encoding with a name that was found in a page, whose bytes are ASCII there: it is not UTF-16.
fn named(name: &[u8]) -> Option<&'static Encoding> {
    let encoding = Encoding::for_label(name)?;
    Some(match encoding.name() {
        _ if encoding == UTF_16LE || encoding == UTF_16BE => UTF_8,
        "x-user-defined" => WINDOWS_1252,
        _ => encoding,
    })
}

/// Returns the encoding behind `charset=` in a value such as `text/html; charset="utf-8"`.
fn charset_in(value: &[u8]) -> Option<&'static Encoding> {
    const NAME: &[u8] = b"charset";
    let at = value.windows(NAME.len()).position(|part| part.eq_ignore_ascii_case(NAME))?;
    named(value_behind(&value[at + NAME.len()..])?)
}

/// Returns the encoding that the declaration of XML in front of a page names.
fn from_xml(head: &[u8]) -> Option<&'static Encoding> {
    const NAME: &[u8] = b"encoding";
    let declaration = head.strip_prefix(b"<?xml")?;
    let end = declaration.iter().position(|&byte| byte == b'>')?;
    let declaration = &declaration[..end];
    let at = declaration.windows(NAME.len()).position(|part| part == NAME)?;
    named(value_behind(&declaration[at + NAME.len()..])?)
}

/// Returns the value behind `=`, without quotes.
fn value_behind(text: &[u8]) -> Option<&[u8]> {
    let value = text.trim_ascii_start().strip_prefix(b"=")?.trim_ascii_start();
    let quote = value.first().copied().filter(|byte| matches!(byte, b'"' | b'\''));
    let value = value.get(usize::from(quote.is_some())..)?;
    let is_end = |byte: &u8| match quote {
        Some(quote) => *byte == quote,
        None => byte.is_ascii_whitespace() || matches!(byte, b';' | b'?' | b'"'),
    };
    let end = value.iter().position(is_end).unwrap_or(value.len());
    value.get(..end).filter(|value| !value.is_empty())
}

/// Returns none: without the feature `html` no page becomes text.
#[cfg(not(feature = "html"))]
fn from_meta(_head: &[u8]) -> Option<&'static Encoding> {
    None
}

/// Returns the encoding that a `meta` in the beginning of a page names.
#[cfg(feature = "html")]
fn from_meta(head: &[u8]) -> Option<&'static Encoding> {
    let mut meta = Meta::default();
    let mut emitter = CallbackEmitter::new(|event: CallbackEvent<'_>, _: Span<()>| meta.take(event));
    emitter.naively_switch_states(true);
    let mut found = Tokenizer::new_with_emitter(IoReader::new(head), emitter);
    found.next()?.ok()
}

/// The `meta` that is being read.
#[cfg(feature = "html")]
#[derive(Default)]
struct Meta {
    is_meta: bool,
    attribute: Vec<u8>,
    is_content_type: bool,
    charset: Option<&'static Encoding>,
    content: Option<&'static Encoding>,
}

#[cfg(feature = "html")]
impl Meta {
    /// Takes a part of the page. Returns the encoding at the end of a `meta` that names one.
    fn take(&mut self, event: CallbackEvent<'_>) -> Option<&'static Encoding> {
        match event {
            CallbackEvent::OpenStartTag { name } => {
                *self = Self { is_meta: name == b"meta", ..Self::default() };
            }
            CallbackEvent::AttributeName { name } => self.attribute = name.to_vec(),
            CallbackEvent::AttributeValue { value } if self.is_meta => match &self.attribute[..] {
                b"charset" => self.charset = named(value),
                b"content" => self.content = charset_in(value),
                b"http-equiv" => {
                    self.is_content_type = value.eq_ignore_ascii_case(b"content-type");
                }
                _ => {}
            },
            CallbackEvent::CloseStartTag { .. } if self.is_meta => {
                let content = self.content.filter(|_| self.is_content_type);
                return self.charset.or(content);
            }
            _ => {}
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use std::io::BufReader;

    use proptest::prelude::*;

    use super::*;

    /// Reads `page` through buffers of `len` bytes.
    fn read(page: &[u8], given: Given<'_>, len: usize) -> Vec<u8> {
        let mut inner = BufReader::with_capacity(len, page);
        let mut text = Vec::new();
        Utf8Page::new(&mut inner, given).unwrap().read_to_end(&mut text).unwrap();
        text
    }

    #[test]
    fn declarations_count_in_their_order() {
        let utf16 = |text: &str, mark: [u8; 2], of: fn(u16) -> [u8; 2]| -> Vec<u8> {
            mark.into_iter().chain(text.encode_utf16().flat_map(of)).collect()
        };
        let sent = Given::ContentType(Some("text/html; charset=ISO-8859-2"));
        let silent = Given::ContentType(None);
        let cases: Vec<(Vec<u8>, Given<'_>, &str)> = vec![
            (utf16("<p>é日", [0xff, 0xfe], u16::to_le_bytes), sent, "<p>é日"),
            (utf16("<p>é日", [0xfe, 0xff], u16::to_be_bytes), silent, "<p>é日"),
            ([MARK, "é".as_bytes()].concat(), sent, "é"),
            (b"<meta charset=latin1>\xb1".to_vec(), sent, "<meta charset=latin1>ą"),
            (b"<meta charset=latin1>\xb1".to_vec(), silent, "<meta charset=latin1>±"),
            (b"<meta charset=latin1>\xc3\xa9".to_vec(), Given::Utf8, "<meta charset=latin1>é"),
            (
                b"<?xml version='1.0' encoding='windows-1251'?>\xe9".to_vec(),
                silent,
                "<?xml version='1.0' encoding='windows-1251'?>й",
            ),
            (
                b"<META content='text/html; Charset = \"Shift_JIS\"' http-equiv=Content-Type>\x93\xfa".to_vec(),
                silent,
                "<META content='text/html; Charset = \"Shift_JIS\"' http-equiv=Content-Type>日",
            ),
            (
                b"<!-- <meta charset=latin1> --><script>'<meta charset=latin1>'</script>\xc3\xa9".to_vec(),
                silent,
                "<!-- <meta charset=latin1> --><script>'<meta charset=latin1>'</script>é",
            ),
            (b"<meta charset=utf-16>\xc3\xa9".to_vec(), silent, "<meta charset=utf-16>é"),
            (b"<meta name=charset content=latin1>\xc3\xa9".to_vec(), silent, "<meta name=charset content=latin1>é"),
            (b"<meta charset=klingon>\xc3\xa9".to_vec(), silent, "<meta charset=klingon>é"),
        ];
        for (page, given, expected) in cases {
            for len in [1, 7, 4096] {
                let text = read(&page, given, len);
                assert_eq!(String::from_utf8_lossy(&text), expected, "{page:?} {len}");
            }
        }
        for (label, text, expected) in [
            ("auto", utf16("a日", [0xff, 0xfe], u16::to_le_bytes), "a日"),
            ("auto", [MARK, "é".as_bytes()].concat(), "é"),
            ("auto", b"<meta charset=latin1>".to_vec(), "<meta charset=latin1>"),
            ("utf-16be", utf16("a日", [0xfe, 0xff], u16::to_be_bytes), "a日"),
            ("cp1252", b"caf\xe9 \x80".to_vec(), "café €"),
            ("Shift_JIS", b"\x93\xfa".to_vec(), "日"),
            ("utf-8", b"\xef\xbb\xbfK\xf6ln".to_vec(), "K\u{fffd}ln"),
        ] {
            let text = read(&text, Given::Charset(label.parse().unwrap()), 7);
            assert_eq!(String::from_utf8_lossy(&text), expected, "{label}");
        }
        assert!("klingon".parse::<Charset>().is_err() && "iso-2022-kr".parse::<Charset>().is_err());
    }

    /// Returns the text of `page`, and the name of the character set that has no such bytes.
    fn read_and_told(page: &[u8], given: Given<'_>, len: usize) -> (String, Option<&'static str>) {
        let mut page = Utf8Page::new(BufReader::with_capacity(len, page), given).unwrap();
        let mut text = Vec::new();
        page.read_to_end(&mut text).unwrap();
        (String::from_utf8(text).unwrap(), page.damage().get())
    }

    #[test]
    fn a_mark_says_more_than_a_name() {
        let named = |label: &str| Given::Charset(Charset::from_str(label).unwrap());
        let big = b"\xfe\xff\0h\0\xe9";
        let little = b"\xff\xfeh\0\xe9\0";
        for (label, page, expected) in [
            ("utf-16", big.as_slice(), "h\u{e9}"),
            ("utf-16le", big, "h\u{e9}"),
            ("utf-16be", little, "h\u{e9}"),
            ("utf-16", little, "h\u{e9}"),
            ("windows-1252", b"\xef\xbb\xbfh\xc3\xa9", "h\u{e9}"),
            ("shift_jis", little, "h\u{e9}"),
            ("utf-8", little, "h\u{e9}"),
            // A file in UTF-16 may begin with a zero.
            ("utf-16le", b"\xff\xfe\0\0h\0", "\0h"),
            ("windows-1252", b"h\xe9", "h\u{e9}"),
        ] {
            for len in [1, 3, 4096] {
                assert_eq!(read_and_told(page, named(label), len), (expected.to_owned(), None), "{label} {page:?}");
            }
        }
    }

    #[test]
    fn pages_without_a_declaration_are_as_browsers_take_them() {
        let html = Given::Html(None);
        let long = "a".repeat(3 * PART_BYTES + 1);
        for len in [1, 2, 3, 7, 4096, 100_000] {
            for (page, expected) in [
                (b"<p>caf\xe9 \x93x\x94".as_slice(), "<p>caf\u{e9} \u{201c}x\u{201d}"),
                (b"<p>caf\xc3\xa9", "<p>caf\u{e9}"),
                (b"\xe9", "\u{e9}"),
                (b"caf\xc3", "caf\u{c3}"),
                (b"\xf0\x9f\x98\x80", "\u{1f600}"),
                (b"\xf0\x9f\x98", "\u{f0}\u{178}\u{2dc}"),
                (b"<meta charset=klingon>\xe9", "<meta charset=klingon>\u{e9}"),
                (b"", ""),
            ] {
                for given in [html, Given::Html(Some("text/html"))] {
                    assert_eq!(read_and_told(page, given, len), (expected.to_owned(), None), "{page:?} {len}");
                }
                let far = [long.as_bytes(), page].concat();
                let expected = format!("{long}{expected}");
                // A declaration is not looked for there.
                assert_eq!(read_and_told(&far, html, len), (expected, None), "{page:?} {len}");
            }
            // UTF-8 that is said, or seen before, has bytes that mean nothing.
            for (page, given, expected) in [
                (b"<meta charset=utf-8>caf\xe9".as_slice(), html, "<meta charset=utf-8>caf\u{fffd}"),
                (b"caf\xe9", Given::Html(Some("text/html; charset=UTF-8")), "caf\u{fffd}"),
                (b"\xef\xbb\xbfcaf\xe9", html, "caf\u{fffd}"),
                (b"caf\xc3\xa9 \xe9 x", html, "caf\u{e9} \u{fffd} x"),
                // XML that says nothing is in UTF-8.
                (b"<a>caf\xe9", Given::ContentType(None), "<a>caf\u{fffd}"),
            ] {
                let expected = (expected.to_owned(), Some("UTF-8"));
                assert_eq!(read_and_told(page, given, len), expected, "{page:?} {len}");
            }
        }
        assert_eq!(read_and_told(b"caf\xc3\xa9", Given::Html(Some("text/html; charset=utf-8")), 7).1, None);
    }

    proptest! {
        #[test]
        fn decoding_in_parts_is_decoding_at_once(
            label in prop::sample::select(vec!["latin1", "shift_jis", "gb18030", "iso-2022-jp", "utf-8", "koi8-r"]),
            bytes in prop::collection::vec(any::<u8>(), 0..3000),
            len in 1usize..300,
        ) {
            let page = [format!("<meta charset={label}>").as_bytes(), &bytes].concat();
            let encoding = Encoding::for_label(label.as_bytes()).unwrap();
            let expected = encoding.decode_without_bom_handling(&page).0.into_owned().into_bytes();
            prop_assert_eq!(read(&page, Given::ContentType(None), len), expected);
        }

        #[test]
        fn any_head_is_read(page in prop::collection::vec(
            prop_oneof![prop::sample::select(b"<meta charset=?xml\"';>".to_vec()), any::<u8>()], 0..300,
        )) {
            read(&page, Given::ContentType(Some("text/html;charset=")), 4096);
        }
    }
}
