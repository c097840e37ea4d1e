//! Tests of house rules: imports between modules, file headers, file sizes, leftovers, a test and a
//! place in the reference, `sql/README.md`, for each SQL function, and an example in each public
//! module. The files of a crate import each other without circles ([`imports`]).
//!
//! The idea comes from rust-analyzer's `tidy.rs` and tigerbeetle's `tidy.zig`. A new edge between
//! modules is a visible change of [`IMPORTS`]. The tests read text, not syntax trees. They first
//! blank out comments and string literals, so that neither can hide or fake a finding.

#![allow(clippy::unwrap_used, clippy::panic)]

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

#[path = "tidy/imports.rs"]
mod imports;
#[path = "tidy/lexing.rs"]
mod lexing;

use lexing::{code_of, is_name_char, names};

/// Packages of the workspace, each with the packages that it may depend on, in reading order.
const CRATES: &[(&str, &[&str])] = &[
    ("tadoc", &[]),
    ("gsst", &[]),
    ("tadoc-store", &["tadoc"]),
    ("tadoc-cuda", &["tadoc", "gsst"]),
    ("testkit", &["tadoc", "gsst", "tadoc-store", "tadoc-cuda"]),
    ("datafusion-tadoc", &["tadoc", "gsst", "tadoc-store", "tadoc-cuda"]),
    ("tadoc-documents", &["tadoc", "gsst"]),
    ("datafusion-tadoc-distributed", &["tadoc", "tadoc-store", "datafusion-tadoc"]),
    ("tadoc-session", &["tadoc", "tadoc-store", "datafusion-tadoc", "tadoc-documents"]),
    (
        "tadoc-server",
        &["tadoc", "datafusion-tadoc", "datafusion-tadoc-distributed", "tadoc-documents", "tadoc-session"],
    ),
    (
        "tadoc-cli",
        &[
            "tadoc",
            "tadoc-store",
            "datafusion-tadoc",
            "datafusion-tadoc-distributed",
            "tadoc-documents",
            "tadoc-session",
            "tadoc-server",
        ],
    ),
    (
        "datafusion-tadoc-python",
        &["gsst", "tadoc-cuda", "datafusion-tadoc", "tadoc-documents", "tadoc-session", "tadoc-cli"],
    ),
    ("datafusion-tadoc-ballista", &["datafusion-tadoc", "datafusion-tadoc-distributed"]),
];

/// Modules of the core, each with the modules that it may name, in reading order.
const IMPORTS: &[(&str, &[&str])] = &[
    ("error", &[]),
    ("ids", &[]),
    ("text", &["error", "ids"]),
    ("grammar", &["error", "ids"]),
    ("segment", &["error", "ids", "text", "grammar"]),
    ("format", &["error", "ids", "text", "grammar", "segment"]),
    ("build", &["error", "text", "grammar", "segment", "format"]),
    ("read", &["error", "ids", "segment"]),
    ("query", &["error", "ids", "text", "grammar", "segment", "format", "read"]),
    ("analytics", &["error", "ids", "text", "grammar", "segment", "format"]),
    ("edits", &["error", "ids", "text", "grammar", "segment", "format", "read", "query"]),
    ("accelerator", &["error", "grammar", "segment", "analytics", "read"]),
];

/// Names that the core's `lib.rs` re-exports, each with its module.
const REEXPORTS: &[(&str, &str)] = &[("Error", "error"), ("Result", "error"), ("Corpus", "segment")];

/// Packages, each with the crates of engines and devices that it may depend on.
const ENGINES: &[(&str, &[&str])] = &[
    ("tadoc", &[]),
    ("testkit", &[]),
    ("gsst", &["arrow", "parquet"]),
    ("tadoc-store", &["object_store", "futures"]),
    ("tadoc-cuda", &["arrow", "cudarc"]),
    ("tadoc-documents", &["arrow", "parquet"]),
];

/// Crates of engines and devices.
const ENGINE_CRATES: &[&str] =
    &["datafusion", "datafusion-cli", "arrow", "parquet", "object_store", "tokio", "futures", "cudarc"];

