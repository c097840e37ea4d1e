#!/usr/bin/env python3
"""Makes a folder of at least 1 GiB of real text from files of this machine.

Claim it supports: the rows of the corpus "large" in benches/results (size, ingest rate, peak memory). The
text differs from machine to machine, so the results quote the bytes, files and digest printed here
(SHA-256 over path and content of all files, in order).

The sources are used in this order until the target is reached: folders of --more, crate sources of Cargo's
registry, C and C++ headers, documentation and manual pages (gzipped ones are unpacked), the sources of
installed Pythons and Node packages, and the HTML of the Rust documentation. Files are kept if they are valid
UTF-8 without NUL bytes, have up to 16 MiB, and are not hidden. A file equal to an earlier one is left out, so
nothing is repeated artificially. Versions of one package differ from each other as versions do.

    python3 benches/peers/make_large.py [--out /tmp/tadoc-large] [--target-bytes 1073741824]

--archives BYTES makes more text of it, for measures of size alone: OUT.archives has archives (tar) of all
files, as many as have so many bytes. The first has the files as they are. In each of the others three letters
of the alphabet, other ones for each archive, are exchanged. So many of the words of an archive are its own, and
most of its sequences of three words, as new text of a kind has new ones. All cores write.
"""

import argparse
import glob
import gzip
import hashlib
import io
import itertools
import multiprocessing
import os
import random
import shutil
import string
import tarfile
import zlib

from documents import read_documents

MAX_FILE_BYTES = 16 << 20

# Folders inside the output, and the folders of their files. A glob may name several folders.
SOURCES = [
    ("crates", "~/.cargo/registry/src/*"),
    ("include", "/usr/include"),
    ("doc", "/usr/share/doc"),
    ("man", "/usr/share/man"),
    ("python", "~/.pyenv/versions"),
    ("python-system", "/usr/lib/python3*"),
    ("python-local", "/usr/local/lib/python3*"),
    ("node", "/usr/lib/node_modules"),
    ("rust-doc", "~/.rustup/toolchains/*/share/doc/rust"),
]


def text_of(path):
    """Returns the unpacked bytes of a text file, or None if it is not text or too large."""
    if os.path.islink(path) or not os.path.isfile(path) or os.path.getsize(path) > MAX_FILE_BYTES:
        return None
    try:
        with (gzip.open if path.endswith(".gz") else open)(path, "rb") as file:
            data = file.read(MAX_FILE_BYTES + 1)
        data.decode("utf-8")
    except (OSError, EOFError, zlib.error, UnicodeDecodeError):
        return None
    return data if 0 < len(data) <= MAX_FILE_BYTES and b"\0" not in data else None


def files_of(root):
    """Returns the paths of all files below `root` that are not hidden, relative to it, in byte order."""
    found = []
    for folder, below, names in os.walk(root):
        below[:] = [name for name in below if not name.startswith(".")]
        visible = (name for name in names if not name.startswith("."))
        found += [os.path.relpath(os.path.join(folder, name), root) for name in visible]
    return sorted(found, key=os.fsencode)


def digest_of(folder):
    """Returns a digest that tells one such folder from another."""
    digest = hashlib.sha256()
    for path, data in read_documents(folder):
        digest.update(os.fsencode(path) + b"\0" + hashlib.sha256(data).digest())
    return digest.hexdigest()[:16]


def exchanged(letters):
    """Returns the table of bytes in which the first of three letters becomes the second, and so on, in both cases."""
    others = letters[1:] + letters[:1]
    return bytes.maketrans((letters + letters.upper()).encode(), (others + others.upper()).encode())


def write_archive(folder, path, table):
    """Writes the documents of `folder` to an archive, with their bytes exchanged by `table`, and returns their bytes."""
    num_bytes = 0
    with tarfile.open(path, "w", format=tarfile.GNU_FORMAT) as archive:
        for name, data in read_documents(folder):
            member = tarfile.TarInfo(name)
            member.size = len(data)
            archive.addfile(member, io.BytesIO(data.translate(table)))
            num_bytes += len(data)
    return num_bytes


def write_archives(folder, folder_bytes, target_bytes):
    """Writes archives of text like that of `folder` until they have `target_bytes`."""
    out = f"{folder}.archives"
    shutil.rmtree(out, ignore_errors=True)
    os.makedirs(out)
    threes = list(itertools.combinations(string.ascii_lowercase, 3))
    random.Random(1).shuffle(threes)
    num_archives = min(-(-target_bytes // folder_bytes), len(threes))
    tables = [bytes(range(256)), *(exchanged("".join(three)) for three in threes)]
    parts = [(folder, os.path.join(out, f"{n:04}.tar"), tables[n]) for n in range(num_archives)]
    with multiprocessing.Pool() as pool:
        num_bytes = sum(pool.starmap(write_archive, parts, chunksize=1))
    print(f"{'archives':14} {num_archives:8,} files {num_bytes:15,} bytes in {out}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--out", default="/tmp/tadoc-large")
    parser.add_argument("--target-bytes", type=int, default=1 << 30)
    parser.add_argument("--more", action="append", default=[], help="a folder, or a glob of them, to take first")
    parser.add_argument("--archives", type=int, default=0, help="write archives of so many bytes, too")
    args = parser.parse_args()
    if os.path.exists(args.out):
        shutil.rmtree(args.out)

    seen, total_bytes, total_files = set(), 0, 0
    named = [(f"more-{n}", pattern) for n, pattern in enumerate(args.more)]
    for folder, pattern in named + SOURCES:
        source_bytes = source_files = 0
        for root in sorted(glob.glob(os.path.expanduser(pattern))):
            for relative in files_of(root):
                if total_bytes >= args.target_bytes:
                    break
                data = text_of(os.path.join(root, relative))
                key = data and hashlib.sha256(data).digest()
                if key is None or key in seen:
                    continue
                seen.add(key)
                out_path = os.path.join(args.out, folder, relative.removesuffix(".gz"))
                if os.path.exists(out_path):
                    continue
                os.makedirs(os.path.dirname(out_path), exist_ok=True)
                with open(out_path, "wb") as out:
                    out.write(data)
                source_bytes, source_files = source_bytes + len(data), source_files + 1
                total_bytes, total_files = total_bytes + len(data), total_files + 1
        print(f"{folder:14} {source_files:8,} files {source_bytes:15,} bytes", flush=True)
    print(f"{'total':14} {total_files:8,} files {total_bytes:15,} bytes  digest {digest_of(args.out)}")
    if args.archives and total_bytes:
        write_archives(args.out, total_bytes, args.archives)
    if total_bytes < args.target_bytes:
        raise SystemExit(f"only {total_bytes:,} of {args.target_bytes:,} bytes found; "
                         "`cargo fetch` a few projects to add crate sources, or pass --target-bytes")


if __name__ == "__main__":
    main()
