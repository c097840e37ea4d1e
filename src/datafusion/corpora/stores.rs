//! The object stores of a runtime: each is made when a statement or a plan first names it.
//!
//! ```text
//! FROM 's3://b/x.parquet' ─▶ get_store(s3://b) ─┬─ registered: by CREATE … OPTIONS or an earlier statement
//!                                               └─ made from the environment of the process, and kept
//! ```

use std::sync::Arc;

use datafusion::error::Result;
use datafusion::execution::object_store::{DefaultObjectStoreRegistry, ObjectStoreRegistry};
use datafusion::execution::runtime_env::RuntimeEnvBuilder;
use object_store::ObjectStore;
use url::Url;

use super::location::made_store;

/// Lets a runtime make stores when a statement, or a plan of another machine, names them, from their URLs and
/// the environment of this process. Otherwise only stores that were registered are known.
#[must_use]
pub fn with_stores(builder: RuntimeEnvBuilder) -> RuntimeEnvBuilder {
    builder.with_object_store_registry(Arc::<StoresOnDemand>::default())
}

/// Registry that makes stores that it does not know.
#[derive(Debug, Default)]
struct StoresOnDemand(DefaultObjectStoreRegistry);

impl ObjectStoreRegistry for StoresOnDemand {
    fn register_store(&self, url: &Url, store: Arc<dyn ObjectStore>) -> Option<Arc<dyn ObjectStore>> {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stores_are_made_once() {
        let runtime = with_stores(RuntimeEnvBuilder::new()).build().unwrap();
        let url = Url::parse("memory:///").unwrap();
        let registry = &runtime.object_store_registry;
        let (one, other) = (registry.get_store(&url).unwrap(), registry.get_store(&url).unwrap());
        assert!(Arc::ptr_eq(&one, &other));
        let unknown = registry.get_store(&Url::parse("ftp://host").unwrap()).unwrap_err();
        assert!(unknown.to_string().contains("no object store for ftp"), "{unknown}");
    }
}
