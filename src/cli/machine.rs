//! Use of the machine by an ingest: the number of blocks that are built side by side.
//!
//! The written file does not depend on it.

use std::io::Write;

use clap::{Args, ValueEnum};
use tadoc::build::{CorpusBuilder, MAX_BLOCKS_AT_ONCE, usual_blocks_at_once};
use tadoc_session::note;

/// The device that scripts for earlier versions name. All grammars are built on the cores.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum DeviceChoice {
    Auto,
    Cpu,
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

    /// Is accepted, and changes nothing: the cores build all grammars
    #[arg(long, hide = true, value_name = "WHERE")]
    device: Option<DeviceChoice>,
}

impl Machine {
    /// Applies the options to `builder`.
    pub fn equip<W: Write>(&self, builder: CorpusBuilder<W>) -> CorpusBuilder<W> {
        if self.device == Some(DeviceChoice::Gpu) {
            note("--device gpu: the cores build all grammars; no device is used");
        }
        let at_once = self.blocks_at_once.map_or_else(usual_blocks_at_once, usize::from);
        builder.with_blocks_at_once(at_once)
    }
}
