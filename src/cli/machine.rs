//! What an ingest takes of the machine: blocks of text side by side, and a device for their grammars.
//!
//! The file that is written is the same whatever is chosen here.

use std::io::Write;
use std::sync::Arc;

use clap::{Args, ValueEnum};
use tadoc::build::{CorpusBuilder, MAX_BLOCKS_AT_ONCE, usual_blocks_at_once};
use tadoc::grammar::RoundsEngine;

use crate::failure::{Failure, Outcome};

/// Where grammars are built.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub enum DeviceChoice {
    /// On the first GPU where there is one and the text is large, else on the cores
    #[default]
    Auto,
    /// On the cores
    Cpu,
    /// On the first GPU, which must be there; short texts on the cores
    Gpu,
}

/// The options of an ingest for it.
#[derive(Debug, Clone, Default, Args)]
pub struct Machine {
    /// Blocks that are built side by side; memory grows with them [default: one for every 4 cores, 4 at most]
    #[arg(long, value_name = "N",
          value_parser = clap::value_parser!(u16).range(1..=i64::from(MAX_BLOCKS_AT_ONCE)))]
    blocks_at_once: Option<u16>,

    /// Where grammars are built; the file is the same
    #[arg(long, default_value = "auto", value_name = "WHERE")]
    device: DeviceChoice,
}

impl Machine {
    /// `builder`, which takes as much of the machine as is chosen.
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
