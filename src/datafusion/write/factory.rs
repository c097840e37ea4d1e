//! `CREATE EXTERNAL TABLE … STORED AS TADOC LOCATION '…'`, and the creation of living corpora with
//! `OPTIONS ('tadoc.create' 'true')`.
//!
//! The statement reads the footers and the types of the user columns, including those that edits set. These fix the
//! schema of the table. A glob, or a folder of several files, has the column `corpus`. The rows are always those of the
//! files that exist when the table is scanned. `OPTIONS` override the session's settings for every query on the table.
//! The option `version` pins a living corpus to one of its versions.
//!
//! The location of a corpus that is created must hold no files, because existing files would never be read. The columns
//! that the statement declares describe rows that are inserted later; an empty corpus has none of its own.

use std::collections::HashMap;
use std::sync::Arc;

use async_trait::async_trait;
use datafusion::arrow::datatypes::{Field, FieldRef, Schema};
use datafusion::catalog::{Session, TableProvider, TableProviderFactory};
use datafusion::common::plan_err;
use datafusion::error::{DataFusionError, Result};
use datafusion::execution::runtime_env::RuntimeEnv;
use datafusion::logical_expr::CreateExternalTable;
use futures::TryStreamExt;

use crate::corpora::columns::{RESERVED, sql_type};
use crate::corpora::living::{LivingCache, LivingLocation};
use crate::corpora::location::{CORPUS_EXTENSION, object_store};
use crate::corpora::{CorpusCache, FoundColumns};
use crate::errors::{datafusion_error, mask_secrets};
use crate::functions::Documents;
use crate::options::TadocOptions;
use crate::planning::table::TadocTable;
use crate::write::living::insert_into;
use tadoc::text::TokenizerProfile;
use tadoc_store::{LivingStore, StoreOptions};

/// Factory of tables `STORED AS TADOC`.
#[derive(Debug)]
pub struct TadocTableFactory {
    cache: Arc<CorpusCache>,
}

impl TadocTableFactory {
    pub(crate) fn new(cache: Arc<CorpusCache>) -> Self {
        Self { cache }
    }
}

#[async_trait]
impl TableProviderFactory for TadocTableFactory {
    async fn create(&self, session: &dyn Session, command: &CreateExternalTable) -> Result<Arc<dyn TableProvider>> {
        check(command)?;
        let [location] = command.locations.as_slice() else {
            return plan_err!(
                "STORED AS TADOC: got {} locations, expected one; use a folder or a glob",
                command.locations.len()
            );
        };
        let mut table_options: HashMap<String, String> =
            command.options.iter().map(|(key, value)| (key.clone(), value.clone())).collect();
        let version = take_version(&mut table_options)?;
        let session_options = TadocOptions::from_config(session.config_options());
        let options = session_options.with_overrides(&table_options)?;
        let runtime = session.runtime_env();
        let declared = command.schema.as_arrow();
        begin_if_asked(&self.cache.living, runtime, location, &options, declared).await?;
        let explain = |error| with_hint(error, location);
        let found = self.cache.columns_at(runtime, &options, location, version, explain).await?;
        let FoundColumns { fields, is_living } = found;
        if !is_living && !declared.fields().is_empty() {
            return plan_err!(
                "STORED AS TADOC does not take a column list: columns come from the corpus; only \
                 those of a living corpus are declared"
            );
        }
        let user_columns = with_declared(fields, declared)?;
        let function = Arc::new(Documents::new(user_columns.clone()));
        let table = TadocTable::new(function, location.clone(), Arc::clone(&self.cache));
        let definition = command.definition.as_deref().map(mask_secrets);
        let table = table.with_version(version).with_insert(insert_into);
        Ok(Arc::new(table.with_definition(table_options, definition, user_columns)))
    }
}

