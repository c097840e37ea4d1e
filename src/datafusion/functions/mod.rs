//! Table functions, a file for each or for some of one idea, and the list of them.
//!
//! `planning::function` describes how they are bound, prepared and run. A function may compute the rows of portions
//! from those of another function; it uses no helpers of its file.
//!
//! Shared files, in reading order: `strings` (arrays), `doc_rows` and `sequence_rows` (functions by document, by word
//! and by sequence), `sequence_texts`, `parcels`, `searching` (queries, hits, and words near them), `document_source`
//! (rows of `documents`). Then `scalar` (scalar functions) and `calls` (calls from Rust).

mod calls;
mod collocates;
mod cooccurrence;
mod copies;
mod corpus_verify;
mod counted_rows;
mod doc_rows;
mod document_source;
mod documents;
mod grep;
mod info;
mod inverted_index;
mod kwic;
mod log_templates;
mod near_duplicates;
mod parcels;
mod portion_reader;
mod ranked_inverted_index;
mod read_files;
mod repeated_phrases;
mod scalar;
mod search;
mod searching;
mod sequence_count;
mod sequence_rows;
mod sequence_texts;
mod strings;
mod term_vector;
mod tfidf;
mod views;
mod word_count;

use std::sync::{Arc, LazyLock};

use datafusion::arrow::datatypes::{FieldRef, Schema};
use datafusion::catalog::{Session, TableFunctionArgs, TableFunctionImpl, TableProvider};
use datafusion::common::plan_err;
use datafusion::error::Result;
use datafusion::execution::session_state::{SessionState, SessionStateBuilder};
use datafusion::logical_expr::{Documentation, ScalarUDF};

use crate::corpora::CorpusCache;
use crate::corpora::columns::is_file_name;
use crate::corpora::glob::is_glob;
use crate::planning::arguments::Arguments;
use crate::planning::function::{BoundFunction, Definition, Reads};
use crate::planning::signature::{self, Signature};
use crate::planning::table::registered_now;
use crate::planning::{TadocTable, file_names};

pub(crate) use calls::planned_call;
pub use calls::*;
pub(crate) use documents::Documents;
pub(crate) use scalar::{AnswerMemory, Home, listed_functions, scalar_functions, takes_query, value_bytes};
pub use scalar::{AtWorker, CorpusFunction, bound_functions, charge_calls, fold_little, is_memory_of_calls};

/// Definitions of all table functions, in the order of the reference.
static FUNCTIONS: [&Definition; 30] = [
    &documents::DEFINITION,
    &word_count::DEFINITION,
    &word_count::SORTED,
    &inverted_index::DEFINITION,
    &term_vector::DEFINITION,
    &tfidf::DEFINITION,
    &term_vector::MATRIX,
    &term_vector::TOKENS,
    &sequence_count::DEFINITION,
    &ranked_inverted_index::DEFINITION,
    &cooccurrence::DEFINITION,
    &repeated_phrases::DEFINITION,
    &near_duplicates::PAIRS,
    &near_duplicates::CLUSTERS,
    &log_templates::DEFINITION,
    &copies::SPANS,
    &copies::OVERLAP,
    &search::DEFINITION,
    &search::COUNTS,
    &kwic::DEFINITION,
    &search::RANKED,
    &grep::DEFINITION,
    &collocates::DEFINITION,
    &documents::EXTRACT,
    &info::FACTS,
    &corpus_verify::DEFINITION,
    &read_files::TEXT,
    &read_files::LINES,
    &info::INGESTION_MODEL,
    &info::FUNCTIONS,
];

/// Function that returns the table of a call.
type PlanCall = fn(&Arguments, &dyn Session, &Arc<CorpusCache>) -> Result<Arc<dyn TableProvider>>;

/// A table function that is a logical plan over other functions.
#[derive(Debug)]
struct PlannedFunction {
    signature: Signature,
    plan: PlanCall,
}

/// Table functions that are plans over other functions.
static PLANNED: [&PlannedFunction; 3] = [&views::KEYNESS, &views::DISPERSION, &views::CONTEXT];

/// Returns the signatures of all table functions, in the order of the reference. Plans over other
/// functions come last.
///
/// ```
/// for signature in datafusion_tadoc::signatures() {
///     println!("{signature}");
/// }
/// ```
pub fn signatures() -> impl Iterator<Item = &'static Signature> {
    let planned = PLANNED.iter().map(|planned| &planned.signature);
    FUNCTIONS.iter().map(|definition| &definition.signature).chain(planned)
}

