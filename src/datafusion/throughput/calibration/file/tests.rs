//! Tests of the calibration's file: round trip, faults with file and line, places, replacement.

use proptest::prelude::*;

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

fn reason(text: &str) -> String {
    match Calibration::from_text("some/file", text) {
        Err(Error::Format { file, section: "calibration", reason, .. }) if file == "some/file" => {
            reason
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn what_is_written_is_read() {
    for calibration in [Calibration::default(), with_device()] {
        let text = calibration.to_text();
        assert_eq!(Calibration::from_text("f", &text).unwrap(), calibration, "{text}");
        let windows = text.replace('\n', "\r\n");
        assert_eq!(Calibration::from_text("f", &windows).unwrap(), calibration);
    }
    assert!(with_device().to_text().contains("\ndevice_launch = 0.0000061 s\n"));
    assert!(!with_device().to_text().contains("d2h_pinned"));
}

#[test]
fn names_cannot_break_a_line() {
    let machine = "  a = b\nversion = 9\u{7}# c ".to_owned();
    let text = Calibration { machine, ..Calibration::default() }.to_text();
    let read = Calibration::from_text("f", &text).unwrap();
    assert_eq!(read.machine, "a = b version = 9 # c");
}

#[test]
fn faults_name_file_and_line() {
    let text = with_device().to_text();
    let changed = |from: &str, to: &str| reason(&text.replacen(from, to, 1));
    let missing = "storage is missing; run `tadoc calibrate` again";
    assert_eq!(changed("\nstorage = 0.5 GB/s", ""), missing);
    assert_eq!(
        changed("storage = 0.5 GB/s", "storage = 0.5 MB/s"),
        "line 10: got `0.5 MB/s`, expected a number above 0 in GB/s"
    );
    for wrong in ["-1 GB/s", "0 GB/s", "NaN GB/s", "inf GB/s", "GB/s", "", "1 GB/s GB/s"] {
        let reason = changed("storage = 0.5 GB/s", &format!("storage = {wrong}"));
        assert!(reason.starts_with(&format!("line 10: got `{wrong}`, expected")), "{reason}");
    }
    assert_eq!(
        changed("cpu_8bit_ratio = 2.25", "cpu_8bit_ratio = 2.25 GB/s"),
        "line 11: got `2.25 GB/s`, expected a number above 0"
    );
    assert!(changed("device_launch", "device_lunch").starts_with("device_launch is missing"));
    assert_eq!(reason(&format!("{text}x = 1\n")), "line 41: unknown key x");
    assert_eq!(reason(&format!("{text}date = 1\n")), "line 41: date stands in line 6 already");
    assert_eq!(reason("what"), "line 1: got `what`, expected key = value");
    assert!(reason(&text.replacen("cores = ", "cores = -", 1)).ends_with("a number of cores"));
    assert!(changed("= built in\ndevice", "= tape\ndevice").starts_with("line 8: got `tape`"));
    let error = Calibration::from_text("f", &text.replacen("version = 1", "version = 2", 1));
    assert!(matches!(error, Err(Error::Version { .. })), "{error:?}");
}

/// Builds until November 2026 measured batches of questions, too.
#[test]
fn files_of_older_builds_are_read() {
    let text = with_device().to_text();
    let cores = "corpus_passage = 0.0000008412 s\ncorpus_passage_byte = 0.0000000003 s\n\
                 corpus_word_byte = 0.0000000007021 s\n";
    let device = "device_corpus_batch = 0.0001003 s\ndevice_corpus_question = 0.0000000655 s\n\
                  device_corpus_passage_byte = 0.000000001 s\n\
                  device_corpus_word_byte = 0.0000000011 s\ndevice_corpus_text = 0.000000002 s\n";
    let old = text.replacen("device_h2d", &format!("{cores}device_h2d"), 1) + device;
    let read = Calibration::from_text("f", &old).unwrap();
    assert_eq!(read, with_device());
    assert_eq!(read.to_text(), text);
    // Their values are no longer looked at; a key may still stand once.
    assert!(Calibration::from_text("f", &old.replace("0.0001003 s", "fast")).is_ok());
    let twice = reason(&format!("{old}corpus_passage = 1 s\n"));
    assert!(twice.contains("corpus_passage stands in line"), "{twice}");
}

#[test]
fn device_numbers_need_a_device() {
    let text = with_device().to_text().replacen("\ndevice = NVIDIA H200", "", 1);
    assert!(reason(&text).contains("unknown key device_"), "{}", reason(&text));
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
        assert!(error.to_string().contains("calibration"), "{error}");
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
    fn a_damaged_file_is_read_or_refused(at in 0..1200_usize, byte: u8) {
        let mut bytes = with_device().to_text().into_bytes();
        if let Some(place) = bytes.get_mut(at) {
            *place = byte;
        }
        if let Ok(text) = String::from_utf8(bytes) {
            let _ = Calibration::from_text("f", &text);
        }
    }
}