/// Removes and returns the option `version`, in any of its spellings.
fn take_version(options: &mut HashMap<String, String>) -> Result<Option<u64>> {
    let mut version = None;
    for key in ["version", "tadoc.version", "format.version"] {
        let Some(value) = options.remove(key) else { continue };
        let Ok(number) = value.parse() else {
            return plan_err!("version: got {value:?}, expected the number of a version");
        };
        version = Some(number);
    }
    Ok(version)
}

/// Refuses clauses that would be ignored.
fn check(command: &CreateExternalTable) -> Result<()> {
    let refused = [
        (!command.table_partition_cols.is_empty(), "PARTITIONED BY"),
        (!command.order_exprs.is_empty(), "WITH ORDER: rows are ordered by doc_id"),
        (command.unbounded, "UNBOUNDED"),
        (!command.column_defaults.is_empty(), "DEFAULT"),
        (command.constraints.iter().next().is_some(), "constraints"),
    ];
    match refused.iter().find(|(is_given, _)| *is_given) {
        Some((_, clause)) => plan_err!("STORED AS TADOC does not take {clause}"),
        None => Ok(()),
    }
}

/// Creates a living corpus for rows with the columns `declared` at `location`, if `options` request
/// it and none exists.
///
/// # Errors
/// A plan error if other files exist there; errors of the store.
pub(crate) async fn begin_if_asked(
    known: &LivingCache,
    runtime: &RuntimeEnv,
    location: &str,
    options: &TadocOptions,
    declared: &Schema,
) -> Result<()> {
    if !options.create || known.find(runtime, location).await?.is_some() {
        return Ok(());
    }
    with_declared(Vec::new(), declared)?;
    match begin(runtime, location, options.tokenizer).await {
        // Another session may have created it.
        Err(error) if known.find(runtime, location).await?.is_none() => Err(error),
        _ => Ok(()),
    }
}

async fn begin(runtime: &RuntimeEnv, location: &str, profile: TokenizerProfile) -> Result<()> {
    let living = LivingLocation::parse(runtime, location)?;
    let parsed = &living.parsed;
    if parsed.glob.is_some() || location.ends_with(CORPUS_EXTENSION) {
        return plan_err!("{location}: a living corpus is a folder; write the name of one");
    }
    let store = object_store(runtime, &parsed.url)?;
    if store.list(Some(&parsed.path)).try_next().await?.is_some() {
        return plan_err!("{location}: other files are there; a living corpus begins in a folder of its own");
    }
    let options = StoreOptions::default();
    let created = LivingStore::create(living.storage(runtime)?, profile, options).await;
    created.map(drop).map_err(datafusion_error)
}

/// Adds to `error` how to create a corpus where nothing was found.
pub(crate) fn with_hint(error: DataFusionError, location: &str) -> DataFusionError {
    let is_folder = !location.ends_with(CORPUS_EXTENSION) && !location.contains(['*', '?', '[']);
    match error {
        DataFusionError::Plan(text) if is_folder => {
            DataFusionError::Plan(format!("{text}; OPTIONS ('tadoc.create' 'true') begins a living corpus there"))
        }
        error => error,
    }
}

/// Returns the columns of a corpus with those that a statement declares.
///
/// # Errors
/// A plan error for a column that every corpus has, or that this corpus has with another type.
pub(crate) fn with_declared(mut columns: Vec<FieldRef>, declared: &Schema) -> Result<Vec<FieldRef>> {
    for field in declared.fields() {
        let name = field.name();
        let data_type = sql_type(field.data_type());
        if RESERVED.contains(&name.as_str()) {
            return plan_err!("column {name}: every corpus has it; declare only your own columns");
        }
        if !field.is_nullable() {
            return plan_err!("column {name}: NOT NULL is not checked; leave it out");
        }
        match columns.iter().find(|known| known.name() == name) {
            Some(known) if known.data_type() == &data_type => {}
            Some(known) => {
                return plan_err!("column {name}: got {data_type}, the corpus has {}", known.data_type());
            }
            None => columns.push(Arc::new(Field::new(name, data_type, true))),
        }
    }
    Ok(columns)
}
