//! Imports between the files of a crate: read from paths, without circles.
//!
//! ```text
//! use crate::a::{b, c::D};   super::e::f()   pub use g::H;      paths of a file, in full
//!        └─▶ the longest module, through re-exports ─▶ a file   edges of the crate
//!                                                      └─▶ a file that reaches itself: a circle
//! ```
//!
//! An edge between a module and one above or below it is no import: a folder is its files. A path that begins with
//! a name that a `use` brings in is followed: `use crate::a; a::b::f()` is an edge to `a::b`.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::ops::Range;

use super::{Source, assert_none, files, is_name_char, sources, test_only_files};

/// Files of `src/datafusion/functions` that all functions may use.
const SHARED_BY_FUNCTIONS: &[&str] = &[
    "strings",
    "doc_rows",
    "parcels",
    "portion_reader",
    "sequence_rows",
    "sequence_texts",
    "searching",
    "document_source",
    "calls",
    "counted_rows",
];

/// Rooms of `src/datafusion`, the folders and files below its root, from the ground up. A room imports only rooms that
/// stand before it.
const ROOMS: &[&str] = &[
    "errors",
    "shown_rows",
    "options",
    "plan_methods",
    "stop",
    "depth",
    "dynamic_filters",
    "precedence",
    "fields",
    "throughput",
    "placement",
    "user_columns",
    "promises",
    "equal_names",
    "safety",
    "corpora",
    "planning",
    "functions",
    "write",
    "gsst",
    "planner",
    "text_files",
    "parquet_files",
    "multiplied",
    "session",
];

/// A path in full, as segments below the root of its crate.
type Path = Vec<String>;

/// A path in a file, and the name under which a `use` brings it in.
struct Named {
    path: Path,
    name: String,
}

/// Modules of a crate, and the names that they re-export.
struct Modules<'a> {
    sources: BTreeMap<Path, &'a Source>,
    re_exports: BTreeMap<Path, BTreeMap<String, Path>>,
}

impl<'a> Modules<'a> {
    fn new(sources: &'a [Source]) -> Self {
        let test_only = test_only_files(sources);
        let kept = sources.iter().filter(|source| !test_only.contains(&source.path));
        let sources = kept.map(|source| (module_of(source), source)).collect();
        let mut modules = Self { sources, re_exports: BTreeMap::new() };
        let re_exports = modules.sources.iter().map(|(module, source)| {
            let (_, re_exports) = uses(source.code_without_tests());
            let re_exports = re_exports.into_iter();
            let named = re_exports.filter_map(|named| Some((named.name, modules.in_full(module, &named.path)?)));
            (module.clone(), named.collect())
        });
        modules.re_exports = re_exports.collect();
        modules
    }

    /// Returns `path` of the file of `module` below the root of the crate, or `None` if it leads to
    /// another crate.
    fn in_full(&self, module: &[String], path: &[String]) -> Option<Path> {
        let mut at = module.to_vec();
        let mut rest = path;
        match path.first()?.as_str() {
            "crate" => (at, rest) = (Path::new(), &path[1..]),
            "self" => rest = &path[1..],
            "super" => {
                while let Some(("super", behind)) = rest.split_first().map(|(a, b)| (a.as_str(), b)) {
                    at.pop();
                    rest = behind;
                }
            }
            child => {
                at.push(child.to_owned());
                if !self.sources.contains_key(&at) {
                    return None;
                }
                rest = &path[1..];
            }
        }
        at.extend(rest.iter().filter(|segment| *segment != "self").cloned());
        Some(at)
    }

    /// Returns the module that has the item `path`, through re-exports.
    fn owner(&self, path: &[String], depth: usize) -> Path {
        for len in (0..=path.len()).rev() {
            let (module, rest) = path.split_at(len);
            if !self.sources.contains_key(module) {
                continue;
            }
            let names = self.re_exports.get(module);
            let target = rest.first().and_then(|name| names?.get(name));
            return match target {
                Some(target) if depth > 0 => self.owner(&[target.as_slice(), &rest[1..]].concat(), depth - 1),
                _ => module.to_vec(),
            };
        }
        Path::new()
    }

