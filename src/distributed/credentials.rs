//! Credentials of the connections to workers: a token, and the certificates that are trusted.

use std::fmt;

use datafusion::common::config_err;
use datafusion::error::Result;
use tonic::codegen::http::HeaderValue;
use tonic::transport::{Certificate, ClientTlsConfig};

/// The token that is sent to workers, and the certificates that those at `https` URLs may have. Without
/// certificates the system's authorities are trusted.
///
/// ```
/// use datafusion_tadoc_distributed::{Credentials, WorkerUrls};
///
/// let credentials = Credentials::default().with_token("not-for-everybody")?;
/// let workers: WorkerUrls = "https://one:8816,https://two:8816".parse()?;
/// let workers = workers.with_credentials(credentials);
/// assert!(!format!("{workers:?}").contains("not-for-everybody"));
/// # Ok::<(), datafusion::error::DataFusionError>(())
/// ```
#[derive(Clone, Default)]
pub struct Credentials {
    pub(super) token: Option<HeaderValue>,
    certificates: Option<Certificate>,
}

impl fmt::Debug for Credentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Credentials").finish_non_exhaustive()
    }
}

impl Credentials {
    /// Sends `token` to the workers, which ask for it.
    ///
    /// # Errors
    /// An error if it has other characters than a header may have.
    pub fn with_token(self, token: &str) -> Result<Self> {
        let Ok(mut token) = HeaderValue::try_from(format!("Bearer {token}")) else {
            return config_err!("the token of the workers: expected visible characters");
        };
        token.set_sensitive(true);
        Ok(Self { token: Some(token), ..self })
    }

    /// Trusts `certificates` (PEM) and no others: those of the workers, or of an authority that signed
    /// them.
    #[must_use]
    pub fn with_certificates(self, certificates: &str) -> Self {
        Self { certificates: Some(Certificate::from_pem(certificates)), ..self }
    }

    /// Returns the settings of connections to `https` URLs.
    pub(super) fn tls(&self) -> ClientTlsConfig {
        match &self.certificates {
            Some(certificates) => ClientTlsConfig::new().ca_certificate(certificates.clone()),
            None => ClientTlsConfig::new().with_native_roots(),
        }
    }
}
