//! Safe mode: SQL of people who are not trusted, over places that are.
//!
//! ```text
//! SQL ─▶ Sandbox::check ── statements, settings ──▶ plan
//! plan ─▶ every reader: table functions, FROM 'x', DataFusion's own ─▶ ObjectStoreRegistry
//!                                                                            │ the door
//!          roots: canonical, opened relative to a handle of the root ◀─ file ┤
//!          allowed URLs ─▶    connector: checks addresses at connect ◀─ web ┘
//! ```
//!
//! A [`Sandbox`] names the places that statements may read, and what they may do besides reading. It guards a session
//! in two places. The registry of stores is the one door to storage: in a guarded session, this crate reads local files
//! through it as well. And [`Sandbox::check`] refuses statements that are more than queries.
//!
//! ```
//! use std::sync::Arc;
//! use datafusion::execution::runtime_env::RuntimeEnvBuilder;
//! use datafusion::prelude::*;
//! use datafusion_tadoc::safety::{Refused, Sandbox};
//!
//! # #[tokio::main]
//! # async fn main() -> datafusion::error::Result<()> {
//! # let dir = tempfile::tempdir()?;
//! # let folder = dir.path().display().to_string();
//! # let file = format!("{folder}/plays.tadoc");
//! # let ctx = SessionContext::new();
//! # datafusion_tadoc::register_all(&ctx)?;
//! # let copy = format!("COPY (SELECT 'a.txt' AS path, 'to be or not to be' AS text) TO '{file}'");
//! # ctx.sql(&copy).await?.collect().await?;
//! let sandbox = Sandbox::default().allow(&folder)?;
//! let runtime = sandbox.guard(RuntimeEnvBuilder::new()).build_arc()?;
//! let ctx = SessionContext::new_with_config_rt(SessionConfig::new(), runtime);
//! datafusion_tadoc::register_all(&ctx)?;
//!
//! let query = format!("SELECT word, count FROM word_count('{file}') WHERE word = 'be'");
//! assert!(sandbox.sql(&ctx, &query).await?.to_string().await?.contains("| be   | 2     |"));
//!
//! for refused in ["SELECT * FROM documents('/etc/x.tadoc')", "SET tadoc.max_hits = '1'"] {
//!     let outcome = async { sandbox.sql(&ctx, refused).await?.collect().await };
//!     assert!(Refused::from_error(&outcome.await.unwrap_err()).is_some());
//! }
//! # Ok(())
//! # }
//! ```
//!
//! Guarantees:
//!
//! - *Local files*: links and `..` are resolved, and the real path must be below an allowed root. The
//!   file is opened relative to a handle of that root, in such a way that the system refuses links
//!   that lead out (`openat2` on Linux). So a link that is put there between the check and the opening
//!   leads nowhere. An allowed file must still be a file, and not a link, after it was opened. Hard links
//!   and mounts inside a root belong to the root. The owner of a root decides what they show.
//! - *Hosts*: addresses are checked as they are resolved for a connection, so a name that is
//!   resolved again is checked again. Redirects are not followed, and proxies are not used. With
//!   [`Sandbox::allow_private`] only addresses are not checked.
//! - *Registered stores*: a store that the host program registers must be below an allowed URL, and
//!   is read only. Its own connections are not checked.
//! - *Writes*: with [`Permission::Copy`], the folder of a new local file is checked before the file
//!   is created. Links that somebody else changes in a root meanwhile are not noticed.
//! - *Credentials*: locations with a user or password are refused, and errors are masked. Stores take
//!   their credentials from the environment of the process.
//!
//! Not in scope: time and memory of queries, which have limits of their own.

#[cfg(any(feature = "s3", feature = "gcs", feature = "azure", feature = "http"))]
mod connector;
mod door;
mod files;
mod refusal;
mod roots;
mod statements;
mod urls;

pub use refusal::{Refusal, Refused};

pub(crate) use door::sandbox_of;
pub(crate) use files::{meta_of, store_path, text_of};
pub(crate) use statements::{SafeStatements, check_read_text};
pub(crate) use urls::check_container;

use std::collections::BTreeSet;
use std::fmt;
use std::path::Path;
use std::str::FromStr;
use std::sync::Arc;

use datafusion::error::Result;
use datafusion::execution::runtime_env::RuntimeEnvBuilder;
use datafusion::logical_expr::LogicalPlan;
use url::Url;

use crate::safety::urls::Prefixes;
use door::Door;
use roots::Roots;

