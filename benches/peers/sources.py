#!/usr/bin/env python3
"""Measures `tadoc ingest` of the same documents from a plain folder, a `.tar.zst`, and a store with slow answers.

Claims it supports: "an archive, or an object store that takes 20 ms for an answer, is ingested at 0.8 of the rate of
a plain folder or faster".

    python3 benches/peers/sources.py [--tadoc target/debug/tadoc] [--latency-ms 20] FOLDER

Method. The first `--files` documents of a folder become a folder, an archive by `tar | zstd -3`, and objects of a bucket. The store
is a process that speaks as much of S3 as ingest needs, and waits before each answer. It shares the cores with ingest. The sources take turns,
and the shortest of `--rounds` times counts. Texts of all three files are the same, which their digests show.
"""

import argparse
import http.server
import multiprocessing
import os
import shutil
import subprocess
import tempfile
import time
import urllib.parse
import xml.sax.saxutils

from documents import document_paths
from opening import measured

PAGE_KEYS = 1000


class Store(http.server.BaseHTTPRequestHandler):
    """A bucket with the files of `folder`, whose answers take `latency` seconds."""

    protocol_version = "HTTP/1.1"
    folder, latency, keys = "", 0.0, []

    def do_HEAD(self):
        self.answer(body=False)

    def do_GET(self):
        self.answer(body=True)

    def answer(self, body):
        time.sleep(self.latency)
        url = urllib.parse.urlsplit(self.path)
        query = dict(urllib.parse.parse_qsl(url.query))
        key = urllib.parse.unquote(url.path).removeprefix("/bucket").lstrip("/")
        file = os.path.join(self.folder, key)
        if "list-type" in query:
            self.send(200, self.listing(query), body)
        elif not os.path.isfile(file):
            self.send(404, b"<Error><Code>NoSuchKey</Code></Error>", body)
        elif span := self.headers.get("Range"):
            with open(file, "rb") as opened:
                data = opened.read()
            first, _, last = span.removeprefix("bytes=").partition("-")
            end = min(int(last) + 1, len(data)) if last else len(data)
            self.send(206, data[int(first):end], body, f"bytes {first}-{end - 1}/{len(data)}")
        else:
            with open(file, "rb") as opened:
                self.send(200, opened.read(), body)

    def listing(self, query):
        start = int(query.get("continuation-token", 0))
        prefix = query.get("prefix", "")
        keys = [key for key in self.keys if key.startswith(prefix)]
        items = "".join(
            f"<Contents><Key>{xml.sax.saxutils.escape(key)}</Key><Size>{os.path.getsize(os.path.join(self.folder, key))}</Size>"
            '<LastModified>2024-05-06T07:08:09.000Z</LastModified><ETag>"x"</ETag></Contents>'
            for key in keys[start : start + PAGE_KEYS]
        )
        more = start + PAGE_KEYS < len(keys)
        token = f"<NextContinuationToken>{start + PAGE_KEYS}</NextContinuationToken>" if more else ""
        return f"<ListBucketResult><IsTruncated>{str(more).lower()}</IsTruncated>{token}{items}</ListBucketResult>".encode()

    def send(self, status, data, body, content_range=None):
        self.send_response(status)
        self.send_header("Content-Length", str(len(data)))
        self.send_header("ETag", '"x"')
        self.send_header("Last-Modified", "Mon, 06 May 2024 07:08:09 GMT")
        if content_range:
            self.send_header("Content-Range", content_range)
        self.end_headers()
        if body:
            self.wfile.write(data)

    def log_message(self, *_):
        pass


class Server(http.server.ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 512


def serve(folder, latency, ports):
    Store.folder, Store.latency, Store.keys = folder, latency, document_paths(folder)
    server = Server(("127.0.0.1", 0), Store)
    ports.put(server.server_address[1])
    server.serve_forever()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder")
    parser.add_argument("--tadoc", default="target/debug/tadoc")
    parser.add_argument("--files", type=int, default=50_000)
    parser.add_argument("--latency-ms", type=float, default=20)
    parser.add_argument("--rounds", type=int, default=3)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as temp:
        plain = os.path.join(temp, "plain")
        paths = document_paths(arguments.folder)[: arguments.files]
        for path in paths:
            os.makedirs(os.path.dirname(os.path.join(plain, path)), exist_ok=True)
            shutil.copyfile(os.path.join(arguments.folder, path), os.path.join(plain, path))
        num_bytes = sum(os.path.getsize(os.path.join(plain, path)) for path in paths)
        archive = os.path.join(temp, "all.tar.zst")
        pack = f"tar -C {plain} --sort=name -cf - . | zstd -q -3 -T0 -o {archive}"
        subprocess.run(["sh", "-c", pack], check=True)
        ports = multiprocessing.Queue()
        process = multiprocessing.Process(target=serve, args=(plain, arguments.latency_ms / 1000, ports), daemon=True)
        process.start()
        os.environ |= {
            "AWS_ENDPOINT": f"http://127.0.0.1:{ports.get()}", "AWS_ALLOW_HTTP": "true", "AWS_REGION": "us-east-1",
            "AWS_SKIP_SIGNATURE": "true",
        }
        print(f"{len(paths)} files, {num_bytes / 1e6:.0f} MB, {arguments.latency_ms:g} ms an answer, {os.cpu_count()} cores\n")
        compare(arguments, {"plain folder": plain, "tar.zst": archive, "S3": "s3://bucket/"}, temp, num_bytes)
        process.terminate()


def compare(arguments, sources, temp, num_bytes):
    best, digests = {}, {}
    out = os.path.join(temp, "out.tadoc")
    for _ in range(arguments.rounds):
        for name, source in sources.items():
            command = [arguments.tadoc, "ingest", source, "-o", out, "--force", "--quiet"]
            _, wall, cpu, memory = measured(command)
            best[name] = min(best.get(name, (wall, cpu, memory)), (wall, cpu, memory))
            texts = [arguments.tadoc, "sql", "-q", "--format", "csv", "-c",
                     f"SELECT count(*), sum(bytes), sum(words) FROM documents('{out}')"]
            digests[name] = measured(texts)[0]
    if len(set(digests.values())) != 1:
        raise SystemExit(f"the texts differ: {digests}")
    print("| source | s | processor s | MB/s | rate / plain folder | peak MB |\n| --- | ---: | ---: | ---: | ---: | ---: |")
    for name, (wall, cpu, memory) in best.items():
        ratio = best["plain folder"][0] / wall
        print(f"| {name} | {wall:.2f} | {cpu:.2f} | {num_bytes / 1e6 / wall:.1f} | {ratio:.2f} | {memory:.0f} |")


if __name__ == "__main__":
    main()