/// Files that may contain unsafe code.
const MAY_BE_UNSAFE: &[&str] = &[
    "benches/gsst_layouts.rs",
    "src/session/interrupt.rs",
    "src/session/memory.rs",
    "src/python/capsules.rs",
    "src/python/device_array.rs",
    "src/gsst/decode.rs",
    "src/tadoc/format/codecs/grammar/decode.rs",
    "src/cuda/corpus/documents.rs",
    "src/cuda/corpus/edits/mod.rs",
    "src/cuda/corpus/index.rs",
    "src/cuda/corpus/launch.rs",
    "src/cuda/corpus/ranked.rs",
    "src/cuda/corpus/search.rs",
    "src/cuda/corpus/sequences.rs",
    "src/cuda/corpus/sort.rs",
    "src/cuda/corpus/terms.rs",
    "src/cuda/corpus/text.rs",
    "src/cuda/device.rs",
    "src/cuda/gsst_decode.rs",
    "src/cuda/gsst_distinct.rs",
    "src/cuda/gsst_match.rs",
    "src/cuda/gsst_match/rows.rs",
    "src/cuda/gsst_match/run.rs",
    "src/cuda/gsst_run.rs",
    "src/cuda/device_column.rs",
    "src/cuda/gsst_scan.rs",
    "src/cuda/matched_rows.rs",
    "src/cuda/memory.rs",
    "src/cuda/run_kernels.rs",
    "src/cuda/scan_slot.rs",
    "src/datafusion/functions/sequence_texts.rs",
    "src/cuda/session/columns.rs",
    "tests/gpu/parity/scan.rs",
    "tests/gpu_faults/breakage.rs",
];

const MAX_LINES: usize = 700;

/// Folders of the crates that other programs use.
const LIBRARIES: &[&str] =
    &["src/tadoc", "src/gsst", "src/store", "src/cuda", "src/documents", "src/datafusion", "src/distributed"];

/// Least number of entries in the list of parsers of `tests/fuzz/coverage`.
const MIN_PARSERS: usize = 10;

/// Least number of example programs.
const MIN_EXAMPLES: usize = 10;

/// A Rust file: its path below the package, its text, and its text without comments and literals.
struct Source {
    path: String,
    text: String,
    code: String,
}

impl Source {
    /// Returns the path below the folder of its crate.
    fn below_crate(&self) -> &str {
        let below_src = self.path.strip_prefix("src/").unwrap_or(&self.path);
        below_src.split_once('/').map_or(below_src, |(_, path)| path)
    }

    /// Returns the file's module in its crate: `corpus` for `src/tadoc/corpus/reader.rs`.
    fn module(&self) -> &str {
        self.below_crate().split(['/', '.']).next().unwrap_or_default()
    }

    /// Returns the depth of the module: 1 for `text/mod.rs` of a crate, 2 for `text/tokenizer.rs`.
    fn depth(&self) -> usize {
        self.below_crate().split('/').filter(|&part| part != "mod.rs").count()
    }

    /// Returns the code without the module that is compiled for tests only, by habit the last item
    /// of a file.
    fn code_without_tests(&self) -> &str {
        let mut rest = 0;
        while let Some(found) = self.code[rest..].find("#[cfg(test)]") {
            let after = rest + found + "#[cfg(test)]".len();
            let item = self.code[after..].trim_start();
            let opens_a_body = item.find(['{', ';']).is_some_and(|at| item[at..].starts_with('{'));
            if item.starts_with("mod ") && opens_a_body {
                return &self.code[..rest + found];
            }
            rest = after;
        }
        &self.code
    }

    /// Returns the names of test-only modules that this file declares and that have their own
    /// files.
    fn test_modules(&self) -> impl Iterator<Item = &str> {
        self.code.split("#[cfg(test)]").skip(1).filter_map(|after| {
            let (declaration, _) = after.trim_start().strip_prefix("mod ")?.split_once(';')?;
            (!declaration.contains('{')).then_some(declaration.trim())
        })
    }
}

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

/// Returns the sorted files below `folder` (in the package) with this extension, or none if there
/// is no such folder.
fn files(folder: &str, extension: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut folders = vec![root().join(folder)];
    while let Some(at) = folders.pop() {
        for entry in fs::read_dir(&at).into_iter().flatten() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|e| e == extension) {
                found.push(path.strip_prefix(root()).unwrap().to_str().unwrap().to_owned());
            }
        }
    }
    found.sort();
    found
}