/// Returns the type of the answer and the documentation of each scalar function.
fn documented_scalars() -> impl Iterator<Item = (String, &'static Documentation)> {
    scalar::documented()
}

/// Returns the signature of the table function `name`, in any case.
///
/// ```
/// let signature = datafusion_tadoc::find_signature("Word_Count").ok_or("no such function")?;
/// let columns: Vec<_> = signature.columns.iter().map(|column| column.name).collect();
/// assert_eq!(columns, ["word", "count"]);
/// # Ok::<(), &str>(())
/// ```
pub fn find_signature(name: &str) -> Option<&'static Signature> {
    signatures().find(|signature| signature.name.eq_ignore_ascii_case(name))
}

/// A table function as DataFusion calls it. It only parses arguments and binds the function.
#[derive(Debug)]
pub(crate) struct TadocFunction {
    called: Called,
    cache: Arc<CorpusCache>,
}

/// The definition of a function that is called.
#[derive(Debug, Clone, Copy)]
enum Called {
    Scan(&'static Definition),
    Plan(&'static PlannedFunction),
}

impl TadocFunction {
    /// Returns every table function, with one cache for all.
    pub(crate) fn all(cache: &Arc<CorpusCache>) -> impl Iterator<Item = (&'static str, Arc<Self>)> {
        let scans = FUNCTIONS.iter().map(|definition| Called::Scan(definition));
        let plans = PLANNED.iter().map(|planned| Called::Plan(planned));
        scans.chain(plans).map(move |called| {
            let function = Self { called, cache: Arc::clone(cache) };
            (function.signature().name, Arc::new(function))
        })
    }

    fn signature(&self) -> &'static Signature {
        match self.called {
            Called::Scan(definition) => &definition.signature,
            Called::Plan(planned) => &planned.signature,
        }
    }
}

impl TableFunctionImpl for TadocFunction {
    fn call_with_args(&self, args: TableFunctionArgs) -> Result<Arc<dyn TableProvider>> {
        let arguments = Arguments::parse(self.signature(), args.exprs())?;
        let session = args.session();
        match self.called {
            Called::Scan(definition) => Ok(Arc::new(table_of(definition, &arguments, session, &self.cache))),
            Called::Plan(planned) => (planned.plan)(&arguments, session, &self.cache),
        }
    }
}

/// Returns the table of a call of the scan `name`, for plans over it. The scan takes those of
/// `arguments` that it has.
fn table_named(
    name: &str,
    arguments: &Arguments,
    session: &dyn Session,
    cache: &Arc<CorpusCache>,
) -> Result<TadocTable> {
    match FUNCTIONS.iter().find(|definition| definition.signature.name == name) {
        Some(definition) => {
            let table = table_of(definition, arguments, session, cache);
            Ok(table.called_by(arguments.signature()))
        }
        None => plan_err!("there is no table function {name}"),
    }
}

/// Returns the scalar functions that plans over other functions and over portions call. No statement can name them, but
/// a plan that travels does.
pub(crate) fn functions_of_plans() -> Vec<Arc<ScalarUDF>> {
    let views = views::functions();
    let room = ScalarUDF::from(scalar::Room::new(None));
    let operators = [ScalarUDF::from(scalar::JoinedTexts::new()), room];
    let scans = [file_names::function()];
    views.chain(log_templates::functions()).chain(operators).chain(scans).map(Arc::new).collect()
}

/// Binds the scan `name` again, to arguments that a plan shows. `first` is its first argument, and
/// `schema` has its columns.
///
/// # Errors
/// A plan error if there is no such function, or if it has other arguments.
pub fn bound_again(
    name: &str,
    shown: &[(&str, &str)],
    first: &str,
    synonyms: Option<(String, Vec<(String, String)>)>,
    schema: &Schema,
) -> Result<BoundFunction> {
    /// Functions read only their arguments of a session, except user columns, which `schema` has.
    static NOWHERE: LazyLock<SessionState> = LazyLock::new(|| SessionStateBuilder::new().build());
    let Some(definition) = FUNCTIONS.iter().find(|one| one.signature.name == name) else {
        return plan_err!("there is no table function {name}");
    };
    let num_fixed = definition.signature.columns.len();
    let user_columns: Vec<FieldRef> = schema.fields().iter().skip(num_fixed).cloned().collect();
    if !user_columns.is_empty() && name == documents::DEFINITION.signature.name {
        return Ok(Arc::new(Documents::new(user_columns)));
    }
    let arguments = Arguments::from_shown(&definition.signature, shown, first, synonyms)?;
    Ok((definition.bind)(&arguments, &*NOWHERE))
}

/// Returns the table of a call.
fn table_of(
    definition: &Definition,
    arguments: &Arguments,
    session: &dyn Session,
    cache: &Arc<CorpusCache>,
) -> TadocTable {
    let function = (definition.bind)(arguments, session);
    let reads_corpora = matches!(function.reads(), Reads::Corpora);
    let location = arguments.shown_first();
    let table = TadocTable::new(function, location.clone(), Arc::clone(cache))
        .with_version(arguments.version())
        .with_synonyms_of(arguments, definition.bind)
        .with_condition(arguments.text(signature::WHERE.name), documents_with);
    if reads_corpora && has_files(session, &location) { table.with_files() } else { table }
}

/// Returns the function of documents with `user_columns`.
fn documents_with(user_columns: Vec<FieldRef>) -> BoundFunction {
    Arc::new(Documents::new(user_columns))
}

/// Returns `table`, restricted to the documents that meet `condition`.
pub fn with_condition(table: TadocTable, condition: &str) -> TadocTable {
    table.with_condition(condition, documents_with)
}

/// Returns true if the documents at `location`, or those of the table of this name, have the column with their files.
fn has_files(session: &dyn Session, location: &str) -> bool {
    match registered_now(session, location) {
        Some(table) => table.user_columns().iter().any(is_file_name),
        None => is_glob(location),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signatures_print_as_they_are_called() {
        let signature = find_signature("SEARCH").unwrap();
        assert_eq!(
            signature.to_string(),
            "search(corpus, query, doc_id => NULL, fold => false, exact => false, version => NULL, where => NULL)"
        );
    }

    #[test]
    fn errors_of_plans_name_the_function_that_was_called() {
        let [scan, called] = ["term_count", "dispersion"].map(|name| find_signature(name).unwrap());
        let error = scan.error_of_call(scan.error("query: nothing"), called);
        assert_eq!(error.to_string(), called.error("query: nothing").to_string());
        let other = scan.error_of_call(called.error("parts: 0"), called);
        assert_eq!(other.to_string(), called.error("parts: 0").to_string());
    }

    #[test]
    fn required_arguments_come_first_and_names_are_unique() {
        for signature in signatures() {
            let first_optional = signature.arguments.iter().position(|a| a.default.is_some());
            let rest = &signature.arguments[first_optional.unwrap_or(signature.arguments.len())..];
            assert!(rest.iter().all(|a| a.default.is_some()), "{signature}");
            for (i, column) in signature.columns.iter().enumerate() {
                assert!(signature.columns[..i].iter().all(|c| c.name != column.name));
            }
            assert!(signatures().filter(|other| other.name == signature.name).count() == 1);
        }
    }

    /// A misspelled name in `bind` would silently take the default.
    #[test]
    fn functions_bind_arguments_that_their_signatures_have() {
        let mut num_checked = 0;
        for entry in std::fs::read_dir(testkit::root().join("src/datafusion/functions")).unwrap() {
            let path = entry.unwrap().path();
            if path.extension().is_none_or(|extension| extension != "rs") {
                continue;
            }
            let text = std::fs::read_to_string(path).unwrap();
            // The code of a function follows its definition.
            for code in text.split("signature: Signature {\n        name: \"").skip(1) {
                let signature = find_signature(code.split('"').next().unwrap()).unwrap();
                let names = ["text", "integer", "boolean", "fold", "number"].map(|kind| format!("arguments.{kind}(\""));
                for name in names.iter().flat_map(|call| code.split(call.as_str()).skip(1)) {
                    let name = name.split('"').next().unwrap();
                    assert!(signature.arguments.iter().any(|a| a.name == name), "{}: {name}", signature.name);
                }
                num_checked += 1;
            }
        }
        assert_eq!(num_checked, signatures().count());
    }
}
