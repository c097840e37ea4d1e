//! `tadoc edit`: changes documents of a living corpus, all edits in one commit or none.
//!
//! Edits come from flags and from JSON lines, in the order of the command line. Before the commit,
//! they are tried on the current documents, so that an impossible edit is refused by name. If
//! another commit comes first, they are tried again.
//!
//! Flags are read by hand, because the derive macro of clap does not keep the order between flags of different names.
//! A line of JSON is one object, with `op` and only the fields of that operation.

use std::collections::HashSet;
use std::ffi::{OsStr, OsString};
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};

use clap::error::ErrorKind;
use clap::{Arg, ArgAction, ArgMatches, Args, Command, FromArgMatches, value_parser};
use serde_json::{Map, Value};
use tadoc::build::IngestOptions;
use tadoc::edits::{Edit, EditBatch, EditMode, LivingCorpus};
use tadoc::format::path_text;
use tadoc_documents::Documents;
use tadoc_documents::display::{plain, plural};
use tadoc_session::{Failure, Outcome};
use tadoc_store::{Change, CommitKind, RECOMPRESS_RATIO, Version};

use crate::living::{Living, parse_share};
use crate::output::say;
use crate::taken::TakenPaths;

/// Change documents of a living corpus
///
/// Edits are made in the order of the command line, all of them in one commit or none. ID is the
/// number of a document (SELECT doc_id, path FROM documents('CORPUS')). OFFSET and LENGTH count
/// bytes. A document keeps its number forever, and the number of a dropped document is not used
/// again.
#[derive(Args)]
#[command(after_long_help = EXAMPLES)]
pub struct Arguments {
    /// The corpus: a folder or URL
    #[arg(value_name = "CORPUS")]
    corpus: PathBuf,

    #[command(flatten)]
    flags: Flags,

    /// Text that offsets refer to: in_sequence (the text after the previous edit) or in_batch (the
    /// text before all edits)
    #[arg(long, default_value_t, value_name = "MODE", verbatim_doc_comment)]
    mode: EditMode,

    /// Change nothing if there has been a commit since version N
    #[arg(long, value_name = "N")]
    if_version: Option<u64>,

    /// Only check if the edits can be made
    #[arg(long)]
    dry_run: bool,

    /// Add documents also if their path is in the corpus already
    #[arg(long)]
    duplicate: bool,

    /// Compress the corpus anew once its edits exceed this share of its bytes (and 1 MiB), or once
    /// 64 small files lie side by side; 0 means never
    #[arg(long, default_value_t = RECOMPRESS_RATIO, value_name = "SHARE", value_parser = parse_share)]
    recompress_ratio: f64,

    /// Say nothing unless something fails
    #[arg(short, long)]
    quiet: bool,
}

const EXAMPLES: &str = "\
Examples:
  tadoc edit notes/ --append 7 ' and one more thing'
  tadoc edit notes/ --insert 7:120 'not ' --delete 3:0:5
  tadoc edit notes/ --add todo/friday.md friday.md --replace 7 new.md --drop 3
  tadoc edit notes/ --from edits.jsonl --mode in_batch
  jq -c '…' changes.json | tadoc edit notes/ --from -

