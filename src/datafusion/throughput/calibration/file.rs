//! The file a calibration is kept in.
//!
//! ```text
//! # datafusion-tadoc: rates of this machine, measured by `tadoc calibrate`; …
//! version = 1
//! machine = build-7, Intel(R) Xeon(R) Platinum 8480C
//! date = 2026-11-20
//! cores = 16
//! storage = 2.41 GB/s
//! storage_source = page cache
//! cpu_8bit_ratio = 2.31
//! cpu_8bit_check_one_core = 1.9 GB/s           check, staging, decode, match, encode;
//! …                                            one_core, all_cores; the same for cpu_12bit
//! corpus_one_core = 0.93                       sequences; the same for all_cores, and, not in files of
//! …                                            before, for corpus_terms, _index, _pairs, _ranked and
//! …                                            all_cores_large, with corpus_elements
//! device = NVIDIA H200                         this and what follows only where one was measured
//! device_launch = 0.0000061 s
//! ```
//!
//! One key and value in a line, numbers with their unit; empty lines and lines that start with `#`
//! are skipped. A key may stand once. Numbers that are not there and keys that are not known are
//! errors, so a slip of the pen is not silently ignored; deleting the file brings the built-in
//! values back. Lines with keys of older builds are skipped. The file is replaced as a whole:
//! readers see the old one or the new one.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fmt::Write as _;
use std::fs::{self, File};
use std::io::{ErrorKind, Read, Write as _};
use std::path::{Path, PathBuf};

use tadoc::error::{Error, Result};

use super::storage::StorageSource;
use super::{Calibration, DeviceCalibration};

const VERSION: &str = "1";
/// Far more than a calibration has; nothing larger is read.
const MAX_FILE_BYTES: u64 = 64 << 10;
const HEADER: &str = "\
# datafusion-tadoc: rates of this machine, measured by `tadoc calibrate`; used to choose between
# CPU and GPU. Delete it to use built-in values. GB are 10^9 bytes of text, of storage and links as
# stored.
";
const GB_PER_S: &str = "GB/s";
pub(super) const SECONDS: &str = "s";
const NO_UNIT: &str = "";
/// Keys of older builds, which measured batches of questions to a corpus, too.
const OLD_KEYS: [&str; 8] = [
    "corpus_passage",
    "corpus_passage_byte",
    "corpus_word_byte",
    "device_corpus_batch",
    "device_corpus_question",
    "device_corpus_passage_byte",
    "device_corpus_word_byte",
    "device_corpus_text",
];

/// Where the calibration of this user is kept: `TADOC_CALIBRATION`, else the file `calibration` in
/// the folder `tadoc` of the user's configuration. `None` where no variable says where that is.
pub fn path() -> Option<PathBuf> {
    path_from(|name| std::env::var_os(name), cfg!(windows))
}

/// Path of the cached rates of a device: the file `device` in the folder `tadoc` of the user's caches. `None` where no
/// variable names that folder.
pub(super) fn cache_path() -> Option<PathBuf> {
    let folders = ["LOCALAPPDATA", "XDG_CACHE_HOME", ".cache"];
    path_in(folders, "device", |name| std::env::var_os(name), cfg!(windows))
}

fn path_from(variable: impl Fn(&str) -> Option<OsString>, is_windows: bool) -> Option<PathBuf> {
    match variable("TADOC_CALIBRATION").filter(|value| !value.is_empty()) {
        Some(path) => Some(path.into()),
        None => {
            let folders = ["APPDATA", "XDG_CONFIG_HOME", ".config"];
            path_in(folders, "calibration", variable, is_windows)
        }
    }
}

/// The file `name` in the folder `tadoc` of what the first variable names on Windows, the second elsewhere; where that
/// is not set, of the folder below the user's own.
fn path_in(
    [of_windows, of_xdg, below_home]: [&str; 3],
    name: &str,
    variable: impl Fn(&str) -> Option<OsString>,
    is_windows: bool,
) -> Option<PathBuf> {
    let path_of = |name| variable(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let folder = if is_windows {
        path_of(of_windows)
    } else {
        // The XDG base directory specification: relative paths are to be ignored.
        let configured = path_of(of_xdg).filter(|path| path.is_absolute());
        configured.or_else(|| Some(path_of("HOME")?.join(below_home)))
    };
    Some(folder?.join("tadoc").join(name))
}

/// A number of a calibration, where it is kept and what it is called.
pub(super) struct Number<'a> {
    pub(super) key: String,
    pub(super) unit: &'static str,
    pub(super) slot: Slot<'a>,
}

