//! Hard links of tar archives: members with the text of an earlier one.
//!
//! ```text
//! │ a.txt │ … │ b.txt: a hard link to a.txt │      first pass: a document a.txt, and something leads to it
//!   └─── temporary file ─▶ document b.txt          second pass
//! ```
//!
//! A link has the name of the member and none of its bytes, and an archive is a stream, in which only the link says
//! that the member is needed again. So an archive with links is read a second time, and the members that links lead to
//! are kept in one temporary file. Links are left out and counted if the archive cannot be read again, as a pipe or a
//! member of another archive, or is damaged, and if no such member stands before them, or a sparse one.
//! Source: POSIX.1-2017, pax, "ustar Interchange Format", `linkname`.

use std::collections::{HashMap, HashSet};
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};

use tadoc::format::path_text;
use tar::{Archive, Entry};

use super::tar_members::{BoundedHeaders, SparseMember};
use super::{Archives, Kind, Visit, damaged};
use crate::failure::Outcome;
use crate::inputs::{Input, Source, since_1970};
use crate::open::{Budget, open_member};

/// Hard links of an archive.
#[derive(Default)]
pub(super) struct HardLinks {
    /// Names of the members to which they lead.
    targets: HashSet<Vec<u8>>,
    num_links: u64,
}

impl HardLinks {
    /// Adds the link that `entry` is.
    pub(super) fn add(&mut self, entry: &Entry<'_, impl Read>) {
        self.num_links += 1;
        self.targets.extend(target_of(entry));
    }
}

/// Returns the name of the member to which a link leads.
fn target_of(entry: &Entry<'_, impl Read>) -> Option<Vec<u8>> {
    entry.link_name_bytes().map(|name| plain(&name).to_vec())
}

/// Returns a name without a `./`, which may stand before that of a member or of a link to it.
fn plain(name: &[u8]) -> &[u8] {
    name.strip_prefix(b"./").unwrap_or(name)
}

/// Members of an archive, in a temporary file.
struct Kept {
    file: File,
    end: u64,
    /// Offset and number of bytes of each member.
    places: HashMap<Vec<u8>, (u64, u64)>,
}

impl Kept {
    fn keep(&mut self, name: Vec<u8>, bytes: &mut impl Read) -> io::Result<()> {
        self.file.seek(SeekFrom::Start(self.end))?;
        let len_bytes = io::copy(bytes, &mut self.file)?;
        self.places.insert(name, (self.end, len_bytes));
        self.end += len_bytes;
        Ok(())
    }

    fn bytes(&self, (at, len_bytes): (u64, u64)) -> io::Result<impl Read> {
        let mut file = &self.file;
        file.seek(SeekFrom::Start(at))?;
        Ok(file.take(len_bytes))
    }
}

impl Archives<'_> {
    /// Visits the hard links of the tar archive `input`, which was read to its end.
    pub(super) fn hard_links(
        &mut self,
        links: &HardLinks,
        input: &Input,
        depth: u32,
        budget: &Budget,
        visit: &mut Visit<'_>,
    ) -> Outcome {
        if links.num_links == 0 {
            return Ok(());
        }
        if depth > 0 || !can_be_read_again(input) || budget.faults.is_latest(input) {
            self.num_unread_links += links.num_links;
            return Ok(());
        }
        let opened = budget.open_again(input)?;
        let again = opened.budget.clone();
        let codec = opened.codec;
        let failed = |error: io::Error| match codec {
            Some(_) => again.failed(codec, input, &error),
            None => damaged(&again.faults, input, Kind::Tar, &error),
        };
        let mut archive = Archive::new(BoundedHeaders::new(opened.reader));
        let file = tempfile::tempfile().map_err(failed)?;
        let mut kept = Kept { file, end: 0, places: HashMap::new() };
        for entry in archive.entries().map_err(failed)? {
            let mut entry = entry.map_err(failed)?;
            let kind = entry.header().entry_type();
            let name = plain(&entry.path_bytes()).to_vec();
            if kind.is_hard_link() {
                let place = target_of(&entry).and_then(|target| kept.places.get(&target).copied());
                let Some(place) = place else {
                    self.num_unread_links += 1;
                    continue;
                };
                let changed = entry.header().mtime().ok().and_then(since_1970);
                if let Some(member) = self.member(input, &path_text(&name), place.1, changed, budget)? {
                    let bytes = kept.bytes(place).map_err(failed)?;
                    let outcome = open_member(&member, Box::new(bytes), true, budget)
                        .and_then(|opened| self.visit_below(opened, &member, depth + 1, visit));
                    budget.faults.pass(&member, outcome)?;
                }
                kept.places.insert(name, place);
            } else if (kind.is_file() || kind.is_contiguous()) && links.targets.contains(&name) {
                let is_sparse = match entry.pax_extensions().map_err(failed)? {
                    Some(extensions) => SparseMember::from_pax(extensions).map_err(failed)?.is_some(),
                    None => false,
                };
                if is_sparse {
                    continue;
                }
                kept.keep(name, &mut entry).map_err(failed)?;
            }
        }
        Ok(())
    }
}

fn can_be_read_again(input: &Input) -> bool {
    match &input.source {
        Source::File(path) => path.is_file(),
        Source::Stored(_) | Source::Text { .. } => true,
        Source::Stdin | Source::Member(_) => false,
    }
}
