//! Character sets by the names that mail has for them.
//!
//! ```text
//! iso-8859-1, gb2312, utf-7     the crate mail-parser       'UTF-8', "big5"      without the quotes
//! utf8, windows-31j, ms949      the crate encoding_rs       eucgb2312_cn, cp437  the tables here
//! ```
//!
//! The web has given up ISO-2022-KR, ISO-2022-CN and HZ, so nobody knows them here: their bytes stay.
//! Time is linear in the bytes.

use encoding_rs::{Encoding, REPLACEMENT, UTF_8};
use mail_parser::decoders::charsets::DecoderFnc;
use mail_parser::decoders::charsets::map::charset_decoder;

/// Longest name that is looked at.
const MAX_NAME_BYTES: usize = 45;
/// Names that the crates do not know, in small letters with `_`, and the ones that they know.
const ALIASES: [(&str, &str); 20] = [
    ("646", "us-ascii"),
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
/// Signs of the bytes from 0x80 in code page 437, as DOS has them.
const CP437: &str = "ÇüéâäàåçêëèïîìÄÅÉæÆôöòûùÿÖÜ¢£¥₧ƒáíóúñÑªº¿⌐¬½¼¡«»░▒▓│┤╡╢╖╕╣║╗╝╜╛┐└┴┬├─┼╞╟╚╔╩╦╠═╬╧╨╤╥╙╘╒╓╫╪┘┌█▄▌▐▀\
                     αßΓπΣσµτΦΘΩδ∞φε∩≡±≥≤⌠⌡÷≈°∙·√ⁿ²■\u{a0}";

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
    Cp437,
    Mail(DecoderFnc),
    Web(&'static Encoding),
}

/// Returns true if `name` is one of UTF-8.
pub fn is_utf8(name: &str) -> bool {
    matches!(charset(name), Some(Charset::Utf8))
}

/// Returns true if mail-parser decodes bytes in the character set `name` as this module does.
pub fn is_plain(name: &str) -> bool {
    let is_same = charset_decoder(name.as_bytes()).is_some();
    (is_same && matches!(charset(name), Some(Charset::Mail(_)))) || is_utf8(name)
}

/// Decodes `bytes` from the character set `name`. Returns none if nobody knows it.
pub fn decode(name: &str, bytes: &[u8]) -> Option<Decoded> {
    let text = match charset(name)? {
        Charset::Utf8 => {
            let is_damaged = str::from_utf8(bytes).is_err();
            return Some(Decoded { text: String::from_utf8_lossy(bytes).into_owned(), is_damaged });
        }
        Charset::Cp437 => bytes.iter().map(|&byte| cp437(byte)).collect(),
        Charset::Mail(decode) => decode(bytes),
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
    if matches!(&*small, "cp437" | "ibm437" | "437" | "cspc8codepage437") {
        return Some(Charset::Cp437);
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

fn cp437(byte: u8) -> char {
    let above = byte.checked_sub(0x80).map(usize::from);
    let sign = above.and_then(|idx| CP437.chars().nth(idx));
    sign.unwrap_or(char::from(byte))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_mail_are_known() {
        for (name, bytes, text) in [
            ("eucgb2312_cn", &b"\xd6\xd0\xb9\xfa"[..], "中国"),
            ("Big5_TW", b"\xa4\xa4", "中"),
            ("cp437", b"caf\x82 \xe1 \xff", "café ß \u{a0}"),
            ("IBM437", b"\x80\xb0a", "Ç░a"),
            ("\"iso-8859-1\"", b"\xe9", "é"),
            ("'UTF-8'", "é".as_bytes(), "é"),
            ("utf8", "é".as_bytes(), "é"),
            ("utf-7", b"+AOk-", "é"),
            ("cp932", b"\x93\xfa", "日"),
            ("uhc", b"\xb0\xa1", "가"),
            ("iso_8859-15", b"\xa4", "€"),
        ] {
            let decoded = Decoded { text: text.to_owned(), is_damaged: false };
            assert_eq!(decode(name, bytes), Some(decoded), "{name}");
        }
        for name in ["", "\"\"", "iso-2022-kr", "csiso2022kr", "hz-gb-2312", "iso-2022-cn", "x-no"]
        {
            assert_eq!(decode(name, b"a"), None, "{name}");
        }
        assert_eq!(CP437.chars().count(), 128);
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
