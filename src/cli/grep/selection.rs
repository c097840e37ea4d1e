//! The documents that are searched, by path: globs and types of files, as ripgrep reads them.
//!
//! ```text
//! src/a/b.py     src      src/a     src/a/b.py      a glob that excludes a folder excludes all below it
//!                folder   folder    file            a glob counts more than a type
//! ```
//!
//! Globs are those of `.gitignore`, below the root of the corpus. The last one that matches counts. As soon as one
//! glob includes, documents that none includes are left out. Cost: O(globs and length) for each path.

use std::path::Path;

use clap::builder::ArgAction;
use clap::{Arg, ArgMatches, Args, Command, FromArgMatches};
use ignore::overrides::{Override, OverrideBuilder};
use ignore::types::{FileTypeDef, Types, TypesBuilder};
use tadoc_session::{Failure, Outcome};

/// Heading of these options in the help.
const HEADING: &str = "Documents";
/// Longest glob in bytes. The library panics where the regular expression of a glob is too large.
const MAX_GLOB_BYTES: usize = 4096;

/// A type that is chosen, or left out.
#[derive(Debug, Clone)]
struct TypeChange {
    name: String,
    is_negated: bool,
}

/// The options that choose documents.
#[derive(Debug, Clone, Default)]
pub struct PathFilters {
    globs: Vec<String>,
    any_case_globs: Vec<String>,
    types: Vec<TypeChange>,
}

impl PathFilters {
    /// Compiles the options. Returns `None` if they choose all documents.
    ///
    /// # Errors
    /// A glob cannot be parsed, or a type is not known.
    pub fn selection(&self) -> Outcome<Option<Selection>> {
        let is_empty = self.globs.is_empty() && self.any_case_globs.is_empty() && self.types.is_empty();
        if is_empty { Ok(None) } else { Ok(Some(Selection { globs: self.globs()?, types: self.types()? })) }
    }

    fn globs(&self) -> Outcome<Override> {
        let mut builder = OverrideBuilder::new("");
        for glob in &self.globs {
            add_glob(&mut builder, glob)?;
        }
        // It holds for the globs that follow.
        builder.case_insensitive(true).map_err(glob_failure)?;
        for glob in &self.any_case_globs {
            add_glob(&mut builder, glob)?;
        }
        builder.build().map_err(glob_failure)
    }

    fn types(&self) -> Outcome<Types> {
        let mut builder = known_types();
        for change in &self.types {
            if change.is_negated {
                builder.negate(&change.name);
            } else {
                builder.select(&change.name);
            }
        }
        builder.build().map_err(|error| Failure::usage(format!("{error}; `tadoc grep --type-list` has all types")))
    }
}

fn add_glob(builder: &mut OverrideBuilder, glob: &str) -> Outcome {
    if glob.len() > MAX_GLOB_BYTES {
        let len = glob.len();
        return Err(Failure::usage(format!(
            "a glob of {len} bytes is too long: expected at most {MAX_GLOB_BYTES}; give several of them"
        )));
    }
    builder.add(glob).map_err(glob_failure)?;
    Ok(())
}

fn glob_failure(error: ignore::Error) -> Failure {
    Failure::usage(format!("{error}; a glob is one of .gitignore, such as '*.py' or '!tests/'"))
}

fn known_types() -> TypesBuilder {
    let mut builder = TypesBuilder::new();
    builder.add_defaults();
    builder
}

/// Returns the types of files, each on a line with its globs.
pub fn type_list() -> String {
    let line = |definition: FileTypeDef| format!("{}: {}\n", definition.name(), definition.globs().join(", "));
    known_types().definitions().into_iter().map(line).collect()
}

/// The documents that are searched.
#[derive(Debug, Clone)]
pub struct Selection {
    globs: Override,
    types: Types,
}

impl Selection {
    /// Returns true if the document with this path is searched.
    pub fn chooses(&self, path: &str) -> bool {
        let path = path.trim_start_matches("./").trim_start_matches('/');
        let mut folders = path.match_indices('/').map(|(at, _)| &path[..at]);
        if folders.any(|folder| self.globs.matched(folder, true).is_ignore()) {
            return false;
        }
        let by_globs = self.globs.matched(path, false);
        if by_globs.is_none() {
            !self.types.matched(Path::new(path), false).is_ignore()
        } else {
            by_globs.is_whitelist()
        }
    }
}

impl FromArgMatches for PathFilters {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let texts = |name: &str| matches.get_many::<String>(name).unwrap_or_default().cloned();
        let changes = |name: &str, is_negated: bool| {
            let places = matches.indices_of(name).unwrap_or_default();
            let changes = texts(name).map(move |name| TypeChange { name, is_negated });
            places.zip(changes).collect::<Vec<_>>()
        };
        let mut types = changes("types", false);
        types.extend(changes("types_not", true));
        types.sort_by_key(|(place, _)| *place);
        Ok(Self {
            globs: texts("globs").collect(),
            any_case_globs: texts("any_case_globs").collect(),
            types: types.into_iter().map(|(_, change)| change).collect(),
        })
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

impl Args for PathFilters {
    fn augment_args(command: Command) -> Command {
        let option = |name: &'static str, long: &'static str, value: &'static str, help: &'static str| {
            let option = Arg::new(name).long(long).value_name(value).help(help).help_heading(HEADING);
            option.action(ArgAction::Append).allow_hyphen_values(true)
        };
        let glob = "Search documents whose path this glob matches (as in .gitignore, may be given several times); with \
                    ! in front, leave them out. The last one that matches counts";
        command
            .arg(option("globs", "glob", "GLOB", glob).short('g'))
            .arg(option("any_case_globs", "iglob", "GLOB", "Like -g, in upper and lower case alike"))
            .arg(option("types", "type", "TYPE", "Search documents of this type, such as py or md").short('t'))
            .arg(option("types_not", "type-not", "TYPE", "Leave out documents of this type").short('T'))
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}
