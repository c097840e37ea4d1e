//! The flags of edits, in the order of the command line. The derive macro of clap does not keep the
//! order between flags of different names.

use std::ffi::{OsStr, OsString};
use std::path::Path;

use clap::error::ErrorKind;
use clap::{Arg, ArgAction, ArgMatches, Args, Command, FromArgMatches, value_parser};
use tadoc::edits::Edit;
use tadoc::format::path_text;
use tadoc_session::{Failure, Outcome};

use super::{Asked, lines, read};

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
                "from" => edits.extend(lines::read_edits(Path::new(&flag.values[0]))?),
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
                let [doc_id, offset_bytes, len_bytes] =
                    numbers(&self.values[0], "ID:OFFSET:LENGTH")?;
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
        if placed.iter().filter(|(_, flag)| flag.name == "from" && flag.values[0] == "-").count()
            > 1
        {
            let text = "standard input can be read once\n";
            return Err(clap::Error::raw(ErrorKind::ArgumentConflict, text));
        }
        self.0 = placed.into_iter().map(|(_, flag)| flag).collect();
        Ok(())
    }
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
}
