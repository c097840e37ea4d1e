//! Tests of `tadoc grep`: forms of the output, exit statuses, and the lines that GNU grep finds in the
//! same files.

use std::process::Command;

use testkit::random::Random;

use crate::harness::{Folder, new_folder};

const NOTES: &str = "first line\nDisk failure on sda\nthen nothing\nand more\npower loss\n\
                     disk failure on sdb\nlast";

fn corpus() -> Folder {
    let folder = new_folder();
    folder.write("in/a.txt", NOTES);
    folder.write("in/b/c.txt", b"bytes \xff\xfe and disk\r\n\n");
    folder.write("in/d.txt", "");
    folder.ok(&["ingest", "in", "-o", "c.tadoc"]);
    folder
}

/// Runs `tadoc grep` and expects lines.
pub fn found(folder: &Folder, arguments: &[&str]) -> String {
    let ran = folder.run(&[&["grep"], arguments].concat());
    assert_eq!((ran.status, ran.stderr.as_str()), (0, ""), "{arguments:?}");
    String::from_utf8_lossy(&ran.stdout).into_owned()
}

#[test]
fn lines_stand_behind_their_path_and_number() {
    let folder = corpus();
    let all = "a.txt:2:Disk failure on sda\na.txt:6:disk failure on sdb\n\
               b/c.txt:1:bytes \u{fffd}\u{fffd} and disk\r\n";
    assert_eq!(found(&folder, &["-i", "DISK", "c.tadoc"]), all);
    assert_eq!(found(&folder, &["[Dd]isk", "c.tadoc"]), all);
    assert_eq!(found(&folder, &["-e", "[Dd]isk", "c.tadoc"]), all);
    let one = "a.txt:6:disk failure on sdb\n";
    assert_eq!(found(&folder, &["disk (failure|loss)", "c.tadoc"]), one);
    assert_eq!(found(&folder, &["-N", "sdb$", "c.tadoc"]), "a.txt:disk failure on sdb\n");
    assert_eq!(found(&folder, &["-m", "1", "-i", "^disk", "c.tadoc"]).lines().count(), 1);
    assert_eq!(found(&folder, &["-w", "on|las", "c.tadoc"]).lines().count(), 2);
    assert_eq!(found(&folder, &["-v", "[a-z]", "c.tadoc"]), "b/c.txt:2:\n");
    assert_eq!(found(&folder, &["-c", "", "c.tadoc"]), "a.txt:7\nb/c.txt:2\n");
    // Bytes that are not UTF-8 are written as they stand.
    let ran = folder.run(&["grep", r"(?-u:\xff)", "c.tadoc"]);
    assert_eq!(ran.stdout, b"b/c.txt:1:bytes \xff\xfe and disk\r\n");
    folder.write("in/signs.txt", "a.b\na+b -C\naab\n");
    folder.ok(&["ingest", "in", "-o", "signs.tadoc"]);
    assert_eq!(found(&folder, &["-F", "a.b", "signs.tadoc"]), "signs.txt:1:a.b\n");
    assert_eq!(found(&folder, &["-F", "-e", "-C", "signs.tadoc"]), "signs.txt:2:a+b -C\n");
}

#[test]
fn paths_and_counts() {
    let folder = corpus();
    assert_eq!(found(&folder, &["-l", "-i", "disk", "c.tadoc"]), "a.txt\nb/c.txt\n");
    assert_eq!(found(&folder, &["-c", "-i", "disk", "c.tadoc"]), "a.txt:2\nb/c.txt:1\n");
    assert_eq!(found(&folder, &["-c", "-m1", "-C2", "-i", "disk", "c.tadoc"]), "a.txt:1\nb/c.txt:1\n");
    std::fs::copy(folder.join("c.tadoc"), folder.join("e.tadoc")).unwrap();
    let paths = found(&folder, &["-l", "power", "c.tadoc", "e.tadoc"]);
    assert_eq!(paths, "c.tadoc/a.txt\ne.tadoc/a.txt\n");
}

