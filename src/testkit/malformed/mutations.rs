//! Mutations of files: accidental damage, and falsification by somebody who knows the format.

use super::LIMITS;
use super::anatomy::{Anatomy, POSTSCRIPT_BYTES, Section, footer_start, reseal};
use super::samples::{Content, Sample, rewritten};
use crate::random::Random;
use tadoc::Corpus;

/// The allowed results of opening a mutant.
pub enum Allowed<'a> {
    /// Checksums are unchanged: an error, or one of these contents.
    Error(Vec<&'a Content>),
    /// Checksums are valid: an error, or any content that is consistent.
    Anything,
}

/// A changed file.
pub struct Mutant<'a> {
    pub kind: &'static str,
    pub sample: &'a str,
    pub bytes: Vec<u8>,
    pub allowed: Allowed<'a>,
}

type Change = fn(&mut Random, &Sample, &Sample) -> Vec<u8>;

/// Damage: changes that do not recompute checksums.
const DAMAGE: [(&str, Change); 9] = [
    ("flipped bits", flip_bits),
    ("overwritten bytes", overwrite_bytes),
    ("cut", cut),
    ("removed range", remove_range),
    ("repeated range", repeat_range),
    ("swapped ranges", swap_ranges),
    ("splice of two files", splice),
    ("range of another file", paste),
    ("lying field", lie_in_footer),
];

/// Lies: changes with valid checksums.
const LIES: [(&str, Change); 8] = [
    ("resealed section", reseal_section),
    ("resealed section of another file", reseal_foreign_section),
    ("resealed segment record", reseal_segment_record),
    ("resealed field", reseal_field),
    ("resealed bytes", reseal_bytes),
    ("resealed segments", reseal_segments),
    ("resealed kinds and codecs", reseal_kinds),
    ("rewritten content", rewrite_content),
];

/// Returns mutant number `seed`.
pub fn mutant(seed: u64, samples: &[Sample]) -> Mutant<'_> {
    let mut random = Random(seed);
    let a = random.pick(samples);
    let b = random.pick(samples);
    let kind = random.below(DAMAGE.len() + LIES.len());
    let allowed = if kind < DAMAGE.len() { Allowed::Error(vec![&a.content, &b.content]) } else { Allowed::Anything };
    let (kind, change) = DAMAGE.into_iter().chain(LIES).nth(kind).unwrap();
    Mutant { kind, sample: &a.name, bytes: change(&mut random, a, b), allowed }
}

/// Returns the names of all kinds of changes.
pub fn kinds() -> impl Iterator<Item = &'static str> {
    DAMAGE.into_iter().chain(LIES).map(|(name, _)| name)
}

fn flip_bits(random: &mut Random, a: &Sample, _: &Sample) -> Vec<u8> {
    let mut file = a.file.clone();
    for _ in 0..1 + random.below(8) {
        let at = random.below(file.len());
        file[at] ^= 1 << random.below(8);
    }
    file
}

fn overwrite_bytes(random: &mut Random, a: &Sample, _: &Sample) -> Vec<u8> {
    let mut file = a.file.clone();
    overwrite(random, &mut file);
    file
}

fn overwrite(random: &mut Random, bytes: &mut [u8]) {
    let range = random.range(bytes.len());
    let fill = *random.pick(&[0, 0x80, 0xff]);
    let is_noise = random.one_in(2);
    for byte in &mut bytes[range] {
        *byte = if is_noise { random.number() as u8 } else { fill };
    }
}

fn cut(random: &mut Random, a: &Sample, _: &Sample) -> Vec<u8> {
    let at = random.below(a.file.len());
    if random.one_in(2) { a.file[..at].to_vec() } else { a.file[at..].to_vec() }
}

fn remove_range(random: &mut Random, a: &Sample, _: &Sample) -> Vec<u8> {
    let range = random.range(a.file.len());
    [&a.file[..range.start], &a.file[range.end..]].concat()
}

fn repeat_range(random: &mut Random, a: &Sample, _: &Sample) -> Vec<u8> {
    let range = random.range(a.file.len());
    let at = if random.one_in(2) { range.end } else { random.below(a.file.len() + 1) };
    [&a.file[..at], &a.file[range], &a.file[at..]].concat()
}

fn swap_ranges(random: &mut Random, a: &Sample, _: &Sample) -> Vec<u8> {
    let mut file = a.file.clone();
    let range = random.range(file.len());
    let to = random.below(file.len() - range.len() + 1);
    for i in 0..range.len() {
        file.swap(range.start + i, to + i);
    }
    file
}

