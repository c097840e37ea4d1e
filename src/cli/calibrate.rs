//! `tadoc calibrate`: measures this machine for the throughput model.

use std::io::{self, Write};
use std::path::PathBuf;

use clap::Args;
use datafusion_tadoc::throughput::Calibration;
use datafusion_tadoc::throughput::calibration::{measure_device, path};
use tadoc_session::{Failure, Outcome, note};

/// Measure this machine, so that plans choose between CPU and GPU by its rates
///
/// Reads a file or folder if one is named (storage). Opens the first GPU if there is one, and copies
/// text from and to it (link). Takes a second or two. The rates are stored beside your
/// configuration; `tadoc.device = auto`, EXPLAIN and ingestion_model() use them. Calibration is
/// optional: without it, built-in rates are used.
#[derive(Args)]
pub struct Arguments {
    /// A file or folder on the storage that holds your data
    #[arg(value_name = "PATH")]
    storage: Option<PathBuf>,

    /// Print the rates as JSON and store nothing
    #[arg(long)]
    dry_run: bool,
}

/// Runs the command.
pub fn run(arguments: &Arguments) -> Outcome {
    let place = if arguments.dry_run { None } else { Some(place()?) };
    note("measuring the device");
    let device = measure_device();
    if let Err(reason) = &device {
        note(format_args!("no device was measured: {reason}"));
    }
    if arguments.storage.is_some() {
        note("measuring storage");
    }
    let calibration = Calibration::measure(arguments.storage.as_deref(), device.ok())?;
    io::stdout().lock().write_all(calibration.to_text()?.as_bytes())?;
    if let Some(path) = place {
        calibration.save_to(&path)?;
        note(format_args!("kept in {}", path.display()));
    }
    Ok(())
}

/// Returns the file of the rates.
fn place() -> Outcome<PathBuf> {
    path().ok_or_else(|| {
        Failure::new("there is no folder for configuration; set TADOC_CALIBRATION to a file, or use --dry-run")
    })
}
