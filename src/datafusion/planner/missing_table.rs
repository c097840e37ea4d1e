//! The error for a name that is no table and no file.
//!
//! DataFusion says only that it has no table `datafusion.public.NAME`. A name can also be a file here, so
//! this error says what was looked for, and lists similar names. In safe mode it tells nothing about files.

use std::collections::BTreeSet;
use std::path::Path;

use datafusion::common::plan_datafusion_err;
use datafusion::error::DataFusionError;
use datafusion::execution::SessionState;

use crate::errors::{did_you_mean, files_beside, shown};
use crate::safety::sandbox_of;

/// Most tables that an error lists if no name is similar.
const MAX_TABLES: usize = 8;

/// Returns `error`, or one that says more if a statement names a table that is not there.
///
/// ```
/// # use datafusion::prelude::SessionContext;
/// # #[tokio::main]
/// # async fn main() -> datafusion::error::Result<()> {
/// let ctx = SessionContext::new();
/// datafusion_tadoc::register_all(&ctx)?;
/// ctx.sql("CREATE TABLE letters AS SELECT 1 AS n").await?;
/// let error = ctx.sql("SELECT * FROM leters").await.unwrap_err();
/// let error = datafusion_tadoc::explain_missing_table(&ctx.state(), error).to_string();
/// assert!(error.contains("there is no table leters, and no file of this name; did you mean letters?"));
/// # Ok(())
/// # }
/// ```
pub fn explain_missing_table(state: &SessionState, error: DataFusionError) -> DataFusionError {
    let DataFusionError::Plan(text) = error.find_root() else { return error };
    let Some(full) = text.strip_prefix("table '").and_then(|rest| rest.strip_suffix("' not found")) else {
        return error;
    };
    let catalog = &state.config_options().catalog;
    let name = full.strip_prefix(&format!("{}.", catalog.default_catalog)).unwrap_or(full);
    let name = name.strip_prefix(&format!("{}.", catalog.default_schema)).unwrap_or(name);
    let is_safe = sandbox_of(state.runtime_env()).is_some();
    let known = Known { tables: table_names(state), has_files: !is_safe };
    plan_datafusion_err!("{}", known.text(name))
}

/// The names that a statement can use.
struct Known {
    tables: BTreeSet<String>,
    /// True if files may be looked for.
    has_files: bool,
}

impl Known {
    /// Returns the error for `name`.
    fn text(&self, name: &str) -> String {
        let short = shown(name);
        let is_file = self.has_files && Path::new(name).exists();
        if is_file && !name.contains('/') && name.ends_with(".tadoc") {
            return format!("there is no table {short}; for the file of this name write '{short}' in quotes");
        }
        if is_file {
            return format!(
                "{short} is no table, and no file that FROM reads by its name; read_text('{short}') reads plain \
                 files, documents('{short}') corpora, and CREATE EXTERNAL TABLE … STORED AS takes the format of \
                 a file"
            );
        }
        let way_out = self.way_out(name);
        if self.has_files {
            format!("there is no table {short}, and no file of this name{way_out}")
        } else {
            format!("there is no table {short}{way_out}")
        }
    }

    /// Returns the similar names, or the tables that there are.
    fn way_out(&self, name: &str) -> String {
        if name.contains('*') {
            return format!(
                "; a pattern is no table: documents('{name}') reads corpora, read_text('{name}') plain files, \
                 such as 'src/**'"
            );
        }
        let mut all = self.tables.clone();
        if self.has_files {
            all.extend(files_beside(name));
        }
        if let Some(meant) = did_you_mean(name, all) {
            return format!("; {meant}");
        }
        let mut tables: Vec<&str> = self.tables.iter().map(String::as_str).collect();
        if tables.is_empty() {
            return String::new();
        }
        let more = if tables.len() > MAX_TABLES { " …" } else { "" };
        tables.truncate(MAX_TABLES);
        format!("; the tables are {}{more}", tables.join(", "))
    }
}

/// Returns the names of the tables of the default schema, without those that a program made for itself.
fn table_names(state: &SessionState) -> BTreeSet<String> {
    let defaults = &state.config_options().catalog;
    let catalog = state.catalog_list().catalog(&defaults.default_catalog);
    let schema = catalog.and_then(|catalog| catalog.schema(&defaults.default_schema));
    let names = schema.map(|schema| schema.table_names()).unwrap_or_default();
    let is_made = |name: &String| {
        let digits = name.rsplit_once('_').map(|(_, digits)| digits);
        digits.is_some_and(|digits| digits.len() == 32 && digits.bytes().all(|byte| byte.is_ascii_hexdigit()))
    };
    names.into_iter().filter(|name| !is_made(name)).collect()
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn similar_names_are_listed_and_else_the_tables() {
        let tables = ["letters", "news"].map(str::to_owned).into();
        let known = Known { tables, has_files: false };
        assert_eq!(known.text("leters"), "there is no table leters; did you mean letters?");
        assert_eq!(known.text("zebras_of_1990"), "there is no table zebras_of_1990; the tables are letters, news");
        let none = Known { tables: BTreeSet::new(), has_files: true };
        let text = none.text("no/such/folder/x.tadoc");
        assert_eq!(text, "there is no table no/such/folder/x.tadoc, and no file of this name");
        assert!(none.text("src/*.rs").contains("read_text('src/*.rs')"));
    }

    #[test]
    fn files_are_found_and_in_safe_mode_not() {
        let dir = tempfile::tempdir().unwrap();
        let path = |name: &str| dir.path().join(name).display().to_string();
        fs::write(path("notes.csv"), "a").unwrap();
        let open = Known { tables: BTreeSet::new(), has_files: true };
        assert!(open.text(&path("notse.csv")).ends_with(&format!("did you mean {}?", path("notes.csv"))));
        assert!(open.text(&path("notes.csv")).contains("no file that FROM reads by its name"));
        let safe = Known { tables: BTreeSet::new(), has_files: false };
        assert_eq!(safe.text(&path("notes.csv")), format!("there is no table {}", path("notes.csv")));
    }
}