/// Statements that safe mode refuses unless they are permitted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Permission {
    /// `read_text` and `read_lines`, which show any file of an allowed place.
    ReadText,
    /// `COPY`, which writes to allowed places.
    Copy,
    /// `CREATE` and `DROP`, of external tables too.
    Create,
    /// `SET` and `RESET` of any setting, limits too, and such options of tables.
    Set,
}

impl Permission {
    /// All permissions.
    pub const ALL: [Self; 4] = [Self::ReadText, Self::Copy, Self::Create, Self::Set];
}

impl fmt::Display for Permission {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::ReadText => "read-text",
            Self::Copy => "copy",
            Self::Create => "create",
            Self::Set => "set",
        })
    }
}

impl FromStr for Permission {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let found = Self::ALL.into_iter().find(|permission| permission.to_string() == text);
        found.ok_or_else(|| "expected read-text, copy, create or set".to_owned())
    }
}

/// Places and statements that are allowed; see the description of the [module](self).
///
/// The default allows no place, no hosts that are not public, and only queries.
#[derive(Debug, Clone, Default)]
pub struct Sandbox {
    roots: Roots,
    prefixes: Prefixes,
    permissions: BTreeSet<Permission>,
    allows_private: bool,
}

impl Sandbox {
    /// Allows a place: a folder or file on the local disk, which must exist, or everything below a
    /// URL such as `https://host/corpora/` or `s3://bucket/`.
    ///
    /// # Errors
    /// An error if there is no such file or folder, or if the URL is invalid or contains a user.
    pub fn allow(mut self, location: &str) -> Result<Self> {
        match urls::parse(location)? {
            Some(url) if url.scheme() != "file" => self.prefixes.allow(&url)?,
            Some(url) => self.roots.allow(&urls::path_of(&url)?)?,
            None => self.roots.allow(location.as_ref())?,
        }
        Ok(self)
    }

    /// Allows hosts that are not public: loopback, link-local, private and reserved addresses. A
    /// URL must still be below an allowed one.
    #[must_use]
    pub fn allow_private(mut self) -> Self {
        self.allows_private = true;
        self
    }

    /// Permits statements that are more than queries.
    #[must_use]
    pub fn permit(mut self, permission: Permission) -> Self {
        self.permissions.insert(permission);
        self
    }

    /// Returns true if `permission` was given.
    pub fn permits(&self, permission: Permission) -> bool {
        self.permissions.contains(&permission)
    }

    /// Makes this sandbox the door to storage of the environment that is built. A session with it
    /// also refuses plans that [`Sandbox::check`] refuses when it analyzes them. Replaces the
    /// registry of stores; register stores on the built environment.
    #[must_use]
    pub fn guard(&self, builder: RuntimeEnvBuilder) -> RuntimeEnvBuilder {
        builder.with_object_store_registry(Arc::new(Door::new(self.clone())))
    }

    /// Checks that `plan` is a statement that is allowed. Call it before the plan is executed:
    /// DataFusion executes DDL and `SET` without analyzing it.
    ///
    /// # Errors
    /// A [`Refused`].
    pub fn check(&self, plan: &LogicalPlan) -> Result<()> {
        statements::check(self, plan)
    }

    /// Checks that `location`, a path or URL, is allowed. A glob in it is taken as a name.
    ///
    /// # Errors
    /// A [`Refused`], or an error for an invalid URL.
    pub fn check_location(&self, location: &str) -> Result<()> {
        match urls::parse(location)? {
            Some(url) => self.check_url(&url)?,
            None => self.roots.check(location.as_ref())?,
        }
        Ok(())
    }

    /// Checks that `url` is below an allowed one, and that an address in it may be connected to.
    pub(crate) fn check_url(&self, url: &Url) -> Result<()> {
        if url.scheme() == "file" {
            return Ok(self.roots.check(&urls::path_of(url)?)?);
        }
        urls::check_user(url)?;
        self.prefixes.check(url)?;
        match url.scheme() {
            "http" | "https" => Ok(self.check_host(url)?),
            _ => Ok(()),
        }
    }

    /// Checks the path that `location` names.
    pub(crate) fn check_disk(&self, path: &Path, location: &str) -> Result<()> {
        Ok(self.roots.check(path).map_err(|_| Refused::new(Refusal::Place, location))?)
    }

    /// Checks that files may be written.
    fn check_write(&self, what: String) -> Result<(), Refused> {
        if self.permits(Permission::Copy) {
            Ok(())
        } else {
            Err(Refused::new(Refusal::Write, what).unless(Permission::Copy))
        }
    }

    fn check_host(&self, url: &Url) -> Result<(), Refused> {
        if self.allows_private { Ok(()) } else { urls::check_host(url) }
    }
}
