#!/usr/bin/python3
"""Datasets by URL: the same samples from every place, nothing asked twice, and clear words when a store refuses.

    tests/remote_test.py FORELOAD [unittest arguments]
"""
import contextlib
import datetime
import io
import os
import shutil
import signal
import socket
import subprocess
import tarfile
import threading
from unittest import mock

import ledger
import program
from object_store_stub import Connection, Stub
from paths_test import OpenWatch
from program import ProgramTest, RefusalTest, amount, seeded

CHAIN = "random_resized_crop(32), random_flip, normalize"
SECRET = "dont-print-this-secret"
KEYS = {"AWS_ACCESS_KEY_ID": "AKIDEXAMPLE", "AWS_SECRET_ACCESS_KEY": SECRET, "AWS_SESSION_TOKEN": "dont-print-this-token"}
CLOCK = threading.Lock()  # a patch of botocore's clock is for all threads


def hashes(report):
    return [(epoch["order_hash"], epoch["content_hash"]) for epoch in report["epochs"]]


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return listener.getsockname()[1]


def write_tar(path, folder):
    with tarfile.open(path, "w") as archive:
        archive.add(folder, arcname=".", filter=lambda member: None if "/.foreload" in member.name else member)


class RemoteTest(ProgramTest):
    """A web root (or bucket "data") with a stub in front of it."""

    def setUp(self):
        super().setUp()
        for name in list(self.environment):
            if name.startswith("AWS_") or name.lower().endswith("_proxy") or name in ("CURL_CA_BUNDLE", "SSL_CERT_FILE"):
                del self.environment[name]
        self.root = self.top / "root"
        self.root.mkdir()
        self.stub = self.serve()

    def serve(self, kind=Stub, **options):
        stub = kind(self.root, **options).start()
        self.addCleanup(stub.stop)
        self.environment["AWS_ENDPOINT_URL"] = stub.endpoint
        return stub

    def counted(self):
        """What the stub was asked since the last call."""
        program.wait_until(lambda: self.stub.stats.running == 0)  # it counts after it has answered
        now = self.stub.stats.as_dict()
        before, self.before = getattr(self, "before", {}), now
        return {name: now[name] - before.get(name, 0) for name in ("requests", "gets", "heads", "lists", "bytes")}

    def put_images(self, count=40):
        self.folder = self.images(count=count)
        shutil.copytree(self.folder, self.root / "set")
        write_tar(self.root / "set.tar", self.folder)
        classes = sorted(path.name for path in self.folder.iterdir() if path.is_dir())
        for number, name in enumerate(classes):
            with tarfile.open(self.root / f"part-{number:03}.tar", "w") as archive:
                archive.add(self.folder / name, arcname=name)
        self.parts = len(classes)

    def run_images(self, place, *arguments):
        return self.report("run", place, "--batch", 7, "--epochs", 2, "--chain", CHAIN, "--seed", 5, "--hash", *arguments)

    def assert_silent_about_secrets(self, done):
        for word in (SECRET, KEYS["AWS_SESSION_TOKEN"]):
            self.assertNotIn(word, done.out + done.err)