fn read(path: impl AsRef<Path>) -> String {
    let path = root().join(path);
    fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

fn sources(folder: &str) -> Vec<Source> {
    let source = |path: String| {
        let text = read(&path);
        let code = code_of(&text);
        Source { path, text, code }
    };
    files(folder, "rs").into_iter().map(source).collect()
}

/// Returns the files of `src` that are compiled for tests only.
fn test_only_files(sources: &[Source]) -> BTreeSet<String> {
    let below = |source: &Source, name: &str| {
        let folder = source.path.strip_suffix("mod.rs").map(str::to_owned);
        let folder = folder.unwrap_or_else(|| source.path.replace(".rs", "/"));
        format!("{folder}{name}.rs")
    };
    let of = |source| Source::test_modules(source).map(|name| below(source, name));
    sources.iter().flat_map(of).collect()
}

/// Returns the first name behind each `crate::`, and each first name in a group `crate::{a, b::c}`.
fn crate_edges(code: &str) -> BTreeSet<&str> {
    let mut edges = BTreeSet::new();
    for (at, _) in code.match_indices("crate::") {
        if code[..at].ends_with(is_name_char) {
            continue;
        }
        let rest = &code[at + "crate::".len()..];
        if !rest.starts_with('{') {
            edges.extend(names(rest).next());
            continue;
        }
        let mut depth = 0;
        for (start, c) in rest.char_indices() {
            depth += i32::from(c == '{') - i32::from(c == '}');
            if depth == 0 {
                break;
            }
            if depth == 1 && (c == '{' || c == ',') {
                edges.extend(names(&rest[start..]).next());
            }
        }
    }
    edges
}

/// Returns the length of the longest chain of `super::`.
fn longest_chain_of_supers(code: &str) -> usize {
    let chain = |n: &usize| code.contains(&"super::".repeat(*n));
    (1..).take_while(chain).last().unwrap_or(0)
}

#[track_caller]
fn assert_none(what: &str, findings: Vec<String>) {
    assert!(findings.is_empty(), "{what}:\n  {}", findings.join("\n  "));
}

#[test]
fn modules_of_the_core_import_only_what_the_table_allows() {
    let sources = sources("src/tadoc");
    let test_only = test_only_files(&sources);
    let allowed: BTreeMap<_, _> = IMPORTS.iter().copied().collect();
    let module_of: BTreeMap<_, _> = REEXPORTS.iter().copied().collect();
    let mut findings = Vec::new();
    for source in &sources {
        let module = source.module();
        if matches!(module, "lib" | "examples") || test_only.contains(&source.path) {
            continue;
        }
        let Some(allowed) = allowed.get(module) else {
            findings.push(format!("{}: module {module} is not in the table", source.path));
            continue;
        };
        for name in crate_edges(source.code_without_tests()) {
            let target = module_of.get(name).copied().unwrap_or(name);
            if target != module && !allowed.contains(&target) {
                findings.push(format!("{}: {module} -> {target}", source.path));
            }
        }
    }
    assert_none("imports that tests/tidy.rs does not allow", findings);
}

#[test]
fn paths_to_the_root_of_a_crate_begin_with_crate() {
    let to_the_root = |source: &Source| longest_chain_of_supers(source.code_without_tests()) >= source.depth();
    let is_root = |source: &Source| ["lib.rs", "main.rs"].contains(&source.below_crate());
    let found = sources("src").into_iter().filter(|s| !is_root(s) && s.depth() > 1);
    let findings = found.filter(to_the_root).map(|source| source.path).collect();
    assert_none("super:: up to the crate's root, write crate::", findings);
}

#[test]
fn the_tables_have_no_cycle() {
    for table in [CRATES, IMPORTS] {
        for (i, (name, imports)) in table.iter().enumerate() {
            for import in *imports {
                let before = table[..i].iter().any(|(earlier, _)| earlier == import);
                assert!(before, "{name} -> {import}, which does not stand before it");
            }
        }
    }
}

/// Returns the manifest of a package.
fn manifest(package: &str) -> String {
    match package {
        "datafusion-tadoc" => read("Cargo.toml"),
        _ => read(format!("src/{}/Cargo.toml", package.rsplit("tadoc-").next().unwrap())),
    }
}

/// Returns the names in the table `[dependencies]` of a package.
fn dependencies(package: &str) -> Vec<String> {
    let manifest = manifest(package);
    let (_, table) = manifest.split_once("\n[dependencies]\n").unwrap();
    let table = table.split("\n[").next().unwrap();
    let lines = table.lines().filter(|line| !line.starts_with('#') && !line.is_empty());
    lines.map(|line| line.split([' ', '.', '=']).next().unwrap().to_owned()).collect()
}

#[test]
fn members_depend_only_on_what_the_tables_allow() {
    let engines: BTreeMap<_, _> = ENGINES.iter().copied().collect();
    let is_member = |name: &str| CRATES.iter().any(|(package, _)| *package == name);
    let mut findings = Vec::new();
    for (package, members) in CRATES {
        for name in dependencies(package) {
            let is_engine = ENGINE_CRATES.contains(&name.as_str());
            let may_be = match engines.get(package) {
                _ if is_member(&name) => members.contains(&name.as_str()),
                Some(own) if is_engine => own.contains(&name.as_str()),
                _ => true,
            };
            if !may_be {
                findings.push(format!("{package} -> {name}"));
            }
        }
    }
    assert_none("dependencies that tests/tidy.rs does not allow", findings);
}

#[test]
fn nothing_reaches_into_other_crates() {
    let ways = [["#[path = \"", ".."].concat(), ["incl", "ude!"].concat()];
    let reaches_in = |source: &&Source| ways.iter().any(|way| source.text.contains(way));
    let sources: Vec<Source> = ["src", "tests"].into_iter().flat_map(sources).collect();
    let findings = sources.iter().filter(reaches_in).map(|source| source.path.clone()).collect();
    assert_none("files that reach into other crates", findings);
}

#[test]
fn workers_are_left_out_in_one_place_of_a_crate() {
    let switch = ["feature = ", "\"distributed\""].concat();
    let may_switch = ["src/server/lib.rs", "src/cli/lib.rs", "tests/cli/main.rs"];
    let sources = ["src", "tests"].into_iter().flat_map(sources);
    let knows = sources.filter(|source| source.text.contains(&switch)).map(|source| source.path);
    let findings = knows.filter(|path| !may_switch.contains(&path.as_str())).collect();
    assert_none("files that know whether a build has workers", findings);
}

#[test]
fn every_file_says_what_it_is() {
    let headless = |source: &Source| !source.text.starts_with("//! ");
    let all = ["src", "tests", "benches"].into_iter().flat_map(sources);
    let findings = all.filter(headless).map(|source| source.path).collect();
    assert_none("files that do not open with //!", findings);
}

#[test]
fn nothing_is_left_over() {
    let words = [["TO", "DO"], ["FIX", "ME"], ["XX", "X"]].map(|halves| halves.concat());
    let macros = [["db", "g!"], ["to", "do!"], ["unimple", "mented!"]].map(|halves| halves.concat());
    let mut findings = Vec::new();
    for source in ["src", "tests", "benches"].into_iter().flat_map(sources) {
        let word = names(&source.text).find(|name| words.iter().any(|word| word == name));
        let call = macros.iter().map(String::as_str).find(|call| {
            let is_whole = |(at, _)| !source.code[..at].ends_with(is_name_char);
            source.code.match_indices(call).any(is_whole)
        });
        findings.extend(word.or(call).map(|left| format!("{}: {left}", source.path)));
    }
    assert_none("left over", findings);
}

#[test]
fn unsafe_code_stays_where_it_is_allowed() {
    let is_unsafe = |source: &Source| {
        names(&source.code).any(|name| name == "unsafe") && !MAY_BE_UNSAFE.contains(&source.path.as_str())
    };
    let all = ["src", "tests", "benches"].into_iter().flat_map(sources);
    let findings = all.filter(is_unsafe).map(|source| source.path).collect();
    assert_none("unsafe code outside the allowed files", findings);
}

/// Returns true if a file of the package has this path, or one that begins with what stands before the first `*`.
fn exists(pattern: &str) -> bool {
    let fixed = pattern.split('*').next().unwrap_or_default();
    root().join(fixed).exists()
}

#[test]
fn lists_of_files_name_files_that_exist() {
    let coverage = read("tests/fuzz/coverage");
    let parsers = coverage.lines().filter_map(|line| line.trim().strip_prefix("\"src/")?.strip_suffix("\","));
    let parsers: Vec<String> = parsers.map(|path| format!("src/{path}")).collect();
    assert!(parsers.len() >= MIN_PARSERS, "{parsers:?}");
    let listed = MAY_BE_UNSAFE.iter().copied().chain(parsers.iter().map(String::as_str));
    let findings = listed.filter(|path| !exists(path)).map(str::to_owned).collect();
    assert_none("tests/tidy.rs and tests/fuzz/coverage name files that do not exist", findings);
}

#[test]
fn links_of_pages_lead_to_files() {
    let folders = ["src", "sql", "benches", "tests", "kernels", ".github"];
    let pages = folders.into_iter().flat_map(|folder| files(folder, "md")).chain(["README.md".to_owned()]);
    let mut findings = Vec::new();
    for page in pages {
        let folder = root().join(&page);
        let folder = folder.parent().unwrap();
        let text = read(&page);
        let targets = text.split("](").skip(1).filter_map(|rest| rest.split([')', '#', ' ']).next());
        let is_file = |target: &&str| !target.is_empty() && !target.contains(':');
        let missing = targets.filter(is_file).filter(|target| !folder.join(target).exists());
        findings.extend(missing.map(|target| format!("{page}: {target}")));
    }
    assert_none("links of pages to files that do not exist", findings);
}

/// Returns the hosts of the HTTP URLs in `text`.
fn hosts(text: &str) -> impl Iterator<Item = &str> {
    let behind = |text| str::split(text, "http").skip(1);
    behind(text).filter_map(|rest| {
        let rest = rest.strip_prefix('s').unwrap_or(rest).strip_prefix("://")?;
        let end = rest.find(|c: char| "/?#%\"'`\\ \n".contains(c)).unwrap_or(rest.len());
        let authority = &rest[..end];
        Some(authority.rsplit_once('@').map_or(authority, |(_, host)| host))
    })
}

/// Returns true if no request for `host` leaves this machine: it is this machine or an address made
/// at run time, or its name never resolves (RFC 2606).
fn stays_here(host: &str) -> bool {
    let name = host.split(':').next().unwrap_or_default();
    let is_reserved = [".invalid", ".example"].iter().any(|end| name.ends_with(end));
    host.is_empty() || host.starts_with('{') || name == "127.0.0.1" || is_reserved
}

#[test]
fn tests_talk_to_this_machine_only() {
    let mut findings = Vec::new();
    let bind = ["::bi", "nd("].concat();
    let rust = ["tests", "src/testkit"].into_iter().flat_map(sources);
    let rust = rust.map(|source| (source.path, source.text));
    let statements = ["slt", "sql"].into_iter().flat_map(|ending| files("sql", ending));
    for (path, text) in rust.chain(statements.map(|path| (path.clone(), read(path)))) {
        let outside = hosts(&text).filter(|host| !stays_here(host));
        findings.extend(outside.map(|host| format!("{path}: {host}")));
        let parts: Vec<&str> = text.split(&bind).collect();
        // A socket in a folder is no address.
        let binds = parts.windows(2).filter(|pair| !pair[0].ends_with("UnixListener")).map(|pair| pair[1]);
        let abroad = binds.filter(|at| !at.starts_with("\"127.0.0.1:0\")"));
        findings.extend(abroad.map(|at| format!("{path}: listens at {}", &at[..at.len().min(20)])));
    }
    assert_none("tests name hosts outside this machine (name.invalid is nobody's)", findings);
}

#[test]
fn hosts_are_found_in_urls() {
    let url = |scheme: &str, rest: &str| format!("'{scheme}://{rest}'");
    let text = [
        url("http", "127.0.0.1:80/c"),
        url("https", "a.invalid?x"),
        url("http", "u:p@b.org/"),
        url("https", "{server}/c"),
        url("http", "127.0.0.1.org"),
    ];
    let text = text.join(" ");
    let found: Vec<_> = hosts(&text).map(|host| (host, stays_here(host))).collect();
    let expected =
        [("127.0.0.1:80", true), ("a.invalid", true), ("b.org", false), ("{server}", true), ("127.0.0.1.org", false)];
    assert_eq!(found, expected);
}

#[test]
fn files_stay_small() {
    let all = ["src", "tests", "benches"].into_iter().flat_map(|folder| files(folder, "rs"));
    let count = |path: String| (read(&path).lines().count(), path);
    let is_long = |(num_lines, _): &(usize, String)| *num_lines > MAX_LINES;
    let name = |(num_lines, path)| format!("{path}: {num_lines} lines");
    let findings = all.map(count).filter(is_long).map(name).collect();
    assert_none("files over 700 lines: is there a second room in them", findings);
}

/// Returns the names of the SQL functions, from their definitions in `src/datafusion/functions`.
fn signatures() -> Vec<String> {
    let names = |source: Source| {
        let behind = source.text.split("signature: Signature {\n        name: \"").skip(1);
        behind.map(|rest| rest.split('"').next().unwrap().to_owned()).collect::<Vec<_>>()
    };
    let names: Vec<String> = sources("src/datafusion/functions").into_iter().flat_map(names).collect();
    assert!(names.len() > 20, "{names:?}");
    names
}

/// Crates have versions of their own, and files name the release that writes them.
#[test]
fn files_name_the_release() {
    let manifest = read("Cargo.toml");
    let (_, version) = manifest.split_once("[workspace.package]\nversion = \"").unwrap();
    let (version, _) = version.split_once('"').unwrap();
    let writer = read("src/tadoc/format/writer.rs");
    assert!(writer.contains(&format!("\"datafusion-tadoc {version}\"")), "{version}");
}

#[test]
fn every_sql_function_has_an_example() {
    let examples = read("sql/examples/reference.sql");
    let reference = read("sql/README.md");
    let lacks = |name: &String| !examples.contains(&format!(" {name}("));
    assert_none("no example in sql/examples/reference.sql", signatures().into_iter().filter(lacks).collect());
    let lacks = |name: &String| !reference.contains(&format!("`{name}("));
    assert_none("no entry in sql/README.md", signatures().into_iter().filter(lacks).collect());
}

#[test]
fn every_sql_function_has_a_test_and_a_place_in_the_reference() {
    let reference = read("sql/README.md");
    let tests: BTreeSet<_> = files("sql/functions", "slt").into_iter().collect();
    let mut findings = Vec::new();
    for function in signatures() {
        if !tests.contains(&format!("sql/functions/{function}.slt")) {
            findings.push(format!("{function}: no sql/functions/{function}.slt"));
        }
        if !reference.contains(&format!("{function}(")) {
            findings.push(format!("{function}: sql/README.md does not show {function}("));
        }
    }
    assert_none("SQL functions without test or place in the reference", findings);
}

#[test]
fn every_bench_is_declared_and_explained() {
    let manifests: Vec<String> = CRATES.iter().map(|(package, _)| manifest(package)).collect();
    let explained = read("benches/README.md");
    let mut findings = Vec::new();
    for path in files("benches", "rs").iter().chain(&files("benches/peers", "py")) {
        let path = Path::new(path);
        let name = path.file_name().unwrap().to_str().unwrap();
        let is_target = name.ends_with(".rs") && path.parent() == Some(Path::new("benches"));
        let declaration = format!("benches/{name}\"\nharness = false");
        if is_target && !manifests.iter().any(|manifest| manifest.contains(&declaration)) {
            findings.push(format!("{name}: no Cargo.toml has {declaration}"));
        }
        if !explained.contains(name) {
            findings.push(format!("{name}: benches/README.md does not name it"));
        }
    }
    for path in files("tests", "rs") {
        let path = Path::new(&path);
        let declaration = format!("{}\"", path.display());
        let is_target = path.parent() == Some(Path::new("tests")) || path.ends_with("main.rs");
        if is_target && !manifests.iter().any(|manifest| manifest.contains(&declaration)) {
            findings.push(format!("{}: no Cargo.toml declares it", path.display()));
        }
    }
    assert_none("benches and tests that do not fit Cargo.toml and benches/README.md", findings);
}

/// Returns true if the docs of a file have an example that rustdoc compiles. Blocks of other
/// languages name theirs (`text`, `sql`).
fn has_example(text: &str) -> bool {
    let docs = text.lines().filter_map(|line| {
        let line = line.trim_start();
        line.strip_prefix("//!").or_else(|| line.strip_prefix("///"))
    });
    // Every other fence opens a block.
    let opened = docs.filter_map(|line| line.trim_start().strip_prefix("```")).step_by(2);
    opened.into_iter().any(|language| ["", "no_run", "rust"].contains(&language))
}

/// Names of the modules that a file declares for other programs.
fn public_modules(code: &str) -> impl Iterator<Item = &str> {
    let lines = code.lines().map(str::trim);
    lines.filter_map(|line| line.strip_prefix("pub mod ")?.strip_suffix(';'))
}

#[test]
fn every_public_module_has_an_example() {
    let mut findings = Vec::new();
    for library in LIBRARIES {
        let sources = sources(library);
        let find = |path: &str| sources.iter().find(|source| source.path == path);
        let mut left = vec![format!("{library}/lib.rs")];
        while let Some(path) = left.pop() {
            let source = find(&path).unwrap();
            if !has_example(&source.text) {
                findings.push(path.clone());
            }
            let folder = path.trim_end_matches(".rs").trim_end_matches("/lib");
            let folder = folder.trim_end_matches("/mod");
            for module in public_modules(&source.code) {
                let file = format!("{folder}/{module}.rs");
                let is_file = find(&file).is_some();
                left.push(if is_file { file } else { format!("{folder}/{module}/mod.rs") });
            }
        }
    }
    assert_none("public modules without an example in their docs", findings);
}

#[test]
fn every_example_program_is_declared() {
    let is_example = |path: &String| path.split('/').rev().nth(1) == Some("examples");
    let programs: Vec<String> = files("src", "rs").into_iter().filter(is_example).collect();
    assert!(programs.len() >= MIN_EXAMPLES, "{programs:?}");
    let is_declared = |path: &String| {
        let (folder, file) = path.split_once("/examples/").unwrap();
        let (manifest, target) = match folder {
            "src/datafusion" => ("Cargo.toml".to_owned(), path.clone()),
            _ => (format!("{folder}/Cargo.toml"), format!("examples/{file}")),
        };
        let name = file.trim_end_matches(".rs");
        read(manifest).contains(&format!("[[example]]\nname = \"{name}\"\npath = \"{target}\""))
    };
    let findings = programs.into_iter().filter(|path| !is_declared(path)).collect();
    assert_none("example programs that no Cargo.toml declares", findings);
}

#[test]
fn examples_are_told_from_other_blocks() {
    assert!(has_example("//! ```text\n//! ```\n//!\n//! ```\n//! f();\n//! ```\n"));
    assert!(has_example("    /// ```no_run\n    /// f();\n    /// ```\n"));
    assert!(!has_example("//! ```text\n//! a ─▶ b\n//! ```\n//! ```sql\n//! ```\nlet s = \"```\";"));
    let code = "mod a;\npub mod b;\n    pub mod c;\npub mod d {}\npub(crate) mod e;";
    assert_eq!(public_modules(code).collect::<Vec<_>>(), ["b", "c"]);
}

#[test]
fn the_lexer_sees_code_only() {
    let text = "use crate::a; // crate::b\nlet s = \"crate::c\"; /* crate::d */ let c = '\"';
        let raw = r#\"crate::e\"#; fn f<'x>(y: &'x str) { crate::f() } mycrate::g;
        use crate::{h, i::{j, k},\n l};";
    let code = code_of(text);
    assert_eq!(code.len(), text.len());
    assert_eq!(crate_edges(&code), ["a", "f", "h", "i", "l"].into_iter().collect());
    let tests = "fn a() {}\n#[cfg(test)]\nmod t;\n#[cfg(test)]\nmod tests {\n mod x;\n}\n";
    let source = Source { path: "src/x/a/mod.rs".into(), text: tests.into(), code: tests.into() };
    assert_eq!(source.test_modules().collect::<Vec<_>>(), ["t"]);
    assert!(source.code_without_tests().ends_with("mod t;\n"));
    assert_eq!((source.module(), source.depth()), ("a", 1));
    assert_eq!(longest_chain_of_supers("super::x; super::super::y"), 2);
    assert!(test_only_files(&[source]).contains("src/x/a/t.rs"));
}
