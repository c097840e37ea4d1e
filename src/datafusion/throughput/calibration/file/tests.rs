//! Tests of the calibration's file: round trip, faults with file and key, places, replacement.

use proptest::prelude::*;
use proptest::sample::Index;

use super::super::{DeviceCalibration, StorageRate, StorageSource};
use super::*;

/// A file that also has rates of cores, of decoding and of tasks over corpora.
const WITH_MORE_RATES: &str = r#"{
  "version": 2,
  "calibration": {
    "machine": "build-7, Xeon", "date": "2026-11-20", "num_cores": 16,
    "storage": { "gb_per_s": 2.41, "source": "page_cache" },
    "eight": { "ratio": 2.25, "cpu": { "check": { "per_core_gb_per_s": 2.1, "all_cores_gb_per_s": 24.0 } } },
    "corpora": [{ "one_core": 1.1, "all_cores": 0.2, "large": null }],
    "corpus_elements": [12345.0, null],
    "device": {
      "name": "NVIDIA H200",
      "h2d_pinned_gb_per_s": 51.2, "h2d_pageable_gb_per_s": 11.0,
      "d2h_pinned_gb_per_s": null, "d2h_pageable_gb_per_s": 5.0,
      "decode_8bit_gb_per_s": 980.0, "matching_gb_per_s": null, "launch_s": 0.00004, "startup_s": 0.21,
      "corpus_task_s": 0.005, "corpus_unit_s": [null, 1e-9, null, null, null]
    }
  }
}"#;

fn with_device() -> Calibration {
    let device = DeviceCalibration {
        h2d_pinned_gb_per_s: Some(55.2),
        startup_s: Some(0.31),
        ..DeviceCalibration::named("NVIDIA H200")
    };
    Calibration { device: Some(device), ..Calibration::default() }
}

/// Returns a calibration that has every number, each with digits that need the last bit.
fn with_everything() -> Calibration {
    let third = Some(1.0 / 3.0);
    let device = DeviceCalibration {
        name: "NVIDIA \"H200\"\n".to_owned(),
        h2d_pinned_gb_per_s: third,
        d2h_pinned_gb_per_s: third,
        startup_s: Some(6.123_456_789_012_345e-6),
    };
    Calibration { device: Some(device), ..Calibration::default() }
}

fn text_of(calibration: &Calibration) -> String {
    calibration.to_text().unwrap()
}