    /// Returns the paths in full that the file of `module` names.
    fn named_by(&self, module: &[String]) -> Vec<Path> {
        let code = self.sources[module].code_without_tests();
        let (imports, re_exports) = uses(code);
        let behind_imports = imports.iter().flat_map(|import| paths_behind(code, import)).collect::<Vec<_>>();
        let named = imports.into_iter().chain(re_exports).map(|named| named.path);
        let paths = named.chain(behind_imports).chain(inline_paths(code));
        paths.filter_map(|path| self.in_full(module, &path)).collect()
    }

    /// Returns the files that each file imports, by path.
    fn edges(&self) -> BTreeMap<&'a str, BTreeSet<&'a str>> {
        let is_above = |a: &[String], b: &[String]| b.starts_with(a);
        let edges = self.sources.iter().map(|(module, source)| {
            let owners = self.named_by(module).into_iter().map(|path| self.owner(&path, 6));
            let owners = owners.filter(|owner| !is_above(owner, module) && !is_above(module, owner));
            (source.path.as_str(), owners.map(|owner| self.sources[&owner].path.as_str()).collect())
        });
        edges.collect()
    }
}

/// Returns the module of a file, as segments below the root of its crate.
fn module_of(source: &Source) -> Path {
    let path = source.below_crate().trim_end_matches(".rs");
    let mut segments: Path = path.split('/').map(str::to_owned).collect();
    let is_root = segments.len() == 1 && ["lib", "main"].contains(&path);
    if is_root || segments.last().is_some_and(|last| last == "mod") {
        segments.pop();
    }
    segments
}

/// Returns the place of each `use` in `code`, without its semicolon.
fn use_items(code: &str) -> impl Iterator<Item = Range<usize>> + '_ {
    let words = code.match_indices("use ").map(|(at, _)| at);
    let items = words.filter(|&at| !code[..at].ends_with(is_name_char));
    items.filter_map(|at| Some(at..at + code[at..].find(';')?))
}

/// Returns what `code` imports, and what it re-exports, with the paths as written.
fn uses(code: &str) -> (Vec<Named>, Vec<Named>) {
    let mut imports = Vec::new();
    let mut re_exports = Vec::new();
    for item in use_items(code) {
        let before = code[..item.start].trim_end();
        let is_public = before.ends_with("pub") || before.ends_with(')');
        let list = if is_public { &mut re_exports } else { &mut imports };
        add_tree(&[], &code[item]["use ".len()..], list);
    }
    (imports, re_exports)
}

/// Adds the paths of a tree such as `a::{b, c::D as E}` below `above`.
fn add_tree(above: &[String], tree: &str, list: &mut Vec<Named>) {
    let tree = tree.trim();
    let Some((head, group)) = tree.split_once('{') else {
        let (path, alias) = tree.split_once(" as ").unwrap_or((tree, ""));
        let segments = path.split("::").map(|segment| segment.trim().to_owned());
        let path: Path = above.iter().cloned().chain(segments.filter(|s| !s.is_empty())).collect();
        let own = path.iter().rfind(|segment| *segment != "self").cloned().unwrap_or_default();
        let name = if alias.is_empty() { own } else { alias.trim().to_owned() };
        return list.push(Named { path, name });
    };
    let head = head.split("::").map(|segment| segment.trim().to_owned());
    let above: Path = above.iter().cloned().chain(head.filter(|s| !s.is_empty())).collect();
    let group = group.rsplit_once('}').map_or(group, |(group, _)| group);
    let mut depth = 0;
    let mut start = 0;
    for (at, c) in group.char_indices().chain([(group.len(), ',')]) {
        depth += i32::from(c == '{') - i32::from(c == '}');
        if c == ',' && depth == 0 {
            if !group[start..at].trim().is_empty() {
                add_tree(&above, &group[start..at], list);
            }
            start = (at + 1).min(group.len());
        }
    }
}

/// Returns the paths in `code` outside of `use` that begin with `crate`, `super` or `self`.
fn inline_paths(code: &str) -> Vec<Path> {
    ["crate", "super", "self"].into_iter().flat_map(|first| paths_from(code, first)).collect()
}

