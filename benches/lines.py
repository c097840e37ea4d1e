"""Counts the lines of Rust in `src` by crate and by kind, and the idioms of its code.

    python3 benches/lines.py [FOLDER]

A lexer puts each line into one class: code, doc (`///`, `//!`), comment, blank, or unit test (a module below
`#[cfg(test)]`, a file `tests.rs` or `…_tests.rs`). A line with code and a comment is code. `heads` are the lines of
`//!`, `use` and `mod` of a file. Idioms are counted in code without unit tests, for 1,000 lines of code.
"""

import re
import statistics
import sys
from collections import Counter, defaultdict
from pathlib import Path

TOKEN = re.compile(
    r"""(?P<line>//[^\n]*)
    | (?P<block>/\*)
    | (?P<raw>b?c?r(?P<hashes>\#*)"(?:.|\n)*?"(?P=hashes))
    | (?P<text>b?c?"(?:\\(?:.|\n)|[^"\\])*")
    | (?P<char>b?'(?:\\[^\n]+?|[^\\'\n])')
    """,
    re.VERBOSE,
)
IDIOMS = {
    "match on a boolean (total)": (r"\{\s*(?:true|false) =>", None),
    "local closures": (r"\blet (?:mut )?\w+(?:: [^=;]+)? = (?:async )?(?:move )?\|", 1000),
    "let of a tuple": (r"\blet \((?:mut )?\w+, ", 1000),
    "rebinding (let x = x…)": (r"\blet (?:mut )?(\w+) = \1\b", 1000),
    "fn of… (total)": (r"\bfn of(?:_\w+)?\b", None),
    "let of_… (total)": (r"\blet (?:mut )?of_\w+", None),
    "as casts": (r"\bas (?:[ui](?:8|16|32|64|128|size)|f(?:32|64))\b", 1000),
}
KINDS = ["code", "test", "doc", "comment", "blank"]


def end_of_block(source, at):
    """Returns the end of the comment, in which others may stand, that begins at `at`."""
    depth = 0
    for mark in re.compile(r"/\*|\*/").finditer(source, at):
        depth += 1 if mark.group() == "/*" else -1
        if depth == 0:
            return mark.end()
    return len(source)


def blanked(source):
    """Returns the source without comments and the insides of texts, and the lines of docs and comments."""
    out, at, docs, comments = [], 0, set(), set()
    while match := TOKEN.search(source, at):
        out.append(source[at : match.start()])
        end = end_of_block(source, match.start()) if match["block"] else match.end()
        piece = source[match.start() : end]
        first = source.count("\n", 0, match.start())
        if match["line"] or match["block"]:
            is_doc = re.match(r"///(?!/)|//!|/\*\*[^*/]|/\*!", piece)
            (docs if is_doc else comments).update(range(first, first + piece.count("\n") + 1))
            out.append("\n" * piece.count("\n"))
        else:
            out.append('"' + "\n" * piece.count("\n") + '"')
        at = end
    out.append(source[at:])
    return "".join(out), docs, comments


def lines_of_tests(code):
    """Returns the lines of modules below `#[cfg(test)]`."""
    lines = set()
    for match in re.finditer(r"#\[cfg\(test\)\]\s*(?:pub(?:\([^)]*\))? )?mod \w+ \{", code):
        depth = 0
        for brace in re.compile(r"[{}]").finditer(code, match.start()):
            depth += 1 if brace.group() == "{" else -1
            if depth == 0:
                first, last = code.count("\n", 0, match.start()), code.count("\n", 0, brace.end())
                lines.update(range(first, last + 1))
                break
    return lines


def count_file(path):
    """Returns the lines of a file by kind, its heads, and its code without tests."""
    source = path.read_text()
    code, docs, comments = blanked(source)
    rows = code.split("\n")[:-1] if code.endswith("\n") else code.split("\n")
    is_test_file = path.name == "tests.rs" or path.name.endswith("_tests.rs")
    tests = set(range(len(rows))) if is_test_file else lines_of_tests(code)
    kinds, heads, kept, is_import = Counter(), 0, [], False
    for number, row in enumerate(rows):
        text = row.strip()
        begins = re.match(r"(?:pub(?:\([^)]*\))? )?(?:use|mod) ", text)
        is_import = (is_import or bool(begins)) and number not in tests
        is_head = source.split("\n", number + 1)[number].lstrip().startswith("//!") if number in docs else is_import
        heads += bool(is_head and number not in tests)
        if is_import and text.endswith((";", "{")) and not text.endswith("::{"):
            is_import = False
        if number in tests:
            kinds["test"] += 1
        elif text:
            kinds["code"] += 1
            kept.append(row)
        elif number in docs:
            kinds["doc"] += 1
        elif number in comments:
            kinds["comment"] += 1
        else:
            kinds["blank"] += 1
    return kinds, heads, "\n".join(kept), is_test_file


def crate_name(path, root):
    """Returns the folder of `path` below `root`."""
    parts = path.relative_to(root).parts
    return parts[0] if len(parts) > 1 else "."


def max_width(root):
    """Returns the width of lines that the formatter keeps."""
    found = re.search(r"max_width\s*=\s*(\d+)", (root / ".rustfmt.toml").read_text())
    return int(found[1])


def main():
    root = Path(sys.argv[1] if len(sys.argv) > 1 else Path(__file__).resolve().parents[1])
    paths = sorted(p for p in (root / "src").rglob("*.rs") if "target" not in p.parts)
    crates, sums = defaultdict(Counter), Counter()
    idioms, sizes, width, num_wide = Counter(), [], max_width(root), 0
    for path in paths:
        kinds, heads, code, is_test_file = count_file(path)
        crate = crates[crate_name(path, root / "src")]
        for counter in (crate, sums):
            counter.update(kinds)
            counter.update({"files": 1, "heads": heads, "test files": is_test_file})
        if not is_test_file:
            sizes.append(kinds["code"])
        for name, (pattern, _) in IDIOMS.items():
            idioms[name] += len(re.findall(pattern, code))
        num_wide += sum(len(line) > width for line in path.read_text().split("\n"))
    print("| crate | files | total | code | unit tests | doc |\n| --- | --: | --: | --: | --: | --: |")
    for name, crate in sorted(crates.items(), key=lambda item: -item[1]["code"]) + [("**src**", sums)]:
        total = sum(crate[kind] for kind in KINDS)
        print(f"| {name} | {crate['files']} | {total:,} | {crate['code']:,} | {crate['test']:,} | {crate['doc']:,} |")
    code = sums["code"]
    print(f"\nnon-test files {len(sizes)}, median {statistics.median(sizes):.0f} lines of code,", end=" ")
    print(f"{sum(size < 60 for size in sizes)} below 60")
    print(f"heads and imports {100 * sums['heads'] / code:.1f} % of code, doc {100 * sums['doc'] / code:.0f} %")
    print(f"lines wider than {width} characters: {num_wide}\n")
    print("| idiom | number |\n| --- | --: |")
    for name, (_, per) in IDIOMS.items():
        value = f"{idioms[name]}" if per is None else f"{idioms[name] * per / code:.1f}"
        print(f"| {name} | {value} |")


if __name__ == "__main__":
    main()
