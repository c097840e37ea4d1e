//! Registers the stores behind `s3://`, `gs://`, `az://`, `http://` and other URLs in a statement.
//!
//! ```text
//! CREATE EXTERNAL TABLE … LOCATION 's3://b/x' OPTIONS ('aws.region' '…', 'format.delimiter' ';')
//! COPY … TO 's3://b/y.parquet' OPTIONS (…)             └─── store ────┘  └──── file format ───┘
//! ```
//!
//! DataFusion needs a store to be registered before a plan reads or writes there, and its formats
//! refuse store options that the session does not know. datafusion-cli registers both from the text
//! of a statement. The text of a parsed statement lacks its options and columns, so this module
//! works on plans. The formats of this project accept only their own options, so the store options
//! are removed for them. A table `STORED AS TADOC` without store options finds its store itself.

use std::collections::HashMap;
use std::sync::Arc;

use datafusion::config::{ConfigExtension, ExtensionOptions};
use datafusion::dataframe::DataFrame;
use datafusion::error::{DataFusionError, Result};
use datafusion::logical_expr::{DdlStatement, LogicalPlan};
use datafusion_cli::cli_context::CliSessionContext;
use datafusion_cli::object_storage::{
    AwsOptions, GcpOptions, get_cos_object_store_builder, get_gcs_object_store_builder,
    get_oss_object_store_builder, get_s3_object_store_builder,
};
use datafusion_tadoc::{FILE_TYPE, GSST_FILE_TYPE, made_store};
use object_store::http::HttpBuilder;
use object_store::{ClientOptions, ObjectStore};
use url::{Position, Url};

use super::Session;
use crate::failure;

impl Session {
    /// Runs `plan`: executes DDL at once, and starts queries.
    pub async fn execute(&self, plan: LogicalPlan) -> Result<DataFrame> {
        if let Some(sandbox) = &self.sandbox {
            sandbox.check(&plan)?;
            let mut plan = plan;
            mask_definition(&mut plan);
            // Its door makes the stores.
            return self.context.execute_logical_plan(plan).await;
        }
        let mut asked = plan.clone();
        self.register_stores(&mut asked, false).await?;
        match self.context.execute_logical_plan(asked).await {
            Err(DataFusionError::ObjectStore(fault)) if may_be_elsewhere(&plan, &fault) => {
                let mut elsewhere = plan;
                self.register_stores(&mut elsewhere, true).await?;
                self.context.execute_logical_plan(elsewhere).await
            }
            outcome => outcome,
        }
    }

    /// Registers the stores that `plan` names, with their options in the plan. If `resolve_region`
    /// is true, S3 is asked for the region of a bucket.
    async fn register_stores(&self, plan: &mut LogicalPlan, resolve_region: bool) -> Result<()> {
        let is_table = is_table(plan);
        let explained = match plan {
            LogicalPlan::Explain(explain) => Some(&mut explain.plan),
            LogicalPlan::Analyze(analyze) => Some(&mut analyze.input),
            _ => None,
        };
        if let Some(explained) = explained.filter(|plan| matches!(***plan, LogicalPlan::Copy(_))) {
            let copy = Box::pin(self.register_stores(Arc::make_mut(explained), resolve_region));
            return copy.await;
        }
        mask_definition(plan);
        let (locations, file_type, options) = match plan {
            LogicalPlan::Ddl(DdlStatement::CreateExternalTable(table)) => {
                (table.locations.clone(), table.file_type.clone(), &mut table.options)
            }
            LogicalPlan::Copy(copy) => {
                (vec![copy.output_url.clone()], copy.file_type.get_ext(), &mut copy.options)
            }
            _ => return Ok(()),
        };
        let is_corpus = file_type.eq_ignore_ascii_case(FILE_TYPE);
        let is_ours = is_corpus || file_type.eq_ignore_ascii_case(GSST_FILE_TYPE);
        let finds_store = is_corpus && is_table;
        for location in &locations {
            let Ok(url) = Url::parse(location) else { continue };
            let of_store = store_options(url.scheme(), options);
            if finds_store && of_store.is_empty() {
                continue;
            }
            self.context.register_table_options_extension_from_scheme(url.scheme());
            if let Some(store) = store_at(&url, &of_store, resolve_region).await? {
                self.context.register_object_store(&url, store);
                options.retain(|key, _| !(is_ours && of_store.contains_key(key)));
            }
        }
        Ok(())
    }
}

/// Masks secrets in the statement that a catalog keeps and shows.
fn mask_definition(plan: &mut LogicalPlan) {
    let definition = match plan {
        LogicalPlan::Ddl(DdlStatement::CreateExternalTable(table)) => &mut table.definition,
        LogicalPlan::Ddl(DdlStatement::CreateView(view)) => &mut view.definition,
        _ => return,
    };
    *definition = definition.take().map(|text| failure::masked(&text));
}

/// Returns true if `fault` of `plan` may mean that an S3 bucket is in another region.
fn may_be_elsewhere(plan: &LogicalPlan, fault: &object_store::Error) -> bool {
    let is_s3 = matches!(fault, object_store::Error::Generic { store, .. }
        if store.eq_ignore_ascii_case("s3"));
    is_table(plan) && is_s3
}

fn is_table(plan: &LogicalPlan) -> bool {
    matches!(plan, LogicalPlan::Ddl(DdlStatement::CreateExternalTable(_)))
}

/// Returns the entries of `options` that configure stores of `scheme`.
fn store_options(scheme: &str, options: &HashMap<String, String>) -> HashMap<String, String> {
    let prefix = match scheme {
        "s3" | "oss" | "cos" => AwsOptions::PREFIX,
        "gs" | "gcs" => GcpOptions::PREFIX,
        _ => return HashMap::new(),
    };
    let is_for_store = |key: &str| key.split_once('.').is_some_and(|(first, _)| first == prefix);
    let of_store = options.iter().filter(|(key, _)| is_for_store(key));
    of_store.map(|(key, value)| (key.clone(), value.clone())).collect()
}

/// Returns the store of `url`, or `None` if the scheme is not known here.
async fn store_at(
    url: &Url,
    options: &HashMap<String, String>,
    resolve_region: bool,
) -> Result<Option<Arc<dyn ObjectStore>>> {
    Ok(Some(match url.scheme() {
        "s3" => {
            let builder = get_s3_object_store_builder(url, &with(options)?, resolve_region).await?;
            Arc::new(builder.build()?)
        }
        "oss" => Arc::new(get_oss_object_store_builder(url, &with(options)?)?.build()?),
        "cos" => Arc::new(get_cos_object_store_builder(url, &with(options)?)?.build()?),
        "gs" | "gcs" => Arc::new(get_gcs_object_store_builder(url, &with(options)?)?.build()?),
        "http" | "https" => {
            // A URL with http:// asks for plain HTTP.
            let plain = ClientOptions::new().with_allow_http(true);
            let server = &url[..Position::BeforePath];
            Arc::new(HttpBuilder::new().with_client_options(plain).with_url(server).build()?)
        }
        // All settings are in the environment.
        "az" | "azure" | "abfs" | "abfss" | "adl" => made_store(url)?,
        _ => return Ok(None),
    }))
}

/// Returns the defaults with `options` applied.
fn with<T: ExtensionOptions + Default>(options: &HashMap<String, String>) -> Result<T> {
    let mut all = T::default();
    options.iter().try_for_each(|(key, value)| all.set(key, value))?;
    Ok(all)
}
