//! The two layouts of a segment, by their names.

use std::fmt;
use std::str::FromStr;

use crate::error::{Error, Result};

/// Choice of the codecs of a segment.
///
/// | layout | size | a cold statement that opens a segment (`benches/peers/opening.py`) |
/// | --- | --- | --- |
/// | small | smallest | |
/// | fast | 1.1 to 1.7 times as large | 0.1 to 0.4 of the time at 273 MB, 0.7 to 0.9 at 10 MB |
///
/// Every reader reads both, and one file may have segments of both.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum SegmentLayout {
    /// Adaptive codes, which are the smallest.
    #[default]
    Small,
    /// Static codes, which are decoded fast.
    Fast,
}

impl SegmentLayout {
    /// Returns the name in options and messages.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Small => "small",
            Self::Fast => "fast",
        }
    }
}

impl fmt::Display for SegmentLayout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for SegmentLayout {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self> {
        match name {
            "small" => Ok(Self::Small),
            "fast" => Ok(Self::Fast),
            _ => {
                let allowed = "small or fast".into();
                Err(Error::InvalidArgument { name: "layout", got: name.into(), allowed })
            }
        }
    }
}