JSON lines, one edit each (`file` names a file instead of `text`):
  {\"op\":\"append\",\"doc_id\":7,\"text\":\" and one more thing\"}
  {\"op\":\"insert\",\"doc_id\":7,\"pos\":120,\"text\":\"not \"}
  {\"op\":\"delete\",\"doc_id\":3,\"pos\":0,\"len\":5}
  {\"op\":\"add\",\"path\":\"todo/friday.md\",\"text\":\"buy milk\"}
  {\"op\":\"replace\",\"doc_id\":7,\"file\":\"new.md\"}
  {\"op\":\"drop\",\"doc_id\":3}

Exit status: 0 done, 1 failed and nothing changed, 2 usage, 130 interrupted.";

/// An edit and its source in the arguments.
pub struct Asked {
    /// The edit.
    edit: Edit,
    /// Source of the edit, such as `--drop` or `edits.jsonl: line 3`.
    place: String,
}

/// Runs the command.
pub fn run(arguments: &Arguments) -> Outcome {
    let asked = arguments.flags.edits()?;
    if asked.is_empty() {
        return Err(Failure::usage("no edits; pass --append, --insert, --delete, --add, --replace, --drop or --from"));
    }
    let (edits, places): (Vec<Edit>, Vec<String>) = asked.into_iter().map(|asked| (asked.edit, asked.place)).unzip();
    let batch = EditBatch { mode: arguments.mode, edits };
    let living = Living::open(&arguments.corpus)?;
    let latest = living.version(None)?;
    if arguments.dry_run {
        let version = latest;
        check(&living, arguments, &version, &batch, &places)?;
        if !arguments.quiet {
            let shown = shown(arguments);
            let told = told(&batch);
            say(format_args!("{shown}: version {}: would be made: {told}", version.number))?;
        }
        return Ok(());
    }
    let version = living.update(latest, |latest| {
        check(&living, arguments, latest, &batch, &places)?;
        Ok(Change::edit(CommitKind::Edit, &batch))
    })?;
    // Recompression runs even if nobody reads the output.
    let said = if arguments.quiet { Ok(()) } else { say_committed(arguments, &batch, &version) };
    let ratio = arguments.recompress_ratio;
    let done = living.recompress(&version, ratio, IngestOptions::default());
    said?;
    done.filter(|_| !arguments.quiet).map_or(Ok(()), say)
}

/// Refuses edits that cannot be made on `latest`, or that may not.
fn check(living: &Living, arguments: &Arguments, latest: &Version, batch: &EditBatch, places: &[String]) -> Outcome {
    check_version(living, latest, arguments.if_version)?;
    if !arguments.duplicate {
        check_added(living, &arguments.corpus, latest, &batch.edits, places)?;
    }
    // Edits that only add documents can always be made.
    if batch.edits.iter().all(|edit| edit.doc_id().is_none()) {
        return Ok(());
    }
    try_edits(living.corpus(latest)?, batch, places)
}

/// Refuses to add a document whose path is there already, unless the edits drop the one that has it.
fn check_added(living: &Living, location: &Path, version: &Version, edits: &[Edit], places: &[String]) -> Outcome {
    let added = edits.iter().zip(places).filter_map(|(edit, place)| match edit {
        Edit::AddDocument { path, .. } => Some((path.as_str(), place)),
        _ => None,
    });
    let added: Vec<(&str, &String)> = added.collect();
    if added.is_empty() {
        return Ok(());
    }
    let leaving = edits.iter().filter_map(|edit| match edit {
        Edit::DropDocument { doc_id } => Some(*doc_id),
        _ => None,
    });
    let leaving = leaving.collect();
    let taken = TakenPaths::read(living, location, version, &Documents::Files, &leaving)?;
    let mut seen = HashSet::new();
    for (path, place) in added {
        if taken.has(path) || !seen.insert(path) {
            return Err(Failure::new(format!(
                "{place}: a document {} is there already, and nothing changed; --replace ID FILE gives it other \
                 bytes, and --duplicate adds a second one of this path",
                plain(path)
            )));
        }
    }
    Ok(())
}

fn say_committed(arguments: &Arguments, batch: &EditBatch, version: &Version) -> Outcome {
    let shown = shown(arguments);
    let told = told(batch);
    say(format_args!("{shown}: version {}: {told}", version.number))?;
    added(version, batch).try_for_each(|(doc_id, path)| say(format_args!("document {doc_id} is {path}")))
}

fn shown(arguments: &Arguments) -> std::path::Display<'_> {
    arguments.corpus.display()
}

fn check_version(living: &Living, latest: &Version, expected: Option<u64>) -> Outcome {
    match expected {
        Some(expected) if expected != latest.number => Err(Failure::new(format!(
            "{}: expected version {expected}, it is at version {} ({}); look at it and try again",
            living.store.location(),
            latest.number,
            latest.kind
        ))),
        _ => Ok(()),
    }
}

/// Tries the edits in memory. An error names the first edit that cannot be made.
fn try_edits(corpus: LivingCorpus, batch: &EditBatch, places: &[String]) -> Outcome {
    let try_first = |num_edits: usize| {
        let edits = batch.edits[..num_edits].to_vec();
        corpus.clone().apply(&EditBatch { mode: batch.mode, edits })
    };
    let Err(error) = try_first(batch.edits.len()) else { return Ok(()) };
    let mut num_good = 0;
    let mut num_bad = batch.edits.len();
    while num_good + 1 < num_bad {
        let middle = num_good.midpoint(num_bad);
        match try_first(middle) {
            Ok(_) => num_good = middle,
            Err(_) => num_bad = middle,
        }
    }
    let error = try_first(num_bad).err().unwrap_or(error);
    Err(Failure::from(error).within(&places[num_bad - 1]))
}

/// Formats the number of edits of each kind.
fn told(batch: &EditBatch) -> String {
    const KINDS: [&str; 7] = ["insert", "append", "delete", "add", "drop", "replace", "set"];
    let kind_of = |edit: &Edit| match edit {
        Edit::InsertText { .. } => 0,
        Edit::AppendText { .. } => 1,
        Edit::DeleteText { .. } => 2,
        Edit::AddDocument { .. } => 3,
        Edit::DropDocument { .. } => 4,
        Edit::ReplaceDocument { .. } => 5,
        Edit::SetColumns { .. } => 6,
    };
    let counted = (0..KINDS.len()).filter_map(|kind| {
        let num_edits = batch.edits.iter().filter(|edit| kind_of(edit) == kind).count() as u64;
        (num_edits > 0).then(|| plural(num_edits, KINDS[kind]))
    });
    counted.collect::<Vec<_>>().join(", ")
}

/// Returns the numbers and paths of the added documents.
fn added<'a>(version: &Version, batch: &'a EditBatch) -> impl Iterator<Item = (u64, &'a str)> {
    let paths = batch.edits.iter().filter_map(|edit| match edit {
        Edit::AddDocument { path, .. } => Some(path.as_str()),
        _ => None,
    });
    let paths: Vec<&str> = paths.collect();
    (version.num_doc_ids() - paths.len() as u64..).zip(paths)
}

/// Reads the bytes of a file that an edit names.
fn read(file: &Path) -> Outcome<Vec<u8>> {
    std::fs::read(file).map_err(|error| Failure::with_cause(file.display(), &error))
}

/// A flag: its name, the names of its values, and its help text.
type Kind = (&'static str, &'static [&'static str], &'static str);

const KINDS: [Kind; 7] = [
    ("append", &["ID", "TEXT"], "Put TEXT at the end of document ID"),
    ("insert", &["ID:OFFSET", "TEXT"], "Put TEXT before the byte at OFFSET of document ID"),
    ("delete", &["ID:OFFSET:LENGTH"], "Take LENGTH bytes from OFFSET on out of document ID"),
    ("add", &["PATH", "FILE"], "Add a document of the bytes of FILE, called PATH"),
    ("replace", &["ID", "FILE"], "Give document ID the bytes of FILE"),
    ("drop", &["ID"], "Take document ID away"),
    ("from", &["FILE"], "Make the edits of FILE, one JSON object a line; - is standard input"),
];

/// The edit flags of a command line, in order.
#[derive(Clone, Default)]
pub struct Flags(Vec<Flag>);

#[derive(Clone)]
struct Flag {
    name: &'static str,
    values: Vec<OsString>,
}

impl Flags {
    /// Returns the edits. Reads the files that the flags name.
    ///
    /// # Errors
    /// A number is invalid, or a file cannot be read or holds something else.
    pub fn edits(&self) -> Outcome<Vec<Asked>> {
        let mut edits = Vec::new();
        for flag in &self.0 {
            match flag.name {
                "from" => edits.extend(read_edits(Path::new(&flag.values[0]))?),
                name => {
                    let place = format!("--{name}");
                    let edit = flag.edit().map_err(|failure| failure.within(&place))?;
                    edits.push(Asked { edit, place });
                }
            }
        }
        Ok(edits)
    }
}

impl Flag {
    fn edit(&self) -> Outcome<Edit> {
        let bytes = |idx: usize| self.values[idx].as_encoded_bytes().to_vec();
        let file = |idx: usize| read(Path::new(&self.values[idx]));
        Ok(match self.name {
            "append" => {
                let [doc_id] = numbers(&self.values[0], "ID")?;
                Edit::AppendText { doc_id, text: bytes(1) }
            }
            "insert" => {
                let [doc_id, offset_bytes] = numbers(&self.values[0], "ID:OFFSET")?;
                Edit::InsertText { doc_id, offset_bytes, text: bytes(1) }
            }
            "delete" => {
                let [doc_id, offset_bytes, len_bytes] = numbers(&self.values[0], "ID:OFFSET:LENGTH")?;
                Edit::DeleteText { doc_id, offset_bytes, len_bytes }
            }
            "add" => {
                let path = path_text(self.values[0].as_encoded_bytes()).into_owned();
                Edit::AddDocument { path, content: file(1)? }
            }
            "replace" => {
                let [doc_id] = numbers(&self.values[0], "ID")?;
                Edit::ReplaceDocument { doc_id, content: file(1)? }
            }
            _ => {
                let [doc_id] = numbers(&self.values[0], "ID")?;
                Edit::DropDocument { doc_id }
            }
        })
    }
}

/// Parses `value` as `N` numbers separated by colons.
fn numbers<const N: usize>(value: &OsStr, expected: &str) -> Outcome<[u64; N]> {
    let text = value.to_string_lossy();
    let numbers: Option<Vec<u64>> = text.split(':').map(|number| number.parse().ok()).collect();
    numbers
        .and_then(|numbers| numbers.try_into().ok())
        .ok_or_else(|| Failure::usage(format!("expected {expected}, whole numbers, got `{text}`")))
}

impl Args for Flags {
    fn augment_args(command: Command) -> Command {
        KINDS.iter().fold(command, |command, &(name, values, help)| {
            let arg = Arg::new(name).long(name).help(help).action(ArgAction::Append);
            let arg = arg.num_args(values.len()).value_names(values);
            // The text of a value may begin with a hyphen.
            command.arg(arg.value_parser(value_parser!(OsString)).allow_hyphen_values(true))
        })
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl FromArgMatches for Flags {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let mut flags = Self::default();
        flags.update_from_arg_matches(matches)?;
        Ok(flags)
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        let mut placed = Vec::new();
        for (name, values, _) in KINDS {
            let Some(occurrences) = matches.get_occurrences::<OsString>(name) else { continue };
            let places = matches.indices_of(name).into_iter().flatten().step_by(values.len());
            for (place, values) in places.zip(occurrences) {
                placed.push((place, Flag { name, values: values.cloned().collect() }));
            }
        }
        placed.sort_by_key(|(place, _)| *place);
        if placed.iter().filter(|(_, flag)| flag.name == "from" && flag.values[0] == "-").count() > 1 {
            let text = "standard input can be read once\n";
            return Err(clap::Error::raw(ErrorKind::ArgumentConflict, text));
        }
        self.0 = placed.into_iter().map(|(_, flag)| flag).collect();
        Ok(())
    }
}

/// Names of the operations and their fields. `file` may stand instead of `text`.
const OPERATIONS: [(&str, &[&str]); 6] = [
    ("append", &["doc_id", "text"]),
    ("insert", &["doc_id", "pos", "text"]),
    ("delete", &["doc_id", "pos", "len"]),
    ("add", &["path", "text"]),
    ("replace", &["doc_id", "text"]),
    ("drop", &["doc_id"]),
];

/// Reads the edits of a file; `-` is standard input.
///
/// # Errors
/// The file cannot be read, or a line is not a valid edit. The text names the line and the field.
pub fn read_edits(path: &Path) -> Outcome<Vec<Asked>> {
    let is_stdin = path.as_os_str() == "-";
    let name = if is_stdin { "standard input".to_owned() } else { path.display().to_string() };
    let failed = |error: std::io::Error| Failure::with_cause(&name, &error);
    let reader: Box<dyn BufRead> = if is_stdin {
        Box::new(std::io::stdin().lock())
    } else {
        Box::new(BufReader::new(std::fs::File::open(path).map_err(failed)?))
    };
    let mut edits = Vec::new();
    for (line_idx, line) in reader.split(b'\n').enumerate() {
        let line = line.map_err(failed)?;
        let line = match line_idx {
            0 => line.strip_prefix(b"\xef\xbb\xbf").unwrap_or(&line),
            _ => &line,
        };
        if line.trim_ascii().is_empty() {
            continue;
        }
        let place = format!("{name}: line {}", line_idx + 1);
        let edit = edit_of(line).map_err(|failure| failure.within(&place))?;
        edits.push(Asked { edit, place });
    }
    Ok(edits)
}

fn edit_of(line: &[u8]) -> Outcome<Edit> {
    let value: Value = serde_json::from_slice(line).map_err(|error| {
        // The parser's line number counts lines inside this line, so it is cut off.
        let text = error.to_string();
        let text = text.split(" at line").next().unwrap_or_default().to_owned();
        Failure::new(format!("column {}: no JSON: {text}", error.column()))
    })?;
    let Value::Object(members) = value else {
        return Err(Failure::new("expected a JSON object such as {\"op\":\"drop\",\"doc_id\":7}"));
    };
    let fields = Fields { members };
    let operation = fields.text("op")?;
    let Some((_, names)) = OPERATIONS.iter().find(|(name, _)| *name == operation) else {
        let names = OPERATIONS.map(|(name, _)| name).join(", ");
        return Err(Failure::new(format!("field `op`: expected {names}, got \"{operation}\"")));
    };
    fields.refuse_others(names)?;
    Ok(match operation {
        "append" => Edit::AppendText { doc_id: fields.number("doc_id")?, text: fields.content()? },
        "insert" => Edit::InsertText {
            doc_id: fields.number("doc_id")?,
            offset_bytes: fields.number("pos")?,
            text: fields.content()?,
        },
        "delete" => Edit::DeleteText {
            doc_id: fields.number("doc_id")?,
            offset_bytes: fields.number("pos")?,
            len_bytes: fields.number("len")?,
        },
        "add" => Edit::AddDocument { path: fields.text("path")?.to_owned(), content: fields.content()? },
        "replace" => Edit::ReplaceDocument { doc_id: fields.number("doc_id")?, content: fields.content()? },
        _ => Edit::DropDocument { doc_id: fields.number("doc_id")? },
    })
}

/// The members of one object.
struct Fields {
    members: Map<String, Value>,
}

impl Fields {
    fn get(&self, name: &str, expected: &str) -> Outcome<&Value> {
        let missing = || Failure::new(format!("field `{name}`: expected {expected}, it is missing"));
        self.members.get(name).ok_or_else(missing)
    }

    fn text(&self, name: &str) -> Outcome<&str> {
        let value = self.get(name, "a text")?;
        value.as_str().ok_or_else(|| misfit(name, "a text", value))
    }

    fn number(&self, name: &str) -> Outcome<u64> {
        let expected = "a whole number, 0 or more";
        let value = self.get(name, expected)?;
        value.as_u64().ok_or_else(|| misfit(name, expected, value))
    }

    /// Returns the bytes of `text`, or of the file that `file` names.
    fn content(&self) -> Outcome<Vec<u8>> {
        match (self.members.contains_key("file"), self.members.contains_key("text")) {
            (true, true) => Err(Failure::new("field `file`: expected it or `text`, got both")),
            (true, false) => read(Path::new(self.text("file")?)),
            (false, _) => Ok(self.text("text")?.as_bytes().to_vec()),
        }
    }

    fn refuse_others(&self, names: &[&str]) -> Outcome {
        let has_content = names.contains(&"text");
        let is_known = |name: &str| name == "op" || names.contains(&name) || has_content && name == "file";
        match self.members.keys().find(|name| !is_known(name)) {
            Some(other) => {
                let names = names.join(", ");
                Err(Failure::new(format!("field `{other}`: expected op, {names}")))
            }
            None => Ok(()),
        }
    }
}

fn misfit(name: &str, expected: &str, got: &Value) -> Failure {
    Failure::new(format!("field `{name}`: expected {expected}, got {got}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(arguments: &[&str]) -> Result<Flags, clap::Error> {
        let command = Flags::augment_args(Command::new("edit")).no_binary_name(true);
        Flags::from_arg_matches(&command.try_get_matches_from(arguments)?)
    }

    #[test]
    fn the_order_of_the_command_line_is_kept() {
        let flags = "--drop 3 --append 1 -x --insert 1:2 y --drop 4 --append 2 --z --delete 1:2:3";
        let arguments: Vec<&str> = flags.split(' ').collect();
        let edits = parsed(&arguments).unwrap().edits().unwrap();
        let edits: Vec<Edit> = edits.into_iter().map(|asked| asked.edit).collect();
        assert_eq!(
            edits,
            [
                Edit::DropDocument { doc_id: 3 },
                Edit::AppendText { doc_id: 1, text: b"-x".to_vec() },
                Edit::InsertText { doc_id: 1, offset_bytes: 2, text: b"y".to_vec() },
                Edit::DropDocument { doc_id: 4 },
                Edit::AppendText { doc_id: 2, text: b"--z".to_vec() },
                Edit::DeleteText { doc_id: 1, offset_bytes: 2, len_bytes: 3 },
            ]
        );
    }

    #[test]
    fn what_is_no_edit_is_refused() {
        for wrong in ["--drop", "--append 1", "--from - --from -"] {
            let arguments: Vec<&str> = wrong.split(' ').collect();
            assert!(parsed(&arguments).is_err(), "{wrong}");
        }
        for wrong in ["--drop x", "--insert 1 y", "--delete 1:2", "--drop -1", "--add a no/such"] {
            let arguments: Vec<&str> = wrong.split(' ').collect();
            assert!(parsed(&arguments).unwrap().edits().is_err(), "{wrong}");
        }
    }

    #[test]
    fn each_operation_is_read() {
        let lines = [
            r#"{"op":"append","doc_id":7,"text":"a\n"}"#,
            r#"{"op":"insert","doc_id":7,"pos":120,"text":"é"}"#,
            r#"{"op":"delete","doc_id":3,"pos":0,"len":5}"#,
            r#"{"op":"add","path":"p","text":""}"#,
            r#"{"op":"replace","doc_id":18446744073709551615,"text":"x"}"#,
            r#" {"doc_id":3,"op":"drop"} "#,
        ];
        let edits: Vec<Edit> = lines.iter().map(|line| edit_of(line.as_bytes()).unwrap()).collect();
        assert_eq!(edits[0], Edit::AppendText { doc_id: 7, text: b"a\n".to_vec() });
        let insert = Edit::InsertText { doc_id: 7, offset_bytes: 120, text: "é".into() };
        assert_eq!(edits[1], insert);
        assert_eq!(edits[2], Edit::DeleteText { doc_id: 3, offset_bytes: 0, len_bytes: 5 });
        assert_eq!(edits[3], Edit::AddDocument { path: "p".into(), content: Vec::new() });
        let replace = Edit::ReplaceDocument { doc_id: u64::MAX, content: b"x".to_vec() };
        assert_eq!(edits[4], replace);
        assert_eq!(edits[5], Edit::DropDocument { doc_id: 3 });
    }

    #[test]
    fn what_is_no_edit_names_the_field() {
        for (line, expected) in [
            (r#"{"op":"drop""#, "column 12: no JSON: "),
            (r#"[1]"#, "expected a JSON object such as"),
            (r#"{"doc_id":7}"#, "field `op`: expected a text, it is missing"),
            (r#"{"op":"cut","doc_id":7}"#, "field `op`: expected append, insert, "),
            (r#"{"op":"drop"}"#, "field `doc_id`: expected a whole number, 0 or more, it is missing"),
            (r#"{"op":"drop","doc_id":-1}"#, "field `doc_id`: expected a whole number, 0 or more, got -1"),
            (r#"{"op":"drop","doc_id":1.5}"#, "field `doc_id`: expected a whole number"),
            (r#"{"op":"drop","doc_id":1,"pos":2}"#, "field `pos`: expected op, doc_id"),
            (r#"{"op":"append","doc_id":1}"#, "field `text`: expected a text, it is missing"),
            (r#"{"op":"append","doc_id":1,"text":2}"#, "field `text`: expected a text, got 2"),
            (r#"{"op":"append","doc_id":1,"text":"","file":""}"#, "field `file`: expected it or"),
            (r#"{"op":"append","doc_id":1,"file":"no/such"}"#, "no/such: "),
        ] {
            let text = edit_of(line.as_bytes()).unwrap_err().into_text();
            assert!(text.starts_with(expected), "{line}: {text}");
        }
    }
}