/// Numbers that have to be there, and such that need not.
pub(super) enum Slot<'a> {
    Required(&'a mut f64),
    Optional(&'a mut Option<f64>),
}

impl Slot<'_> {
    pub(super) fn value_mut(&mut self) -> Option<&mut f64> {
        match self {
            Slot::Required(value) => Some(value),
            Slot::Optional(value) => value.as_mut(),
        }
    }
}

/// A line of a file that has been read.
struct Line<'a> {
    number: usize,
    offset: u64,
    value: &'a str,
}

impl Calibration {
    /// What is kept at [`path`], or the built-in values where there is nothing.
    ///
    /// # Errors
    ///
    /// Those of [`Calibration::load_from`].
    pub fn load() -> Result<Self> {
        path().map_or_else(|| Ok(Self::default()), |path| Self::load_from(&path))
    }

    /// What is kept at `path`, or the built-in values where there is nothing.
    ///
    /// # Errors
    ///
    /// [`Error::Io`]; those of [`Calibration::from_text`].
    pub fn load_from(path: &Path) -> Result<Self> {
        let failed =
            |error| Error::io(format!("reading the calibration {}", path.display()), error);
        let file = match File::open(path) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Self::default()),
            file => file.map_err(failed)?,
        };
        let mut bytes = Vec::new();
        file.take(MAX_FILE_BYTES + 1).read_to_end(&mut bytes).map_err(failed)?;
        let name = path.display().to_string();
        if bytes.len() as u64 > MAX_FILE_BYTES {
            let reason = format!("it has more than {MAX_FILE_BYTES} bytes");
            return Err(fault(&name, MAX_FILE_BYTES, reason));
        }
        match std::str::from_utf8(&bytes) {
            Ok(text) => Self::from_text(&name, text),
            Err(error) => Err(fault(&name, error.valid_up_to() as u64, "it is not UTF-8".into())),
        }
    }

    /// Replaces what is kept at `path`; makes its folder.
    ///
    /// # Errors
    ///
    /// [`Error::Io`]; then the file is as it was.
    pub fn save_to(&self, path: &Path) -> Result<()> {
        let failed =
            |error| Error::io(format!("writing the calibration {}", path.display()), error);
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
        let folder = folder.unwrap_or(Path::new("."));
        fs::create_dir_all(folder).map_err(failed)?;
        let mut name = path.file_name().unwrap_or_default().to_owned();
        name.push(format!(".{}.new", std::process::id()));
        let new = folder.join(name);
        let written = write_and_sync(&new, self.to_text().as_bytes());
        let replaced = written.and_then(|()| fs::rename(&new, path));
        if replaced.is_err() {
            // Best effort; the first error is the one to report.
            let _ = fs::remove_file(&new);
        }
        replaced.map_err(failed)?;
        // A rename is durable once its folder is; not all systems can open folders.
        if let Ok(folder) = File::open(folder) {
            let _ = folder.sync_all();
        }
        Ok(())
    }

    /// The file's text.
    pub fn to_text(&self) -> String {
        let mut copy = self.clone();
        let mut text = HEADER.to_owned();
        let mut put = |key: &str, value: &str| {
            // Writing to a string cannot fail.
            let _ = writeln!(text, "{key} = {}", one_line(value));
        };
        put("version", VERSION);
        put("machine", &self.machine);
        put("date", &self.date);
        put("cores", &self.num_cores.to_string());
        put("storage_source", &self.storage.source.to_string());
        if let Some(device) = &self.device {
            put("device", &device.name);
        }
        for mut number in copy.numbers() {
            if let Some(value) = number.slot.value_mut() {
                put(&number.key, format!("{value} {}", number.unit).trim_end());
            }
        }
        text
    }

    /// The calibration that `text`, which came from `file`, describes.
    ///
    /// # Errors
    ///
    /// [`Error::Version`]; [`Error::Format`] with file and line where something is missing,
    /// unknown, twice there, or not a number above 0 with its unit.
    pub fn from_text(file: &str, text: &str) -> Result<Self> {
        let mut lines = lines(file, text)?;
        let missing = |key: &str| {
            let reason = format!("{key} is missing; run `tadoc calibrate` again");
            fault(file, text.len() as u64, reason)
        };
        let mut take = |key: &str| lines.remove(key).ok_or_else(|| missing(key));
        let version = take("version")?;
        if version.value != VERSION {
            let (got, expected) = (version.value.to_owned(), VERSION.to_owned());
            return Err(Error::Version { file: file.to_owned(), expected, got });
        }
        let mut calibration = Self {
            machine: take("machine")?.value.to_owned(),
            date: take("date")?.value.to_owned(),
            ..Self::default()
        };
        let cores = take("cores")?;
        calibration.num_cores = match cores.value.parse() {
            Ok(num_cores) if num_cores > 0 => num_cores,
            _ => return Err(cores.fault(file, "a number of cores")),
        };
        let source = take("storage_source")?;
        let is_it = |known: &StorageSource| known.to_string() == source.value;
        calibration.storage.source = StorageSource::ALL
            .into_iter()
            .find(is_it)
            .ok_or_else(|| source.fault(file, "`storage`, `page cache` or another of its names"))?;
        if let Some(device) = lines.remove("device") {
            let name = device.value.to_owned();
            calibration.device = Some(DeviceCalibration { name, ..DeviceCalibration::default() });
        }
        for number in calibration.numbers() {
            let line = lines.remove(&number.key[..]);
            let value = line.map(|line| line.number(file, number.unit)).transpose()?;
            match (number.slot, value) {
                (Slot::Required(slot), Some(value)) => *slot = value,
                (Slot::Required(_), None) => return Err(missing(&number.key)),
                (Slot::Optional(slot), value) => *slot = value,
            }
        }
        lines.retain(|key, _| !OLD_KEYS.contains(key));
        match lines.into_iter().min_by_key(|(_, line)| line.number) {
            Some((key, line)) => {
                let reason = format!("line {}: unknown key {key}", line.number);
                Err(fault(file, line.offset, reason))
            }
            None => Ok(calibration),
        }
    }

    /// All numbers but the count of cores, in the order of the file.
    pub(super) fn numbers(&mut self) -> Vec<Number<'_>> {
        let required = |key: String, unit, value| Number { key, unit, slot: Slot::Required(value) };
        let mut numbers =
            vec![required("storage".to_owned(), GB_PER_S, &mut self.storage.gb_per_s)];
        for (width, rates) in [("8bit", &mut self.eight), ("12bit", &mut self.twelve)] {
            numbers.push(required(format!("cpu_{width}_ratio"), NO_UNIT, &mut rates.ratio));
            let cpu = &mut rates.cpu;
            for (task, rate) in [
                ("check", &mut cpu.check),
                ("staging", &mut cpu.staging),
                ("decode", &mut cpu.decode),
                ("match", &mut cpu.matching),
                ("encode", &mut cpu.encode),
            ] {
                let key = |cores: &str| format!("cpu_{width}_{task}_{cores}");
                numbers.push(required(key("one_core"), GB_PER_S, &mut rate.per_core_gb_per_s));
                numbers.push(required(key("all_cores"), GB_PER_S, &mut rate.all_cores_gb_per_s));
            }
        }
        for (task, times) in
            ["", "_terms", "_index", "_pairs", "_ranked"].iter().zip(&mut self.corpora)
        {
            for (cores, slot) in [
                ("one_core", &mut times.one_core),
                ("all_cores", &mut times.all_cores),
                ("all_cores_large", &mut times.large),
            ] {
                let key = format!("corpus{task}_{cores}");
                numbers.push(Number { key, unit: NO_UNIT, slot: Slot::Optional(slot) });
            }
        }
        let [smaller, larger] = &mut self.corpus_elements;
        for (key, slot) in [("corpus_elements", smaller), ("corpus_elements_large", larger)] {
            let (key, unit) = (key.to_owned(), NO_UNIT);
            numbers.push(Number { key, unit, slot: Slot::Optional(slot) });
        }
        numbers.extend(self.device.iter_mut().flat_map(DeviceCalibration::numbers));
        numbers
    }
}

