//! Tables that the arguments of a program name: `NAME=LOCATION`, or a location that gives the name.
//!
//! ```text
//! law=s3://x/laws.tadoc   table law      notes.tadoc   table notes      living/   table living
//! ```
//!
//! A table has all columns of its documents, those of users too, as one of `CREATE EXTERNAL TABLE … STORED AS TADOC`
//! has. A file that the session reads by its name, such as one of Parquet, is a table too. The program names these
//! tables, not a statement, so safe mode lets them be made.

use std::path::Path;

use datafusion::common::TableReference;

use crate::failure::{Failure, Outcome};
use crate::location::text_of;
use crate::session::Session;

/// A location, and the name of its table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NamedLocation {
    /// Name of the table.
    pub name: String,
    /// Path or URL of the corpus or of the file.
    pub location: String,
}

impl NamedLocation {
    /// Parses `argument`: `NAME=LOCATION`, or a location whose last part is the name.
    ///
    /// # Errors
    /// The location gives no name.
    pub fn from_argument(argument: &Path) -> Outcome<Self> {
        let text = text_of(argument);
        if let Some((name, location)) = text.split_once('=')
            && !name.is_empty()
            && !name.contains(['/', '\\', ':'])
            && !argument.exists()
        {
            return Ok(Self { name: name.to_owned(), location: location.to_owned() });
        }
        let last = text.trim_end_matches(['/', '\\']);
        let last = last.rsplit(['/', '\\']).next().unwrap_or_default();
        let name = last.strip_suffix(".tadoc").unwrap_or(last);
        if name.is_empty() || name.contains(['*', '?']) {
            return Err(Failure::usage(format!("{text} gives no name for a table: write NAME={text}")));
        }
        Ok(Self { name: name.to_owned(), location: text.into_owned() })
    }

    /// Parses `arguments`, whose names differ.
    ///
    /// # Errors
    /// A location gives no name, or two give the same.
    pub fn from_arguments<'a>(arguments: impl IntoIterator<Item = &'a Path>) -> Outcome<Vec<Self>> {
        let mut all: Vec<Self> = Vec::new();
        for argument in arguments {
            let Self { name, location } = Self::from_argument(argument)?;
            if all.iter().any(|other| other.name == name) {
                return Err(Failure::new(format!(
                    "{location}: another corpus is the table {name} already; write NAME={location}"
                )));
            }
            all.push(Self { name, location });
        }
        Ok(all)
    }

    /// Returns the part of the location before its first wildcard, up to a slash: what a session in safe mode must be
    /// allowed to read.
    pub fn root(&self) -> &str {
        let location = &self.location;
        match location.find(['*', '?', '[']) {
            Some(wildcard) => match location[..wildcard].rfind('/') {
                Some(slash) => &location[..=slash],
                None => ".",
            },
            None => location,
        }
    }

    /// Returns true if the location has the ending of a file that is no corpus.
    fn is_other_file(&self) -> bool {
        let path = Path::new(&self.location);
        path.extension().is_some_and(|ending| ending != "tadoc") && !path.is_dir() && !self.location.ends_with('/')
    }
}

/// Name of a table until it has that of its corpus.
const MADE_TABLE: &str = "tadoc_corpus";

impl Session {
    /// Makes the table of `named`. Call it after [`prepare`](Self::prepare).
    ///
    /// # Errors
    /// There is a table of this name, or the location cannot be opened.
    pub async fn add_table(&self, named: NamedLocation) -> Outcome {
        let context = self.context();
        let is_other_file = named.is_other_file();
        let NamedLocation { name, location } = named;
        let table = if is_other_file {
            context.table_provider(TableReference::bare(location.as_str())).await.map(Some)
        } else {
            let quoted = location.replace('\'', "''");
            let create = format!("CREATE EXTERNAL TABLE {MADE_TABLE} STORED AS TADOC LOCATION '{quoted}'");
            match context.sql(&create).await {
                // A statement would take a name with a dot for that of a file.
                Ok(_) => context.deregister_table(MADE_TABLE),
                Err(error) => Err(error),
            }
        };
        let table = table.map_err(|error| Failure::from(error).about(&location))?;
        if let Some(table) = table {
            let made = context.register_table(TableReference::bare(name), table);
            made.map_err(|error| Failure::from(error).about(&location))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_have_the_names_of_files() {
        let name_of = |text: &str| NamedLocation::from_argument(Path::new(text)).map(|named| named.name).ok();
        for (corpus, name) in [
            ("notes.tadoc", "notes"),
            ("a/b/notes.v2.tadoc", "notes.v2"),
            ("living/", "living"),
            ("s3://bucket/tickets/", "tickets"),
            ("s3://bucket/a=b.tadoc", "a=b"),
            ("law=a/b.tadoc", "law"),
            ("law=s3://x/*.tadoc", "law"),
        ] {
            assert_eq!(name_of(corpus).as_deref(), Some(name), "{corpus}");
        }
        assert_eq!(name_of("a/*.tadoc"), None);
        assert_eq!(name_of("/"), None);
        for (location, root) in
            [("a/b.tadoc", "a/b.tadoc"), ("a/b/*.tadoc", "a/b/"), ("*.tadoc", "."), ("s3://b/x?/", "s3://b/")]
        {
            let named = NamedLocation { name: "x".into(), location: location.into() };
            assert_eq!(named.root(), root);
        }
    }

    #[test]
    fn names_differ() {
        let both = ["a/x.tadoc", "b/x.tadoc"].map(Path::new);
        let failure = NamedLocation::from_arguments(both).unwrap_err();
        assert!(format!("{failure:?}").contains("b/x.tadoc: another corpus is the table x already"), "{failure:?}");
    }
}