#[test]
fn matches_alone_and_whole_lines() {
    let folder = corpus();
    let matches = "a.txt:2:Disk\na.txt:2:sda\na.txt:6:disk\na.txt:6:sdb\n";
    assert_eq!(found(&folder, &["-o", "-i", "disk|sd[a-z]", "c.tadoc"]).lines().count(), 5);
    assert!(found(&folder, &["-o", "-i", "disk|sd[a-z]", "c.tadoc"]).starts_with(matches));
    assert_eq!(found(&folder, &["-c", "-o", "l", "c.tadoc"]), "a.txt:5\n");
    let around = "a.txt-4-and more\na.txt:5:power\na.txt-6-disk failure on sdb\n";
    assert_eq!(found(&folder, &["-o", "-C1", "power", "c.tadoc"]), around);
    // Lines without a match have none to write.
    assert_eq!(found(&folder, &["-o", "-v", "[a-z]", "c.tadoc"]), "b/c.txt:2:\n");
    assert_eq!(found(&folder, &["-x", "last|nothing", "c.tadoc"]), "a.txt:7:last\n");
    assert_eq!(found(&folder, &["-x", "-w", "-F", "last", "c.tadoc"]), "a.txt:7:last\n");
    assert_eq!(found(&folder, &["-x", "x*", "c.tadoc"]), "b/c.txt:2:\n");
}

#[test]
fn quiet_searches_only_tell_if_there_is_a_line() {
    let folder = corpus();
    for arguments in [["-q", "disk", "c.tadoc"].as_slice(), &["-q", "-C2", "--json", "disk", "c.tadoc"]] {
        assert_eq!(found(&folder, arguments), "");
    }
    // The first corpus is enough, so the second one is not looked for.
    assert_eq!(found(&folder, &["-q", "disk", "c.tadoc", "nowhere.tadoc"]), "");
    let ran = folder.run(&["grep", "-q", "nowhere", "c.tadoc"]);
    assert_eq!((ran.status, ran.stdout.as_slice(), ran.stderr.as_str()), (1, &b""[..], ""));
}

#[test]
fn lines_around_are_written_once() {
    let folder = corpus();
    let context = "a.txt-1-first line\na.txt:2:Disk failure on sda\na.txt-3-then nothing\n--\n\
                   a.txt-5-power loss\na.txt:6:disk failure on sdb\na.txt-7-last\n--\n\
                   b/c.txt:1:bytes \u{fffd}\u{fffd} and disk\r\nb/c.txt-2-\n";
    assert_eq!(found(&folder, &["-C1", "-i", "disk", "c.tadoc"]), context);
    let after = "a.txt:2:Disk failure on sda\na.txt-3-then nothing\na.txt-4-and more\n\
                 a.txt-5-power loss\na.txt:6:disk failure on sdb\na.txt-7-last\n";
    assert_eq!(found(&folder, &["-A3", "-i", "disk f", "c.tadoc"]), after);
    let before = "a.txt-5-power loss\na.txt:6:disk failure on sdb\n";
    assert_eq!(found(&folder, &["-B1", "-C0", "disk f", "c.tadoc"]), before);
}

#[test]
fn colours_are_those_of_ripgrep() {
    let folder = corpus();
    let colored = "\x1b[0m\x1b[35ma.txt\x1b[0m:\x1b[0m\x1b[32m5\x1b[0m:\
                   p\x1b[0m\x1b[1m\x1b[31mow\x1b[0mer l\x1b[0m\x1b[1m\x1b[31moss\x1b[0m\n";
    assert_eq!(found(&folder, &["--color=always", "ow|(oss)", "c.tadoc"]), colored);
}