impl DeviceCalibration {
    fn numbers(&mut self) -> Vec<Number<'_>> {
        let number = |key: &str, unit, slot| Number { key: format!("device_{key}"), unit, slot };
        let rate = |key: &str, slot| number(key, GB_PER_S, slot);
        let mut numbers = vec![
            rate("h2d_pinned", Slot::Optional(&mut self.h2d_pinned_gb_per_s)),
            rate("h2d_pageable", Slot::Required(&mut self.h2d_pageable_gb_per_s)),
            rate("d2h_pinned", Slot::Optional(&mut self.d2h_pinned_gb_per_s)),
            rate("d2h_pageable", Slot::Required(&mut self.d2h_pageable_gb_per_s)),
            rate("decode_8bit", Slot::Required(&mut self.decode_8bit_gb_per_s)),
            rate("decode_12bit", Slot::Required(&mut self.decode_12bit_gb_per_s)),
            rate("match", Slot::Optional(&mut self.matching_gb_per_s)),
            rate("memory", Slot::Required(&mut self.memory_gb_per_s)),
            number("launch", SECONDS, Slot::Required(&mut self.launch_s)),
            number("startup", SECONDS, Slot::Required(&mut self.startup_s)),
            number("corpus_task", SECONDS, Slot::Optional(&mut self.corpus_task_s)),
            number("corpus_prepare", SECONDS, Slot::Optional(&mut self.corpus_prepare_s)),
            number("corpus_row", SECONDS, Slot::Optional(&mut self.corpus_row_s)),
        ];
        let units = ["window", "term", "posting", "pair", "ranked"];
        numbers.extend(
            units.iter().zip(&mut self.corpus_unit_s).map(|(unit, slot)| {
                number(&format!("corpus_{unit}"), SECONDS, Slot::Optional(slot))
            }),
        );
        numbers
    }
}

