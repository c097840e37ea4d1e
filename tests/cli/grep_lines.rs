//! Tests of `tadoc grep` on corpora of lines and records: its output is that of ripgrep on the files.
//!
//! The oracle is a naive model of ripgrep in this file. GNU grep, where it is installed, and `rg`, where it is, find
//! the same for the same files.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::process::Command;

use regex::bytes::{Regex, RegexBuilder};
use testkit::random::Random;

use crate::harness::{Folder, new_folder};

/// The flags of a case.
#[derive(Debug, Clone, Default)]
struct Flags {
    is_any_case: bool,
    is_word: bool,
    is_inverted: bool,
    is_of_matches: bool,
    has_no_numbers: bool,
    is_count: bool,
    is_list: bool,
    max_count: Option<usize>,
    before: Option<usize>,
    after: Option<usize>,
}

impl Flags {
    fn arguments(&self) -> Vec<String> {
        let mut arguments = Vec::new();
        let short = [
            (self.is_any_case, "-i"),
            (self.is_word, "-w"),
            (self.is_inverted, "-v"),
            (self.is_of_matches, "-o"),
            (self.has_no_numbers, "-N"),
            (self.is_count, "-c"),
            (self.is_list, "-l"),
        ];
        arguments.extend(short.iter().filter(|(is_set, _)| *is_set).map(|(_, flag)| (*flag).to_owned()));
        for (flag, value) in [("-m", self.max_count), ("-B", self.before), ("-A", self.after)] {
            arguments.extend(value.map(|value| format!("{flag}{value}")));
        }
        arguments
    }

    fn random(random: &mut Random) -> Self {
        let mode = random.below(8);
        Self {
            is_any_case: random.below(5) == 0,
            is_word: random.below(5) == 0,
            is_inverted: random.below(5) == 0,
            is_of_matches: random.below(5) == 0,
            has_no_numbers: random.below(8) == 0,
            is_count: mode == 0,
            is_list: mode == 1,
            max_count: (random.below(3) == 0).then(|| 1 + random.below(4)),
            before: (random.below(3) == 0).then(|| random.below(30)),
            after: (random.below(3) == 0).then(|| random.below(30)),
        }
    }
}

/// Returns the output of ripgrep for one file, line by line.
fn model(path: &str, text: &str, pattern: &str, flags: &Flags) -> String {
    let source =
        if flags.is_word { format!(r"\b{{start-half}}(?:{pattern})\b{{end-half}}") } else { pattern.to_owned() };
    let regex: Regex = RegexBuilder::new(&source).case_insensitive(flags.is_any_case).build().unwrap();
    let lines: Vec<&str> = text.split_inclusive('\n').map(|line| line.strip_suffix('\n').unwrap_or(line)).collect();
    let matches = |line: usize| regex.find_iter(lines[line].as_bytes()).map(|found| found.range()).collect::<Vec<_>>();
    let is_selected: Vec<bool> = (0..lines.len()).map(|line| matches(line).is_empty() == flags.is_inverted).collect();
    let all = (0..lines.len()).filter(|&line| is_selected[line]);
    let selected: Vec<usize> = all.take(flags.max_count.unwrap_or(usize::MAX)).collect();
    let Some(&last) = selected.last() else { return String::new() };
    if flags.is_list {
        return format!("{path}\n");
    }
    let before = flags.before.unwrap_or(0);
    let after = flags.after.unwrap_or(0);
    let is_full = flags.max_count == Some(selected.len());
    // Lines around the last one that match are lines, too.
    let counted = |line: usize| is_selected[line] && (line <= last || is_full && line <= last + after);
    if flags.is_count {
        let number = |line: usize| if flags.is_of_matches && !flags.is_inverted { matches(line).len() } else { 1 };
        let count: usize = (0..lines.len()).filter(|&line| counted(line)).map(number).sum();
        return format!("{path}:{count}\n");
    }
    let mut output = String::new();
    let mut last_written = None;
    for (line, text) in lines.iter().enumerate() {
        if !selected.iter().any(|&at| line + before >= at && line <= at + after) {
            continue;
        }
        if last_written.is_some_and(|last| last + 1 < line) && before + after > 0 {
            output.push_str("--\n");
        }
        last_written = Some(line);
        let mark = if counted(line) { ':' } else { '-' };
        let number = if flags.has_no_numbers { String::new() } else { format!("{}{mark}", line + 1) };
        let found = matches(line);
        if flags.is_of_matches && !found.is_empty() {
            for found in found {
                writeln!(output, "{path}{mark}{number}{}", &text[found]).unwrap();
            }
        } else {
            writeln!(output, "{path}{mark}{number}{text}").unwrap();
        }
    }
    output
}