#[test]
fn json_has_every_match() {
    let folder = corpus();
    let text = found(&folder, &["--json", "-A1", "a?nd", "c.tadoc"]);
    let lines: Vec<serde_json::Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let types: Vec<&str> = lines.iter().map(|line| line["type"].as_str().unwrap()).collect();
    let expected = ["begin", "match", "context", "end", "begin", "match", "context", "end", "summary"];
    assert_eq!(types, expected);
    let data = &lines[1]["data"];
    assert_eq!(data["path"]["text"], "a.txt");
    assert_eq!(data["lines"]["text"], "and more");
    assert_eq!((&data["line_number"], &data["absolute_offset"]), (&4.into(), &44.into()));
    assert_eq!(data["submatches"].as_array().unwrap().len(), 1);
    assert_eq!(data["submatches"][0]["end"], 3);
    assert_eq!(lines[2]["data"]["absolute_offset"], 53);
    assert_eq!(lines[5]["data"]["lines"]["bytes"], "Ynl0ZXMg//4gYW5kIGRpc2sN");
    // The keys are those of ripgrep 15.1.
    let keys =
        |value: &serde_json::Value| value.as_object().unwrap().keys().cloned().collect::<Vec<String>>().join(" ");
    let end = &lines[3]["data"];
    let summary = &lines[8]["data"];
    assert_eq!(keys(end), "binary_offset path stats");
    assert_eq!(keys(summary), "elapsed_total stats");
    assert_eq!(keys(&summary["elapsed_total"]), "human nanos secs");
    let names = "bytes_printed bytes_searched elapsed matched_lines matches searches searches_with_match";
    assert_eq!((keys(&end["stats"]), keys(&summary["stats"])), (names.into(), names.into()));
    let numbers = |stats: &serde_json::Value| {
        ["searches", "searches_with_match", "bytes_searched", "matched_lines", "matches"]
            .map(|name| stats[name].as_u64().unwrap())
    };
    assert_eq!(numbers(&end["stats"]), [1, 1, 88, 1, 1]);
    assert_eq!(numbers(&summary["stats"]), [2, 2, 108, 2, 2]);
    let printed = text.lines().take(3).map(|line| line.len() + 1).sum::<usize>();
    assert_eq!(end["stats"]["bytes_printed"], printed);
}

#[test]
fn json_has_the_replacement_of_each_match() {
    let folder = corpus();
    let text = found(&folder, &["--json", "-r", "<$0>", "a?nd", "c.tadoc"]);
    let lines: Vec<serde_json::Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let first = &lines[1]["data"];
    assert_eq!((&first["lines"]["text"], &first["line_number"]), (&"and more\n".into(), &4.into()));
    assert_eq!(first["submatches"][0]["replacement"]["text"], "<and>");
}

#[test]
fn json_ends_with_a_summary_even_without_a_line() {
    let folder = corpus();
    let ran = folder.run(&["grep", "--json", "nowhere", "c.tadoc"]);
    assert_eq!((ran.status, ran.stderr.as_str()), (1, ""));
    let summary: serde_json::Value = serde_json::from_slice(&ran.stdout).unwrap();
    assert_eq!(summary["type"], "summary");
    assert_eq!(summary["data"]["stats"]["matches"], 0);
}

/// The expected lines are those that ripgrep 15.1 writes for the files.
#[test]
fn case_is_smart_and_the_last_flag_counts() {
    let folder = corpus();
    let any = "a.txt:2:Disk failure on sda\na.txt:6:disk failure on sdb\n\
               b/c.txt:1:bytes \u{fffd}\u{fffd} and disk\r\n";
    let small = "a.txt:6:disk failure on sdb\nb/c.txt:1:bytes \u{fffd}\u{fffd} and disk\r\n";
    assert_eq!(found(&folder, &["-S", "disk", "c.tadoc"]), any);
    assert_eq!(found(&folder, &["--smart-case", "Disk", "c.tadoc"]).lines().count(), 1);
    assert_eq!(found(&folder, &["-S", "-e", "disk", "-e", "POWER", "c.tadoc"]), small);
    assert_eq!(found(&folder, &["-s", "-S", "disk", "c.tadoc"]), any);
    assert_eq!(found(&folder, &["-i", "-s", "disk", "c.tadoc"]), small);
    assert_eq!(found(&folder, &["-s", "-i", "DISK", "c.tadoc"]), any);
    assert_eq!(folder.run(&["grep", "-i", "-S", "DISK", "c.tadoc"]).status, 1);
}

