//! The texts of header lines of mail: encoded words, and bytes that are not UTF-8.
//!
//! ```text
//! Subject: =?UTF-8?Q?pasi=C5=BEad=C4?=      a word that ends inside a character:
//!  =?UTF-8?Q?=97jim=C5=B3?=                 bytes of neighbours are joined first  ─▶ pasižadėjimų
//! ```
//!
//! Sources: RFC 2047 and 2231 for words, with what mailers write in spite of them: words of any length, words
//! beside each other or inside quotes, blanks in a word, base64 that is not filled up as it should. Words are
//! decoded here, as the crate mail-parser decodes each alone, from the character set that it names. U+FFFD
//! stands for bytes that mean nothing, which the user is told. Time is linear in the bytes.
//!
//! Character sets have the names that mail has for them.
//!
//! ```text
//! iso-8859-1, gb2312            the crate mail-parser       'UTF-8', "big5"      without the quotes
//! utf8, windows-31j, ms949      the crate encoding_rs       eucgb2312_cn, cp850  the tables here
//! utf-7, unicode-1-1-utf-7      here ([`utf7`])
//! us-ascii                      UTF-8 if the bytes are, or else Windows-1252
//! none, unknown-8bit            as us-ascii: RFC 2045, 5.2, and RFC 1428
//! ```
//!
//! The web has given up ISO-2022-KR, ISO-2022-CN and HZ, so nobody knows them here: their bytes stay.
//! Time is linear in the bytes.

use encoding_rs::{Encoding, REPLACEMENT, UTF_8, WINDOWS_1252};
use mail_parser::decoders::charsets::DecoderFnc;
use mail_parser::decoders::charsets::map::charset_decoder;
use mail_parser::{HeaderName, MessageParser, MimeHeaders};

use super::{transfer, utf7};
use crate::code_pages::CodePage;
use crate::inputs::Input;
use crate::remarks::Undecoded;

/// Character set of a text that names none.
pub const DEFAULT_CHARSET: &str = "us-ascii";
/// Longest name of a character set, with a language.
const MAX_CHARSET_BYTES: usize = 64;

/// Returns header lines in UTF-8. Bytes that are not UTF-8 are read in the character set of the message.
pub fn in_utf8(head: Vec<u8>, witness: &mut Witness<'_>) -> Vec<u8> {
    if std::str::from_utf8(&head).is_ok() {
        return head;
    }
    let charset = charset_of(&head).unwrap_or_else(|| DEFAULT_CHARSET.to_owned());
    let lines = head.split_inclusive(|&byte| byte == b'\n');
    let in_utf8 = lines.map(|line| match std::str::from_utf8(line) {
        Ok(line) => line.to_owned(),
        Err(_) => match witness.decode(&charset, line) {
            Some(line) => line,
            None => String::from_utf8_lossy(line).into_owned(),
        },
    });
    in_utf8.collect::<String>().into_bytes()
}

/// Decodes texts of one input, and counts it if a character set is not known or does not fit.
pub struct Witness<'a> {
    /// The input.
    pub input: &'a Input,
    /// Receiver of the count.
    pub undecoded: &'a mut Undecoded,
}

impl Witness<'_> {
    /// Decodes `bytes` from `charset`. Returns none if nobody knows it.
    pub fn decode(&mut self, charset: &str, bytes: &[u8]) -> Option<String> {
        let Some(Decoded { text, is_damaged }) = decode(charset, bytes) else {
            self.undecoded.add_unknown(charset, self.input);
            return None;
        };
        if is_damaged {
            self.undecoded.add_damaged(charset, self.input);
        }
        Some(text)
    }
}

/// Returns the character set of the message with these header lines.
fn charset_of(head: &[u8]) -> Option<String> {
    let parser = MessageParser::new().header_content_type(HeaderName::ContentType);
    let head = [head, b"\n"].concat();
    let parsed = parser.default_header_ignore().parse_headers(&head)?;
    parsed.content_type()?.attribute("charset").map(str::to_owned)
}

