#!/usr/bin/python3
"""An object store that misbehaves on request: plain HTTP (GET, HEAD, Range, ETag) and S3's ListObjectsV2 over a folder.

    tests/object_store_stub.py FOLDER [--bucket NAME] [--port N] [--latency S] [--bandwidth BYTES/S] [--fault KIND=SHARE]...

serves FOLDER/a/b as http://127.0.0.1:PORT/NAME/a/b, prints its URL as the first line, and ends with its standard input
or by a signal. /__stats tells what was served, as JSON; /__set?latency=0.1&fault=500=0.2 changes what is wrong with it.

Faults, each for a share of the requests, drawn from --seed and the request's number:
    STATUS  answers 429, 500, 503 or another status, for --burst requests in a row
    slow    ten times the latency              reset   the connection is reset in the middle of the body
    short   the body ends early                range   Content-Range names other bytes than asked for
    etag    another ETag                       whole   200 with the whole object instead of 206
"""
import argparse
import collections
import contextlib
import datetime
import hashlib
import json
import os
import pathlib
import random
import re
import socket
import ssl
import struct
import sys
import threading
import time
import urllib.parse
from xml.sax.saxutils import escape

CHUNK = 256 << 10
LONGEST_HEAD = 64 << 10
REASONS = {200: "OK", 206: "Partial Content", 301: "Moved Permanently", 400: "Bad Request", 403: "Forbidden", 404: "Not Found",
           405: "Method Not Allowed", 416: "Range Not Satisfiable", 429: "Too Many Requests", 500: "Internal Server Error",
           503: "Slow Down"}
BODY_FAULTS = ("reset", "short", "range", "etag", "whole")


class Options:
    """What may be changed while it runs; every field is an option of the command."""
    def __init__(self, **values):
        self.latency = 0.0      # seconds before every answer
        self.bandwidth = 0.0    # bytes/s over all connections; 0: no limit
        self.faults = {}        # kind → share of the requests
        self.burst = 1          # requests in a row that get a faulty status
        self.seed = 1
        self.page = 1000        # keys per page of a listing
        self.max_concurrent = 0  # more requests at once are answered with 503; 0: no limit
        self.retry_after = 0    # seconds, with 429 and 503; 0: not sent
        self.validators = True  # False: neither ETag nor Last-Modified
        self.authorised = False  # True: requests without Authorization are answered with 403
        for name, value in values.items():
            self.set(name, value)

    def set(self, name, value):
        if name == "fault":
            kind, share = value.split("=")
            self.faults = {**self.faults, kind: float(share)}
        elif name == "faults":
            self.faults = dict(value)
        elif not hasattr(self, name):
            raise ValueError(f"no option {name}")
        else:
            kind = type(getattr(self, name))
            setattr(self, name, kind(int(value)) if kind is bool else kind(value))


class Stats:
    def __init__(self):
        self.lock = threading.Lock()
        self.counts = collections.Counter()
        self.running = 0

    def add(self, **counts):
        with self.lock:
            self.counts.update(counts)

    @contextlib.contextmanager
    def request(self):
        with self.lock:
            self.running += 1
            self.counts["most_at_once"] = max(self.counts["most_at_once"], self.running)
            self.counts["requests"] += 1
            number, running = self.counts["requests"], self.running
        try:
            yield number, running
        finally:
            with self.lock:
                self.running -= 1

    def as_dict(self):
        with self.lock:
            names = ("requests", "gets", "heads", "lists", "bytes", "connections", "most_at_once")
            return {**{name: 0 for name in names}, **self.counts}


class Bucket:
    """Bytes per second over all connections: whoever sends reserves the time that it takes."""
    def __init__(self):
        self.lock = threading.Lock()
        self.free_at = 0.0

    def take(self, count, rate):
        if rate <= 0:
            return
        with self.lock:
            now = time.monotonic()
            self.free_at = max(self.free_at, now - 0.01) + count / rate
            wait = self.free_at - now
        if wait > 0:
            time.sleep(wait)


class Reset(Exception):
    """The connection is to be reset."""


