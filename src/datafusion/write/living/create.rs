//! Creation of living corpora: `CREATE EXTERNAL TABLE … OPTIONS ('tadoc.create' 'true')`.
//!
//! The location must hold no files, because existing files would never be read. The columns that
//! the statement declares describe rows that are inserted later; an empty corpus has no columns of
//! its own.

use std::sync::Arc;

use datafusion::arrow::datatypes::{Field, FieldRef, Schema};
use datafusion::common::plan_err;
use datafusion::error::{DataFusionError, Result};
use datafusion::execution::runtime_env::RuntimeEnv;
use futures::TryStreamExt;

use crate::corpora::columns::{RESERVED, sql_type};
use crate::corpora::living::{LivingCache, LivingLocation};
use crate::corpora::location::{CORPUS_EXTENSION, object_store};
use crate::errors::datafusion_error;
use crate::options::TadocOptions;
use tadoc::text::TokenizerProfile;
use tadoc_store::{LivingStore, StoreOptions};

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
        let (name, data_type) = (field.name(), sql_type(field.data_type()));
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
