//! The documents say what the program does: the walk through a log of README.md runs, and the reference, `--help` and
//! `\h` name the same commands, options and functions.

use std::collections::{BTreeMap, BTreeSet};
use std::process::{Command, Stdio};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde_json::{Value, json};
use testkit::command::Folder;
use testkit::root;

use crate::server::Server;

/// Lines of the log of the walk, one every two minutes up to now.
const NUM_LINES: u64 = 1000;
/// Number of the first line of a kind that was not there a day before now.
const FIRST_NEW: u64 = 400;

fn read(path: &str) -> String {
    std::fs::read_to_string(root().join(path)).unwrap()
}

/// Returns the lines of the first block of commands below `heading`.
fn commands_below(document: &str, heading: &str) -> Vec<String> {
    let (_, section) = document.split_once(&format!("\n{heading}\n")).unwrap();
    let (_, block) = section.split_once("```sh\n").unwrap();
    let (block, _) = block.split_once("```").unwrap();
    block.lines().map(str::to_owned).collect()
}

/// A log that ends now. Customer 4711 is in 10 lines, and a full disk is new.
fn log() -> String {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs();
    let line = |n: u64| {
        let seconds = now - 120 * (NUM_LINES - n);
        let text = match n {
            _ if n.is_multiple_of(100) => "INFO customer 4711 alias zoltan pays".to_owned(),
            _ if n >= FIRST_NEW && n % 50 == 7 => format!("ERROR disk sd{n} is full"),
            _ if n % 10 == 3 => "ERROR connection to db1 lost".to_owned(),
            _ => format!("INFO customer {n} pays"),
        };
        format!("{seconds} {text}\n")
    };
    (0..NUM_LINES).map(line).collect()
}

#[test]
fn the_walk_through_a_log_runs() {
    let folder = Folder::for_program(env!("CARGO_BIN_EXE_tadoc"));
    folder.write("app.log", log());
    let lines = commands_below(&read("README.md"), "## A log in ten lines");
    assert_eq!(lines.len(), 9, "with a server and a browser these are ten: {lines:#?}");
    let (serve, asked) = lines.split_last().unwrap();
    let program = folder.command(&[]);
    let bin = std::path::Path::new(program.get_program()).parent().unwrap().to_owned();
    let path = format!("{}:{}", bin.display(), std::env::var("PATH").unwrap());
    let shell = |script: &str| {
        let mut command = Command::new("bash");
        command.args(["-euo", "pipefail", "-c", script]).current_dir(folder.path()).env("PATH", &path);
        let ran = command.stdin(Stdio::null()).output().unwrap();
        let [stdout, stderr] = [ran.stdout, ran.stderr].map(|bytes| String::from_utf8(bytes).unwrap());
        assert!(ran.status.success(), "{script}: {stderr}");
        stdout
    };
    let answers = shell(&asked.join("\n"));
    // The errors of all hours are all errors.
    let cells = answers.lines().map(|line| line.split('|').map(str::trim).collect::<Vec<_>>());
    let errors: u64 = cells
        .clone()
        .filter(|cells| cells.len() == 4 && cells[1].ends_with(":00:00Z"))
        .map(|cells| cells[2].parse::<u64>().unwrap())
        .sum();
    let is_error = |line: &&str| line.contains(" ERROR ");
    assert_eq!(errors, log().lines().filter(is_error).count() as u64, "{answers}");
    // What is new since yesterday is the full disk, and nothing else.
    let templates: Vec<_> =
        cells.filter(|cells| cells.len() == 5 && cells[1].contains("<*>")).map(|cells| cells[1].to_owned()).collect();
    assert_eq!(templates, ["<*> ERROR disk <*> is full"], "{answers}");
    // The customer is gone, from the texts, the dictionaries and the versions.
    let grep = |text: &str| folder.run(&["grep", "-c", text, "logs/"]);
    assert_eq!((grep("customer 4711").status, grep("zoltan").status), (1, 1));
    let num_left = log().lines().filter(|line| line.ends_with("pays")).count() - 10;
    assert_eq!(String::from_utf8(grep("pays").stdout).unwrap(), format!("app.log:{num_left}\n"));
    let words = "SELECT count(*) FROM word_count('logs/') WHERE word IN ('zoltan', '4711')";
    assert_eq!(folder.rows(words), ["0"]);
    let history = folder.ok(&["history", "logs/", "--json"]);
    assert_eq!(history.lines().count(), 1, "{history}");
    for file in walk(&folder.join("logs")) {
        let bytes = std::fs::read(&file).unwrap();
        assert!(!bytes.windows(6).any(|bytes| bytes == b"zoltan"), "{}", file.display());
    }
    // What is left is served.
    let serve: Vec<_> = serve.split('#').next().unwrap().split_whitespace().collect();
    assert_eq!(serve, ["tadoc", "serve", "logs/"]);
    let server = Server::serving("127.0.0.1:0", folder, &["logs/"], &[]);
    let count = server.query("SELECT count(*) FROM logs WHERE ts IS NOT NULL").json();
    assert_eq!(count["rows"], json!([[NUM_LINES - 10]]));
    assert_eq!(server.get("/").status, 200);
    server.wait_for_metric("tadoc_statements", 0.0, Duration::from_secs(10));
}

fn walk(folder: &std::path::Path) -> Vec<std::path::PathBuf> {
    let mut files = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() { files.extend(walk(&path)) } else { files.push(path) }
    }
    files
}

/// Returns the output of `tadoc` with `arguments`.
fn tadoc(arguments: &[&str]) -> String {
    Folder::for_program(env!("CARGO_BIN_EXE_tadoc")).ok(arguments)
}

