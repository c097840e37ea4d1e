//! Makes the stores behind `s3://`, `oss://`, `cos://`, `gs://`, `az://` and `http://`, from options of a statement
//! and from the environment of the process.

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
