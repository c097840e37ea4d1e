//! Tests that streams of an independent encoder decode to the same rows.
//!
//! The symbol tables and codes come from the crate fsst-rs 0.7.0. A program trained
//! `fsst::Compressor` on three copies of the rows (all but the last, which is there for its
//! escapes), and printed `symbol_table()`, `symbol_lengths()` and `compress(row)`. The streams are
//! those of FSST: code 255 escapes a literal, and any other code has a symbol.

use super::decode::{CodeRange, Decoder};
use super::{CodeWidth, Symbol, SymbolTable};

struct Golden {
    symbols: &'static [&'static [u8]],
    /// Text of each row and its codes.
    rows: &'static [(&'static [u8], &'static [u8])],
}

// 30 symbols.
const WORDS: Golden = Golden {
    symbols: &[
        b" s",
        b" d",
        b"ly",
        b" ir",
        b"ic ",
        b"iron",
        b"onic",
        b"carefull",
        b"deposits",
        b"ts sleep",
        b" careful",
        b"l deposi",
        b"the fina",
        b"y final ",
        b"l",
        b" ",
        b"s",
        b"e",
        b"a",
        b"p",
        b"i",
        b"c",
        b"t",
        b"y",
        b"o",
        b"k",
        b"g",
        b"n",
        b"f",
        b"d",
    ],
    rows: &[
        (b"carefully final deposits", b"\x07\r\x08"),
        (b"carefully ironic deposits", b"\x07\x17\x03\x06\x01\x11\x13\x18\x10\x14\x16\x10"),
        (b"", b""),
        (b"slyly final packages", b"\x10\x02\x02\x0f\x1c\x14\x1b\x12\x0e\x0f\x13\x12\x15\x19\x12\x1a\x11\x10"),
        (b"the final deposits sleep carefully", b"\x0c\x0b\t\n\x02"),
        (b"ironic packages sleep slyly", b"\x05\x04\x13\x12\x15\x19\x12\x1a\x11\x10\x00\x0e\x11\x11\x13\x00\x02\x02"),
        (b"zq finals \xff", b"\xffz\xffq\x0f\x1c\x14\x1b\x12\x0e\x10\x0f\xff\xff"),
    ],
};
// 7 symbols.
const BYTES: Golden = Golden {
    symbols: &[b"b\xff", b"\xff\xff\xfe", b"abab\xffaba", b"\x00", b"\xff", b"b", b"a"],
    rows: &[
        (b"\xff", b"\x04"),
        (b"\xff\xff\xfe\x00", b"\x01\x03"),
        (b"abab\xffabab\xff", b"\x02\x00"),
        (b"", b""),
        (b"\x00\x00\x00\x00\x00\x00\x00\x00\x00", b"\x03\x03\x03\x03\x03\x03\x03\x03\x03"),
        (b"zq finals \xff", b"\xffz\xffq\xff \xfff\xffi\xffn\x06\xffl\xffs\xff \x04"),
    ],
};
// 22 symbols.
const UTF8: Golden = Golden {
    symbols: &[
        b"\xe8\xaa",
        b"\x9c\xac",
        b"\xe6\x97\xa5\xe6\x9c\xac",
        b"Gr\xc3\xb6\xc3\x9fe ",
        b"\x9e\xe3\x81\xae\xe6\x97\xa5\xe6",
        b"und Ma\xc3\x9f",
        b"u",
        b"G",
        b" ",
        b"\xe8",
        b"\xe6",
        b"\xe2",
        b"\xc3",
        b"\xac",
        b"\x9f",
        b"\x9e",
        b"\x9c",
        b"\x82",
        b"n",
        b"d",
        b"a",
        b"M",
    ],
    rows: &[
        (b"Gr\xc3\xb6\xc3\x9fe und Ma\xc3\x9f", b"\x03\x05"),
        (b"\xe6\x97\xa5\xe6\x9c\xac\xe8\xaa\x9e\xe3\x81\xae\xe6\x97\xa5\xe6\x9c\xac", b"\x02\x00\x04\x01"),
        (b"Ma\xc3\x9f und Gr\xc3\xb6\xc3\x9fe \xe2\x82\xac", b"\x15\x14\x0c\x0e\x08\x06\x12\x13\x08\x03\x0b\x11\r"),
        (b"zq finals \xff", b"\xffz\xffq\x08\xfff\xffi\x12\x14\xffl\xffs\x08\xff\xff"),
    ],
};

#[test]
fn streams_of_fsst_rs_decode_exactly() {
    for golden in [&WORDS, &BYTES, &UTF8] {
        let symbols = golden.symbols.iter().map(|bytes| Symbol::new(bytes).unwrap()).collect();
        let table = SymbolTable::new(CodeWidth::Eight, symbols).unwrap();
        let table = SymbolTable::from_bytes(CodeWidth::Eight, &table.to_bytes()).unwrap();
        let decoder = Decoder::new(&table);
        let (mut all_codes, mut all_text, mut text) = (Vec::new(), Vec::new(), Vec::new());
        let decode = |codes: &[u8], text: &mut Vec<u8>| {
            decoder.decode(CodeRange { stored: codes, start: 0, end: codes.len() }, 0, text);
        };
        for (row, codes) in golden.rows {
            text.clear();
            decode(codes, &mut text);
            assert_eq!(&text, row);
            all_codes.extend_from_slice(codes);
            all_text.extend_from_slice(row);
        }
        // The repeated rows are long enough for the loop of 8 codes.
        text.clear();
        decode(&all_codes.repeat(20), &mut text);
        assert_eq!(text, all_text.repeat(20));
    }
}
