//! Codes of 12 bits, two in three bytes, low bits first.
//!
//! ```text
//! byte      3k                 3k + 1                            3k + 2
//! holds     code 2k, bits 0-7  code 2k, bits 8-11 in its low     code 2k+1, bits 4-11
//!                              half; code 2k+1, bits 0-3
//! ```
//!
//! The last of an odd number of codes takes two bytes, and the high half of the second one is 0.

/// Packs codes into their stored form.
pub(super) fn pack(codes: &[u16]) -> Vec<u8> {
    let mut packed = Vec::with_capacity((codes.len() * 3).div_ceil(2));
    let (pairs, last) = codes.as_chunks::<2>();
    for &[first, second] in pairs {
        let pair = u32::from(first) | u32::from(second) << 12;
        packed.extend_from_slice(&pair.to_le_bytes()[..3]);
    }
    if let [last] = last {
        packed.extend_from_slice(&last.to_le_bytes());
    }
    packed
}

/// Returns the code with the number `code_idx`.
#[inline]
pub(super) fn code_at(packed: &[u8], code_idx: usize) -> u16 {
    let at = code_idx / 2 * 3 + code_idx % 2;
    let pair = u16::from(packed[at]) | u16::from(packed[at + 1]) << 8;
    if code_idx.is_multiple_of(2) { pair & 0xfff } else { pair >> 4 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packed_codes_read_back() {
        let codes: Vec<u16> = (0..4096).map(|code| code * 7 % 4096).collect();
        for len in (0..70).chain([4095, 4096]) {
            let packed = pack(&codes[..len]);
            assert_eq!(packed.len(), (3 * len).div_ceil(2));
            let read: Vec<u16> = (0..len).map(|code_idx| code_at(&packed, code_idx)).collect();
            assert_eq!(read, codes[..len]);
        }
    }
}