impl Line<'_> {
    fn fault(&self, file: &str, expected: &str) -> Error {
        let reason = format!("line {}: got `{}`, expected {expected}", self.number, self.value);
        fault(file, self.offset, reason)
    }

    /// A number above 0 with its unit.
    fn number(&self, file: &str, unit: &'static str) -> Result<f64> {
        let (number, got_unit) = self.value.split_once(' ').unwrap_or((self.value, ""));
        match number.parse::<f64>() {
            Ok(value) if got_unit.trim() == unit && value > 0.0 && value.is_finite() => Ok(value),
            _ => {
                let expected = format!("a number above 0 in {unit}");
                Err(self.fault(file, expected.trim_end_matches(" in ")))
            }
        }
    }
}

/// Lines of a file by key.
fn lines<'a>(file: &str, text: &'a str) -> Result<BTreeMap<&'a str, Line<'a>>> {
    let (mut lines, mut offset) = (BTreeMap::new(), 0);
    for (i, whole) in text.split_inclusive('\n').enumerate() {
        let at = offset;
        offset += whole.len() as u64;
        let line = whole.trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let number = i + 1;
        let Some((key, value)) = line.split_once('=') else {
            let reason = format!("line {number}: got `{line}`, expected key = value");
            return Err(fault(file, at, reason));
        };
        let line = Line { number, offset: at, value: value.trim() };
        if let Some(before) = lines.insert(key.trim(), line) {
            let reason =
                format!("line {number}: {} stands in line {} already", key.trim(), before.number);
            return Err(fault(file, at, reason));
        }
    }
    Ok(lines)
}

fn write_and_sync(path: &Path, bytes: &[u8]) -> std::io::Result<()> {
    let mut file = File::create(path)?;
    file.write_all(bytes)?;
    file.sync_all()
}

/// Names of machines and devices come from outside; what would end the line becomes a blank.
fn one_line(text: &str) -> String {
    let text: String = text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    text.trim().to_owned()
}

fn fault(file: &str, offset: u64, reason: String) -> Error {
    Error::Format { file: file.to_owned(), section: "calibration", offset, reason }
}

#[cfg(test)]
mod tests;