/// Decodes the encoded words of a header.
pub fn decoded(value: &str, witness: &mut Witness<'_>) -> String {
    let mut text = String::new();
    let mut run = Run::default();
    let mut rest = value;
    while let Some((before, word, after)) = next_word(rest) {
        // Blanks between two encoded words are left out.
        if !(run.is_open() && before.trim().is_empty()) {
            run.end(&mut text, witness);
            text.push_str(before);
        }
        run.push(word, &mut text, witness);
        rest = after;
    }
    run.end(&mut text, witness);
    text + rest
}

/// An encoded word.
struct Word<'a> {
    charset: &'a str,
    bytes: Vec<u8>,
    /// The word as it is written.
    written: &'a str,
}

/// Neighbouring words of one character set.
#[derive(Default)]
struct Run<'a> {
    charset: Option<&'a str>,
    bytes: Vec<u8>,
    written: String,
    /// True if other words stand directly before.
    follows: bool,
    /// True if the words before stayed as they are written.
    is_behind_written: bool,
}

impl<'a> Run<'a> {
    fn is_open(&self) -> bool {
        self.charset.is_some()
    }

    fn push(&mut self, word: Word<'a>, text: &mut String, witness: &mut Witness<'_>) {
        let is_other = self.charset.is_some_and(|charset| !charset.eq_ignore_ascii_case(word.charset));
        if is_other || self.is_shifted_back() || is_utf7(word.charset) {
            self.end(text, witness);
            self.follows = true;
        }
        if self.is_open() {
            self.written.push(' ');
        }
        self.charset = Some(word.charset);
        self.bytes.extend_from_slice(&word.bytes);
        self.written.push_str(word.written);
    }

    /// Returns true if the words shift to another alphabet and back to ASCII, as RFC 2047 wants it of each
    /// word. Decoders take a shift that follows another one directly for damage.
    fn is_shifted_back(&self) -> bool {
        match self.bytes.iter().rposition(|&byte| byte == 0x1b) {
            Some(escape) => matches!(self.bytes.get(escape + 1..escape + 3), Some(b"(B" | b"(J")),
            None => false,
        }
    }

    /// Appends the words to `text`, as they are written if nobody knows their character set.
    fn end(&mut self, text: &mut String, witness: &mut Witness<'_>) {
        let Self { charset, bytes, written, follows, is_behind_written } = std::mem::take(self);
        let Some(charset) = charset else { return };
        let decoded = witness.decode(charset, &bytes);
        self.is_behind_written = decoded.is_none();
        if follows && (is_behind_written || decoded.is_none()) {
            text.push(' ');
        }
        text.push_str(decoded.as_ref().unwrap_or(&written));
    }
}

/// Returns the text before the first encoded word, the word, and the text behind it.
fn next_word(text: &str) -> Option<(&str, Word<'_>, &str)> {
    let mut from = 0;
    while let Some(start) = text[from..].find("=?").map(|idx| from + idx) {
        match word_at(&text[start..]) {
            Some((word, len)) => return Some((&text[..start], word, &text[start + len..])),
            None => from = start + 1,
        }
    }
    None
}

/// Returns the encoded word at the start of `text`, and its length.
fn word_at(text: &str) -> Option<(Word<'_>, usize)> {
    let inner = text.get(2..)?;
    let charset_end = inner.bytes().take(MAX_CHARSET_BYTES + 1).position(|byte| byte == b'?')?;
    let charset = &inner[..charset_end];
    let is_name = |byte: u8| byte.is_ascii_graphic() && byte != b'=';
    if charset.is_empty() || !charset.bytes().all(is_name) {
        return None;
    }
    let (encoding, coded) = inner.get(charset_end + 1..)?.split_once('?')?;
    let coded_start = text.len() - coded.len();
    let end = end_of_word(coded.as_bytes())?;
    let bytes = match encoding {
        "B" | "b" => transfer::base64_word(&coded[..end])?,
        "Q" | "q" => transfer::quoted_word(&coded[..end]),
        _ => return None,
    };
    let len = coded_start + end + 2;
    // A language may stand behind the character set.
    let charset = charset.split('*').next().unwrap_or(charset);
    Some((Word { charset, bytes, written: &text[..len] }, len))
}

