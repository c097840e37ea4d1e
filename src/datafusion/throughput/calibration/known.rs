//! Built-in rates of known devices, and a cache of the rates of other devices.
//!
//! ```text
//! name ─┬▶ in the table below ─▶ link and memory ─▶ rates of an H200, scaled
//!       └▶ not there ─▶ the cache: $XDG_CACHE_HOME/tadoc/device, ~/.cache/tadoc/device,
//!                       %LOCALAPPDATA%\tadoc\device ─▶ missing or damaged: measure, and write it
//! ```
//!
//! The cache is a calibration of this machine with built-in rates of the cores
//! ([`file`](super::file)). A cache that cannot be read counts as missing, because no user wrote
//! it. Linux names the device before the driver is started, in
//! `/proc/driver/nvidia/gpus/*/information`.
//!
//! Only H100 and H200 were measured (benches/results). For the other devices, the table has 90 % of
//! the rates of link and memory in their datasheets. All work in device memory is assumed to scale
//! with the rate of the memory.

use std::fs;
use std::path::Path;

use super::file::cache_path;
use super::measure::machine;
use super::{Calibration, DeviceCalibration};

/// Known devices: a word of the name, the rate of the link in each direction from pinned memory in
/// GB/s, and the rate of the memory in GB/s.
const KNOWN: [(&str, f64, f64); 14] = [
    ("H200", 50.0, 4200.0),
    ("H100", 50.0, 3000.0),
    ("H800", 50.0, 3000.0),
    ("H20", 50.0, 3600.0),
    ("B200", 50.0, 7000.0),
    ("A100", 23.0, 1500.0),
    ("A800", 23.0, 1500.0),
    ("A30", 23.0, 840.0),
    ("A10", 23.0, 540.0),
    ("A10G", 23.0, 540.0),
    ("L4", 23.0, 270.0),
    ("L40", 23.0, 780.0),
    ("L40S", 23.0, 780.0),
    ("4090", 23.0, 910.0),
];

impl DeviceCalibration {
    /// Returns the built-in rates of the device that the driver calls `name`, such as `NVIDIA
    /// H200`.
    ///
    /// Returns `None` if the table has no such device.
    pub fn for_known_device(name: &str) -> Option<Self> {
        let is_in_name = |word: &str| name.split(|c: char| !c.is_alphanumeric()).any(|w| w == word);
        let (_, link, memory) = KNOWN.into_iter().find(|(word, _, _)| is_in_name(word))?;
        Some(Self { name: name.to_owned(), ..Self::scaled(link, memory) })
    }

    /// Returns the rates of one H200, scaled to another link and another memory.
    ///
    /// Measured were: decoding with views, 1,396 and 1,461 GB/s
    /// (benches/results/2026-11-21-h200.md); matching, 1,844 GB/s and more if 5 % of the rows match
    /// (benches/results/2026-11-20-h200.md); sequences, 0.5 ns per window, 10 ns per row through
    /// SQL (a third of it for copies), and 1 to 5 ns per element before the first task; opening,
    /// 0.2 to 0.37 s, or 0.5 s on a machine that has just started.
    fn scaled(link_gb_per_s: f64, memory_gb_per_s: f64) -> Self {
        let (of_link, of_memory) = (link_gb_per_s / 50.0, memory_gb_per_s / 4200.0);
        let seconds = |seconds: f64| Some(seconds / of_memory);
        Self {
            name: String::new(),
            h2d_pinned_gb_per_s: Some(link_gb_per_s),
            h2d_pageable_gb_per_s: 11.0 * of_link,
            d2h_pinned_gb_per_s: Some(link_gb_per_s),
            d2h_pageable_gb_per_s: 5.0 * of_link,
            decode_8bit_gb_per_s: 1400.0 * of_memory,
            decode_12bit_gb_per_s: 1460.0 * of_memory,
            matching_gb_per_s: Some(1800.0 * of_memory),
            memory_gb_per_s,
            launch_s: 5e-5,
            startup_s: 0.35,
            corpus_task_s: Some(5e-3),
            corpus_prepare_s: seconds(3e-9),
            corpus_row_s: Some(3e-9 / of_link),
            corpus_unit_s: [1e-9, 1e-9, 1.5e-9, 1e-9, 2e-9].map(seconds),
        }
    }
}

/// Returns the expected rates of the device of this machine, before it is opened.
///
/// The rates are those of the table if it has the device that Linux names, else those of the cache.
/// Returns `None` if neither has the device.
pub fn expected_device() -> Option<DeviceCalibration> {
    let installed = installed_device(Path::new("/proc/driver/nvidia/gpus"));
    let known = installed.as_deref().and_then(DeviceCalibration::for_known_device);
    known.or_else(|| cached(&cache_path()?, installed.as_deref()))
}

/// Returns the rates of the open device called `name`.
///
/// The rates are those of the table, else those of the cache, else the result of `measure`, which
/// is then written to the cache. Returns `None` if `measure` fails.
pub fn device_rates<E>(
    name: &str,
    measure: impl FnOnce() -> Result<DeviceCalibration, E>,
) -> Option<DeviceCalibration> {
    let known = DeviceCalibration::for_known_device(name);
    known.or_else(|| cached_or_measured(cache_path().as_deref(), name, measure))
}

