#!/usr/bin/env python3
"""Makes a folder of at least 1 GiB of real text from files of this machine.

Claim it supports: the rows of the corpus "large" in benches/results (size, ingest rate, peak memory). The
text differs from machine to machine, so the results quote the bytes, files and digest printed here
(SHA-256 over path and content of all files, in order).

The sources are used in this order until the target is reached: crate sources of Cargo's registry, C and
C++ headers, documentation and manual pages (gzipped ones are unpacked), the sources of installed Pythons
and Node packages, and the HTML of the Rust documentation. Files are kept if they are valid UTF-8 without
NUL bytes, have up to 16 MiB, and are not hidden. A file equal to an earlier one is left out, so nothing is
repeated artificially. Versions of one package differ from each other as versions do.

    python3 benches/peers/make_large.py [--out /tmp/tadoc-large] [--target-bytes 1073741824]
"""

import argparse
import glob
import gzip
import hashlib
import os
import shutil
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


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--out", default="/tmp/tadoc-large")
    parser.add_argument("--target-bytes", type=int, default=1 << 30)
    args = parser.parse_args()
    if os.path.exists(args.out):
        shutil.rmtree(args.out)

    seen, total_bytes, total_files = set(), 0, 0
    for folder, pattern in SOURCES:
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
    if total_bytes < args.target_bytes:
        raise SystemExit(f"only {total_bytes:,} of {args.target_bytes:,} bytes found; "
                         "`cargo fetch` a few projects to add crate sources, or pass --target-bytes")


if __name__ == "__main__":
    main()