class Connection:
    def __init__(self, stub, client):
        self.stub = stub
        self.client = client
        self.buffer = b""

    def run(self):
        try:
            while self.serve_one():
                pass
        except Reset:
            self.client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        except OSError:
            pass
        finally:
            self.client.close()

    def read_head(self):
        while b"\r\n\r\n" not in self.buffer:
            if len(self.buffer) > LONGEST_HEAD:
                return None
            more = self.client.recv(CHUNK)
            if not more:
                return None
            self.buffer += more
        head, self.buffer = self.buffer.split(b"\r\n\r\n", 1)
        return head.decode("latin-1").split("\r\n")

    def serve_one(self):
        lines = self.read_head()
        if lines is None:
            return False
        method, target, _ = lines[0].split(" ", 2)
        headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines[1:])}
        path, _, query = target.partition("?")
        if path in ("/__stats", "/__set"):
            return self.administer(path, query)
        with self.stub.stats.request() as (number, running):
            return self.answer(Request(method, path, query, headers, number, running))

    def administer(self, path, query):
        for name, value in urllib.parse.parse_qsl(query) if path == "/__set" else ():
            self.stub.options.set(name, value)
        self.reply(200, json.dumps(self.stub.stats.as_dict()).encode(), [("Content-Type", "application/json")])
        return True

    def answer(self, request):
        options = self.stub.options
        chance = random.Random(f"{options.seed} {request.number}") if options.faults else None
        slow = chance is not None and chance.random() < options.faults.get("slow", 0)
        time.sleep(options.latency * (10 if slow else 1))
        status = self.stub.faulty_status(request, chance)
        if status:
            self.stub.stats.add(**{f"status_{status}": 1})
            self.reply(status, xml_error("SlowDown", "on request"), self.wish(), body=request.method != "HEAD")
            return True
        if options.authorised and "authorization" not in request.headers:
            return self.fail(403, "AccessDenied", request)
        if request.method not in ("GET", "HEAD"):
            return self.fail(405, "MethodNotAllowed", request)
        bucket, _, key = urllib.parse.unquote(request.path.lstrip("/")).partition("/")
        if bucket != self.stub.bucket:
            return self.fail(404, "NoSuchBucket", request)
        parameters = dict(urllib.parse.parse_qsl(request.query, keep_blank_values=True))
        if not key and parameters.get("list-type") == "2":
            self.stub.stats.add(lists=1)
            self.reply(200, self.stub.listing(parameters), [("Content-Type", "application/xml")])
            return True
        return self.send_object(request, key, chance)

    def wish(self):
        wait = self.stub.options.retry_after
        return [("Retry-After", wait)] if wait else []

    def fail(self, status, code, request):
        self.reply(status, xml_error(code, request.path), [("Content-Type", "application/xml")], body=request.method != "HEAD")
        return True

    def reply(self, status, content, headers=(), body=True):
        head = self.head(status, [("Content-Length", len(content)), *headers])
        self.client.sendall(head + content if body else head)

    def head(self, status, headers):
        lines = [f"HTTP/1.1 {status} {REASONS.get(status, 'Status')}", *(f"{name}: {value}" for name, value in headers)]
        return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1")

    def send_object(self, request, key, chance):
        path = self.stub.file_of(key)
        try:
            descriptor = os.open(path, os.O_RDONLY) if path else None
        except OSError:
            descriptor = None
        if descriptor is None:
            return self.fail(404, "NoSuchKey", request)
        try:
            return self.send_file(request, descriptor, chance)
        finally:
            os.close(descriptor)

    def send_file(self, request, descriptor, chance):
        stat = os.fstat(descriptor)
        fault = pick_fault(self.stub.options.faults, chance) if request.method == "GET" else None
        part = None if fault == "whole" else range_of(request.headers.get("range"), stat.st_size)
        if part == "unsatisfiable":
            self.reply(416, b"", [("Content-Range", f"bytes */{stat.st_size}")])
            return True
        first, last = part if part else (0, stat.st_size - 1)
        headers = [("Content-Length", last - first + 1), ("Accept-Ranges", "bytes"), ("Content-Type", "application/octet-stream")]
        if self.stub.options.validators:
            headers += [("ETag", f'"{etag_of(stat, fault == "etag")}"'), ("Last-Modified", http_date(stat.st_mtime))]
        if part:
            named = first + 1 if fault == "range" else first
            headers.append(("Content-Range", f"bytes {named}-{last + named - first}/{stat.st_size}"))
        self.client.sendall(self.head(206 if part else 200, headers))
        if fault:
            self.stub.stats.add(**{f"fault_{fault}": 1})
        if request.method == "HEAD":
            self.stub.stats.add(heads=1)
            return True
        return self.send_body(descriptor, first, last + 1, fault)

    def send_body(self, descriptor, offset, end, fault):
        self.stub.stats.add(gets=1)
        stop = offset + (end - offset) // 2 if fault in ("reset", "short") else end
        sent = 0
        try:
            while offset < stop:
                count = min(CHUNK if self.stub.options.bandwidth <= 0 else 32 << 10, stop - offset)
                self.stub.bandwidth.take(count, self.stub.options.bandwidth)
                done = self.send_part(descriptor, offset, count)
                offset += done
                sent += done
        finally:
            self.stub.stats.add(bytes=sent)
        if fault == "reset":
            raise Reset
        return fault != "short"

    def send_part(self, descriptor, offset, count):
        if isinstance(self.client, ssl.SSLSocket):
            part = os.pread(descriptor, count, offset)
            self.client.sendall(part)
            return len(part)
        done = os.sendfile(self.client.fileno(), descriptor, offset, count)
        if done == 0:
            raise Reset  # somebody cut the file
        return done