/// Returns the output of the model for all files.
fn expected(files: &BTreeMap<String, String>, pattern: &str, flags: &Flags) -> String {
    let outputs = files.iter().map(|(path, text)| model(path, text, pattern, flags));
    let outputs: Vec<String> = outputs.filter(|output| !output.is_empty()).collect();
    let has_context = flags.before.unwrap_or(0) + flags.after.unwrap_or(0) > 0;
    let is_of_lines = !flags.is_count && !flags.is_list;
    outputs.join(if has_context && is_of_lines { "--\n" } else { "" })
}

fn found(folder: &Folder, corpus: &str, pattern: &str, flags: &Flags) -> String {
    let flags = flags.arguments();
    let arguments = ["grep", "-e", pattern, corpus].into_iter().chain(flags.iter().map(String::as_str));
    let ran = folder.run(&arguments.collect::<Vec<_>>());
    assert_eq!(ran.stderr, "", "{flags:?} {pattern}");
    assert_eq!(ran.status, i32::from(ran.stdout.is_empty()), "{flags:?} {pattern}");
    String::from_utf8(ran.stdout).unwrap()
}

const PATTERNS: [&str; 14] = [
    "error",
    "needle",
    "disk",
    "of.*the",
    "^$",
    "42|x_y",
    "é",
    "[a-z]+1",
    "error, disk",
    "absent",
    "S ",
    "^",
    "the -?of",
    " $",
];

fn line(random: &mut Random) -> String {
    let words = ["error", "Error", "disk", "full", "sda1", "the", "of", "42", "é", "x_y", "needle"];
    let separators = [" ", ", ", "-", " "];
    let mut text = String::new();
    for _ in 0..random.below(6) {
        text.extend([*random.pick::<&str>(&words), *random.pick::<&str>(&separators)]);
    }
    text
}

/// Returns files of lines, or of records that begin with `S`.
fn files(random: &mut Random, has_records: bool) -> BTreeMap<String, String> {
    let number_of_files = 1 + random.below(4);
    let file = |number| {
        let mut text = String::new();
        for _ in 0..*random.pick::<u64>(&[2, 3, 40, 300]) {
            let start = match has_records {
                true if random.below(3) == 0 => "  at ",
                true => "S ",
                false => "",
            };
            let line = line(random);
            writeln!(text, "{start}{line}").unwrap();
        }
        if random.below(3) == 0 && text.len() > 1 && !text.ends_with("\n\n") {
            text.pop();
        }
        (format!("{}{number}.log", ["a", "sub/b", "z"][number % 3]), text)
    };
    (0..number_of_files).map(file).collect()
}

/// Writes the files as a corpus of lines, in one of several ways, and returns its name.
fn corpus(folder: &Folder, random: &mut Random, files: &BTreeMap<String, String>, has_records: bool) -> &'static str {
    for (path, text) in files {
        folder.write(&format!("in/{path}"), text);
    }
    let mut base = vec!["ingest", "--documents", "lines", "-q"];
    if has_records {
        base.extend(["--record-start", "^S"]);
    }
    let layout = *random.pick::<&str>(&["small", "indexed:0", "indexed", "indexed:5"]);
    base.extend(["--layout", layout]);
    let block_size = *random.pick::<&str>(&["1KiB", "4KiB", "128MiB"]);
    if random.below(3) > 0 {
        folder.ok(&[&base[..], &["in", "-o", "c.tadoc", "--block-size", block_size]].concat());
        return "c.tadoc";
    }
    // Each path has parts, which are appended in turn.
    for part in 0..3 {
        for (path, text) in files {
            let lines: Vec<&str> = text.split_inclusive('\n').collect();
            let cut = |part: usize| {
                // Each path begins in the first part, so that their order stays.
                let near = (lines.len() * part / 3).max(1);
                let is_cut = |&at: &usize| at == lines.len() || !has_records || lines[at].starts_with('S');
                if part == 0 { 0 } else { (near..=lines.len()).find(is_cut).unwrap() }
            };
            let text = lines[cut(part)..cut(part + 1)].concat();
            if !text.is_empty() {
                folder.write("part", text);
                let append = ["part", "--path", path, "-o", "living", "--append", "--duplicate"];
                folder.ok(&[&base[..], &append].concat());
            }
        }
    }
    "living"
}

/// Runs another program in the folder of the files, for each file, and returns what it writes.
fn written_by(program: &str, flags: &[&str], folder: &Folder, files: &BTreeMap<String, String>) -> Option<String> {
    let mut output = String::new();
    for path in files.keys() {
        let mut command = Command::new(program);
        command.args(flags).arg(path).current_dir(folder.join("in")).env("LC_ALL", "C.UTF-8");
        let ran = command.output().ok()?;
        let text = String::from_utf8(ran.stdout).unwrap();
        if !output.is_empty()
            && !text.is_empty()
            && flags.iter().any(|flag| flag.starts_with("-A") || flag.starts_with("-B"))
        {
            output.push_str("--\n");
        }
        output.push_str(&text);
    }
    Some(output)
}

