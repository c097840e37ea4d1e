//! `tadoc info`: contents of corpora, read from footers, and for a living corpus from its version.

use std::fmt::Write as _;
use std::io::{self, Write};
use std::path::PathBuf;

use clap::Args;
use datafusion_tadoc::mask_secrets;
use tadoc::format::{FileFooter, SectionMeta, SegmentLayout, SegmentMeta};
use tadoc_documents::display::{bytes, grouped, percent, plain, plural, time};
use tadoc_session::{BlockingResolver, Corpora, CorpusFile, Outcome};
use tadoc_store::{OptimizeOptions, Part, Version};

use crate::living::Living;

/// Show what a corpus holds
///
/// Reads only the footer, so it is instant for corpora of any size. G/N is the number of elements
/// of the grammar per token of the text. It measures how much the text repeats itself: 1 means no
/// repetition.
#[derive(Args)]
#[command(disable_version_flag = true)]
pub struct Arguments {
    /// The corpus: a file, a living corpus, or a folder or glob of files; a path or URL
    #[arg(value_name = "CORPUS")]
    corpus: PathBuf,

    /// Write JSON instead: one object per line and file
    #[arg(long)]
    json: bool,

    /// For a living corpus: show this version instead of the latest
    #[arg(long, value_name = "N")]
    version: Option<u64>,
}

/// Runs the command.
pub fn run(arguments: &Arguments) -> Outcome {
    let resolver = BlockingResolver::new()?;
    let files = match resolver.corpora(&arguments.corpus, arguments.version)? {
        Corpora::Living(store) => return run_living(&Living { store, resolver }, arguments),
        Corpora::Files(files) => files,
    };
    let mut out = io::stdout().lock();
    for (file_idx, stored) in files.into_iter().enumerate() {
        let file = stored.open()?;
        let facts = facts(&file);
        if file_idx > 0 && !arguments.json {
            writeln!(out)?;
        }
        let text = if arguments.json { as_json(&file, &facts) } else { as_table(&file, &facts) };
        out.write_all(text.as_bytes())?;
    }
    Ok(())
}

/// One fact about a corpus: a key, its value for people and its value for programs.
struct Fact {
    key: &'static str,
    shown: String,
    json: String,
}

impl Fact {
    fn text(key: &'static str, value: &str) -> Self {
        let value = mask_secrets(value);
        Self { key, shown: plain(&value).into_owned(), json: json_string(&value) }
    }

    fn count(key: &'static str, count: u64) -> Self {
        Self { key, shown: grouped(count), json: count.to_string() }
    }

    fn size(key: &'static str, len_bytes: u64, remark: &str) -> Self {
        let shown = match len_bytes {
            0..1000 => bytes(len_bytes),
            _ => format!("{} ({} bytes)", bytes(len_bytes), grouped(len_bytes)),
        };
        Self { key, shown: format!("{shown}{remark}"), json: len_bytes.to_string() }
    }

    fn fraction(key: &'static str, part: u64, whole: u64) -> Self {
        let (shown, json) = match whole {
            0 => ("-".to_owned(), "null".to_owned()),
            _ => {
                let fraction = part as f64 / whole as f64;
                (format!("{fraction:.3}"), format!("{fraction:.6}"))
            }
        };
        Self { key, shown, json }
    }
}

fn facts(file: &CorpusFile) -> Vec<Fact> {
    let footer = &file.footer;
    let sum = |of: fn(&SegmentMeta) -> u64| footer.segments.iter().map(of).sum();
    let (major, minor, micro) = footer.unicode_version;
    let ratio = format!(", {} of the text", percent(file.len_bytes, footer.len_bytes()));
    vec![
        Fact::text("file", &file.name),
        Fact::size("file_bytes", file.len_bytes, &ratio),
        Fact::count("documents", footer.num_docs()),
        Fact::size("text_bytes", footer.len_bytes(), ""),
        Fact::count("words", footer.num_word_tokens()),
        Fact::count("tokens_n", footer.num_tokens()),
        Fact::count("elements_g", footer.num_elements()),
        Fact::fraction("g_over_n", footer.num_elements(), footer.num_tokens()),
        Fact::count("rules", sum(|segment| u64::from(segment.num_rules))),
        Fact::count("segments", footer.segments.len() as u64),
        Fact::size("columns_bytes", footer.columns.as_ref().map_or(0, |section| section.len), ""),
        Fact::text("tokenizer", &footer.profile.to_string()),
        Fact::text("unicode_version", &format!("{major}.{minor}.{micro}")),
        Fact::text("builder", &footer.builder),
        Fact::text("layout", layout_of(std::slice::from_ref(footer))),
        Fact::text("writer", &footer.writer),
    ]
}