/// Returns the commands that `tadoc --help` lists.
fn commands() -> Vec<String> {
    let help = tadoc(&["--help"]);
    let (_, list) = help.split_once("Commands:\n").unwrap();
    let (list, _) = list.split_once("\n\n").unwrap();
    let names = list.lines().map(|line| line.split_whitespace().next().unwrap().to_owned());
    names.filter(|name| name != "help").collect()
}

/// Returns the long options that `tadoc COMMAND --help` describes.
fn options(command: &str) -> BTreeSet<String> {
    let help = tadoc(&[command, "--help"]);
    let described = help.lines().map(str::trim_start).filter(|line| line.starts_with('-'));
    let own = described.filter(|line| !line.starts_with("-h, ") && !line.starts_with("-V, "));
    let long =
        own.filter_map(|line| line.split([' ', ',', '=', '[']).find(|word| word.starts_with("--") && word.len() > 2));
    long.map(str::to_owned).collect()
}

/// Returns the rows of a table of a document, by their first cell.
fn table(document: &str, head: &str) -> BTreeMap<String, String> {
    let (_, table) = document.split_once(&format!("\n{head}\n")).unwrap();
    let rows = table.lines().skip(1).take_while(|line| line.starts_with('|'));
    let cells = rows.map(|line| line.trim_matches('|').split_once(" | ").unwrap());
    cells.map(|(first, rest)| (first.trim().to_owned(), rest.trim().to_owned())).collect()
}

#[test]
fn the_reference_lists_the_commands_and_options_of_help() {
    let reference = read("sql/README.md");
    let listed = table(&reference, "| command | options |");
    let mut expected = BTreeMap::new();
    for command in commands() {
        let options: Vec<String> = options(&command).iter().map(|option| format!("`{option}`")).collect();
        expected.insert(format!("`{command}`"), options.join(", "));
    }
    for (command, options) in &expected {
        assert_eq!(
            listed.get(command),
            Some(options),
            "sql/README.md, options of {command}: write\n| {command} | {options} |"
        );
    }
    let unknown: Vec<_> = listed.keys().filter(|command| !expected.contains_key(*command)).collect();
    assert!(unknown.is_empty(), "sql/README.md lists commands that --help does not: {unknown:?}");
    let described = table(&reference, "| command | what it does |");
    for command in commands() {
        let prefix = format!("`tadoc {command}");
        let is_there =
            described.keys().any(|row| row.trim_end_matches('`') == prefix || row.starts_with(&format!("{prefix} ")));
        assert!(is_there, "sql/README.md does not say what `tadoc {command}` does");
    }
}

#[test]
fn commands_of_the_documents_have_the_options_that_they_show() {
    for document in ["README.md", "sql/README.md", "src/README.md", "src/python/README.md"] {
        let text = read(document);
        let shell = text.split("```sh\n").skip(1).map(|block| block.split("```").next().unwrap());
        let mut num_commands = 0;
        let lines = shell.flat_map(str::lines).map(|line| line.split(" # ").next().unwrap());
        for line in lines.flat_map(|line| line.split(" && ")) {
            let Some((_, call)) = line.split_once("tadoc ") else { continue };
            let command = call.split_whitespace().next().unwrap_or_default();
            if !commands().iter().any(|name| name == command) {
                continue;
            }
            num_commands += 1;
            let known = options(command);
            for word in call.split_whitespace().filter(|word| word.starts_with("--")) {
                let option = word.split('=').next().unwrap();
                assert!(known.contains(option), "{document}: tadoc {command} has no {option}: {line}");
            }
        }
        assert!(num_commands > 0 || document.starts_with("src/"), "{document}");
    }
}

#[test]
fn the_reference_and_h_have_the_same_functions() {
    let folder = Folder::for_program(env!("CARGO_BIN_EXE_tadoc"));
    let sql = "SELECT function, kind, signature FROM tadoc_functions()";
    let listed = folder.ok(&["sql", "--quiet", "--format", "ndjson", "-c", sql]);
    let reference = read("sql/README.md");
    // A table function has a heading, a scalar function the first cell of a row.
    let headings = reference.lines().filter_map(|line| line.strip_prefix("#### `")?.strip_suffix('`'));
    let cells = reference.lines().filter(|line| line.starts_with("| `"));
    let cells = cells.flat_map(|line| line.split(" | ").next().unwrap().split('`').filter(|part| part.ends_with(')')));
    let in_reference: BTreeSet<&str> = headings.chain(cells).collect();
    let mut names = BTreeSet::new();
    for row in listed.lines() {
        let row: Value = serde_json::from_str(row).unwrap();
        let [name, kind, signature] = ["function", "kind", "signature"].map(|key| row[key].as_str().unwrap());
        names.insert(name.to_owned());
        assert!(in_reference.contains(signature), "sql/README.md has no {kind} function {signature}");
    }
    assert!(names.len() > 40, "{names:?}");
    let headings = reference.lines().filter_map(|line| line.strip_prefix("#### `")?.split('(').next());
    let unknown: Vec<_> = headings.filter(|name| !names.contains(*name)).collect();
    assert!(unknown.is_empty(), "sql/README.md describes functions that \\h does not list: {unknown:?}");
    // The statements of README.md use functions that there are.
    let readme = read("README.md");
    for block in readme.split("```sql\n").skip(1).map(|block| block.split("```").next().unwrap()) {
        for (at, _) in block.match_indices("FROM ") {
            let call = &block[at + 5..];
            let name: String = call.chars().take_while(|c| c.is_ascii_lowercase() || *c == '_').collect();
            if call[name.len()..].starts_with('(') && !name.is_empty() {
                assert!(names.contains(&name), "README.md: {name}");
            }
        }
    }
}