#[test]
fn lines_are_those_of_ripgrep() {
    let mut random = Random(45);
    for round in 0..15 {
        let folder = new_folder();
        let has_records = round % 3 == 1;
        let files = files(&mut random, has_records);
        let corpus = corpus(&folder, &mut random, &files, has_records);
        for _ in 0..20 {
            let flags = Flags::random(&mut random);
            let pattern = *random.pick::<&str>(&PATTERNS);
            let expected = expected(&files, pattern, &flags);
            assert_eq!(found(&folder, corpus, pattern, &flags), expected, "{corpus} {flags:?} {pattern}");
            let own = flags.arguments();
            let is_short = flags.is_count || flags.is_list;
            let has_context = flags.before.unwrap_or(0) + flags.after.unwrap_or(0) > 0;
            if !has_context && flags.before.or(flags.after).is_some() || is_short && has_context {
                continue;
            }
            let mut common = vec!["-H", "-e", pattern];
            common.extend(own.iter().map(String::as_str).filter(|flag| *flag != "-N"));
            common.extend((!flags.has_no_numbers).then_some("-n"));
            let of_rg = ["--no-config", "--no-heading", if flags.has_no_numbers { "-N" } else { "-n" }];
            if let Some(by_rg) = written_by("rg", &[&common[..], &of_rg].concat(), &folder, &files) {
                assert_eq!(by_rg, expected, "rg {flags:?} {pattern}");
            }
            // GNU grep writes lines around lines in another way with these flags, and counts lines.
            let is_other = flags.is_of_matches || flags.max_count.is_some() || pattern.contains("-?") || flags.is_word;
            if !is_other {
                common.push("-E");
                if let Some(by_grep) = written_by("grep", &common, &folder, &files) {
                    let lines = by_grep.split_inclusive('\n').filter(|line| !flags.is_count || !line.ends_with(":0\n"));
                    assert_eq!(lines.collect::<String>(), expected, "grep {flags:?} {pattern}");
                }
            }
        }
    }
}

/// Numbers are those among the stored lines: edits move them, and dropped lines are no lines.
#[test]
fn edits_move_the_lines_behind_them() {
    let folder = new_folder();
    folder.write("a.log", "one\ntwo\nthree\n");
    folder.write("b.log", "two\n");
    folder.ok(&["ingest", "--documents", "lines", "a.log", "b.log", "-o", "logs", "--append"]);
    folder.ok(&["ingest", "--documents", "lines", "b.log", "--path", "a.log", "-o", "logs", "--append", "--duplicate"]);
    let lines = |arguments: &[&str]| String::from_utf8(folder.run(&[&["grep"], arguments].concat()).stdout).unwrap();
    assert_eq!(lines(&["two", "logs"]), "a.log:2:two\na.log:4:two\nb.log:1:two\n");
    assert_eq!(lines(&["-l", "two", "logs"]), "a.log\nb.log\n");
    folder.ok(&["edit", "logs", "--drop", "0"]);
    assert_eq!(lines(&["-v", "three", "logs"]), "a.log:1:two\na.log:3:two\nb.log:1:two\n");
    folder.ok(&["edit", "logs", "--append", "1", "\nin between"]);
    assert_eq!(lines(&["-B1", "three", "logs"]), "a.log-2-in between\na.log:3:three\n");
    assert_eq!(lines(&["-c", "", "logs", "--version", "3"]), "a.log:4\nb.log:1\n");
}

/// Work and lengths are those of the whole texts, in every chain.
#[test]
fn json_has_offsets_in_the_file() {
    let folder = new_folder();
    let text: String =
        (0..400).map(|number| format!("line {number} {}\n", if number % 50 == 7 { "needle" } else { "hay" })).collect();
    folder.write("a.log", &text);
    folder.ok(&["ingest", "--documents", "lines", "a.log", "-o", "c.tadoc", "--block-size", "1KiB"]);
    let ran = folder.run(&["grep", "--json", "-A1", "needle", "c.tadoc"]);
    let values = ran.stdout.split(|&byte| byte == b'\n').filter(|line| !line.is_empty());
    let values: Vec<serde_json::Value> = values.map(|line| serde_json::from_slice(line).unwrap()).collect();
    let of_kind = |kind: &str| values.iter().filter(|value| value["type"] == *kind).collect::<Vec<_>>();
    assert_eq!((of_kind("begin").len(), of_kind("end").len(), of_kind("match").len()), (1, 1, 8));
    for value in of_kind("match").into_iter().chain(of_kind("context")) {
        let data = &value["data"];
        let at = data["absolute_offset"].as_u64().unwrap() as usize;
        let number = text[..at].matches('\n').count() as u64 + 1;
        assert_eq!(data["line_number"], number);
        assert!(text[at..].starts_with(data["lines"]["text"].as_str().unwrap()));
    }
    assert_eq!(of_kind("end")[0]["data"]["stats"]["bytes_searched"], text.len() as u64);
    assert_eq!(of_kind("summary")[0]["data"]["stats"]["searches"], 1);
}