fn cached_or_measured<E>(
    path: Option<&Path>,
    name: &str,
    measure: impl FnOnce() -> Result<DeviceCalibration, E>,
) -> Option<DeviceCalibration> {
    if let Some(device) = path.and_then(|path| cached(path, Some(name))) {
        return Some(device);
    }
    let device = measure().ok()?;
    let calibration = Calibration {
        machine: machine(),
        date: "cached".to_owned(),
        device: Some(device.clone()),
        ..Calibration::default()
    };
    if let Some(Err(error)) = path.map(|path| calibration.save_to(path)) {
        tracing::warn!(%error, "the device is measured again by the next process");
    }
    Some(device)
}

/// Returns the device in the cache at `path`, if it was measured on this machine and has this
/// `name`.
///
/// Without a `name`, any device matches.
fn cached(path: &Path, name: Option<&str>) -> Option<DeviceCalibration> {
    let kept = Calibration::load_from(path);
    let kept = kept.inspect_err(|error| tracing::info!(%error, "a cache that is made anew"));
    let kept = kept.ok().filter(|kept| kept.machine == machine())?;
    kept.device.filter(|device| name.is_none_or(|name| device.name == name))
}

/// Returns the name of the first device that has a folder in `gpus`, the folder of the driver.
fn installed_device(gpus: &Path) -> Option<String> {
    let mut folders: Vec<_> =
        fs::read_dir(gpus).ok()?.flatten().map(|entry| entry.path()).collect();
    folders.sort_unstable();
    let text = fs::read_to_string(folders.first()?.join("information")).ok()?;
    let name = text.lines().find_map(|line| line.strip_prefix("Model:"))?.trim();
    Some(name.to_owned())
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    #[test]
    fn names_of_the_driver_are_known() {
        let link = |name: &str| {
            DeviceCalibration::for_known_device(name).map(|device| {
                assert_eq!(device.name, name);
                (device.h2d_pinned_gb_per_s.unwrap(), device.memory_gb_per_s)
            })
        };
        assert_eq!(link("NVIDIA H200"), Some((50.0, 4200.0)));
        assert_eq!(link("NVIDIA H100 80GB HBM3"), Some((50.0, 3000.0)));
        assert_eq!(link("NVIDIA A100-SXM4-80GB"), Some((23.0, 1500.0)));
        assert_eq!(link("NVIDIA L4"), Some((23.0, 270.0)));
        assert_eq!(link("NVIDIA L40S"), Some((23.0, 780.0)));
        // This device is no H200, although its name contains these letters.
        assert_eq!(link("NVIDIA GH200 480GB"), None);
        assert_eq!(link(""), None);
    }

    /// Checks that the rates of the table survive the file of a calibration.
    #[test]
    fn known_rates_are_rates() {
        for (name, ..) in KNOWN {
            let device = DeviceCalibration::for_known_device(name);
            let calibration = Calibration { device: device.clone(), ..Calibration::default() };
            let text = calibration.to_text().unwrap();
            let read = Calibration::from_text("known", &text).unwrap();
            assert_eq!(read.device, device);
        }
    }

    #[test]
    fn an_unknown_device_is_measured_once_a_machine() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a folder").join("device");
        let num_measured = Cell::new(0);
        let measured = |name: &str| DeviceCalibration {
            name: name.to_owned(),
            launch_s: 7e-6,
            ..DeviceCalibration::default()
        };
        let rates = |name: &str| {
            let measure = || {
                num_measured.set(num_measured.get() + 1);
                Ok::<_, String>(measured(name))
            };
            cached_or_measured(Some(&path), name, measure)
        };
        let device = Some(measured("a device"));
        assert_eq!(cached(&path, None), None);
        for _of_processes in 0..3 {
            assert_eq!((rates("a device"), num_measured.get()), (device.clone(), 1));
        }
        assert_eq!(cached(&path, None), device);
        // Another device replaces it.
        assert_eq!((rates("another").unwrap().name.as_str(), num_measured.get()), ("another", 2));
        // A cache that is damaged, or of another machine, is written again.
        let text = fs::read_to_string(&path).unwrap();
        let of_another = text.replace("\"machine\": \"", "\"machine\": \"not ");
        for damaged in ["", "version = 9", "\u{0}\u{ff}", &text[..text.len() / 2], &of_another] {
            fs::write(&path, damaged).unwrap();
            assert_eq!(cached(&path, None), None, "{damaged}");
            let before = num_measured.get();
            assert_eq!((rates("another").is_some(), num_measured.get()), (true, before + 1));
            assert_eq!(fs::read_to_string(&path).unwrap(), text);
        }
        fs::write(&path, [0xff, 0xfe, 0]).unwrap();
        assert_eq!(rates("another"), Some(measured("another")));
        // A failed measurement writes no file.
        let other = dir.path().join("other");
        assert_eq!(cached_or_measured(Some(&other), "x", || Err("lost")), None);
        assert!(!other.exists());
        // A machine without a folder for the cache measures, too.
        assert!(cached_or_measured(None, "x", || Ok::<_, String>(measured("x"))).is_some());
    }

    #[test]
    fn linux_names_the_device_before_the_driver_is_started() {
        let dir = tempfile::tempdir().unwrap();
        assert_eq!(installed_device(&dir.path().join("none")), None);
        assert_eq!(installed_device(dir.path()), None);
        let gpu = dir.path().join("0000:01:00.0");
        fs::create_dir(&gpu).unwrap();
        assert_eq!(installed_device(dir.path()), None);
        let text = "Model: \t\t NVIDIA H200\nIRQ:   \t\t 92\nGPU UUID: \t GPU-0\n";
        fs::write(gpu.join("information"), text).unwrap();
        assert_eq!(installed_device(dir.path()).as_deref(), Some("NVIDIA H200"));
    }
}
