//! The file that keeps a calibration.
//!
//! ```text
//! {
//!   "version": 2,
//!   "calibration": {
//!     "machine": "build-7, Intel(R) Xeon(R) Platinum 8480C",
//!     "date": "2026-11-20",
//!     "storage": { "gb_per_s": 2.41, "source": "page_cache" },
//!     "device": { "name": "NVIDIA H200", "h2d_pinned_gb_per_s": 51.2, … }
//!   }
//! }
//! ```
//!
//! The file is JSON. Its keys are the fields of [`Calibration`], and `null` stands for a number that
//! was not measured. GB are 10^9 bytes. A missing key has its built-in value, and other keys are
//! ignored. Without the file the built-in values apply. The file is replaced as a whole: readers see
//! the old one or the new one.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{ErrorKind, Read, Write as _};
use std::path::{Path, PathBuf};

use serde::de::IgnoredAny;
use serde::{Deserialize, Serialize};
use tadoc::error::{Error, Result};
use tadoc_store::staging::StagedFile;

use super::Calibration;

const VERSION: u64 = 2;
/// Limit of a file's size, far above the size of a calibration. Larger files are refused.
const MAX_FILE_BYTES: u64 = 64 << 10;
/// Longest part of a line that an error shows, in characters.
const MAX_SHOWN_CHARS: usize = 80;

/// The whole content of a file.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Content<C> {
    version: u64,
    calibration: C,
}

/// Returns the path of this user's calibration: `TADOC_CALIBRATION`, else the file `calibration` in
/// the folder `tadoc` of the user's configuration. `None` if no variable names that folder.
pub fn path() -> Option<PathBuf> {
    path_from(|name| std::env::var_os(name), cfg!(windows))
}

