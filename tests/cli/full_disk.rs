//! Tests on a disk without free space: stored data stays intact, and old versions can make room.

use std::io::Write;
use std::process::Command;

use crate::harness::{Folder, Ran, new_folder};

/// Runs `script` in `folder` with a disk of 1 MiB at `disk`. Returns `None`, and prints a line that
/// says so, if this machine does not allow one. In the script, `$tadoc` is the program, and `fill`
/// takes all free space.
fn on_small_disk(folder: &Folder, script: &str) -> Option<Ran> {
    std::fs::create_dir(folder.join("disk")).unwrap();
    let prepare = "mount -t tmpfs -o size=1m none disk || exit; echo mounted
        fill() { cat /dev/zero > disk/filler 2> /dev/null || true; }
        try() { \"$@\"; echo \"status $?\"; }";
    let mut command = Command::new("unshare");
    command.args(["--user", "--map-root-user", "--mount", "sh", "-c"]);
    command.arg(format!("{prepare}\n{script}")).current_dir(folder.path());
    command.env("tadoc", env!("CARGO_BIN_EXE_tadoc")).env("LC_ALL", "C");
    let mut ran = match command.output().map(Ran::from) {
        Ok(ran) => ran,
        Err(error) => return skip(&error.to_string()),
    };
    let told = String::from_utf8(ran.stdout).unwrap();
    let Some(told) = told.strip_prefix("mounted\n") else { return skip(&ran.stderr) };
    assert_eq!(ran.status, 0, "{told}{}", ran.stderr);
    ran.stdout = told.into();
    Some(ran)
}

fn skip(why: &str) -> Option<Ran> {
    // Writes past the test harness, which shows output only of tests that fail.
    let line = format!("skipped: no small disk to fill: {}\n", why.trim());
    std::io::stderr().write_all(line.as_bytes()).unwrap();
    None
}

/// Returns text that hardly compresses.
fn noise(num_words: usize, seed: u64) -> String {
    let mut state = seed;
    let mut number = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        format!("{:08x} ", state >> 32)
    };
    (0..num_words).map(|_| number()).collect()
}

#[test]
fn old_versions_make_room() {
    let folder = new_folder();
    folder.write("in/a.txt", noise(30_000, 1));
    folder.write("in/b.txt", noise(30_000, 2));
    // The second file is dropped. The new segment has half the size, and the old segment is no
    // longer needed.
    let script = "set -e
        $tadoc ingest in -q -o disk/notes --append
        $tadoc edit disk/notes -q --drop 1
        $tadoc optimize disk/notes -q
        $tadoc edit disk/notes -q --append 0 'the end'
        fill
        set +e
        try $tadoc optimize disk/notes
        try $tadoc edit disk/notes --append 0 more
        try $tadoc verify -q disk/notes
        COMMAND
        $tadoc verify -q disk/notes && $tadoc cat disk/notes a.txt | tail -c 7";
    let full = "status 1\nstatus 1\nstatus 0\n";
    let alone = script.replace("COMMAND", "try $tadoc clean-up disk/notes --age 0");
    let Some(ran) = on_small_disk(&folder, &alone) else { return };
    assert_eq!(ran.stderr.matches("No space left on device").count(), 2, "{}", ran.stderr);
    let told = String::from_utf8(ran.stdout).unwrap();
    let rest = told.strip_prefix(full).unwrap_or_else(|| panic!("{told}{}", ran.stderr));
    assert!(rest.starts_with("disk/notes: removed ") && rest.ends_with("status 0\nthe end"), "{rest}");

    std::fs::remove_dir(folder.join("disk")).unwrap();
    let both = script.replace("COMMAND", "try $tadoc optimize disk/notes --clean-up 0");
    let told = String::from_utf8(on_small_disk(&folder, &both).unwrap().stdout).unwrap();
    let rest = told.strip_prefix(full).unwrap_or_else(|| panic!("{told}"));
    assert!(rest.contains("rebuilt as 1 file") && rest.contains("removed "), "{rest}");
    assert!(rest.ends_with("status 0\nthe end"), "{rest}");
}

#[test]
fn outputs_that_do_not_fit_leave_the_old_ones() {
    let folder = new_folder();
    folder.write("in/a.txt", noise(30_000, 1));
    let script = "set -e
        echo old > disk/c.tadoc; echo old > disk/words.svg; fill
        set +e
        try $tadoc ingest in -q -o disk/c.tadoc --force
        try $tadoc ingest in -q -o disk/new.tadoc
        try $tadoc plot \"SELECT value AS x, value AS y FROM generate_series(1, 5000)\" \
            -o disk/words.svg --force
        cat disk/c.tadoc disk/words.svg; ls -A disk";
    let Some(ran) = on_small_disk(&folder, script) else { return };
    let told = String::from_utf8(ran.stdout).unwrap();
    assert_eq!(told, "status 1\nstatus 1\nstatus 1\nold\nold\nc.tadoc\nfiller\nwords.svg\n", "{}", ran.stderr);
    let lines: Vec<&str> = ran.stderr.lines().collect();
    assert_eq!(lines.len(), 3, "{lines:?}");
    for (line, name) in lines.iter().zip(["c.tadoc", "new.tadoc", "words.svg"]) {
        assert!(line.contains(name) && line.contains("No space left on device"), "{line}");
    }
}