/// Returns the place of the `?=` that ends a word. The start of another word comes before it in no word, so
/// no byte is looked at for two of them.
fn end_of_word(coded: &[u8]) -> Option<usize> {
    let marks = memchr::memchr_iter(b'?', coded);
    for idx in marks {
        if coded.get(idx + 1) == Some(&b'=') {
            return Some(idx);
        }
        if idx > 0 && coded[idx - 1] == b'=' {
            return None;
        }
    }
    None
}

/// Longest name that is looked at.
const MAX_NAME_BYTES: usize = 45;
/// Names of ASCII, and of a character set that a mailer did not know, in small letters with `_`.
const ASCII: [&str; 16] = [
    "646",
    "ansi_x3.4_1968",
    "ansi_x3.4_1986",
    "ascii",
    "cp367",
    "csascii",
    "ibm367",
    "iso646_us",
    "iso_646.irv:1991",
    "iso_ir_6",
    "unknown",
    "unknown_8bit",
    "us",
    "us_ascii",
    "x_unknown",
    "x_unknown_8bit",
];
/// Names of UTF-7, in small letters with `_`.
const UTF7: [&str; 7] =
    ["cp65000", "csunicode11utf7", "csutf7", "unicode_1_1_utf_7", "utf7", "utf_7", "x_unicode_2_0_utf_7"];
/// Names that the crates do not know, in small letters with `_`, and the ones that they know.
const ALIASES: [(&str, &str); 19] = [
    ("big5_tw", "big5"),
    ("big5_eten", "big5"),
    ("cp10000", "macintosh"),
    ("cp65001", "utf-8"),
    ("cp874", "windows-874"),
    ("cp932", "shift_jis"),
    ("cp949", "euc-kr"),
    ("cp950", "big5"),
    ("euc_cn", "gb2312"),
    ("eucgb2312_cn", "gb2312"),
    ("euccn", "gb2312"),
    ("eucjp", "euc-jp"),
    ("euckr", "euc-kr"),
    ("gb18030_2000", "gb18030"),
    ("ms950", "big5"),
    ("ms949", "euc-kr"),
    ("uhc", "euc-kr"),
    ("utf8mb4", "utf-8"),
    ("utf_8_sig", "utf-8"),
];
/// A text that was decoded.
#[derive(Debug, PartialEq, Eq)]
pub struct Decoded {
    /// The text in UTF-8.
    pub text: String,
    /// True if U+FFFD stands for bytes that mean nothing.
    pub is_damaged: bool,
}