class SamePlacesTest(RemoteTest):
    """Folder, tar, HTTP and S3 with the same files are the same dataset."""

    def places(self):
        url = self.stub.url
        lists = [f"{url}/part-{{000..{self.parts - 1:03}}}.tar", f"s3://data/part-{{000..{self.parts - 1:03}}}.tar",
                 "s3://data/part-*.tar", "s3://data/pa?t-00[0-9].tar"]
        return [self.root / "set.tar", f"{url}/set.tar", f"tar:{url}/set.tar", "s3://data/set.tar", "s3://data/set/",
                "s3://data/set", "folder:s3://data/set/", *lists]

    def test_the_same_hashes_from_every_place(self):
        self.put_images()
        local = self.run_images(self.folder)
        for place in self.places():
            with self.subTest(place=place):
                report = self.run_images(place)
                self.assertEqual(report["dataset"]["fingerprint"], local["dataset"]["fingerprint"])
                self.assertEqual(hashes(report), hashes(local))
                self.assertEqual(hashes(self.run_images(place, "--no-cache")), hashes(local))

    def test_the_header_tells_how_samples_are_read(self):
        self.put_images()
        for place, words in (([self.folder], "reads by threads"), ([f"{self.stub.url}/set.tar"], "reads by HTTP requests"),
                             (["s3://data/set/", self.folder], "reads by threads and HTTP requests")):
            done = self.foreload("run", *place, "--batch", 8, "--chain", CHAIN, "--io", "threads")
            self.assertEqual(done.returncode, 0, done.err)
            self.assertEqual(done.out.splitlines()[1].split(", ")[-1], words)

    def test_the_same_samples_from_elsewhere_are_no_damage_of_the_disk_cache(self):
        self.put_images()
        disk = ["--disk", self.top / "disk"]
        local = self.run_images(self.folder, *disk)
        for place in (f"{self.stub.url}/set.tar", "s3://data/set.tar", self.folder):
            report = self.run_images(place, *disk)
            self.assertEqual(hashes(report), hashes(local))
            self.assertEqual(report["disk"]["damaged"], 0)
        self.assertEqual(len(list((self.top / "disk").iterdir())), 1)

    def test_pages_of_any_size_give_the_same_listing(self):
        self.put_images()
        local = self.report("index", self.folder)
        files = sum(path.is_file() for path in (self.root / "set").rglob("*"))
        for page in (1, 3, 1000):
            self.stub.options.set("page", page)
            self.counted()
            remote = self.report("index", "s3://data/set/", "--index-folder", self.top / f"index{page}")
            self.assertEqual(remote["dataset"]["fingerprint"], local["dataset"]["fingerprint"])
            self.assertEqual(self.counted()["lists"], -(-files // page))

    def test_odd_names_are_the_same_in_both(self):
        folder = self.top / "odd"
        names = ["a b/1 2.bin", "a+b/+.bin", "é漢/😀.bin", "%41/%2e.bin", "x&y/<z>'\".bin", "*/[a]{b}?.bin", "a.b/x.bin",
                 "a/x.bin", "a/deep/er/x.bin", "Z/~=:;,@!$().bin", "#/#.bin", "\\/\\.bin"]
        for number, name in enumerate(names):
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_bytes(ledger.sample(number))
            (self.root / "odd" / name).parent.mkdir(parents=True, exist_ok=True)
            (self.root / "odd" / name).write_bytes(ledger.sample(number))
        (self.root / "odd" / ".hidden").mkdir()
        (self.root / "odd" / ".hidden" / "x.bin").write_bytes(b"x")
        runs = [self.report("run", place, "--batch", 4, "--chain", ledger.chain(), "--hash")
                for place in (folder, "s3://data/odd")]
        self.assertEqual(runs[0]["dataset"]["samples"], len(names))
        self.assertEqual(runs[0]["dataset"]["fingerprint"], runs[1]["dataset"]["fingerprint"])
        self.assertEqual(hashes(runs[0]), hashes(runs[1]))

    def test_a_conversion_behind_a_url_is_the_one_on_disk(self):
        self.put_images()
        self.report("convert", self.folder, self.root / "records", "--shard-size", "1MB")
        local = self.run_images(self.root / "records")
        for place in (f"{self.stub.url}/records/", "s3://data/records/", "s3://data/records", "records:s3://data/records"):
            report = self.run_images(place)
            self.assertEqual(report["dataset"]["fingerprint"], local["dataset"]["fingerprint"])
            self.assertEqual(hashes(report), hashes(local))
        copies = list((self.top / "home" / "cache").rglob("*.rows"))
        self.assertEqual({copy.read_bytes() for copy in copies}, {(self.root / "records" / "shards.rows").read_bytes()})
        (self.root / "records" / "shards.rows").write_bytes(b"damaged")
        shutil.rmtree(self.top / "home" / "cache")
        done = self.foreload("run", "s3://data/records/", "--batch", 7, "--chain", CHAIN)
        self.assertEqual(done.returncode, 0, done.err)
        self.assertIn("read without its row offsets", done.err)

    def test_a_remote_dataset_converts_to_the_same_shards(self):
        self.put_images()
        for name, place in (("a", self.folder), ("b", "s3://data/set/"), ("c", f"{self.stub.url}/set.tar")):
            self.report("convert", place, self.top / name)
        shards = [(self.top / name / "shard-000000.tar").read_bytes() for name in "abc"]
        self.assertTrue(shards[0] == shards[1] == shards[2])

    def test_dimensions_are_read_and_kept(self):
        self.put_images()
        local = self.report("index", self.folder, "--dimensions")
        remote = self.report("index", "s3://data/set/", "--dimensions")
        self.assertEqual(remote["dimensions"], local["dimensions"])
        self.counted()
        self.assertEqual(self.report("index", "s3://data/set/", "--dimensions")["dimensions"], local["dimensions"])
        self.assertEqual(self.counted()["bytes"], 0)


class IndexCostTest(RemoteTest):
    """What indexing asks for, and that it is asked once."""

    def large_members(self):
        with tarfile.open(self.root / "large.tar", "w") as archive:
            for number in range(30):
                for name, content in ((f"{number:04}.bin", os.urandom(200_000)), (f"{number:04}.cls", b"3")):
                    member = tarfile.TarInfo(name)
                    member.size = len(content)
                    archive.addfile(member, io.BytesIO(content))

    def test_payloads_of_large_members_are_not_read(self):
        self.large_members()
        self.counted()
        report = self.report("index", f"{self.stub.url}/large.tar")
        self.assertEqual(report["dataset"]["samples"], 30)
        asked = self.counted()
        self.assertLess(asked["bytes"], 0.1 * (self.root / "large.tar").stat().st_size)
        self.assertLessEqual(asked["gets"], 2 * 30 + 2)

    def test_small_members_share_requests(self):
        folder = self.ledger("small", 500)
        write_tar(self.root / "small.tar", folder)
        self.counted()
        self.assertEqual(self.report("index", "s3://data/small.tar")["dataset"]["samples"], 500)
        self.assertLessEqual(self.counted()["gets"], 2 + 2 * (self.root / "small.tar").stat().st_size // (256 << 10))

    def test_a_known_index_costs_heads_and_listings_only(self):
        self.put_images()
        first = {place: self.report("index", place)["dataset"] for place in ("s3://data/part-*.tar", "s3://data/set/")}
        self.counted()
        self.assertEqual(self.report("index", "s3://data/part-*.tar")["dataset"], first["s3://data/part-*.tar"])
        self.assertEqual(self.counted(), {"requests": self.parts + 1, "gets": 0, "heads": self.parts, "lists": 1, "bytes": 0})
        self.assertEqual(self.report("index", "s3://data/set/")["dataset"], first["s3://data/set/"])
        self.assertEqual(self.counted(), {"requests": 2, "gets": 0, "heads": 0, "lists": 1, "bytes": 0})

    def test_a_known_listing_is_asked_for_in_parts(self):
        class Large(Stub):
            names = [f"c{number // 1000}/{number:06}.bin" for number in range(9000)]

            def keys(self):
                return self.names

            def listed(self, name, shown):
                return f"<Contents><Key>{shown}</Key><ETag>&quot;{name}&quot;</ETag><Size>64</Size></Contents>"

        self.stub = self.serve(Large, latency=0.05)
        self.before = {}
        first = self.report("index", "s3://data/")["dataset"]
        self.assertEqual((first["samples"], self.counted()["lists"]), (9000, 9))
        self.assertEqual(self.foreload("index", "s3://data/").err, "")
        self.assertLessEqual(self.counted()["lists"], 9 + 5)
        self.assertGreaterEqual(self.stub.stats.as_dict()["most_at_once"], 3)
        Large.names = Large.names[:4000] + Large.names[4001:] + ["c9/x.bin"]
        self.assertIn("+1 sample, -1", self.foreload("index", "s3://data/").err)
        self.assertLessEqual(self.counted()["lists"], 9 + 5, "the listing that shows the change is the new index")
        self.assertEqual(self.foreload("index", "s3://data/").err, "")
        Large.names = Large.names[:3600] + Large.names[3601:]  # one that divides: nobody knows what lies around it
        self.counted()
        self.assertIn("-1", self.foreload("index", "s3://data/").err)
        self.assertGreater(self.counted()["lists"], 9 + 5)

    def test_servers_with_another_order_are_listed_from_front_to_back(self):
        class Unordered(Stub):
            names = [f"{name}/{number:06}.bin" for name in "aBc" for number in range(3000)]  # not in the order of bytes
            filters = True  # start-after means keys that are larger; otherwise: what follows in the server's order

            def listing(self, parameters):
                begin, _, after = parameters.get("continuation-token", f"0:{parameters.get('start-after', '')}").partition(":")
                keys = self.names
                if self.filters:
                    keys = [key for key in keys if key > after]
                elif after in keys:
                    keys = keys[keys.index(after) + 1:]
                end = int(begin) + 1000
                parts = [f"<Contents><Key>{key}</Key><ETag>&quot;{key}&quot;</ETag><Size>64</Size></Contents>"
                         for key in keys[int(begin):end]]
                if end < len(keys):
                    parts.append(f"<NextContinuationToken>{end}:{after}</NextContinuationToken>")
                return (f"<ListBucketResult><IsTruncated>{'true' if end < len(keys) else 'false'}</IsTruncated>"
                        f"{''.join(parts)}</ListBucketResult>").encode()

        random = seeded("orders")
        self.stub = self.serve(Unordered)
        self.assertEqual(self.report("index", "s3://data/")["dataset"]["samples"], 9000)
        for turn in range(amount(20)):
            Unordered.filters = turn % 2 == 0
            self.assertEqual(self.foreload("index", "s3://data/").err, "")
            if turn > 1:
                Unordered.names = random.sample(Unordered.names, 9000)

    def test_an_open_lists_once_whatever_it_finds(self):
        self.put_images()
        run = ["run", "s3://data/set/", "--batch", 8, "--chain", CHAIN]
        self.report(*run)
        self.assertEqual(self.counted()["lists"], 1, "nothing is known")
        self.report(*run)
        self.assertEqual(self.counted()["lists"], 1, "nothing has changed")
        victim = next((self.root / "set").rglob("*.jpg"))
        shutil.copy(victim, victim.parent / "zzz.jpg")
        self.assertEqual(self.report(*run, "--trust-index")["dataset"]["samples"], 40)
        self.assertEqual(self.counted()["lists"], 0, "nobody asked")
        self.assertEqual(self.report(*run)["dataset"]["samples"], 41)
        self.assertEqual(self.counted()["lists"], 1, "something has changed")
        shutil.copy(victim, victim.parent / "zzy.jpg")
        self.report("index", "s3://data/set/", "--dimensions", "--warm", "--disk", self.top / "cache")
        self.assertEqual(self.counted()["lists"], 1, "one command, one look")
        victim.write_bytes(victim.read_bytes() + b"x")
        done = self.foreload(*run, "--trust-index", "--no-cache")
        self.assert_fails(done, victim.name, "changed since it was indexed", codes=(1,))

    def test_changes_are_found_and_told(self):
        self.put_images()
        self.report("index", "s3://data/set/")
        victim = next((self.root / "set").rglob("*.jpg"))
        victim.write_bytes(victim.read_bytes() + b"x")
        (victim.parent / "zzz.jpg").write_bytes(b"new")
        done = self.foreload("index", "s3://data/set/")
        self.assertIn("+1 sample, 1 changed", done.err)
        self.report("index", f"{self.stub.url}/set.tar")
        write_tar(self.root / "set.tar", self.root / "set")
        self.assertIn("changed since it was indexed", self.foreload("index", f"{self.stub.url}/set.tar").err)

    def test_nothing_is_written_when_nothing_may_be_kept(self):
        self.put_images()
        self.report("convert", self.folder, self.root / "records")
        before = self.tree()
        self.report("index", "s3://data/set/", "--index-folder", self.top / "home" / "ro")
        self.assertTrue(list((self.top / "home" / "ro").iterdir()))
        shutil.rmtree(self.top / "home" / "ro")
        self.assertEqual(self.tree(), before)

    def test_objects_that_are_no_files_are_left_out_with_a_warning(self):
        class Odd(Stub):
            def keys(self):
                return ["c0/a.bin", "c0//b.bin", "c0/../../b.bin", "c0/./b.bin", "/b.bin", "c1/", "c0/notes.txt"]

            def listed(self, name, shown):
                return (f"<Contents><Key>{shown}</Key><ETag>&quot;e&quot;</ETag><Size>{0 if name.endswith('/') else 64}</Size>"
                        "</Contents>")

        self.serve(Odd)
        done = self.foreload("index", "s3://data/")
        self.assertEqual(done.returncode, 0, done.err)
        self.assertIn("4 objects skipped because their key is no path", done.err)
        self.assertIn("1 class folder without samples", done.err)
        self.assertIn("1 file ignored", done.err)


class VerifyingConnection(Connection):
    """Answers only requests that botocore would have signed the same way."""

    def answer(self, request):
        return super().answer(request) if self.is_signed(request) else self.fail(403, "SignatureDoesNotMatch", request)

    def is_signed(self, request):
        import botocore.auth
        import botocore.awsrequest
        import botocore.credentials
        sent = request.headers
        names = sent.get("authorization", "SignedHeaders=,").split("SignedHeaders=")[1].split(",")[0].split(";")
        headers = {name: sent[name] for name in names if name in ("range",)}
        url = f"{self.stub.endpoint}{request.path}" + (f"?{request.query}" if request.query else "")
        asked = botocore.awsrequest.AWSRequest(method=request.method, url=url, headers=headers)
        credentials = botocore.credentials.Credentials(*KEYS.values())
        signer = botocore.auth.S3SigV4Auth(credentials, "s3", "us-east-1")
        with CLOCK, mock.patch("botocore.auth.datetime") as clock:
            clock.datetime.utcnow.return_value = datetime.datetime.strptime(sent.get("x-amz-date", "20000101T000000Z"),
                                                                            "%Y%m%dT%H%M%SZ")
            signer.add_auth(asked)
        return asked.headers["Authorization"] == sent.get("authorization")


class VerifyingStub(Stub):
    def serve(self, client):
        VerifyingConnection(self, client).run()


class CredentialsTest(RemoteTest):
    def test_signatures_on_the_wire_are_botocores(self):
        try:
            import botocore.auth  # noqa: F401
        except ImportError:
            self.skipTest("python3-botocore is not installed")
        self.put_images()
        local = self.run_images(self.folder)
        self.serve(VerifyingStub)
        self.environment.update(KEYS)
        for place in ("s3://data/set/", "s3://data/part-*.tar"):
            self.assertEqual(hashes(self.run_images(place)), hashes(local))
        self.environment["AWS_SECRET_ACCESS_KEY"] = SECRET + "x"
        done = self.foreload("index", "s3://data/set/")
        self.assert_fails(done, "s3://data/set/", "SignatureDoesNotMatch", "AWS_SECRET_ACCESS_KEY", codes=(1,))
        self.assert_silent_about_secrets(done)

    def test_without_credentials_a_refusal_says_so(self):
        self.put_images()
        self.serve(authorised=True)
        for place in ("s3://data/set/", "s3://data/set.tar", "s3://data/*.tar"):
            self.assert_fails(self.foreload("index", place), "no credentials were found", codes=(1,))
        self.environment.update(KEYS)
        self.report("index", "s3://data/set/")

    def test_credentials_come_from_the_profile(self):
        self.put_images()
        self.serve(authorised=True)
        folder = self.top / "home" / ".aws"
        folder.mkdir()
        (folder / "credentials").write_text(f"[work]\naws_access_key_id = AKID\naws_secret_access_key = {SECRET}\n")
        self.environment["AWS_PROFILE"] = "work"
        done = self.foreload("index", "s3://data/set/")
        self.assertEqual(done.returncode, 0, done.err)
        self.assert_silent_about_secrets(done)
        self.environment["AWS_PROFILE"] = "play"
        self.assert_fails(self.foreload("index", "s3://data/set/"), "play", "AWS_PROFILE", codes=(2,))
        self.environment["AWS_ACCESS_KEY_ID"] = "AKID"
        self.assert_fails(self.foreload("index", "s3://data/set/"), "play", codes=(2,))


class RefusedTest(RefusalTest, RemoteTest):
    """Bad input: one clear line, the documented exit code, and nothing written."""

    def test_what_is_missing_is_named(self):
        self.put_images()
        for place, *words in (("s3://data/nothing/", "holds no samples: nothing is listed there; s3://data/ has part-000.tar, set.tar, set/ ("), ("s3://data/nothing.tar", "there is no such object"),
                              ("s3://other/set/", "the bucket does not exist", "NoSuchBucket"),
                              (f"{self.stub.url}/nothing.tar", "does not exist"),
                              ("s3://data/nothing-*.tar", "no object matches", "; s3://data/ has part-000.tar, set.tar, set/"),
                              ("s3://data/set/a/b/c/", "; s3://data/set/ has class_00000/ ("),
                              (f"s3://data/part-{{000..{self.parts + 1:03}}}.tar", f"part-{self.parts:03}.tar",
                               f"of the {self.parts + 2} shards of the list 2 are missing, this is the first"),
                              (f"{self.stub.url}/part-{{000..{self.parts:03}}}.tar", "1 is missing"),
                              ("records:s3://data/set", "was not made by foreload convert")):
            self.refused("index", place, words=words, codes=(1,))
            self.refused("convert", place, self.top / "out", words=words, codes=(1,))

    def test_a_web_folder_can_not_be_listed(self):
        self.put_images()
        self.refused("index", f"{self.stub.url}/set/", words=["can not be listed", "s3://"], codes=(2,))
        self.refused("index", f"{self.stub.url}/*.tar", words=["can not be listed"], codes=(2,))
        self.refused("index", f"{self.stub.url}/set", words=["no .tar"], codes=(2,))
        self.refused("index", f"{self.stub.url}/set.tar.gz", words=["compressed"], codes=(2,))

    def test_a_host_that_is_not_there(self):
        self.refused("index", f"http://127.0.0.1:{free_port()}/x.tar", words=["attempts: no connection to 127.0.0.1", "whether the server runs"],
                     codes=(1,))
        self.refused("index", "http://no-such-host.invalid/x.tar", words=["the host's name is not known"], codes=(1,))

    def test_a_server_that_lies(self):
        self.put_images()
        url = f"{self.stub.url}/set.tar"
        for fault, word in (("whole", "ranges"), ("range", "the server's answer is wrong"), ("short", "broke")):
            stub = self.serve(faults={fault: 1})
            self.refused("index", url.replace(self.stub.url, stub.url), words=[word], codes=(1,))

    def test_an_object_that_changes_during_the_scan(self):
        self.put_images()
        stub = self.serve(faults={"etag": 0.5})
        self.refused("index", f"{stub.url}/set.tar", words=["changed while"], codes=(1,))

    def test_redirects_are_not_followed(self):
        self.put_images()
        stub = self.serve(faults={"301": 1})
        self.refused("index", f"{stub.url}/set.tar", words=["redirects are not followed"], codes=(1, 2))

    def test_what_is_no_tar_and_no_listing(self):
        (self.root / "x.tar").write_bytes(os.urandom(5000))
        (self.root / "empty.tar").write_bytes(b"")
        (self.root / "gz.tar").write_bytes(b"\x1f\x8b" + os.urandom(5000))
        self.refused("index", "s3://data/x.tar", words=["cannot index the shard s3://data/x.tar"])
        self.refused("index", "s3://data/empty.tar", words=["s3://data/empty.tar"])
        self.refused("index", "s3://data/gz.tar", words=["gzip"])

        class Page(Stub):
            def listing(self, _):
                return b"<html><body>It works!</body></html>"

        self.serve(Page)
        self.refused("index", "s3://data/set/", words=["is this an S3 endpoint?"], codes=(1,))

    def test_a_listing_without_end(self):
        class Endless(Stub):
            def listing(self, _):
                return (b"<ListBucketResult><IsTruncated>true</IsTruncated><NextContinuationToken>again</NextContinuationToken>"
                        b"</ListBucketResult>")

        self.serve(Endless)
        self.refused("index", "s3://data/set/", words=["does not end"], codes=(1,))

    def test_a_listing_that_goes_in_circles(self):
        class Circle(Stub):
            turn = 0

            def listing(self, _):
                Circle.turn += 1
                return (b"<ListBucketResult><IsTruncated>true</IsTruncated><NextContinuationToken>t%d</NextContinuationToken>"
                        b"</ListBucketResult>" % (Circle.turn % 3))

        self.serve(Circle)
        self.refused("index", "s3://data/set/", words=["does not end"], codes=(1,))

    def test_a_listing_with_an_object_twice(self):
        class Twice(Stub):
            def listing(self, _):
                return (b"<ListBucketResult><IsTruncated>false</IsTruncated>" + b"<Contents><Key>set/a/1.jpg</Key><Size>9</Size>"
                        b"<ETag>x</ETag></Contents>" * 2 + b"</ListBucketResult>")

        self.serve(Twice)
        self.refused("index", "s3://data/set/", words=["more than once", "1.jpg"], codes=(1,))

    def test_tokens_are_local(self):
        self.refused("index", "s3://data/x.bin", "--tokens", "u16", "--sequence", 8, words=["local folders only"], codes=(2,))

    def test_an_endpoint_that_is_none(self):
        self.environment["AWS_ENDPOINT_URL_S3"] = "file:///etc"
        self.refused("index", "s3://data/set/", words=["AWS_ENDPOINT_URL_S3"], codes=(2,))


class TlsTest(RefusalTest, RemoteTest):
    def setUp(self):
        super().setUp()
        self.put_images()
        authority, key = self.top / "ca.pem", self.top / "ca.key"
        certificate, own_key, wish = self.top / "own.pem", self.top / "own.key", self.top / "own.csr"
        commands = [
            ["req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", key, "-out", authority, "-subj", "/CN=test authority",
             "-days", "2"],
            ["req", "-newkey", "rsa:2048", "-nodes", "-keyout", own_key, "-out", wish, "-subj", "/CN=127.0.0.1"],
        ]
        names = self.top / "names"
        names.write_text("subjectAltName=IP:127.0.0.1")
        commands.append(["x509", "-req", "-in", wish, "-CA", authority, "-CAkey", key, "-CAcreateserial", "-out", certificate,
                         "-days", "2", "-extfile", names])
        for command in commands:
            subprocess.run(["openssl", *map(str, command)], check=True, capture_output=True, timeout=program.DEADLINE)
        self.authority = authority
        self.secure = self.serve(certificate=(certificate, own_key))

    def test_only_a_certificate_of_a_known_authority_is_trusted(self):
        url = f"{self.secure.url}/set.tar"
        self.refused("index", url, words=["can not be trusted", "SSL_CERT_FILE"], codes=(1,))
        self.refused("index", "s3://data/set/", words=["can not be trusted"], codes=(1,))
        self.assertEqual(self.secure.stats.as_dict()["requests"], 0)
        local = self.run_images(self.folder)
        self.environment["SSL_CERT_FILE"] = str(self.authority)
        self.assertEqual(hashes(self.run_images(url)), hashes(local))
        self.assertEqual(hashes(self.run_images("s3://data/set/")), hashes(local))
        self.refused("index", url.replace("127.0.0.1", "localhost"), words=["can not be trusted"], codes=(1,))


class HostileUrlTest(RefusalTest, RemoteTest):
    """R16, URLs: what could lead elsewhere is refused before anything is opened or connected to."""

    def test_hostile_urls_reach_nobody(self):
        self.put_images(count=5)
        outside = self.top / "outside"
        outside.mkdir()
        (outside / "secret.tar").write_bytes(b"secret")
        watch = OpenWatch(outside)
        self.addCleanup(watch.close)
        host = self.stub.url.split("/")[2]
        urls = [f"file://{outside}/secret.tar", f"file:{outside}/secret.tar", f"pipe:cat {outside}/secret.tar",
                f"FILE://{outside}/secret.tar", f"HTTP://{host}/data/set.tar", "ftp://host/x.tar", "gopher://host/x.tar",
                f"scp:{outside}/secret.tar", f"http://user@{host}/data/set.tar", f"http://u:{SECRET}@{host}/data/set.tar",
                f"http://{host}/data/set.tar#x", f"http://{host}/data/set.tar?x=1", f"http://{host}/data/set.tar?X-Amz-Signature={SECRET}",
                f"http://{host}/data/s-{{0..1}}.tar?sig={SECRET}", f"ftp://u:{SECRET}@{host}/x.tar", f"HTTP://u:{SECRET}@{host}/x.tar",
                f"http://{host}//data/set.tar",
                f"http:{host}/data/set.tar", f"http:///{host}/data/set.tar", f"http://{host}:1:2/x.tar", "http://[::1/x.tar",
                f"http://{host}/data/%2", f"http://{host}/data/%zz.tar", f"http://{host}/data%2fset.tar",
                f"http://{host}/" + "x" * 5000 + ".tar", "s3://data/" + "x" * 1100 + ".tar", "s3://" + "b" * 300 + "/x.tar",
                "s3:///set.tar", "s3:data/set.tar", "s3://d/set.tar", "s3://data:80/set.tar", "s3://us er@data/set.tar"]
        chance = seeded("hostile URLs")
        dots = ["..", "%2e%2e", ".%2E", "%2e.", "%252e%252e", ".", "%2e"]
        control = ["\n", "\r\nX-Evil: 1", "%00", "%0a", "%0d%0aX-Evil:%201", "\x7f", "\t"]
        while len(urls) < amount(1000):
            parts = [chance.choice(["data", "set", "a b", "é"]) for _ in range(chance.randrange(1, 4))]
            if chance.random() < 0.6:
                parts.insert(chance.randrange(len(parts) + 1), chance.choice(dots))
            else:
                at = chance.randrange(len(parts))
                parts[at] += chance.choice(control)
            url = chance.choice([f"http://{host}/", "s3://data/", f"tar:http://{host}/"]) + "/".join(parts) + "/x.tar"
            if url.startswith("s3:") and any(word in url for word in ("%0", "/%252")):
                continue  # plain characters of a key there
            urls.append(url)
        for url in urls:
            done = self.foreload("index", url)
            self.assert_fails(done, codes=(2,))
            self.assertNotIn(SECRET, done.err)
            self.assertLess(len(done.err), 1000)
        self.assertEqual(self.counted()["requests"], 0, "a server was asked")
        self.assertFalse(watch.has_seen_something(), "something outside was opened")


class NginxTest(RemoteTest):
    def test_nginx_serves_the_same_samples(self):
        nginx = shutil.which("nginx", path=f"{os.environ.get('PATH', '')}:/usr/sbin")
        if not nginx:
            self.skipTest("nginx is not installed")
        self.put_images()
        port = free_port()
        own = self.top / "nginx"
        own.mkdir()
        temporary = "".join(f"{kind}_temp_path {own}/{kind}; " for kind in
                            ("client_body", "proxy", "fastcgi", "uwsgi", "scgi"))
        (own / "conf").write_text(
            f"daemon off; master_process off; pid {own}/pid; error_log {own}/log;\n"
            f"events {{}} http {{ access_log off; {temporary}\n"
            f"server {{ listen 127.0.0.1:{port}; location /data/ {{ alias {self.root}/; }} }} }}\n")
        server = subprocess.Popen([nginx, "-p", str(own), "-c", str(own / "conf"), "-e", str(own / "log")],
                                  stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.addCleanup(server.wait, program.DEADLINE)
        self.addCleanup(server.terminate)
        self.assertTrue(program.wait_until(lambda: is_listening(port)), (own / "log").read_text())
        local = self.run_images(self.folder)
        for place in (f"http://127.0.0.1:{port}/data/set.tar",
                      f"http://localhost:{port}/data/part-{{000..{self.parts - 1:03}}}.tar"):
            report = self.run_images(place, "--no-cache")
            self.assertEqual(report["dataset"]["fingerprint"], local["dataset"]["fingerprint"])
            self.assertEqual(hashes(report), hashes(local))


def is_listening(port):
    with contextlib.suppress(OSError):
        socket.create_connection(("127.0.0.1", port), 1).close()
        return True
    return False


class S3rverTest(RemoteTest):
    """A second opinion on S3: listings, ranges, errors. It does not verify signatures of version 4."""

    def test_s3rver_serves_the_same_samples(self):
        try:
            import boto3
            import botocore.config
        except ImportError:
            self.skipTest("python3-boto3 is not installed")
        npx = shutil.which("npx")
        if not npx:
            self.skipTest("npx is not installed")
        self.put_images()
        port = free_port()
        server = subprocess.Popen([npx, "--yes", "s3rver@3.7.1", "-d", str(self.top / "s3rver"), "-p", str(port), "-a",
                                   "127.0.0.1", "--configure-bucket", "data"], cwd=self.top, start_new_session=True,
                                  stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.addCleanup(server.wait, program.DEADLINE)
        self.addCleanup(lambda: server.poll() is not None or os.killpg(server.pid, signal.SIGTERM))
        if not program.wait_until(lambda: is_listening(port) or server.poll() is not None) or server.poll() is not None:
            self.skipTest("s3rver does not start: is npm's registry out of reach?")
        self.environment["AWS_ENDPOINT_URL"] = f"http://127.0.0.1:{port}"
        keys = {"AWS_ACCESS_KEY_ID": "S3RVER", "AWS_SECRET_ACCESS_KEY": "S3RVER"}
        client = boto3.client("s3", endpoint_url=self.environment["AWS_ENDPOINT_URL"], aws_access_key_id="S3RVER",
                              aws_secret_access_key="S3RVER", region_name="us-east-1",
                              config=botocore.config.Config(s3={"addressing_style": "path"}))
        for path in self.root.rglob("*"):
            if path.is_file() and not path.name.startswith("."):
                client.put_object(Bucket="data", Key=path.relative_to(self.root).as_posix(), Body=path.read_bytes())
        client.close()
        local = self.run_images(self.folder)
        self.environment.update(keys)
        for place in ("s3://data/set/", "s3://data/part-*.tar", "s3://data/set.tar"):
            report = self.run_images(place, "--no-cache")
            self.assertEqual(report["dataset"]["fingerprint"], local["dataset"]["fingerprint"], place)
            self.assertEqual(hashes(report), hashes(local), place)
        self.environment["AWS_ACCESS_KEY_ID"] = "NOBODY"
        self.assert_fails(self.foreload("index", "s3://data/set/"), "InvalidAccessKeyId", codes=(1,))
        self.environment.update(keys)
        self.assert_fails(self.foreload("index", "s3://missing/set/"), "NoSuchBucket", codes=(1,))


if __name__ == "__main__":
    program.main()
