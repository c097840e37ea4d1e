"""The documents of a folder, the same for every peer and for `tadoc ingest`.

A document is a file. These are not documents: hidden files and folders (`tadoc ingest` takes them only by
name), and files that describe the corpus, which are PROVENANCE.md, LICENSE and *.list at the top of the
folder. Documents are sorted by name, folder by folder.
"""

import os


def is_document(relative_path):
    """Returns True if the file belongs to the corpus."""
    parts = relative_path.split("/")
    describes = parts[0] in ("PROVENANCE.md", "LICENSE") or parts[0].endswith(".list")
    return not any(part.startswith(".") for part in parts) and not (len(parts) == 1 and describes)


def document_paths(folder):
    """Returns the sorted paths of all documents, relative to `folder`."""
    found = []
    for parent, _, names in os.walk(folder):
        found += [os.path.relpath(os.path.join(parent, name), folder) for name in names]
    return sorted(filter(is_document, found), key=lambda path: os.fsencode(path).split(b"/"))


def read_documents(folder):
    """Yields (path, bytes) of each document."""
    for path in document_paths(folder):
        with open(os.path.join(folder, path), "rb") as file:
            yield path, file.read()


def concatenate(folder, out_path):
    """Writes all documents one behind the other and returns (number of documents, bytes)."""
    num_docs = num_bytes = 0
    with open(out_path, "wb") as out:
        for _, data in read_documents(folder):
            out.write(data)
            num_docs, num_bytes = num_docs + 1, num_bytes + len(data)
    return num_docs, num_bytes


def stage(folder, temp):
    """Returns a folder of which `tadoc ingest` takes all documents: `folder` itself, or a copy in `temp`."""
    if all(is_document(name) or name.startswith(".") for name in os.listdir(folder)):
        return folder
    staged = os.path.join(temp, "documents")
    for path, data in read_documents(folder):
        os.makedirs(os.path.dirname(os.path.join(staged, path)), exist_ok=True)
        with open(os.path.join(staged, path), "wb") as out:
            out.write(data)
    return staged


def text_of(data):
    """Returns a document as text, with U+FFFD for invalid UTF-8, as every peer gets it.

    The rule is that of Rust's `String::from_utf8_lossy` (one U+FFFD for each maximal invalid part).
    """
    return data.decode("utf-8", errors="replace")
