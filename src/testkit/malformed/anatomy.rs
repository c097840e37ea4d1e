//! Takes a file apart by its documented layout (`src/tadoc/format/layout.rs`). The layout is
//! written out here a second time, so that tests can do the work of a hostile writer: change parts,
//! assemble them again and give them valid checksums.

use std::ops::Range;

const HEADER_BYTES: usize = 64;
const SEGMENT_BYTES: usize = 68;
const SECTION_BYTES: usize = 24;
pub const POSTSCRIPT_BYTES: usize = 40;
/// Kind of the sections that record which other sections were written together.
pub const TIES: [u8; 2] = [6, 0];

/// A section, with those fields of its record that do not follow from its place.
#[derive(Debug, Clone)]
pub struct Section {
    pub bytes: Vec<u8>,
    pub kind: [u8; 2],
    pub codec: [u8; 2],
}

/// A segment: its record in the footer, without the number of sections, and its sections.
#[derive(Debug, Clone)]
pub struct Segment {
    pub record: Vec<u8>,
    pub sections: Vec<Section>,
}

/// All parts of a file.
#[derive(Debug, Clone)]
pub struct Anatomy {
    header: Vec<u8>,
    /// Profile, Unicode version and names.
    pub front: Vec<u8>,
    pub segments: Vec<Segment>,
    pub file_sections: Vec<Section>,
    postscript: Vec<u8>,
}

fn u16_at(bytes: &[u8], at: usize) -> usize {
    usize::from(u16::from_le_bytes([bytes[at], bytes[at + 1]]))
}

fn u32_at(bytes: &[u8], at: usize) -> usize {
    u16_at(bytes, at) | u16_at(bytes, at + 2) << 16
}

fn u64_at(bytes: &[u8], at: usize) -> usize {
    u32_at(bytes, at) | u32_at(bytes, at + 4) << 32
}

/// Returns the start of the footer of a valid file.
pub fn footer_start(file: &[u8]) -> usize {
    u64_at(file, file.len() - POSTSCRIPT_BYTES)
}

impl Anatomy {
    /// Takes a valid file apart.
    pub fn from_file(file: &[u8]) -> Self {
        let (body, postscript) = file.split_at(file.len() - POSTSCRIPT_BYTES);
        let footer = &body[footer_start(file)..];
        let names = 4 + 1 + usize::from(footer[4]);
        let front_len = names + 1 + usize::from(footer[names]);
        let num_segments = u32_at(footer, front_len);
        let num_file_sections = u32_at(footer, front_len + 4);
        let records = &footer[front_len + 8..];
        let mut sections =
            records[num_segments * SEGMENT_BYTES..].chunks(SECTION_BYTES).map(|record| section_of(file, record));
        let segments = records[..num_segments * SEGMENT_BYTES].chunks(SEGMENT_BYTES).map(|r| {
            let record = r[..SEGMENT_BYTES - 2].to_vec();
            let num_sections = u16_at(r, SEGMENT_BYTES - 2);
            Segment { record, sections: sections.by_ref().take(num_sections).collect() }
        });
        let segments = segments.collect();
        let file_sections: Vec<Section> = sections.collect();
        assert_eq!(file_sections.len(), num_file_sections);
        let header = file[..HEADER_BYTES].to_vec();
        let front = footer[..front_len].to_vec();
        Self { header, front, segments, file_sections, postscript: postscript.to_vec() }
    }

    /// Assembles a file from these parts, with valid offsets and checksums. Ties are not changed.
    pub fn assemble(&self) -> Vec<u8> {
        let mut file = self.header.clone();
        let mut section_records = Vec::new();
        let segment_parts = self.segments.iter().flat_map(|segment| &segment.sections);
        for section in segment_parts.chain(&self.file_sections) {
            section_records.extend((file.len() as u64).to_le_bytes());
            section_records.extend((section.bytes.len() as u64).to_le_bytes());
            section_records.extend(crc32c::crc32c(&section.bytes).to_le_bytes());
            section_records.extend(section.kind);
            section_records.extend(section.codec);
            file.extend(&section.bytes);
            file.resize(file.len().next_multiple_of(64), 0);
        }
        let start = file.len();
        file.extend(&self.front);
        file.extend((self.segments.len() as u32).to_le_bytes());
        file.extend((self.file_sections.len() as u32).to_le_bytes());
        for segment in &self.segments {
            file.extend(&segment.record);
            file.extend((segment.sections.len() as u16).to_le_bytes());
        }
        file.extend(section_records);
        let len = file.len() - start;
        file.extend((start as u64).to_le_bytes());
        file.extend((len as u32).to_le_bytes());
        file.extend(&self.postscript[12..]);
        seal_footer(&mut file);
        file
    }

