//! Registers the stores behind `s3://`, `gs://`, `az://`, `http://` and other URLs in a statement.
//!
//! ```text
//! CREATE EXTERNAL TABLE … LOCATION 's3://b/x' OPTIONS ('aws.region' '…', 'format.delimiter' ';')
//! COPY … TO 's3://b/y.parquet' OPTIONS (…)             └─── store ────┘  └──── file format ───┘
//! ```
//!
//! DataFusion needs a store to be registered before a plan reads or writes there, and its formats
//! refuse options of stores. So this module registers the store with its options, and removes them from
//! the plan. A table `STORED AS TADOC` without such options finds its store itself.

use std::collections::HashMap;
use std::sync::Arc;

#[cfg(not(feature = "stores"))]
use datafusion::common::plan_err;
use datafusion::dataframe::DataFrame;
use datafusion::error::{DataFusionError, Result};
use datafusion::logical_expr::{DdlStatement, LogicalPlan};
use datafusion_tadoc::FILE_TYPE;
#[cfg(not(feature = "stores"))]
use object_store::ObjectStore;
use url::Url;

use crate::failure;
use crate::session::Session;

#[cfg(feature = "stores")]
use self::stores::store_at;

impl Session {
    /// Runs `plan`: executes DDL at once, and starts queries.
    pub async fn execute(&self, plan: LogicalPlan) -> Result<DataFrame> {
        if let Some(sandbox) = &self.sandbox {
            sandbox.check(&plan)?;
            let mut plan = plan;
            mask_definition(&mut plan);
            // Its door makes the stores.
            return self.context().execute_logical_plan(plan).await;
        }
        let mut asked = plan.clone();
        self.register_stores(&mut asked, false).await?;
        match self.context().execute_logical_plan(asked).await {
            Err(DataFusionError::ObjectStore(fault)) if may_be_elsewhere(&plan, &fault) => {
                let mut elsewhere = plan;
                self.register_stores(&mut elsewhere, true).await?;
                self.context().execute_logical_plan(elsewhere).await
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
            LogicalPlan::Copy(copy) => (vec![copy.output_url.clone()], copy.file_type.get_ext(), &mut copy.options),
            _ => return Ok(()),
        };
        let finds_store = is_table && file_type.eq_ignore_ascii_case(FILE_TYPE);
        for location in &locations {
            let Ok(url) = Url::parse(location) else { continue };
            let for_store = store_options(url.scheme(), options);
            if finds_store && for_store.is_empty() {
                continue;
            }
            if let Some(store) = store_at(&url, &for_store, resolve_region).await? {
                self.context().register_object_store(&url, store);
                options.retain(|key, _| !for_store.contains_key(key));
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
        "s3" | "oss" | "cos" => "aws.",
        "gs" | "gcs" => "gcp.",
        _ => return HashMap::new(),
    };
    let for_store = options.iter().filter(|(key, _)| key.starts_with(prefix));
    for_store.map(|(key, value)| (key.clone(), value.clone())).collect()
}

/// Returns `None` for a scheme that no store has: a build without stores refuses the others.
#[cfg(not(feature = "stores"))]
async fn store_at(
    url: &Url,
    _options: &HashMap<String, String>,
    _resolve_region: bool,
) -> Result<Option<Arc<dyn ObjectStore>>> {
    match url.scheme() {
        scheme @ ("s3" | "oss" | "cos" | "gs" | "gcs" | "http" | "https" | "az" | "azure" | "abfs" | "abfss"
        | "adl") => plan_err!("this build has no object store for {scheme}://…; compile tadoc with `--features full`"),
        _ => Ok(None),
    }
}

/// Makes the stores from options of a statement and from the environment of the process.
#[cfg(feature = "stores")]
mod stores {
    use std::collections::HashMap;
    use std::sync::Arc;

    use datafusion::common::plan_datafusion_err;
    use datafusion::error::{DataFusionError, Result};
    use datafusion_tadoc::made_store;
    use object_store::aws::{AmazonS3Builder, AmazonS3ConfigKey, resolve_bucket_region};
    use object_store::gcp::{GoogleCloudStorageBuilder, GoogleConfigKey};
    use object_store::{ClientOptions, ObjectStore};
    use url::Url;

    /// Returns the store of `url`, or `None` if the scheme is not known here. Settings that are not in
    /// `options` come from the environment of the process.
    pub async fn store_at(
        url: &Url,
        options: &HashMap<String, String>,
        resolve_region: bool,
    ) -> Result<Option<Arc<dyn ObjectStore>>> {
        Ok(Some(match url.scheme() {
            "s3" => {
                let bucket = bucket(url)?;
                let mut builder = AmazonS3Builder::from_env().with_bucket_name(bucket);
                if resolve_region {
                    let region = resolve_bucket_region(bucket, &ClientOptions::new()).await?;
                    builder = builder.with_region(region);
                }
                Arc::new(with_s3_options(builder, options)?.build()?)
            }
            // These two ignore the region, which the client demands.
            scheme @ ("oss" | "cos") => {
                let builder = AmazonS3Builder::from_env()
                    .with_bucket_name(bucket(url)?)
                    .with_virtual_hosted_style_request(scheme == "oss")
                    .with_region("do_not_care");
                Arc::new(with_s3_options(builder, options)?.build()?)
            }
            "gs" | "gcs" => {
                let builder = GoogleCloudStorageBuilder::from_env().with_bucket_name(bucket(url)?);
                Arc::new(with_google_options(builder, options)?.build()?)
            }
            "http" | "https" | "az" | "azure" | "abfs" | "abfss" | "adl" => made_store(url)?,
            _ => return Ok(None),
        }))
    }

    /// Returns the bucket that `url` names.
    fn bucket(url: &Url) -> Result<&str> {
        let bucket = url.host_str().filter(|bucket| !bucket.is_empty());
        bucket.ok_or_else(|| plan_datafusion_err!("{url}: expected the name of a bucket after ://"))
    }

    /// Returns `builder` with the options `aws.…`. The endpoint of `oss` and `cos` has names of its own.
    fn with_s3_options(mut builder: AmazonS3Builder, options: &HashMap<String, String>) -> Result<AmazonS3Builder> {
        for (name, value) in options {
            let key = match name.as_str() {
                "aws.oss.endpoint" | "aws.cos.endpoint" => AmazonS3ConfigKey::Endpoint,
                "aws.nosign" => AmazonS3ConfigKey::SkipSignature,
                _ => name.trim_start_matches("aws.").parse().map_err(|_| unknown_option(name))?,
            };
            builder = builder.with_config(key, value);
        }
        Ok(builder)
    }

    /// Returns `builder` with the options `gcp.…`.
    fn with_google_options(
        mut builder: GoogleCloudStorageBuilder,
        options: &HashMap<String, String>,
    ) -> Result<GoogleCloudStorageBuilder> {
        for (name, value) in options {
            let key = match name.as_str() {
                "gcp.application_credentials_path" => GoogleConfigKey::ApplicationCredentials,
                _ => name.trim_start_matches("gcp.").parse().map_err(|_| unknown_option(name))?,
            };
            builder = builder.with_config(key, value);
        }
        Ok(builder)
    }

    fn unknown_option(name: &str) -> DataFusionError {
        plan_datafusion_err!(
            "there is no option {name} of a store; options are named as in the crate object_store, such as \
             aws.region, aws.endpoint, aws.access_key_id and gcp.service_account_path"
        )
    }
}