#[test]
fn several_expressions_are_alternatives() {
    let folder = corpus();
    let lines = "a.txt:5:power loss\na.txt:6:disk failure on sdb\n\
                 b/c.txt:1:bytes \u{fffd}\u{fffd} and disk\r\n";
    assert_eq!(found(&folder, &["-e", "disk", "-e", "power", "c.tadoc"]), lines);
    assert_eq!(found(&folder, &["-e", "disk", "c.tadoc", "--regexp=^power"]), lines);
    let matches = "a.txt:5:pow\na.txt:5:loss\n";
    assert_eq!(found(&folder, &["-o", "-e", "pow", "-e", "power|loss", "c.tadoc"]), matches);
    assert_eq!(found(&folder, &["-Fc", "-e", "(", "-e", "s", "c.tadoc"]), "a.txt:5\nb/c.txt:1\n");
    let ran = folder.run(&["grep", "-e", "a", "-e", "b(", "c.tadoc"]);
    assert!(ran.status == 2 && ran.stderr.contains("character 2 of `b(`"), "{}", ran.stderr);
}

/// The expected lines are those that ripgrep 15.1 writes for the files.
#[test]
fn paths_can_be_left_out() {
    let folder = corpus();
    let context = "1-first line\n2:Disk failure on sda\n3-then nothing\n--\n5-power loss\n\
                   6:disk failure on sdb\n7-last\n--\n1:bytes \u{fffd}\u{fffd} and disk\r\n2-\n";
    assert_eq!(found(&folder, &["-I", "-C1", "-i", "disk", "c.tadoc"]), context);
    assert_eq!(found(&folder, &["--no-filename", "-c", "-i", "disk", "c.tadoc"]), "2\n1\n");
    assert_eq!(found(&folder, &["-I", "-l", "-i", "disk", "c.tadoc"]), "a.txt\nb/c.txt\n");
    assert_eq!(found(&folder, &["-H", "-I", "-N", "power", "c.tadoc"]), "power loss\n");
    assert_eq!(found(&folder, &["-I", "-H", "power", "c.tadoc"]), "a.txt:5:power loss\n");
}

#[test]
fn exit_statuses_are_those_of_grep() {
    let folder = corpus();
    let ran = folder.run(&["grep", "nowhere", "c.tadoc"]);
    assert_eq!((ran.status, ran.stdout.as_slice(), ran.stderr.as_str()), (1, &b""[..], ""));
    for (arguments, text) in [
        (["a(b", "c.tadoc"].as_slice(), "pattern: got a fault at character 2"),
        (&["a", "nowhere.tadoc"], "nowhere.tadoc: there is no file"),
        (&["a", "in"], "in: the folder"),
        (&["a"], "no corpus is given"),
        (&["a", "c.tadoc", "--version", "1"], "is no living corpus"),
    ] {
        let ran = folder.run(&[&["grep"], arguments].concat());
        assert_eq!(ran.status, 2, "{arguments:?}");
        assert!(ran.stderr.starts_with("error: ") && ran.stderr.contains(text), "{}", ran.stderr);
        assert_eq!(ran.stderr.lines().count(), 1);
    }
}

#[test]
fn living_corpora_are_searched_in_every_version() {
    let folder = corpus();
    folder.ok(&["ingest", "in", "-o", "notes", "--append"]);
    folder.ok(&["edit", "notes", "--append", "2", "a disk\n"]);
    assert_eq!(found(&folder, &["a disk$", "notes"]), "d.txt:1:a disk\n");
    let before = folder.run(&["grep", "a disk$", "notes", "--version", "1"]);
    assert_eq!((before.status, before.stderr.as_str()), (1, ""));
}

/// Returns a text of short lines.
fn text(random: &mut Random, num_lines: usize) -> String {
    let words = ["error", "Error", "disk", "full", "sda1", "the", "of", "42", "é", "x_y", ""];
    let separators = [" ", ", ", "-", " "];
    let mut text = String::new();
    for _ in 0..num_lines {
        for _ in 0..random.below(6) {
            let word = random.pick::<&str>(&words);
            let separator = random.pick::<&str>(&separators);
            text.extend([*word, *separator]);
        }
        text.push('\n');
    }
    text
}