    /// Returns the same parts with matching ties, as a writer that knows ties makes them.
    pub fn tied(mut self) -> Self {
        let mut segment_parts = Vec::new();
        for segment in &mut self.segments {
            retie(&mut segment.sections, &[]);
            segment_parts.extend(segment.sections.iter().filter(|s| s.kind == TIES).flat_map(tie_of));
        }
        retie(&mut self.file_sections, &segment_parts);
        self
    }

    /// Returns all sections in file order.
    pub fn sections_mut(&mut self) -> Vec<&mut Section> {
        let segment_parts = self.segments.iter_mut().flat_map(|segment| &mut segment.sections);
        segment_parts.chain(&mut self.file_sections).collect()
    }
}

/// Makes the ties among `sections` match the other sections, followed by `more`.
fn retie(sections: &mut [Section], more: &[u8]) {
    let tied = sections.iter().filter(|section| section.kind != TIES).flat_map(tie_of);
    let tied: Vec<u8> = tied.chain(more.iter().copied()).collect();
    sections.iter_mut().filter(|s| s.kind == TIES).for_each(|s| s.bytes.clone_from(&tied));
}

/// Returns the entry of a section in the ties.
fn tie_of(section: &Section) -> Vec<u8> {
    let len = (section.bytes.len() as u64).to_le_bytes();
    let crc = crc32c::crc32c(&section.bytes).to_le_bytes();
    [&section.kind[..], &section.codec, &len, &crc].concat()
}

fn section_of(file: &[u8], record: &[u8]) -> Section {
    let offset = u64_at(record, 0);
    let len = u64_at(record, 8);
    Section {
        bytes: file[offset..offset + len].to_vec(),
        kind: [record[20], record[21]],
        codec: [record[22], record[23]],
    }
}

/// Recomputes every checksum and the ties of a file that was changed in place.
///
/// The checksums are those of each section, at the place in its record, of the footer and of the
/// postscript. `parts` are the parts of the unchanged file.
pub fn reseal(file: &mut [u8], parts: &Anatomy) {
    let segment_parts = parts.segments.iter().map(|segment| segment.sections.len());
    let nums_sections: Vec<usize> = segment_parts.chain([parts.file_sections.len()]).collect();
    let len = nums_sections.iter().sum::<usize>() * SECTION_BYTES;
    if let Some(mut at) = (file.len() - POSTSCRIPT_BYTES).checked_sub(len) {
        let mut ties_of_segments = Vec::new();
        for (i, num_sections) in nums_sections.iter().enumerate() {
            let records = at..at + num_sections * SECTION_BYTES;
            at = records.end;
            let mut tied = Vec::new();
            for record in records.step_by(SECTION_BYTES) {
                let kind = [file[record + 20], file[record + 21]];
                if kind == TIES {
                    let file_ties = (i == parts.segments.len()).then_some(&ties_of_segments);
                    tied.extend(file_ties.into_iter().flatten());
                    overwrite_section(file, record, &tied);
                }
                seal_section(file, record);
                let of = if kind == TIES { &mut ties_of_segments } else { &mut tied };
                of.extend(tie_of_record(&file[record..record + SECTION_BYTES]));
            }
        }
    }
    seal_footer(file);
}

/// Returns the range of the section with the record at `record`, if it lies inside the file.
fn range_of(file: &[u8], record: usize) -> Option<Range<usize>> {
    let offset = u64_at(file, record);
    let len = u64_at(file, record + 8);
    let range = offset..offset.checked_add(len)?;
    file.get(range.clone()).is_some().then_some(range)
}

fn overwrite_section(file: &mut [u8], record: usize, bytes: &[u8]) {
    if let Some(range) = range_of(file, record).filter(|range| range.len() == bytes.len()) {
        file[range].copy_from_slice(bytes);
    }
}

fn seal_section(file: &mut [u8], record: usize) {
    if let Some(crc) = range_of(file, record).map(|range| crc32c::crc32c(&file[range])) {
        file[record + 16..record + 20].copy_from_slice(&crc.to_le_bytes());
    }
}

/// Returns the entry in the ties for the section of a record: kind, codec, length and checksum.
fn tie_of_record(record: &[u8]) -> Vec<u8> {
    [&record[20..24], &record[8..16], &record[16..20]].concat()
}

/// Recomputes the checksum of the postscript, and of the footer if it lies inside the file.
fn seal_footer(file: &mut [u8]) {
    let at = file.len() - POSTSCRIPT_BYTES;
    let offset = u64_at(file, at);
    let len = u32_at(file, at + 8);
    let footer = offset.checked_add(len).and_then(|end| file.get(offset..end));
    if let Some(crc) = footer.map(crc32c::crc32c) {
        file[at + 12..at + 16].copy_from_slice(&crc.to_le_bytes());
    }
    let crc = crc32c::crc32c(&file[at..at + 28]);
    file[at + 28..at + 32].copy_from_slice(&crc.to_le_bytes());
}