Request = collections.namedtuple("Request", "method path query headers number running")


def pick_fault(faults, chance):
    """One of the faults of a body, or None."""
    if chance is None:
        return None
    at = chance.random()
    for kind in BODY_FAULTS:
        at -= faults.get(kind, 0)
        if at < 0:
            return kind
    return None


def range_of(text, size):
    """(first, last), None: no range was asked for, or "unsatisfiable"."""
    match = re.fullmatch(r"bytes=(\d*)-(\d*)", text or "")
    if not match or match[1] == match[2] == "":
        return None
    if match[1] == "":
        first, last = max(0, size - int(match[2])), size - 1
    else:
        first, last = int(match[1]), min(int(match[2] or size - 1), size - 1)
    return (first, last) if first <= last and first < size else "unsatisfiable"


def etag_of(stat, wrong):
    return hashlib.md5(f"{stat.st_size} {stat.st_mtime_ns} {wrong}".encode(), usedforsecurity=False).hexdigest()


def http_date(seconds):
    return time.strftime("%a, %d %b %Y %H:%M:%S GMT", time.gmtime(seconds))


def xml_error(code, resource):
    return (f'<?xml version="1.0" encoding="UTF-8"?>\n<Error><Code>{code}</Code><Message>{code}</Message>'
            f"<Resource>{escape(resource)}</Resource></Error>").encode()


