//! `tadoc calibrate`: measures this machine for the throughput model.

use std::io::{self, Write};
use std::path::PathBuf;

use clap::Args;
use datafusion_tadoc::throughput::Calibration;
use datafusion_tadoc::throughput::calibration::{DeviceProbe, measure, path};
use tadoc_session::{Failure, Outcome, note};

/// Measure this machine, so that plans choose between CPU and GPU by its rates
///
/// Reads a file or folder if one is named (storage). On one core and on all cores, decodes and
/// matches generated text and counts sequences of a generated corpus. Does the same on the first
/// GPU if there is one. Takes a few seconds. The rates are stored beside your configuration;
/// `tadoc.device = auto`, EXPLAIN and ingestion_model() use them. Calibration is optional: without
/// it, built-in rates are used, and a GPU without rates is measured when it is first opened.
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
    if !arguments.dry_run {
        place()?;
    }
    let mut probe = probe();
    let storage = arguments.storage.as_deref();
    let say = |step| note(format_args!("measuring {step}"));
    let calibration = match &mut probe {
        Ok(probe) => measure(storage, Some(&mut **probe), say),
        Err(_) => measure(storage, None, say),
    }?;
    io::stdout().lock().write_all(calibration.to_text()?.as_bytes())?;
    if let Err(reason) = probe {
        note(format_args!("no device was measured: {reason}"));
    }
    if arguments.dry_run {
        return Ok(());
    }
    keep(&calibration)
}

fn keep(calibration: &Calibration) -> Outcome {
    let path = place()?;
    calibration.save_to(&path)?;
    note(format_args!("kept in {}", path.display()));
    Ok(())
}

/// Returns the file of the rates.
fn place() -> Outcome<PathBuf> {
    path().ok_or_else(|| {
        Failure::new(
            "there is no folder for configuration; set TADOC_CALIBRATION to a file, or use --dry-run",
        )
    })
}

/// Opens a probe of the first GPU. The error says why there is none.
#[cfg(feature = "cuda")]
fn probe() -> Result<Box<dyn DeviceProbe>, String> {
    use datafusion_tadoc::throughput::calibration::GpuProbe;
    let probe = GpuProbe::open(0).map_err(|error| error.to_string())?;
    Ok(Box::new(probe))
}

#[cfg(not(feature = "cuda"))]
fn probe() -> Result<Box<dyn DeviceProbe>, String> {
    Err("built without the feature cuda".to_owned())
}