/// Returns the reason without the way out, which every reason has.
fn reason(text: &str) -> String {
    match Calibration::from_text("some/file", text) {
        Err(Error::Format { file, section: "calibration", reason, offset }) => {
            assert_eq!(file, "some/file");
            assert!(offset <= text.len() as u64, "{offset}");
            reason.strip_suffix("; run `tadoc calibrate` again").unwrap().to_owned()
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn reading_returns_the_calibration_that_was_written() {
    for calibration in [Calibration::default(), with_device(), with_everything()] {
        let text = text_of(&calibration);
        assert_eq!(Calibration::from_text("f", &text).unwrap(), calibration, "{text}");
        let windows = text.replace('\n', "\r\n");
        assert_eq!(Calibration::from_text("f", &windows).unwrap(), calibration);
    }
}

#[test]
fn keys_may_be_left_out_and_others_are_ignored() {
    let text = text_of(&with_device());
    let left_out = text.replacen("\"d2h_pinned_gb_per_s\": null,", "", 1);
    assert_ne!(left_out, text);
    assert_eq!(Calibration::from_text("f", &left_out).unwrap(), with_device());
    let nothing = "{\"version\": 2, \"calibration\": {}}";
    assert_eq!(Calibration::from_text("f", nothing).unwrap(), Calibration::default());
    let read = Calibration::from_text("f", WITH_MORE_RATES).unwrap();
    let (machine, storage) = ("build-7, Xeon", StorageSource::PageCache);
    assert_eq!((read.machine.as_str(), read.date.as_str()), (machine, "2026-11-20"));
    assert_eq!(read.storage, StorageRate { gb_per_s: 2.41, source: storage });
    let device = DeviceCalibration {
        h2d_pinned_gb_per_s: Some(51.2),
        startup_s: Some(0.21),
        ..DeviceCalibration::named("NVIDIA H200")
    };
    assert_eq!(read.device, Some(device));
}

#[test]
fn each_number_must_be_above_0() {
    let calibration = with_everything();
    assert_eq!(calibration.numbers().count(), 4);
    for (key, number) in calibration.numbers() {
        let name = key.rsplit('.').next().unwrap();
        let number = serde_json::to_string(&number).unwrap();
        for wrong in [0.0, -0.0, -1.5, -f64::MAX] {
            let from = format!("\"{name}\": {number}");
            let changed = text_of(&calibration).replacen(&from, &format!("\"{name}\": {wrong:?}"), 1);
            assert_eq!(reason(&changed), format!("{key}: got {wrong}, expected a number above 0"));
        }
    }
}

#[test]
fn numbers_must_be_finite() {
    let text = text_of(&with_device());
    for wrong in ["NaN", "inf", "-inf", "1e999", "\"0.5\"", "null", "[]", "0.5 GB"] {
        let reason = reason(&text.replacen("\"gb_per_s\": 0.5", &format!("\"gb_per_s\": {wrong}"), 1));
        let start = format!("got `\"gb_per_s\": {wrong},`, expected a calibration in JSON: ");
        assert!(reason.starts_with(&start) && reason.contains("at line 7 "), "{reason}");
    }
}

#[test]
fn faults_name_key_and_line() {
    let text = text_of(&with_device());
    let changed = |from: &str, to: &str| {
        let changed = text.replacen(from, to, 1);
        assert_ne!(changed, text, "{from}");
        reason(&changed)
    };
    let holds = |reason: String, parts: &[&str]| {
        assert!(parts.iter().all(|part| reason.contains(part)), "{reason}");
    };
    holds(changed("\"name\"", "\"startup_s\": 1, \"name\""), &["duplicate field `startup_s`"]);
    holds(changed("\"built_in\"", "\"tape\""), &["`\"source\": \"tape\"`", "unknown variant `tape`"]);
    holds(changed("\"calibration\"", "\"calibrations\""), &["unknown field `calibrations`"]);
    holds(reason("what"), &["got `what`", "at line 1 "]);
    holds(reason(""), &["got ``", "EOF while parsing"]);
    holds(reason(&format!("{text}x")), &["got `x`", "trailing characters"]);
    holds(reason(&"[".repeat(10_000)), &[&format!("got `{}`", "[".repeat(MAX_SHOWN_CHARS))]);
    let cut = reason(&text[..text.len() / 2]);
    holds(cut, &["EOF while parsing"]);
}

#[test]
fn other_versions_are_refused() {
    let later = "{\"version\": 3, \"calibration\": [1, {\"speed\": \"high\"}]}";
    let error = Calibration::from_text("f", later).unwrap_err();
    assert!(matches!(&error, Error::Version { got, .. } if got == "3"), "{error:?}");
}

#[test]
fn a_file_is_replaced_as_a_whole() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("new/folders/calibration");
    assert_eq!(Calibration::load_from(&path).unwrap(), Calibration::default());
    for calibration in [with_device(), Calibration::default(), with_device()] {
        calibration.save_to(&path).unwrap();
        assert_eq!(Calibration::load_from(&path).unwrap(), calibration);
    }
    let names: Vec<_> = fs::read_dir(path.parent().unwrap()).unwrap().collect();
    assert_eq!(names.len(), 1, "{names:?}");
}

#[test]
fn a_failed_write_leaves_nothing_behind() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("calibration");
    fs::create_dir(&path).unwrap();
    assert!(matches!(with_device().save_to(&path), Err(Error::Io { .. })));
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    assert!(matches!(Calibration::load_from(&path), Err(Error::Io { .. })));
}

#[test]
fn huge_and_binary_files_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("calibration");
    for bytes in [vec![b'#'; 70_000], vec![0xFF; 10]] {
        fs::write(&path, bytes).unwrap();
        let error = Calibration::load_from(&path).unwrap_err();
        assert!(matches!(error, Error::Format { .. }), "{error}");
        assert!(error.to_string().contains("run `tadoc calibrate` again"), "{error}");
    }
}

#[test]
fn places_follow_the_variables() {
    let of = |set: &[(&str, &str)], is_windows| {
        let value = |name: &str| set.iter().find(|(key, _)| *key == name).map(|(_, v)| v.into());
        path_from(value, is_windows)
    };
    let own = [("TADOC_CALIBRATION", "here"), ("HOME", "/home/u")];
    assert_eq!(of(&own, false).unwrap(), Path::new("here"));
    assert_eq!(of(&own, true).unwrap(), Path::new("here"));
    let home = Path::new("/home/u/.config/tadoc/calibration");
    for set in [
        vec![("HOME", "/home/u")],
        vec![("HOME", "/home/u"), ("XDG_CONFIG_HOME", "")],
        vec![("HOME", "/home/u"), ("XDG_CONFIG_HOME", "relative"), ("TADOC_CALIBRATION", "")],
    ] {
        assert_eq!(of(&set, false).unwrap(), home);
    }
    let configured = [("HOME", "/home/u"), ("XDG_CONFIG_HOME", "/etc/u")];
    assert_eq!(of(&configured, false).unwrap(), Path::new("/etc/u/tadoc/calibration"));
    let windows = of(&[("APPDATA", "data"), ("HOME", "/home/u")], true).unwrap();
    assert_eq!(windows, Path::new("data").join("tadoc").join("calibration"));
    assert_eq!(of(&[], false), None);
}

proptest! {
    #[test]
    fn any_text_is_read_or_refused(text in ".{0,300}") {
        let _ = Calibration::from_text("f", &text);
    }

    #[test]
    fn any_bytes_are_refused(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("calibration");
        fs::write(&path, bytes).unwrap();
        prop_assert!(Calibration::load_from(&path).is_err());
    }

    #[test]
    fn a_damaged_file_is_read_or_refused(place: Index, byte: u8) {
        let mut bytes = text_of(&with_everything()).into_bytes();
        let place = place.index(bytes.len());
        bytes[place] = byte;
        let Ok(text) = String::from_utf8(bytes) else { return Ok(()) };
        if let Ok(read) = Calibration::from_text("f", &text) {
            prop_assert!(read.numbers().all(|(_, number)| number > 0.0));
        }
    }
}
