//! Refusals of safe mode: a typed error that any layer may wrap.
//!
//! A refusal passes through stores, HTTP clients, DataFusion and the core before a caller sees it.
//! [`Refused::from_error`] finds it in the chain of causes.

use std::error::Error as StdError;
use std::fmt;
use std::io;

use datafusion::error::DataFusionError;
use futures::StreamExt;
use futures::stream::{self, BoxStream};

use super::Permission;
use crate::errors::mask_secrets;

/// Kind of a refusal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Refusal {
    /// A path or URL that is not allowed.
    Place,
    /// A URL that contains a user or password, or an option that sets credentials or servers.
    Credentials,
    /// A host, or an address of a host, that is not public.
    Host,
    /// An answer of a server that points to another place.
    Redirect,
    /// A write.
    Write,
    /// A statement that is not permitted.
    Statement,
    /// A setting that is not permitted.
    Setting,
    /// A function that is not permitted.
    Function,
}

impl Refusal {
    fn way_out(self) -> &'static str {
        match self {
            Self::Place => "--allow LOCATION allows it",
            Self::Credentials => "credentials and servers come from the environment of the process",
            Self::Host => "--allow-private allows hosts that are not public",
            Self::Redirect => "name the place behind it, and allow it with --allow",
            Self::Write => "no option allows it; leave out --safe",
            Self::Statement | Self::Setting | Self::Function => "leave out --safe",
        }
    }
}

/// Error of safe mode. Its text names what was refused and the option of `tadoc sql` that allows it, and
/// contains no passwords. A host with other options makes a text of its parts.
///
/// ```
/// use datafusion_tadoc::safety::{Refusal, Refused, Sandbox};
///
/// let error = Sandbox::default().check_location("/etc/passwd").unwrap_err();
/// assert_eq!(Refused::from_error(&error).unwrap().refusal(), Refusal::Place);
/// assert!(error.to_string().contains("--allow"));
/// ```
#[derive(Debug, Clone)]
pub struct Refused {
    what: String,
    refusal: Refusal,
    permission: Option<Permission>,
}

impl Refused {
    /// Creates the refusal of `what`. Secrets in it are masked.
    pub(crate) fn new(refusal: Refusal, what: impl AsRef<str>) -> Self {
        let what = mask_secrets(what.as_ref());
        let permission = match refusal {
            Refusal::Setting => Some(Permission::Set),
            Refusal::Function => Some(Permission::ReadText),
            _ => None,
        };
        Self { what, refusal, permission }
    }

    /// Returns the same refusal of something that `permission` allows.
    pub(super) fn unless(self, permission: Permission) -> Self {
        Self { permission: Some(permission), ..self }
    }

    /// Returns the stream of this refusal alone.
    pub(super) fn into_stream<T: Send + 'static>(self) -> BoxStream<'static, object_store::Result<T>> {
        stream::iter([Err(self.into())]).boxed()
    }

    /// Returns the kind of the refusal.
    pub fn refusal(&self) -> Refusal {
        self.refusal
    }

    /// Returns what was refused, such as `COPY`.
    pub fn what(&self) -> &str {
        &self.what
    }

    /// Returns the permission that allows it, if there is one.
    pub fn permission(&self) -> Option<Permission> {
        self.permission
    }

    /// Returns the refusal that caused `error`, if any.
    pub fn from_error<'a>(error: &'a (dyn StdError + 'static)) -> Option<&'a Self> {
        let mut cause = Some(error);
        while let Some(error) = cause {
            if let Some(refused) = error.downcast_ref() {
                return Some(refused);
            }
            // Wrappers that do not name what they wrap as their source.
            cause = if let Some(error) = error.downcast_ref::<io::Error>() {
                error.get_ref().map(|error| error as _)
            } else if let Some(DataFusionError::Shared(error)) = error.downcast_ref() {
                Some(error.as_ref() as _)
            } else {
                error.source()
            };
        }
        None
    }
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "safe mode refuses {}; ", self.what)?;
        match self.permission {
            Some(permission) => write!(f, "--permit {permission} allows it"),
            None => f.write_str(self.refusal.way_out()),
        }
    }
}

impl StdError for Refused {}

impl From<Refused> for DataFusionError {
    fn from(refused: Refused) -> Self {
        Self::External(Box::new(refused))
    }
}

impl From<Refused> for io::Error {
    fn from(refused: Refused) -> Self {
        Self::new(io::ErrorKind::PermissionDenied, refused)
    }
}

impl From<Refused> for object_store::Error {
    /// A kind of error that no caller tries again or takes for a file that does not exist.
    fn from(refused: Refused) -> Self {
        Self::PermissionDenied { path: String::new(), source: Box::new(refused) }
    }
}
