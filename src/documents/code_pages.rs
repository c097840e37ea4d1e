//! Code pages of DOS, which no crate here decodes: 437, of the United States, and 850, of western Europe.
//!
//! The bytes below 0x80 are ASCII. Source: the tables CP437 and CP850 of the Unicode Consortium. Time is linear in the
//! bytes.

/// Signs of the bytes from 0x80.
const SIGNS_437: &str = "ÇüéâäàåçêëèïîìÄÅÉæÆôöòûùÿÖÜ¢£¥₧ƒáíóúñÑªº¿⌐¬½¼¡«»░▒▓│┤╡╢╖╕╣║╗╝╜╛┐└┴┬├─┼╞╟╚╔╩╦╠═╬╧╨╤╥╙╘╒╓╫╪┘┌█▄▌▐▀\
                         αßΓπΣσµτΦΘΩδ∞φε∩≡±≥≤⌠⌡÷≈°∙·√ⁿ²■\u{a0}";
const SIGNS_850: &str = "ÇüéâäàåçêëèïîìÄÅÉæÆôöòûùÿÖÜø£Ø×ƒáíóúñÑªº¿®¬½¼¡«»░▒▓│┤ÁÂÀ©╣║╗╝¢¥┐└┴┬├─┼ãÃ╚╔╩╦╠═╬¤ðÐÊËÈıÍÎÏ┘\
                         ┌█▄¦Ì▀ÓßÔÒõÕµþÞÚÛÙýÝ¯´\u{ad}±‗¾¶§÷¸°¨·¹³²■\u{a0}";

/// A code page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CodePage {
    Dos437,
    Dos850,
}

impl CodePage {
    /// Returns the text of `bytes`.
    pub fn decode(self, bytes: &[u8]) -> String {
        let signs = match self {
            Self::Dos437 => SIGNS_437,
            Self::Dos850 => SIGNS_850,
        };
        let signs: Vec<char> = signs.chars().collect();
        let sign = |byte: u8| byte.checked_sub(0x80).and_then(|above| signs.get(usize::from(above)).copied());
        bytes.iter().map(|&byte| sign(byte).unwrap_or(char::from(byte))).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_byte_has_a_sign_of_its_own() {
        let bytes: Vec<u8> = (0..=255).collect();
        for page in [CodePage::Dos437, CodePage::Dos850] {
            let text = page.decode(&bytes);
            let mut signs: Vec<char> = text.chars().collect();
            assert_eq!(signs[..128], bytes[..128].iter().map(|&byte| char::from(byte)).collect::<Vec<_>>());
            signs.sort_unstable();
            signs.dedup();
            assert_eq!(signs.len(), 256, "{page:?}");
        }
        assert_eq!(CodePage::Dos437.decode(b"caf\x82 \x9b"), "café ¢");
        assert_eq!(CodePage::Dos850.decode(b"caf\x82 \x9b"), "café ø");
    }
}