/// Returns the paths in `code` that begin with the name of `import`, as if written without the import.
fn paths_behind(code: &str, import: &Named) -> Vec<Path> {
    let paths = paths_from(code, &import.name).into_iter();
    paths.map(|path| [import.path.as_slice(), &path[1..]].concat()).collect()
}

/// Returns the paths in `code` outside of `use` that begin with the segment `first`.
fn paths_from(code: &str, first: &str) -> Vec<Path> {
    let items: Vec<Range<usize>> = use_items(code).collect();
    let mut paths = Vec::new();
    for (at, _) in code.match_indices(&format!("{first}::")) {
        let is_inside = code[..at].ends_with(|c| is_name_char(c) || c == ':');
        if is_inside || items.iter().any(|item| item.contains(&at)) {
            continue;
        }
        let end = code[at..].find(|c| !is_name_char(c) && c != ':').unwrap_or(code.len() - at);
        let path = code[at..at + end].trim_end_matches(':');
        paths.push(path.split("::").map(str::to_owned).collect());
    }
    paths
}

/// Returns the shortest way from `start` back to itself, both ends included.
fn shortest_circle<'a>(edges: &BTreeMap<&'a str, BTreeSet<&'a str>>, start: &'a str) -> Option<Vec<&'a str>> {
    let mut seen = BTreeSet::new();
    let mut ways = VecDeque::from([vec![start]]);
    while let Some(way) = ways.pop_front() {
        for &next in edges.get(way[way.len() - 1]).into_iter().flatten() {
            let longer = [way.as_slice(), &[next]].concat();
            if next == start {
                return Some(longer);
            }
            if seen.insert(next) {
                ways.push_back(longer);
            }
        }
    }
    None
}

/// Returns the groups of files that reach each other, each with its shortest circle.
fn circles<'a>(edges: &BTreeMap<&'a str, BTreeSet<&'a str>>) -> Vec<(BTreeSet<&'a str>, Vec<&'a str>)> {
    let reached = |start: &'a str| {
        let mut reached = BTreeSet::new();
        let mut stack = vec![start];
        while let Some(at) = stack.pop() {
            let next = edges.get(at).into_iter().flatten();
            stack.extend(next.filter(|next| reached.insert(**next)));
        }
        reached
    };
    let reached: BTreeMap<&str, BTreeSet<&str>> = edges.keys().map(|&file| (file, reached(file))).collect();
    let mut groups: BTreeMap<BTreeSet<&str>, Vec<&str>> = BTreeMap::new();
    for (&file, others) in &reached {
        let Some(chain) = shortest_circle(edges, file) else { continue };
        let is_back = |other: &&&str| reached.get(**other).is_some_and(|back| back.contains(file));
        let group = others.iter().filter(is_back).copied().collect();
        let shortest = groups.entry(group).or_insert_with(|| chain.clone());
        if chain.len() < shortest.len() {
            *shortest = chain;
        }
    }
    groups.into_iter().collect()
}

/// Returns the folders of the crates, `src/tadoc` and so on.
fn crates() -> BTreeSet<String> {
    let folder = |path: &String| path.splitn(3, '/').take(2).collect::<Vec<_>>().join("/");
    files("src", "rs").iter().map(folder).collect()
}

#[test]
fn files_of_a_crate_import_each_other_without_circles() {
    let mut findings = Vec::new();
    for folder in crates() {
        let sources = sources(&folder);
        for (group, chain) in circles(&Modules::new(&sources).edges()) {
            let others = if group.len() < chain.len() {
                String::new()
            } else {
                let group: Vec<&str> = group.iter().copied().collect();
                format!(" (in a group: {})", group.join(", "))
            };
            findings.push(format!("{}{others}", chain.join(" -> ")));
        }
    }
    assert_none("circles of imports: move what is shared to the file that owns its idea", findings);
}

/// Returns the room of a file of `src/datafusion`; `None` for its root and its examples.
fn room_of(path: &str) -> Option<&str> {
    let below = path.strip_prefix("src/datafusion/")?;
    let room = below.split('/').next()?.trim_end_matches(".rs");
    Some(room).filter(|room| !["lib", "examples"].contains(room))
}