class Stub:
    """The server. Serves from threads of this process between start() and stop()."""
    def __init__(self, folder, bucket="data", port=0, certificate=None, **options):
        self.folder = pathlib.Path(folder).resolve()
        self.bucket = bucket
        self.options = Options(**options)
        self.stats = Stats()
        self.bandwidth = Bucket()
        self.burst_lock = threading.Lock()
        self.burst = (0, 0)  # status, how many more requests get it
        self.context = None
        if certificate:
            self.context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            self.context.load_cert_chain(*certificate)
        self.listener = socket.create_server(("127.0.0.1", port), backlog=512)
        self.port = self.listener.getsockname()[1]
        self.url = f"{'https' if certificate else 'http'}://127.0.0.1:{self.port}/{bucket}"
        self.endpoint = self.url.rsplit("/", 1)[0]

    def start(self):
        threading.Thread(target=self.accept, daemon=True).start()
        return self

    def stop(self):
        with contextlib.suppress(OSError):
            self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()

    __enter__ = start

    def __exit__(self, *_):
        self.stop()

    def accept(self):
        while True:
            try:
                client, _ = self.listener.accept()
            except OSError:
                return
            client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self.stats.add(connections=1)
            threading.Thread(target=self.serve, args=(client,), daemon=True).start()

    def serve(self, client):
        if self.context:
            try:
                client = self.context.wrap_socket(client, server_side=True)
            except OSError:
                return client.close()
        Connection(self, client).run()

    def faulty_status(self, request, chance):
        """The status that this request gets instead of an answer; 0: none."""
        if self.options.max_concurrent and request.running > self.options.max_concurrent:
            return 503
        if chance is None:
            return 0
        with self.burst_lock:
            status, left = self.burst
            if left > 0:
                self.burst = (status, left - 1 or -self.options.burst)
                return status
            if left < 0:  # after a burst there is peace for as long
                self.burst = (status, left + 1)
                return 0
            for kind, share in self.options.faults.items():
                if kind.isdigit() and chance.random() < share:
                    self.burst = (int(kind), self.options.burst - 1)
                    return int(kind)
        return 0

    def file_of(self, key):
        parts = key.split("/")
        if not key or "\0" in key or any(part in ("", ".", "..") for part in parts):
            return None
        path = self.folder.joinpath(*parts)
        return path if path.is_file() else None

    def keys(self):
        found = (path for path in self.folder.rglob("*") if path.is_file())
        return sorted((path.relative_to(self.folder).as_posix() for path in found), key=lambda key: key.encode())

    def listing(self, parameters):
        prefix, delimiter = parameters.get("prefix", ""), parameters.get("delimiter", "")
        after = parameters.get("continuation-token", parameters.get("start-after", ""))
        page = min(self.options.page, int(parameters.get("max-keys", 1000)))
        quote = urllib.parse.quote if parameters.get("encoding-type") == "url" else (lambda text, safe="": text)
        entries, last, truncated = {}, "", False
        for key in self.keys():
            if not key.startswith(prefix):
                continue
            cut = key.find(delimiter, len(prefix)) if delimiter else -1
            name = key if cut < 0 else key[:cut + len(delimiter)]
            if name in entries or name.encode() <= after.encode():
                continue
            if len(entries) == page:
                truncated = True
                break
            entries[name] = cut >= 0
            last = name
        parts = ['<?xml version="1.0" encoding="UTF-8"?>\n<ListBucketResult xmlns="http://s3.amazonaws.com/doc/2006-03-01/">',
                 f"<Name>{self.bucket}</Name><Prefix>{escape(quote(prefix))}</Prefix><KeyCount>{len(entries)}</KeyCount>",
                 f"<MaxKeys>{page}</MaxKeys><IsTruncated>{'true' if truncated else 'false'}</IsTruncated>"]
        if parameters.get("encoding-type") == "url":
            parts.append("<EncodingType>url</EncodingType>")
        if truncated:
            parts.append(f"<NextContinuationToken>{escape(last)}</NextContinuationToken>")
        for name, common in entries.items():
            shown = escape(quote(name, safe="/"))
            if common:
                parts.append(f"<CommonPrefixes><Prefix>{shown}</Prefix></CommonPrefixes>")
            else:
                parts.append(self.listed(name, shown))
        return "".join([*parts, "</ListBucketResult>"]).encode()

    def listed(self, name, shown):
        stat = os.stat(self.folder / name)
        changed = datetime.datetime.utcfromtimestamp(stat.st_mtime).strftime("%Y-%m-%dT%H:%M:%S.000Z")
        return (f"<Contents><Key>{shown}</Key><LastModified>{changed}</LastModified>"
                f"<ETag>&quot;{etag_of(stat, False)}&quot;</ETag><Size>{stat.st_size}</Size>"
                "<StorageClass>STANDARD</StorageClass></Contents>")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder")
    parser.add_argument("--bucket", default="data", help="first part of every path")
    parser.add_argument("--port", type=int, default=0, help="0: any free one")
    parser.add_argument("--certificate", nargs=2, metavar=("CHAIN", "KEY"), help="serve https")
    parser.add_argument("--fault", action="append", default=[], metavar="KIND=SHARE")
    for name, value in vars(Options()).items():
        if name != "faults":
            parser.add_argument(f"--{name.replace('_', '-')}", type=int if isinstance(value, bool) else type(value), default=value)
    arguments = vars(parser.parse_args())
    faults = dict(fault.split("=") for fault in arguments.pop("fault"))
    arguments["faults"] = {kind: float(share) for kind, share in faults.items()}
    with Stub(**arguments) as stub:
        print(stub.url, flush=True)
        with contextlib.suppress(KeyboardInterrupt):
            while sys.stdin.readline():
                pass


if __name__ == "__main__":
    main()