fn splice(random: &mut Random, a: &Sample, b: &Sample) -> Vec<u8> {
    let end = random.below(a.file.len());
    // Half of the splices keep the distance from the end, so that the footer is in its place.
    let left = a.file.len() - end;
    let start = if random.one_in(2) { b.file.len().saturating_sub(left) } else { random.below(b.file.len()) };
    [&a.file[..end], &b.file[start..]].concat()
}

fn paste(random: &mut Random, a: &Sample, b: &Sample) -> Vec<u8> {
    let mut file = a.file.clone();
    let range = random.range(file.len().min(b.file.len()));
    let to = random.below(file.len() - range.len() + 1);
    file[to..to + range.len()].copy_from_slice(&b.file[range]);
    file
}

/// Falsifies 2, 4 or 8 bytes of `bytes` as a number.
fn lie(random: &mut Random, bytes: &mut [u8]) {
    let width = (*random.pick(&[2, 4, 4, 8, 8])).min(bytes.len());
    let at = random.below(bytes.len() - width + 1);
    let mut number = [0; 8];
    number[..width].copy_from_slice(&bytes[at..at + width]);
    let lie = random.lie(u64::from_le_bytes(number));
    bytes[at..at + width].copy_from_slice(&lie.to_le_bytes()[..width]);
}

fn lie_in_footer(random: &mut Random, a: &Sample, _: &Sample) -> Vec<u8> {
    let mut file = a.file.clone();
    let start = footer_start(&file);
    lie(random, &mut file[start..]);
    file
}

/// Assembles a file of these parts, mostly with matching ties.
fn seal(random: &mut Random, anatomy: Anatomy) -> Vec<u8> {
    if random.one_in(8) { anatomy.assemble() } else { anatomy.tied().assemble() }
}

/// Returns mutant number `seed` with valid checksums and changes around sections of `kind`.
pub fn mutant_of_kind(seed: u64, kind: [u8; 2], samples: &[Sample]) -> Vec<u8> {
    let mut random = Random(seed);
    let a = random.pick(samples);
    let b = random.pick(samples);
    match random.below(8) {
        0..5 => change_section(&mut random, a, b, |section| section.kind == kind),
        5 => change_to_foreign_section(&mut random, a, b, |section| section.kind == kind),
        6 => reseal_segment_record(&mut random, a, b),
        _ => rewrite_content(&mut random, a, b),
    }
}

/// Returns mutant number `seed` with valid checksums and changes of footer and postscript.
pub fn mutant_of_footer(seed: u64, samples: &[Sample]) -> Vec<u8> {
    let mut random = Random(seed);
    let a = random.pick(samples);
    let b = random.pick(samples);
    let changes: [Change; 4] = [reseal_field, reseal_segment_record, reseal_segments, reseal_kinds];
    random.pick(&changes)(&mut random, a, b)
}

/// Changes the bytes of one section, and possibly their number.
fn reseal_section(random: &mut Random, a: &Sample, b: &Sample) -> Vec<u8> {
    change_section(random, a, b, |_| true)
}

fn change_section(random: &mut Random, a: &Sample, b: &Sample, is_meant: impl Fn(&Section) -> bool) -> Vec<u8> {
    let mut anatomy = Anatomy::from_file(&a.file);
    let mut sections = anatomy.sections_mut();
    sections.retain(|section| is_meant(section));
    let at = random.below(sections.len());
    if let Some(section) = sections.get_mut(at).filter(|section| !section.bytes.is_empty()) {
        section.bytes = changed_bytes(random, &section.bytes, &b.file);
    }
    seal(random, anatomy)
}

/// Returns `bytes` with changed bits, ranges or length, or with a range of `other`.
pub fn changed_bytes(random: &mut Random, bytes: &[u8], other: &[u8]) -> Vec<u8> {
    let part = |bytes: &[u8]| Sample {
        name: String::new(),
        file: bytes.to_vec(),
        content: Content { documents: Vec::new(), columns: None },
    };
    let changes: [Change; 8] =
        [flip_bits, flip_bits, overwrite_bytes, cut, remove_range, repeat_range, swap_ranges, paste];
    random.pick(&changes)(random, &part(bytes), &part(other))
}

fn reseal_foreign_section(random: &mut Random, a: &Sample, b: &Sample) -> Vec<u8> {
    change_to_foreign_section(random, a, b, |_| true)
}

fn change_to_foreign_section(
    random: &mut Random,
    a: &Sample,
    b: &Sample,
    is_meant: impl Fn(&Section) -> bool,
) -> Vec<u8> {
    let mut anatomy = Anatomy::from_file(&a.file);
    let mut other = Anatomy::from_file(&b.file);
    let others = other.sections_mut();
    let mut sections = anatomy.sections_mut();
    sections.retain(|section| is_meant(section));
    let at = random.below(sections.len());
    if let Some(section) = sections.get_mut(at) {
        let alike: Vec<&Section> = others.iter().filter(|o| o.kind == section.kind).map(|o| &**o).collect();
        if !alike.is_empty() {
            **section = (*random.pick(&alike)).clone();
        }
    }
    seal(random, anatomy)
}

