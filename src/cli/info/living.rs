//! Contents of a living corpus, read from its version and the footers of its files.

use std::io::{self, Write};

use tadoc::format::FileFooter;
use tadoc::grammar::Effort;
use tadoc_documents::display::{bytes, plural, time};
use tadoc_session::Outcome;
use tadoc_store::{OptimizeOptions, Part, Version};

use super::{Arguments, Fact, json_string, layout_of, lines_of, members_of, one_or_mixed};
use crate::living::Living;

/// Runs the command for a living corpus.
pub fn run(living: &Living, arguments: &Arguments) -> Outcome {
    let version = living.version(arguments.version)?;
    let mut facts = facts(living, &version)?;
    if let Some(footers) = footers(living, arguments, &version) {
        let text_bytes = footers.iter().map(FileFooter::len_bytes).sum();
        let efforts = footers.iter().map(|footer| footer.effort().map_or("", Effort::as_str));
        facts.push(Fact::size("text_bytes", text_bytes, " in the files, before the edits"));
        facts.push(Fact::text("effort", one_or_mixed(efforts)));
        facts.push(Fact::text("layout", layout_of(&footers)));
    }
    let text = if arguments.json { as_json(&version, &facts) } else { as_table(&version, &facts) };
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

/// Returns the footers of the files, or `None` if a file cannot be read.
fn footers(living: &Living, arguments: &Arguments, version: &Version) -> Option<Vec<FileFooter>> {
    let files = version.parts.iter().map(|part| living.resolver.part(&arguments.corpus, part));
    let files: Vec<_> = files.collect::<Result<_, _>>().ok()?;
    Some(files.into_iter().flatten().map(|file| file.footer).collect())
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
