//! Tests of the calibration's file: round trip, faults with file and key, places, replacement.

use std::collections::BTreeSet;

use proptest::prelude::*;
use proptest::sample::Index;

use super::super::corpora::NUM_CORPUS_TASKS;
use super::*;

fn with_device() -> Calibration {
    let device = DeviceCalibration {
        name: "NVIDIA H200".to_owned(),
        h2d_pinned_gb_per_s: Some(55.2),
        d2h_pinned_gb_per_s: None,
        launch_s: 6.1e-6,
        ..DeviceCalibration::default()
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
        matching_gb_per_s: third,
        launch_s: 6.123_456_789_012_345e-6,
        corpus_task_s: third,
        corpus_prepare_s: third,
        corpus_row_s: third,
        corpus_unit_s: [third; NUM_CORPUS_TASKS],
        ..DeviceCalibration::default()
    };
    Calibration {
        corpora: [CoreTimes { one_core: third, all_cores: third, large: third }; NUM_CORPUS_TASKS],
        corpus_elements: [Some(1e3), Some(1e21)],
        device: Some(device),
        ..Calibration::default()
    }
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
fn numbers_that_were_not_measured_may_be_left_out() {
    let text = text_of(&with_device());
    let left_out = text.replacen("\"d2h_pinned_gb_per_s\": null,", "", 1);
    assert_ne!(left_out, text);
    assert_eq!(Calibration::from_text("f", &left_out).unwrap(), with_device());
}

#[test]
fn each_number_must_be_above_0() {
    let mut calibration = with_everything();
    let num_numbers = calibration.numbers().len();
    assert_eq!(num_numbers, 1 + 2 * 11 + 3 * NUM_CORPUS_TASKS + 2 + 13 + NUM_CORPUS_TASKS);
    let mut keys = BTreeSet::new();
    for place in 0..num_numbers {
        for wrong in [0.0, -0.0, -1.5, -f64::MAX] {
            let mut calibration = with_everything();
            let (key, number) = calibration.numbers().swap_remove(place);
            *number = wrong;
            let reason = reason(&text_of(&calibration));
            assert_eq!(reason, format!("{key}: got {wrong}, expected a number above 0"));
            keys.insert(key);
        }
    }
    assert_eq!(keys.len(), num_numbers);
}

#[test]
fn numbers_must_be_finite() {
    let text = text_of(&with_device());
    for wrong in ["NaN", "inf", "-inf", "1e999", "\"0.5\"", "null", "[]", "0.5 GB"] {
        let reason =
            reason(&text.replacen("\"gb_per_s\": 0.5", &format!("\"gb_per_s\": {wrong}"), 1));
        let start = format!("got `\"gb_per_s\": {wrong},`, expected a calibration in JSON: ");
        assert!(reason.starts_with(&start) && reason.contains("at line 8 "), "{reason}");
    }
}

#[test]
fn counts_must_be_above_0() {
    let num_cores = format!("\"num_cores\": {}", Calibration::default().num_cores);
    let text = text_of(&Calibration::default());
    let changed = |to: &str| reason(&text.replacen(&num_cores, &format!("\"num_cores\": {to}"), 1));
    assert_eq!(changed("0"), "num_cores: got 0, expected a number of cores");
    for wrong in ["-1", "1.5", "1e30", "99999999999999999999999"] {
        assert!(changed(wrong).starts_with(&format!("got `\"num_cores\": {wrong},`")));
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
    holds(changed("\"gb_per_s\": 0.5,", ""), &["missing field `gb_per_s`", "at line "]);
    holds(changed("launch_s", "lunch_s"), &["unknown field `lunch_s`", "at line "]);
    holds(changed("\"name\"", "\"launch_s\": 1, \"name\""), &["duplicate field `launch_s`"]);
    holds(
        changed("\"built_in\"", "\"tape\""),
        &["`\"source\": \"tape\"`", "unknown variant `tape`"],
    );
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
fn the_older_form_is_refused_and_named() {
    let lines = "version = 1\nmachine = any\ndate = 2026-11-20\ncores = 16\nstorage = 2.41 GB/s\n";
    for text in [lines.to_owned(), format!("# a comment {{\n\n{lines}"), "version=1\r\n".to_owned()]
    {
        assert_eq!(reason(&text), "got the older form `key = value unit`, expected JSON");
    }
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
        if let Ok(mut read) = Calibration::from_text("f", &text) {
            prop_assert!(read.num_cores > 0);
            prop_assert!(read.numbers().iter().all(|(_, number)| **number > 0.0));
        }
    }
}
