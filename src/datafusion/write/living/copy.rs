//! `COPY (…) TO` a living corpus: one commit, of segments that are written here or where the partitions of the
//! query are.

use std::sync::Arc;

use datafusion::catalog::Session;
use datafusion::common::plan_err;
use datafusion::datasource::sink::DataSinkExec;
use datafusion::error::Result;
use datafusion::physical_expr::LexRequirement;
use datafusion::physical_plan::metrics::ExecutionPlanMetricsSet;
use datafusion::physical_plan::{ExecutionPlan, ExecutionPlanProperties};

use crate::corpora::CorpusCache;
use crate::corpora::columns::user_fields;
use crate::corpora::living::open_columns;
use crate::errors::mask_secrets;
use crate::options::TadocOptions;
use crate::write::building::Roles;
use crate::write::living::create::with_declared;
use crate::write::living::insert::{InsertSink, nullable};
use crate::write::living::spread_copy::spread_copy;

/// Plans a `COPY` of the rows of `input` to the living corpus at `location`. Returns `None` if there
/// is none.
///
/// # Errors
/// A plan error for rows without text, for a column that the corpus has with another type, and if
/// `options` ask to replace what is there; the errors of opening the corpus.
pub(crate) async fn copy_into(
    location: &str,
    session: &dyn Session,
    input: &Arc<dyn ExecutionPlan>,
    options: &TadocOptions,
    order: &Option<LexRequirement>,
) -> Result<Option<Arc<dyn ExecutionPlan>>> {
    let runtime = session.runtime_env();
    let cache = session.config().get_extension::<CorpusCache>().unwrap_or_default();
    let Some(found) = cache.living.find(runtime, location).await? else { return Ok(None) };
    if options.overwrite {
        return plan_err!(
            "COPY: {} is a living corpus, which grows and is not replaced; leave tadoc.overwrite out, \
             and DELETE documents that are to go",
            mask_secrets(location)
        );
    }
    let schema = nullable(&input.schema());
    let roles = Roles::find(&schema)?;
    let version = found.latest.clone();
    let (files, edits) = open_columns(&cache, runtime, options, &found, version).await?;
    let known = user_fields(runtime, &files, &edits).await?;
    with_declared(known, &schema.project(&roles.user())?)?;
    let is_divided = order.is_none() && input.output_partitioning().partition_count() > 1;
    if options.workers_write && is_divided {
        return spread_copy(input, found, schema, options).map(Some);
    }
    let sink = InsertSink {
        schema,
        copied: Some(roles),
        location: location.into(),
        store: found.store,
        unique: None,
        options: options.clone(),
        metrics: ExecutionPlanMetricsSet::new(),
    };
    let plan = DataSinkExec::new(Arc::clone(input), Arc::new(sink), order.clone());
    Ok(Some(Arc::new(plan)))
}

/// Refuses to write the file `location` into the folder of a living corpus: no version names it, so its
/// readers would not see the rows.
///
/// # Errors
/// A plan error that names the folder.
pub(crate) async fn check_outside_living(location: &str, session: &dyn Session) -> Result<()> {
    let folder = location.rsplit_once('/').map_or(".", |(folder, _)| folder);
    let cache = session.config().get_extension::<CorpusCache>().unwrap_or_default();
    // A folder that cannot be listed can still be written.
    match cache.living.find(session.runtime_env(), folder).await {
        Ok(Some(_)) => plan_err!(
            "COPY: {} lies in a living corpus, whose readers would not see the file; COPY … TO '{}/' adds \
             the rows to it",
            mask_secrets(location),
            mask_secrets(folder)
        ),
        _ => Ok(()),
    }
}
