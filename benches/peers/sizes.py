#!/usr/bin/env python3
"""Measures the bytes on disk of the same documents, packed by each peer and by us.

Claims it supports: "a whole file (text, dictionary, paths, everything needed for search and extract) is at most as large
as zstd -3 --long=27 of the same documents concatenated", and at most 0.9 times as large in the layout `small`. A zstd file cannot be searched
and has neither paths nor document borders; a Tantivy index and a Parquet file have both.

    pip install duckdb pyarrow tantivy          # for the two rows of the same name
    python3 benches/peers/sizes.py --tadoc target/debug/tadoc ../shared/corpora/* /tmp/tadoc-large

Prints Markdown with a column for each corpus and a row for each packer. A cell has the bytes and their share of
the raw bytes. Then come our bytes by section. `--only gzip,zstd` keeps rows whose name contains one of the words.
"""

import argparse
import csv
import os
import subprocess
import sys
import tempfile

from documents import concatenate, read_documents, stage, text_of


def compressed_len(*command):
    """Returns the number of bytes that a command writes to its standard output."""
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    num_bytes = sum(len(part) for part in iter(lambda: process.stdout.read(1 << 20), b""))
    if process.wait() != 0:
        raise SystemExit(f"exit status {process.returncode}: {' '.join(command)}")
    return num_bytes


def folder_len(folder):
    """Returns the number of bytes of all files below a folder."""
    return sum(os.path.getsize(os.path.join(at, n)) for at, _, names in os.walk(folder) for n in names)


def tantivy_index(folder, temp):
    """Returns the bytes of an index with positions, stored path and stored text (lz4 document store, Tantivy's default)."""
    import tantivy

    builder = tantivy.SchemaBuilder()
    builder.add_text_field("path", stored=True, tokenizer_name="raw")
    builder.add_text_field("text", stored=True, index_option="position")
    out = os.path.join(temp, "tantivy")
    os.makedirs(out)
    index = tantivy.Index(builder.build(), path=out)
    writer = index.writer(heap_size=256 << 20, num_threads=2)
    for path, data in read_documents(folder):
        writer.add_document(tantivy.Document(path=path, text=text_of(data)))
    writer.commit()
    writer.wait_merging_threads()
    writer = index.writer()
    writer.garbage_collect_files()
    return folder_len(out)


def duckdb_parquet(folder, temp):
    """Returns the bytes of Parquet with columns path and content, zstd, as DuckDB writes it by default."""
    import duckdb
    import pyarrow

    docs = list(read_documents(folder))
    table = pyarrow.table({
        "path": pyarrow.array([path for path, _ in docs], pyarrow.string()),
        "content": pyarrow.array([data for _, data in docs], pyarrow.large_binary()),
    })
    out = os.path.join(temp, "docs.parquet")
    connection = duckdb.connect()
    connection.register("docs", table)
    connection.execute(f"COPY docs TO '{out}' (FORMAT parquet, COMPRESSION zstd)")
    return os.path.getsize(out)


# Names of rows, each with a function that counts bytes from (concatenation, folder, temporary folder).
PEERS = {
    "raw": lambda text, folder, temp: os.path.getsize(text),
    "gzip -6": lambda text, folder, temp: compressed_len("gzip", "-6", "-c", text),
    "zstd -3": lambda text, folder, temp: compressed_len("zstd", "-3", "-qc", text),
    "zstd -3 --long=27": lambda text, folder, temp: compressed_len(
        "zstd", "-3", "--long=27", "-qc", text),
    "zstd -19": lambda text, folder, temp: compressed_len("zstd", "-19", "-T2", "-qc", text),
    "zstd -19 --long=27": lambda text, folder, temp: compressed_len(
        "zstd", "-19", "--long=27", "-T2", "-qc", text),
    "Tantivy, stored text": lambda text, folder, temp: tantivy_index(folder, temp),
    "DuckDB Parquet, zstd": lambda text, folder, temp: duckdb_parquet(folder, temp),
}


LAYOUTS = ("indexed", "small")


def tadoc_sections(binary, layout, folder, temp):
    """Ingests the documents in a layout and returns {row: bytes} of the file and its sections."""
    out = os.path.join(temp, "corpus.tadoc")
    subprocess.run([binary, "ingest", stage(folder, temp), "-o", out, "--force", "--layout", layout], check=True,
                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    query = f"SELECT * FROM corpus_info('{out}')"
    answer = subprocess.run([binary, "sql", "--quiet", "--format", "csv", "-c", query], check=True,
                            capture_output=True, text=True)
    facts = dict(row for row in csv.reader(answer.stdout.splitlines()) if len(row) == 2)
    sections = {name: int(value) for name, value in facts.items() if name.endswith("_section_bytes")}
    whole = f"tadoc {layout}"
    rows = {whole: os.path.getsize(out)}
    rows.update({f"{whole}: {name.removesuffix('_section_bytes')}": n for name, n in sections.items()})
    rows[f"{whole}: lists, footer, padding"] = rows[whole] - sum(sections.values())
    return rows


def cell(num_bytes, raw_bytes):
    """Returns the bytes and their share of the raw bytes as a text."""
    return "" if num_bytes is None else f"{num_bytes:,} ({num_bytes / max(raw_bytes, 1):.4f})"


def measure(folder, only, tadoc):
    """Returns {row: bytes} of one corpus."""
    rows = {}
    with tempfile.TemporaryDirectory() as temp:
        text = os.path.join(temp, "concatenated")
        num_docs, rows["raw"] = concatenate(folder, text)
        print(f"{folder}: {num_docs:,} documents, {rows['raw']:,} bytes", file=sys.stderr)
        for name, count in PEERS.items():
            if name != "raw" and (not only or any(word in name for word in only)):
                rows[name] = count(text, folder, temp)
                print(f"  {name}: {cell(rows[name], rows['raw'])}", file=sys.stderr)
        if tadoc:
            for layout in LAYOUTS:
                rows.update(tadoc_sections(tadoc, layout, folder, temp))
    return rows


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("folders", nargs="+")
    parser.add_argument("--only", default="", help="rows whose name contains one of these words")
    parser.add_argument("--tadoc", help="the tadoc binary; without it our rows are left out")
    args = parser.parse_args()

    only = [word for word in args.only.split(",") if word]
    corpora = {os.path.basename(os.path.normpath(folder)): measure(folder, only, args.tadoc)
               for folder in args.folders}
    names = list(dict.fromkeys(name for rows in corpora.values() for name in rows))
    print("| bytes (part of raw) | " + " | ".join(corpora) + " |")
    print("| --- |" + " ---: |" * len(corpora))
    for name in names:
        cells = (cell(rows.get(name), rows["raw"]) for rows in corpora.values())
        print(f"| {name} | " + " | ".join(cells) + " |")
    ours = [name for name in names if name.startswith("tadoc") and ":" not in name]
    for peer in (name for name in names if name.startswith("zstd")):
        for name in ours:
            ratios = (f"{rows[name] / rows[peer]:.3f}x" for rows in corpora.values())
            print(f"| {name} / {peer} | " + " | ".join(ratios) + " |")


if __name__ == "__main__":
    main()