#[test]
fn lines_are_those_of_gnu_grep() {
    if Command::new("grep").arg("--version").output().is_err() {
        return;
    }
    let folder = new_folder();
    let mut random = Random(11);
    for number in 0..60 {
        let mut text = text(&mut random, 40);
        if number % 3 == 0 {
            text.pop();
        }
        folder.write(&format!("in/{}/{number}.txt", number % 7), text);
    }
    // Documents are cut, and there are more segments than cores.
    folder.ok(&["ingest", "in", "-o", "c.tadoc", "--block-size", "16KiB"]);
    for (pattern, flags) in [
        ("disk", "-n"),
        ("DISK|error", "-in"),
        ("(the|of)-?x_y", "-n"),
        ("^$", "-n"),
        ("full", "-nv"),
        ("of", "-nw"),
        ("sda1", "-c"),
        ("é, .*42 $", "-n"),
        ("error", "-nC2"),
        ("error disk", "-nA1"),
        ("absent", "-n"),
    ] {
        let mut grep = Command::new("grep");
        grep.args(["-rE", flags, pattern, "."]).current_dir(folder.join("in"));
        let output = grep.env("LC_ALL", "C.UTF-8").output().unwrap();
        let theirs = String::from_utf8(output.stdout).unwrap();
        let is_counted = |line: &&str| flags != "-c" || !line.ends_with(":0");
        let sorted = |text: &str| {
            let lines = text.lines().map(|line| line.trim_start_matches("./"));
            let mut lines: Vec<String> = lines.filter(is_counted).map(str::to_owned).collect();
            lines.retain(|line| line != "--");
            lines.sort();
            lines
        };
        let ours = folder.run(&["grep", flags, pattern, "c.tadoc"]);
        let lines = sorted(&String::from_utf8(ours.stdout).unwrap());
        assert_eq!(lines, sorted(&theirs), "{flags} {pattern}");
        assert_eq!((ours.status, ours.stderr.as_str()), (i32::from(lines.is_empty()), ""));
    }
}

#[test]
fn units_have_the_lines_of_whole_segments() {
    let folder = new_folder();
    let mut random = Random(12);
    for number in 0..120 {
        let line = |random: &mut Random| {
            let words: Vec<String> = (0..random.below(9)).map(|_| format!("w{}", random.below(3000))).collect();
            words.join(" ") + "\n"
        };
        let text: String = (0..[0, 9, 900][number % 3]).map(|_| line(&mut random)).collect();
        folder.write(&format!("in/{number}.txt"), text);
    }
    for documents in ["files", "lines"] {
        for layout in ["small", "indexed"] {
            let name = format!("{documents}.{layout}.tadoc");
            let block = ["--block-size", "512KiB", "-q", "--documents", documents];
            folder.ok(&[&["ingest", "in", "-o", &name, "--layout", layout], &block[..]].concat());
        }
        let lines = [&["-N"][..], &["-n"], &["-c"], &["-l"], &["-o", "-N"], &["-m1", "-N"], &["-iN"]];
        let places = [&["-N", "-C1"][..], &["-n", "-A3"], &["-B2"], &["-b"], &["-n", "-m2"], &["-n", "-U"]];
        for flags in lines.into_iter().chain(places) {
            for _ in 0..4 {
                let word = format!("w{}", 100 + random.below(2900));
                let pattern = *random.pick::<&str>(&["@", "@ w1", "^@", "@$|w7 @", "W?@[0-9]"]);
                let pattern = pattern.replace('@', &word);
                let lines = |layout: &str| {
                    let name = format!("{documents}.{layout}.tadoc");
                    let found = folder.run(&[&["grep"], flags, &["-e", &pattern, &name]].concat());
                    (found.status, String::from_utf8(found.stdout).unwrap(), found.stderr)
                };
                assert_eq!(lines("indexed"), lines("small"), "{documents} {flags:?} {pattern}");
            }
        }
    }
}
