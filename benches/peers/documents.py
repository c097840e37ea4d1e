"""The documents of a folder, the same for every peer.

A document is a file. Files that describe a corpus instead of belonging to it (PROVENANCE.md,
LICENSE and *.list at the top of the folder) are left out. The order is that of the path's bytes.
"""

import os
import shutil


def is_document(relative_path):
    """Whether the file belongs to the corpus."""
    return "/" in relative_path or not (
        relative_path in ("PROVENANCE.md", "LICENSE") or relative_path.endswith(".list")
    )


def document_paths(folder):
    """Paths of all documents, relative to `folder`, in byte order."""
    found = []
    for parent, _, names in os.walk(folder):
        found += [os.path.relpath(os.path.join(parent, name), folder) for name in names]
    return sorted(filter(is_document, found), key=os.fsencode)


def read_documents(folder):
    """Yields (path, bytes) of each document."""
    for path in document_paths(folder):
        with open(os.path.join(folder, path), "rb") as file:
            yield path, file.read()


def concatenate(folder, out_path):
    """Writes all documents one behind the other; returns (number of documents, bytes)."""
    num_docs = num_bytes = 0
    with open(out_path, "wb") as out:
        for _, data in read_documents(folder):
            out.write(data)
            num_docs, num_bytes = num_docs + 1, num_bytes + len(data)
    return num_docs, num_bytes


def stage(folder, temp):
    """A folder with the documents only: `folder` itself, or a copy below `temp`."""
    others = [name for name in os.listdir(folder) if not is_document(name)]
    if not others:
        return folder
    staged = os.path.join(temp, os.path.basename(os.path.normpath(folder)))
    top = os.path.normpath(folder)
    shutil.copytree(
        folder, staged, ignore=lambda at, _: others if os.path.normpath(at) == top else [],
        copy_function=shutil.copyfile,
    )
    return staged


def text_of(data):
    """How every peer sees a document that is not valid UTF-8: U+FFFD for what is invalid.

    The same rule as Rust's `String::from_utf8_lossy` (one U+FFFD for each maximal invalid part).
    """
    return data.decode("utf-8", errors="replace")