/// Returns the name of the layout of all segments, `mixed` if they differ.
fn layout_of(footers: &[FileFooter]) -> &'static str {
    let segments = footers.iter().flat_map(|footer| &footer.segments);
    match segments.clone().next() {
        Some(_) => one_or_mixed(segments.map(|segment| segment.layout().as_str())),
        None => SegmentLayout::default().as_str(),
    }
}

/// Returns the value that all `values` have, `mixed` if they differ. Without values it is empty.
fn one_or_mixed(mut values: impl Iterator<Item = &'static str>) -> &'static str {
    let first = values.next().unwrap_or_default();
    if values.all(|value| value == first) { first } else { "mixed" }
}

/// Formats facts as text, one line per fact.
fn lines_of(facts: &[Fact]) -> String {
    let mut text = String::new();
    for Fact { key, shown, .. } in facts {
        // Writing to a string cannot fail.
        let _ = writeln!(text, "{:<16} {shown}", key.replace('_', " "));
    }
    text
}

/// Formats each fact as `"key":value`.
fn members_of(facts: &[Fact]) -> Vec<String> {
    facts.iter().map(|fact| format!("{}:{}", json_string(fact.key), fact.json)).collect()
}

fn as_table(file: &CorpusFile, facts: &[Fact]) -> String {
    let mut text = lines_of(facts);
    for (segment_idx, segment) in file.footer.segments.iter().enumerate() {
        let _ = writeln!(
            text,
            "segment {segment_idx:<8} {} documents, {} of text, {} words in the dictionary, {} rules",
            grouped(segment.num_docs),
            bytes(segment.len_bytes),
            grouped(segment.num_words.into()),
            grouped(segment.num_rules.into()),
        );
        for section in &segment.sections {
            let share = percent(section.len, file.len_bytes);
            let _ = writeln!(text, "  {:<16} {} ({share} of the file)", section.kind.name(), bytes(section.len));
        }
    }
    text
}

fn as_json(file: &CorpusFile, facts: &[Fact]) -> String {
    let mut parts = members_of(facts);
    let segments: Vec<String> = file.footer.segments.iter().map(segment_json).collect();
    parts.push(format!("\"segment_list\":[{}]", segments.join(",")));
    format!("{{{}}}\n", parts.join(","))
}

fn segment_json(segment: &SegmentMeta) -> String {
    let sections: Vec<String> = segment.sections.iter().map(section_json).collect();
    format!(
        "{{\"documents\":{},\"continues\":{},\"text_bytes\":{},\"tokens_n\":{},\"elements_g\":{},\
         \"distinct_words\":{},\"distinct_separators\":{},\"rules\":{},\"sections\":[{}]}}",
        segment.num_docs,
        segment.continues,
        segment.len_bytes,
        segment.num_tokens,
        segment.num_elements,
        segment.num_words,
        segment.num_separators,
        segment.num_rules,
        sections.join(",")
    )
}

fn section_json(section: &SectionMeta) -> String {
    let kind = json_string(section.kind.name());
    let offset = section.offset;
    let len = section.len;
    format!("{{\"kind\":{kind},\"offset\":{offset},\"bytes\":{len}}}")
}

/// Returns `text` as a JSON string.
pub fn json_string(text: &str) -> String {
    let mut quoted = String::from('"');
    for c in text.chars() {
        match c {
            '"' => quoted.push_str("\\\""),
            '\\' => quoted.push_str("\\\\"),
            c if c.is_control() => {
                let _ = write!(quoted, "\\u{:04x}", u32::from(c));
            }
            c => quoted.push(c),
        }
    }
    quoted.push('"');
    quoted
}

/// Runs the command for a living corpus.
pub fn run_living(living: &Living, arguments: &Arguments) -> Outcome {
    let version = living.version(arguments.version)?;
    let mut facts = facts_of_version(living, &version)?;
    if let Some(footers) = footers(living, arguments, &version) {
        let text_bytes = footers.iter().map(FileFooter::len_bytes).sum();
        facts.push(Fact::size("text_bytes", text_bytes, " in the files, before the edits"));
        facts.push(Fact::text("layout", layout_of(&footers)));
    }
    let text = if arguments.json { version_as_json(&version, &facts) } else { version_as_table(&version, &facts) };
    io::stdout().lock().write_all(text.as_bytes())?;
    Ok(())
}

fn facts_of_version(living: &Living, version: &Version) -> Outcome<Vec<Fact>> {
    let num_docs = living.wait(living.store.num_docs(version))?;
    let options = OptimizeOptions::default();
    let plan = living.wait(living.store.optimize_plan(version, &options))?;
    Ok(vec![
        Fact::text("corpus", &living.store.location()),
        Fact::count("version", version.number),
        Fact::text("committed", &time(version.time_us)),
        Fact::text("kind", version.kind.as_str()),
        Fact::text("commit_id", &version.commit_id.to_string()),
        Fact::count("documents", num_docs),
        Fact::count("dropped", version.num_doc_ids() - num_docs),
        Fact::count("parts", version.parts.len() as u64),
        Fact::size("file_bytes", plan.file_bytes, ""),
        Fact::count("edits", plan.num_edits()),
        Fact::size("edit_bytes", plan.edit_bytes, ""),
        Fact::text("tokenizer", &version.profile.to_string()),
        Fact::text("writer", &version.writer),
    ])
}

/// Returns the footers of the files, or `None` if a file cannot be read.
fn footers(living: &Living, arguments: &Arguments, version: &Version) -> Option<Vec<FileFooter>> {
    let files = version.parts.iter().map(|part| living.resolver.part(&arguments.corpus, part));
    let files: Vec<_> = files.collect::<Result<_, _>>().ok()?;
    Some(files.into_iter().flatten().map(|file| file.footer).collect())
}

fn version_as_table(version: &Version, facts: &[Fact]) -> String {
    let mut text = lines_of(facts);
    for (part_idx, part) in version.parts.iter().enumerate() {
        let documents = plural(part.num_docs(), "document");
        text += &match part {
            Part::File { len_bytes, .. } => {
                let name = part.file_name().unwrap_or_default();
                format!("part {part_idx:<11} {documents}, {}, {name}\n", bytes(*len_bytes))
            }
            Part::Edits { version, .. } => {
                format!("part {part_idx:<11} {documents}, added by the edits of version {version}\n")
            }
        };
    }
    text
}

fn version_as_json(version: &Version, facts: &[Fact]) -> String {
    let parts: Vec<String> = version.parts.iter().map(part_json).collect();
    let mut members = members_of(facts);
    members.push(format!("\"part_list\":[{}]", parts.join(",")));
    format!("{{{}}}\n", members.join(","))
}

fn part_json(part: &Part) -> String {
    let documents = part.num_docs();
    match part {
        Part::File { len_bytes, .. } => {
            let name = json_string(&part.file_name().unwrap_or_default());
            format!("{{\"documents\":{documents},\"file\":{name},\"bytes\":{len_bytes}}}")
        }
        Part::Edits { version, .. } => {
            format!("{{\"documents\":{documents},\"edits_of_version\":{version}}}")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strings_are_escaped() {
        assert_eq!(json_string("a\"b\\c\nd"), r#""a\"b\\c\u000ad""#);
    }
}