/// A character set that is known.
enum Charset {
    Utf8,
    Cp850,
    /// Mailers write it beside bytes that it does not have: those of UTF-8, or else those of Windows.
    Ascii,
    Cp437,
    Utf7,
    Mail(DecoderFnc),
    Web(&'static Encoding),
}

/// Returns true if `name` is one of UTF-8.
pub fn is_utf8(name: &str) -> bool {
    matches!(charset(name), Some(Charset::Utf8))
}

/// Returns true if `name` is one of UTF-7, of which each encoded word begins and ends in ASCII.
fn is_utf7(name: &str) -> bool {
    matches!(charset(name), Some(Charset::Utf7))
}

/// Returns true if no character set has the name, so that nothing speaks against ASCII. Those that were given
/// up have names.
pub fn is_unheard_of(name: &str) -> bool {
    charset(name).is_none() && charset_decoder(name.as_bytes()).is_none()
}

/// Decodes `bytes` from the character set `name`. Returns none if nobody knows it.
pub fn decode(name: &str, bytes: &[u8]) -> Option<Decoded> {
    let text = match charset(name)? {
        Charset::Utf8 => {
            let is_damaged = str::from_utf8(bytes).is_err();
            return Some(Decoded { text: String::from_utf8_lossy(bytes).into_owned(), is_damaged });
        }
        Charset::Ascii => match str::from_utf8(bytes) {
            Ok(text) => text.to_owned(),
            Err(_) => WINDOWS_1252.decode_without_bom_handling(bytes).0.into_owned(),
        },
        Charset::Utf7 => utf7::decode(bytes),
        Charset::Cp437 => CodePage::Dos437.decode(bytes),
        Charset::Mail(decode) => decode(bytes),
        Charset::Cp850 => CodePage::Dos850.decode(bytes),
        Charset::Web(encoding) => encoding.decode_without_bom_handling(bytes).0.into_owned(),
    };
    let is_damaged = text.contains(char::REPLACEMENT_CHARACTER);
    Some(Decoded { text, is_damaged })
}

fn charset(name: &str) -> Option<Charset> {
    let name = name.trim_matches(|sign: char| sign.is_whitespace() || matches!(sign, '"' | '\''));
    if name.is_empty() || name.len() > MAX_NAME_BYTES {
        return None;
    }
    let small = name.to_ascii_lowercase().replace('-', "_");
    if matches!(&*small, "cp850" | "ibm850" | "850" | "cspc850multilingual") {
        return Some(Charset::Cp850);
    }
    if matches!(&*small, "cp437" | "ibm437" | "437" | "cspc8codepage437") {
        return Some(Charset::Cp437);
    }
    if UTF7.contains(&&*small) {
        return Some(Charset::Utf7);
    }
    if ASCII.contains(&&*small) {
        return Some(Charset::Ascii);
    }
    let alias = ALIASES.iter().find(|(alias, _)| *alias == small);
    let name = alias.map_or(name, |(_, known)| known);
    let on_web = Encoding::for_label(name.as_bytes());
    let on_web = on_web.or_else(|| Encoding::for_label(small.replace('_', "-").as_bytes()));
    if on_web == Some(UTF_8) {
        return Some(Charset::Utf8);
    }
    // It has one sign for all bytes.
    let is_given_up = on_web == Some(REPLACEMENT) || small.starts_with("iso_2022_cn");
    if is_given_up {
        return None;
    }
    let by_mail = charset_decoder(name.as_bytes()).map(Charset::Mail);
    by_mail.or_else(|| on_web.map(Charset::Web))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::inputs::Source;

    /// Returns what `decode` gives, and the number of notes.
    fn witnessed<T>(decode: impl FnOnce(&mut Witness<'_>) -> T) -> (T, usize) {
        let input = Input::new(Source::Stdin, "a.mbox".to_owned(), 0);
        let mut undecoded = Undecoded::default();
        let decoded = decode(&mut Witness { input: &input, undecoded: &mut undecoded });
        (decoded, undecoded.notes().count())
    }

    fn decoded(value: &str) -> String {
        witnessed(|witness| super::decoded(value, witness)).0
    }

    fn in_utf8(head: Vec<u8>) -> Vec<u8> {
        witnessed(|witness| super::in_utf8(head, witness)).0
    }

    #[test]
    fn encoded_words_are_decoded() {
        for (value, expected) in [
            ("plain", "plain"),
            ("=?UTF-8?Q?Gr=C3=BC=C3=9Fe?= an =?utf-8?b?QW5u?=", "Grüße an Ann"),
            ("=?UTF-8?B?QW4=?=  =?UTF-8?B?bmE=?= x", "Anna x"),
            ("=?UTF-8?Q?pasi=C5=BEad=C4?= =?utf-8?Q?=97jim?=", "pasižadėjim"),
            ("=?utf-8?B?0JTQ?= =?utf-8?B?uw==?=", "Дл"),
            ("=?utf-8?B?0JTQ?= =?utf-8?Q?=BB!?=", "Дл!"),
            ("=?iso-8859-1?q?caf=E9_au?=", "café au"),
            ("=?koi8-r?B?8NLJ18XU?= =?UTF-8?B?QW4=?=", "ПриветAn"),
            ("=?ISO-2022-JP?B?GyRCRnxLXBsoQg==?=", "日本"),
            ("=?iso-2022-jp?b?GyRCRnwbKEI=?= =?iso-2022-jp?b?GyRCS1wbKEI=?=", "日本"),
            ("=?iso-2022-jp?b?GyRCRnw=?= =?iso-2022-jp?b?S1wbKEI=?=", "日本"),
            ("=?iso-2022-kr?B?GyQpQw5HUTE5Dw==?= x", "=?iso-2022-kr?B?GyQpQw5HUTE5Dw==?= x"),
            (
                "=?iso-2022-kr?B?GyQpQw5HUTE5Dw==?= =?x-no?Q?a?= =?utf-8?Q?b?= =?utf-8?Q?c?=",
                "=?iso-2022-kr?B?GyQpQw5HUTE5Dw==?= =?x-no?Q?a?= bc",
            ),
            ("=?gb2312?B?1tC5+g==?=", "中国"),
            ("=?utf-8*en?Q?a_b?=", "a b"),
            ("=?x-nobody?Q?a=20b?= =?x-nobody?Q?c?=", "=?x-nobody?Q?a=20b?= =?x-nobody?Q?c?="),
            ("\"=?UTF-8?Q?J=C3=B6rg=2C_x?=\" <j@x.org>", "\"Jörg, x\" <j@x.org>"),
            ("=?utf-8?Q?a?==?utf-8?Q?b?=", "ab"),
            ("=?utf-8?Q?How are you??=", "How are you?"),
            ("=?UTF-8?B?QW5u?", "=?UTF-8?B?QW5u?"),
            ("=?UTF-8?B?QQ?= =?UTF-8?B??=", "A"),
            ("=?UTF-8?Q?=C3?=", "\u{fffd}"),
            ("=?UTF-8?Q?=ZZ?= =?", "=ZZ =?"),
            ("=?UTF-8?B?!?= x", "=?UTF-8?B?!?= x"),
            ("=?UTF-8?B?YWJj=?= x", "abc x"),
            ("=?UTF-8?B?YWI==?= =?UTF-8?B?YQ==Yg==?=", "abab"),
            ("=?\"utf-8\"?Q?=C3=A9?= =?'UTF-8'?B?YQ?=", "éa"),
            ("=?eucgb2312_cn?B?1tC5+g?= =?big5_tw?Q?=A4=A4?=", "中国中"),
            ("=?cp437?Q?caf=82?=", "café"),
            ("=?utf-7?Q?1_+-_1_+AOk-?=", "1 + 1 é"),
            ("=?UTF-7?Q?caf+AOk?= =?utf-7?Q?A+AOk-?= b", "caféAé b"),
            ("=?us-ascii?Q?caf=C3=A9?= =?ASCII?Q?=E9?=", "caféé"),
            ("=?us-ascii?Q?caf=C3?= =?us-ascii?Q?=A9?=", "café"),
            ("=?a =?utf-8?q?b?=", "=?a b"),
            ("=?utf-8?q?a =?utf-8?q?b?=", "=?utf-8?q?a b"),
            ("a =? b ?= c", "a =? b ?= c"),
        ] {
            assert_eq!(decoded(value), expected, "{value}");
        }
    }

    #[test]
    fn character_sets_that_do_not_fit_are_told() {
        for (value, num_notes) in [
            ("=?utf-8?Q?=C3=A9?= =?iso-8859-1?Q?=E9?=", 0),
            ("=?utf-8?Q?=E9?=", 1),
            ("=?gb2312?B?/w==?= =?hz-gb-2312?Q?~{VP~}?= =?x-no?Q?a?=", 3),
        ] {
            let (text, told) = witnessed(|witness| super::decoded(value, witness));
            assert_eq!(told, num_notes, "{value}: {text}");
        }
    }

    #[test]
    fn words_without_an_end_take_linear_time() {
        for word in ["=?", "=?utf-8?q?", "=?utf-8?q?x=", "=?utf-8?b?=", "=?a?b?x?"] {
            let value = word.repeat(1 << 18);
            assert!(decoded(&value).len() <= value.len(), "{word}");
        }
    }

    #[test]
    fn other_bytes_are_in_the_character_set_of_the_message() {
        let head = b"Subject: caf\xe9\nFrom: J\xc3\xb6rg\nContent-Type: text/plain; charset=iso-8859-1\n";
        let expected = "Subject: café\nFrom: Jörg\nContent-Type: text/plain; charset=iso-8859-1\n";
        assert_eq!(in_utf8(head.to_vec()), expected.as_bytes());
        let (text, told) = witnessed(|witness| super::in_utf8(b"Subject: caf\xe9\n".to_vec(), witness));
        assert_eq!((text, told), ("Subject: café\n".as_bytes().to_vec(), 0));
        let utf8 = b"Subject: caf\xe9\nContent-Type: text/plain; charset=utf-8\n";
        let (text, told) = witnessed(|witness| super::in_utf8(utf8.to_vec(), witness));
        assert!(text.starts_with("Subject: caf\u{fffd}\n".as_bytes()));
        assert_eq!(told, 1);
    }

    #[test]
    fn names_of_mail_are_known() {
        for (name, bytes, text) in [
            ("eucgb2312_cn", &b"\xd6\xd0\xb9\xfa"[..], "中国"),
            ("Big5_TW", b"\xa4\xa4", "中"),
            ("cp437", b"caf\x82 \xe1 \xff", "café ß \u{a0}"),
            ("IBM437", b"\x80\xb0a", "Ç░a"),
            ("cp850", b"caf\x82 \xe1 \xff", "café ß \u{a0}"),
            ("IBM850", b"\x9b\xd5a", "øıa"),
            ("\"iso-8859-1\"", b"\xe9", "é"),
            ("'UTF-8'", "é".as_bytes(), "é"),
            ("utf8", "é".as_bytes(), "é"),
            ("utf-7", b"+AOk- +- caf+AOk", "é + café"),
            ("unicode-1-1-utf-7", b"+AOk.", "é."),
            ("utf7", b"+2D3eAA-", "\u{1f600}"),
            ("cp932", b"\x93\xfa", "日"),
            ("uhc", b"\xb0\xa1", "가"),
            ("iso_8859-15", b"\xa4", "€"),
            ("us-ascii", "é".as_bytes(), "é"),
            ("ANSI_X3.4-1968", b"\xe9 \x80", "é €"),
            ("646", "日".as_bytes(), "日"),
            (DEFAULT_CHARSET, b"caf\xe9", "café"),
            ("UNKNOWN-8BIT", b"\x93caf\xe9\x94", "“café”"),
            ("x-unknown", "é".as_bytes(), "é"),
        ] {
            let decoded = Decoded { text: text.to_owned(), is_damaged: false };
            assert_eq!(decode(name, bytes), Some(decoded), "{name}");
        }
        for name in ["", "\"\"", "iso-2022-kr", "csiso2022kr", "hz-gb-2312", "iso-2022-cn", "x-no"] {
            assert_eq!(decode(name, b"a"), None, "{name}");
        }
    }

    #[test]
    fn bytes_without_a_meaning_are_told() {
        for (name, bytes) in [("utf-8", &b"a\xe9"[..]), ("gb2312", b"a\xff"), ("euc-jp", b"\xff")] {
            let decoded = decode(name, bytes).unwrap();
            assert!(decoded.is_damaged && decoded.text.contains('\u{fffd}'), "{name}");
        }
        assert!(!decode("utf-8", "\u{fffd}".as_bytes()).unwrap().is_damaged);
    }
}
