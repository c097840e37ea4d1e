//! Use of the machine by an ingest: the number of blocks built side by side, and the device for
//! their grammars.
//!
//! These choices do not change the written file.

use std::io::Write;
use std::sync::Arc;

use clap::{Args, ValueEnum};
use tadoc::build::{CorpusBuilder, MAX_BLOCKS_AT_ONCE, usual_blocks_at_once};
use tadoc::grammar::RoundsEngine;

use crate::failure::{Failure, Outcome};

/// The device that builds grammars.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub enum DeviceChoice {
    /// On the first GPU if there is one and the text is large, else on the cores
    #[default]
    Auto,
    /// On the cores
    Cpu,
    /// On the first GPU, which must exist; short texts on the cores
    Gpu,
}

/// Ingest options for the machine.
#[derive(Debug, Clone, Default, Args)]
pub struct Machine {
    /// Blocks that are built side by side; memory grows with their number [default: one per 4
    /// cores, at most 4]
    #[arg(long, value_name = "N",
          value_parser = clap::value_parser!(u16).range(1..=i64::from(MAX_BLOCKS_AT_ONCE)))]
    blocks_at_once: Option<u16>,

    /// Device that builds the grammars; the written file does not depend on it
    #[arg(long, default_value = "auto", value_name = "WHERE")]
    device: DeviceChoice,
}

impl Machine {
    /// Applies the options to `builder`.
    pub fn equip<W: Write>(&self, builder: CorpusBuilder<W>) -> Outcome<CorpusBuilder<W>> {
        let at_once = self.blocks_at_once.map_or_else(usual_blocks_at_once, usize::from);
        let builder = builder.with_blocks_at_once(at_once);
        Ok(match self.engine()? {
            Some(engine) => builder.with_engine(engine),
            None => builder,
        })
    }

    #[cfg(feature = "cuda")]
    fn engine(&self) -> Outcome<Option<Arc<dyn RoundsEngine>>> {
        use tadoc_cuda::RoundsWhenLarge;
        Ok(match self.device {
            DeviceChoice::Auto => Some(Arc::new(RoundsWhenLarge::default())),
            DeviceChoice::Cpu => None,
            DeviceChoice::Gpu => {
                let opened = RoundsWhenLarge::opened();
                Some(Arc::new(opened.map_err(|e| Failure::with_cause("--device gpu", &e))?))
            }
        })
    }

    #[cfg(not(feature = "cuda"))]
    fn engine(&self) -> Outcome<Option<Arc<dyn RoundsEngine>>> {
        match self.device {
            DeviceChoice::Gpu => Err(Failure::new("--device gpu: this build is without cuda")),
            DeviceChoice::Auto | DeviceChoice::Cpu => Ok(None),
        }
    }
}
