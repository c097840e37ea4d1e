//! Contents of a living corpus, read from its version and the footers of its files.

use std::io::{self, Write};

use tadoc_store::{OptimizeOptions, Part, Version};

use super::{Arguments, Fact, json_string, lines_of, members_of};
use crate::display::{bytes, plural, time};
use crate::failure::Outcome;
use crate::living::Living;

/// Runs the command for a living corpus.
pub fn run(living: &Living, arguments: &Arguments) -> Outcome {
    let version = living.version(arguments.version)?;
    let mut facts = facts(living, &version)?;
    if let Some(text_bytes) = text_bytes(living, arguments, &version) {
        facts.push(Fact::size("text_bytes", text_bytes, " in the files, before the edits"));
    }
    let text = match arguments.json {
        true => as_json(&version, &facts),
        false => as_table(&version, &facts),
    };
    io::stdout().lock().write_all(text.as_bytes())?;
    Ok(())
}

fn facts(living: &Living, version: &Version) -> Outcome<Vec<Fact>> {
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

/// Returns the number of bytes of text in the files, or `None` if a file cannot be read.
fn text_bytes(living: &Living, arguments: &Arguments, version: &Version) -> Option<u64> {
    let mut text_bytes = 0u64;
    for part in &version.parts {
        let file = living.resolver.part(&arguments.corpus, part).ok()?;
        text_bytes += file.map_or(0, |file| file.footer.len_bytes());
    }
    Some(text_bytes)
}

fn as_table(version: &Version, facts: &[Fact]) -> String {
    let mut text = lines_of(facts);
    for (part_idx, part) in version.parts.iter().enumerate() {
        let documents = plural(part.num_docs(), "document");
        text += &match part {
            Part::File { len_bytes, .. } => {
                let name = part.file_name().unwrap_or_default();
                format!("part {part_idx:<11} {documents}, {}, {name}\n", bytes(*len_bytes))
            }
            Part::Edits { version, .. } => {
                format!(
                    "part {part_idx:<11} {documents}, added by the edits of version {version}\n"
                )
            }
        };
    }
    text
}

fn as_json(version: &Version, facts: &[Fact]) -> String {
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