fn path_from(variable: impl Fn(&str) -> Option<OsString>, is_windows: bool) -> Option<PathBuf> {
    let path_of = |name| variable(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    if let Some(path) = path_of("TADOC_CALIBRATION") {
        return Some(path);
    }
    let folder = if is_windows {
        path_of("APPDATA")
    } else {
        // The XDG base directory specification: relative paths are to be ignored.
        let configured = path_of("XDG_CONFIG_HOME").filter(|path| path.is_absolute());
        configured.or_else(|| Some(path_of("HOME")?.join(".config")))
    };
    Some(folder?.join("tadoc").join("calibration"))
}

impl Calibration {
    /// Reads the file at [`path`]. Returns the built-in values if there is none.
    ///
    /// # Errors
    ///
    /// The errors of [`Calibration::load_from`].
    pub fn load() -> Result<Self> {
        path().map_or_else(|| Ok(Self::default()), |path| Self::load_from(&path))
    }

    /// Reads the file at `path`. Returns the built-in values if there is none.
    ///
    /// # Errors
    ///
    /// [`Error::Io`], and the errors of [`Calibration::from_text`].
    pub fn load_from(path: &Path) -> Result<Self> {
        let failed = |error| Error::io(format!("reading the calibration {}", path.display()), error);
        let file = match File::open(path) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Self::default()),
            file => file.map_err(failed)?,
        };
        let mut bytes = Vec::new();
        file.take(MAX_FILE_BYTES + 1).read_to_end(&mut bytes).map_err(failed)?;
        let name = path.display().to_string();
        if bytes.len() as u64 > MAX_FILE_BYTES {
            let reason = format!("got more than {MAX_FILE_BYTES} bytes, expected a calibration");
            return Err(fault(&name, MAX_FILE_BYTES, reason));
        }
        match std::str::from_utf8(&bytes) {
            Ok(text) => Self::from_text(&name, text),
            Err(error) => {
                let reason = "got bytes that are not UTF-8, expected JSON".to_owned();
                Err(fault(&name, error.valid_up_to() as u64, reason))
            }
        }
    }

    /// Replaces the file at `path`. Creates its folder.
    ///
    /// # Errors
    ///
    /// [`Error::Io`], and the errors of [`Calibration::to_text`]. The old file then stays.
    pub fn save_to(&self, path: &Path) -> Result<()> {
        let failed = |error| Error::io(format!("writing the calibration {}", path.display()), error);
        let text = self.to_text()?;
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
        let folder = folder.unwrap_or(Path::new("."));
        fs::create_dir_all(folder).map_err(failed)?;
        let replace = || {
            let mut new = StagedFile::create(path)?;
            new.write_all(text.as_bytes())?;
            new.file().sync_all()?;
            new.complete(true)
        };
        replace().map_err(failed)?;
        // A rename is durable once its folder is; not all systems can open folders.
        if let Ok(folder) = File::open(folder) {
            let _ = folder.sync_all();
        }
        Ok(())
    }

    /// Returns the file's text.
    ///
    /// # Errors
    ///
    /// [`Error::External`] if JSON cannot express the calibration. That happens to none today.
    pub fn to_text(&self) -> Result<String> {
        let text = serde_json::to_string_pretty(&Content { version: VERSION, calibration: self })
            .map_err(|error| Error::external("writing a calibration as JSON", error))?;
        Ok(text + "\n")
    }

    /// Reads the calibration from `text`. Errors name `file` as its origin.
    ///
    /// # Errors
    ///
    /// [`Error::Version`]; [`Error::Format`] that names the line or the key if the text is not JSON,
    /// a key is there twice, or a number is not above 0.
    pub fn from_text(file: &str, text: &str) -> Result<Self> {
        let refused = |error| json_fault(file, text, &error);
        // The version comes first, because another version may have other keys.
        let content: Content<IgnoredAny> = serde_json::from_str(text).map_err(refused)?;
        if content.version != VERSION {
            let (got, expected) = (content.version.to_string(), VERSION.to_string());
            return Err(Error::Version { file: file.to_owned(), expected, got });
        }
        let content: Content<Self> = serde_json::from_str(text).map_err(refused)?;
        let calibration = content.calibration;
        for (key, number) in calibration.numbers() {
            if !number.is_finite() || number <= 0.0 {
                let reason = format!("{key}: got {number}, expected a number above 0");
                return Err(fault(file, 0, reason));
            }
        }
        Ok(calibration)
    }

    /// Returns all measured numbers with their keys.
    fn numbers(&self) -> impl Iterator<Item = (&'static str, f64)> + use<> {
        let device = self.device.as_ref();
        let numbers = [
            ("storage.gb_per_s", Some(self.storage.gb_per_s)),
            ("device.h2d_pinned_gb_per_s", device.and_then(|device| device.h2d_pinned_gb_per_s)),
            ("device.d2h_pinned_gb_per_s", device.and_then(|device| device.d2h_pinned_gb_per_s)),
            ("device.startup_s", device.and_then(|device| device.startup_s)),
        ];
        numbers.into_iter().filter_map(|(key, number)| Some((key, number?)))
    }
}

/// Returns the error for text that `serde_json` refuses, with the line that it stopped at.
fn json_fault(file: &str, text: &str, error: &serde_json::Error) -> Error {
    let num_before = error.line().saturating_sub(1);
    let before_bytes: usize = text.split_inclusive('\n').take(num_before).map(str::len).sum();
    let line = text.lines().nth(num_before).unwrap_or_default().trim();
    let shown: String = line.chars().take(MAX_SHOWN_CHARS).collect();
    let offset = (before_bytes + error.column()) as u64;
    fault(file, offset, format!("got `{shown}`, expected a calibration in JSON: {error}"))
}

/// Returns the error for a file that is no calibration. It names the way out.
fn fault(file: &str, offset: u64, reason: String) -> Error {
    let reason = format!("{reason}; run `tadoc calibrate` again");
    Error::Format { file: file.to_owned(), section: "calibration", offset, reason }
}

#[cfg(test)]
mod tests;
