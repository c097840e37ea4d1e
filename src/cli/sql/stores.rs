//! The object stores of a session: each is made when a statement first names it.
//!
//! ```text
//! FROM 's3://b/x.parquet' ─▶ get_store(s3://b) ─┬─ registered: by CREATE … OPTIONS or an earlier statement
//!                                               └─ made from the environment of the process, and kept
//! ```

use std::sync::Arc;

use datafusion::error::Result;
use datafusion::execution::object_store::{DefaultObjectStoreRegistry, ObjectStoreRegistry};
use datafusion_tadoc::made_store;
use object_store::ObjectStore;
use url::Url;

/// A registry that makes the stores that it does not have.
#[derive(Debug, Default)]
pub struct StoresOnDemand(DefaultObjectStoreRegistry);

impl ObjectStoreRegistry for StoresOnDemand {
    fn register_store(
        &self,
        url: &Url,
        store: Arc<dyn ObjectStore>,
    ) -> Option<Arc<dyn ObjectStore>> {
        self.0.register_store(url, store)
    }

    fn deregister_store(&self, url: &Url) -> Result<Arc<dyn ObjectStore>> {
        self.0.deregister_store(url)
    }

    fn get_store(&self, url: &Url) -> Result<Arc<dyn ObjectStore>> {
        if let Ok(store) = self.0.get_store(url) {
            return Ok(store);
        }
        let store = made_store(url)?;
        self.0.register_store(url, Arc::clone(&store));
        Ok(store)
    }
}