fn reseal_segment_record(random: &mut Random, a: &Sample, b: &Sample) -> Vec<u8> {
    let mut anatomy = Anatomy::from_file(&a.file);
    let other = Anatomy::from_file(&b.file);
    let at = random.below(anatomy.segments.len());
    if let Some(segment) = anatomy.segments.get_mut(at) {
        if random.one_in(4) && !other.segments.is_empty() {
            segment.record = random.pick(&other.segments).record.clone();
        }
        for _ in 0..1 + random.below(3) {
            // Whole fields: six of 8 bytes, four of 4 bytes, and the flags.
            let field = random.below(11);
            let (start, len) = match field {
                0..6 => (8 * field, 8),
                6..10 => (48 + 4 * (field - 6), 4),
                _ => (64, 2),
            };
            lie(random, &mut segment.record[start..start + len]);
        }
    }
    seal(random, anatomy)
}

/// Falsifies a number in the footer or postscript, in place.
fn reseal_field(random: &mut Random, a: &Sample, _: &Sample) -> Vec<u8> {
    let mut file = a.file.clone();
    let start = footer_start(&file);
    let end = file.len();
    let postscript = end - POSTSCRIPT_BYTES;
    let range = if random.one_in(4) { postscript..end } else { start..postscript };
    lie(random, &mut file[range]);
    reseal(&mut file, &Anatomy::from_file(&a.file));
    file
}

/// Changes bytes anywhere, in place.
fn reseal_bytes(random: &mut Random, a: &Sample, b: &Sample) -> Vec<u8> {
    let change: Change = *random.pick(&[flip_bits as Change, overwrite_bytes, swap_ranges, paste]);
    let mut file = change(random, a, b);
    reseal(&mut file, &Anatomy::from_file(&a.file));
    file
}

/// Copies, removes and reorders segments, also from another file, and changes their continuation
/// flags.
fn reseal_segments(random: &mut Random, a: &Sample, b: &Sample) -> Vec<u8> {
    let mut anatomy = Anatomy::from_file(&a.file);
    let other = Anatomy::from_file(&b.file);
    for _ in 0..1 + random.below(4) {
        let num_segments = anatomy.segments.len();
        let at = random.below(num_segments);
        match random.below(4) {
            0 if num_segments > 0 => {
                anatomy.segments.remove(at);
            }
            1 if num_segments > 0 => {
                let last = num_segments - 1;
                anatomy.segments.swap(at, last);
            }
            2 if num_segments > 0 => anatomy.segments[at].record[64] ^= 1,
            _ if !other.segments.is_empty() => {
                anatomy.segments.insert(at, random.pick(&other.segments).clone());
            }
            _ => anatomy.file_sections.truncate(0),
        }
    }
    if random.one_in(4) {
        anatomy.front[0] = random.below(4) as u8;
    }
    seal(random, anatomy)
}

fn reseal_kinds(random: &mut Random, a: &Sample, b: &Sample) -> Vec<u8> {
    let mut anatomy = Anatomy::from_file(&a.file);
    let mut other = Anatomy::from_file(&b.file);
    if random.one_in(3) {
        // Adds a section of a kind that this build may not know, to a segment or to the file.
        let mut extra: Vec<Section> = other.sections_mut().into_iter().map(|s| s.clone()).collect();
        extra.truncate(1);
        extra.iter_mut().for_each(|section| section.kind = [random.below(9) as u8, 0]);
        let at = random.below(anatomy.segments.len() + 1);
        match anatomy.segments.get_mut(at) {
            Some(segment) => segment.sections.extend(extra),
            None => anatomy.file_sections.extend(extra),
        }
        return seal(random, anatomy);
    }
    let mut sections = anatomy.sections_mut();
    let at = random.below(sections.len());
    if let Some(section) = sections.get_mut(at) {
        let is_kind = random.one_in(2);
        let field = if is_kind { &mut section.kind } else { &mut section.codec };
        *field = [random.below(8) as u8, 0];
    }
    seal(random, anatomy)
}

/// Writes hostile content with the crate. Returns the unchanged sample if the writer refuses it.
fn rewrite_content(random: &mut Random, a: &Sample, _: &Sample) -> Vec<u8> {
    let (_, corpus) = Corpus::from_bytes("sample", &a.file, &LIMITS).unwrap();
    rewritten(random, &corpus).unwrap_or_else(|| a.file.clone())
}