#[test]
fn rooms_of_the_engine_import_only_those_below() {
    let sources = sources("src/datafusion");
    let floor = |room: &str| ROOMS.iter().position(|known| *known == room);
    let mut findings = Vec::new();
    for (file, imports) in Modules::new(&sources).edges() {
        let Some(room) = room_of(file) else { continue };
        if floor(room).is_none() {
            findings.push(format!("{file}: the room {room} is not in the table"));
        }
        let is_above = |import: &&&str| room_of(import).is_some_and(|other| floor(other) > floor(room));
        findings.extend(imports.iter().filter(is_above).map(|import| format!("{file} -> {import}")));
    }
    assert_none("imports of a room above: ROOMS in tests/tidy/imports.rs holds their order", findings);
}

/// Returns the names of the types of the table functions in `source`.
fn function_types(source: &Source) -> impl Iterator<Item = &str> {
    let behind = source.code.split("impl TableFunction for ").skip(1);
    behind.filter_map(|behind| behind.split(|c| !is_name_char(c)).next())
}

/// A function may build on another function as a whole, as SQL does, to join portions. The rest of
/// its file is its own.
#[test]
fn functions_share_only_files_of_the_table() {
    let sources = sources("src/datafusion");
    let modules = Modules::new(&sources);
    let folder = ["functions".to_owned()];
    let mut findings = Vec::new();
    for (module, source) in &modules.sources {
        let Some((name, _)) = module.strip_prefix(&folder).and_then(<[String]>::split_first) else {
            continue;
        };
        let is_planned = source.code.contains(": PlannedFunction = ");
        let has_function = is_planned || function_types(source).next().is_some();
        if module.len() == 2 && name != "scalar" && is_shared(name) == has_function {
            findings.push(format!("{}: either a function or shared", source.path));
        }
        for path in modules.named_by(module) {
            let Some([used, item @ ..]) = path.strip_prefix(&folder) else { continue };
            let used_path = [folder.as_slice(), std::slice::from_ref(used)].concat();
            let Some(other) = modules.sources.get(&used_path) else { continue };
            let is_function = function_types(other).any(|name| item.first().is_some_and(|first| first == name));
            if used != name && !is_shared(used) && !is_function {
                findings.push(format!("{} uses {used}::{}", source.path, item.join("::")));
            }
        }
    }
    assert_none("functions that use files of other functions: share a file instead", findings);
}

fn is_shared(name: &str) -> bool {
    SHARED_BY_FUNCTIONS.contains(&name)
}

#[test]
fn imports_are_read_from_paths() {
    let file = |path: &str, code: &str| Source {
        path: format!("src/x/{path}.rs"),
        text: String::new(),
        code: code.to_owned(),
    };
    let sources = [
        file("lib", "mod a; mod b; mod c;"),
        file("a/mod", "mod deep; pub(crate) use deep::{Deep as Renamed, Other};"),
        file("a/deep", "use super::super::b; use super::Renamed; fn f() { crate::b::g() }"),
        file("b", "use crate::{a::{self, Renamed}, c::C};\nuse std::fmt;"),
        file("c", "fn f() {}\n#[cfg(test)]\nmod tests { use crate::b::B; }"),
        file("c/e", "fn g() {}"),
        file("d", "use crate::c; fn h() { c::e::g() }"),
    ];
    let modules = Modules::new(&sources);
    let edges = modules.edges();
    let of = |path: &str| edges[path].iter().copied().collect::<Vec<_>>();
    assert_eq!(of("src/x/b.rs"), ["src/x/a/deep.rs", "src/x/a/mod.rs", "src/x/c.rs"]);
    assert_eq!(of("src/x/a/deep.rs"), ["src/x/b.rs"]);
    assert!(of("src/x/c.rs").is_empty() && of("src/x/a/mod.rs").is_empty());
    assert_eq!(of("src/x/d.rs"), ["src/x/c.rs", "src/x/c/e.rs"]);
    let (group, chain) = circles(&edges).pop().unwrap();
    assert_eq!(group.into_iter().collect::<Vec<_>>(), ["src/x/a/deep.rs", "src/x/b.rs"]);
    assert_eq!(chain, ["src/x/a/deep.rs", "src/x/b.rs", "src/x/a/deep.rs"]);
}
