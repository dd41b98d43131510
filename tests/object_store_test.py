#!/usr/bin/python3
"""Reading objects from a store that fails, lies, throttles or is slow (R17).

    tests/object_store_test.py FORELOAD [unittest arguments]
"""
import signal
import struct
import subprocess
import tarfile
import time
from collections import Counter

import ledger
import program
from object_store_stub import Stub
from program import ProgramTest, seeded, wait_until

SIZE = 20_000
SAMPLES = 500
NEEDED = SAMPLES * SIZE


class ObjectStoreTest(ProgramTest):
    def setUp(self):
        super().setUp()
        self.folder = self.ledger("set", SAMPLES, size=SIZE)
        self.base = ["--batch", 20, "--chain", ledger.chain(SIZE), "--no-cache"]
        for name in ("AWS_CA_BUNDLE", "CURL_CA_BUNDLE", "SSL_CERT_FILE"):
            self.environment.pop(name, None)
        self.environment.update(no_proxy="127.0.0.1", AWS_ACCESS_KEY_ID="key", AWS_SECRET_ACCESS_KEY="secret", AWS_REGION="us-east-1")

    def serve(self, folder=None, **options):
        stub = Stub(folder or self.folder, **options).start()
        self.addCleanup(stub.stop)
        self.environment["AWS_ENDPOINT_URL"] = stub.endpoint
        return stub

    def load(self, *arguments, place="s3://data/"):
        return self.report("run", place, *self.base, "--hash", *arguments)

    def hashes(self, report):
        return [(epoch["order_hash"], epoch["content_hash"]) for epoch in report["epochs"]]

    def fail_with(self, stub, *words, place="s3://data/", **changes):
        """A run that starts well and finds the store changed after its first objects."""
        stub.options.set("bandwidth", 4e6)
        before = stub.stats.as_dict()["gets"]
        process = self.start("run", place, *self.base)
        self.assertTrue(wait_until(lambda: stub.stats.as_dict()["gets"] >= before + 30))
        stub.options.set("faults", changes.pop("faults", {}))
        for name, value in {"bandwidth": 0, **changes}.items():
            stub.options.set(name, value)
        process.out, process.err = process.communicate(timeout=program.DEADLINE)
        self.assert_fails(process, *words, codes=(1,))

    def test_faults_of_all_kinds_change_nothing_and_cost_little(self):
        """R17: 5,000 requests when soaking, 500 otherwise."""
        chance = seeded("faults_of_all_kinds")
        plain = self.hashes(self.load(place=self.folder))
        faults = {"500": 0.006, "503": 0.006, "429": 0.003, "reset": 0.02, "short": 0.02, "etag": 0.01, "range": 0.01, "slow": 0.03}
        for turn in range(10 if program.SOAK else 1):
            stub = self.serve(latency=0.004, faults=faults, burst=5, seed=chance.randrange(1 << 30))
            report = self.load()
            self.assertEqual(self.hashes(report), plain)
            stats = stub.stats.as_dict()
            self.assertGreaterEqual(stats["gets"], SAMPLES)
            self.assertLessEqual(stats["bytes"], 1.5 * NEEDED, stats)
            self.assertLessEqual(stats["requests"], 1.5 * SAMPLES, stats)
            self.assertGreater(sum(count for name, count in stats.items() if name.startswith(("fault_", "status_"))), 10, stats)
            asked = report["requests"]
            self.assertLessEqual(asked["hedges"], 1 + SAMPLES / 20)
            self.assertGreaterEqual(asked["retries"], stats.get("fault_short", 0) - asked["hedges"])

    def test_a_changed_tag_is_an_error(self):
        self.fail_with(self.serve(), "object changed since it was indexed", "another tag", "index --rebuild", faults={"etag": 1})

    def test_a_store_that_answers_with_other_bytes_is_an_error(self):
        self.fail_with(self.serve(), "other bytes than those asked for", faults={"range": 1})

    def test_a_store_that_ignores_ranges_is_an_error(self):
        stub = self.serve(self.shards())
        place = self.http("shard-{000..003}.tar")
        self.load(place=place)  # makes the index
        self.fail_with(stub, "ignores ranges", place=place, faults={"whole": 1})

    def test_a_store_that_stays_out_of_order_is_an_error_after_all_attempts(self):
        self.fail_with(self.serve(), "503", "12 attempts", faults={"503": 1})

    def test_lost_permission_is_an_error_at_once(self):
        self.fail_with(self.serve(), "403", faults={"403": 1})

    def test_a_throttling_store_gets_fewer_requests_at_once(self):
        plain = self.hashes(self.load(place=self.folder))
        stub = self.serve(latency=0.01, max_concurrent=4)
        report = self.load()
        self.assertEqual(self.hashes(report), plain)
        stats = stub.stats.as_dict()
        self.assertEqual(report["requests"]["throttled"], stats.get("status_503", 0))
        self.assertGreater(stats["status_503"], 0)
        self.assertLessEqual(stats["requests"], 1.5 * SAMPLES, stats)

    def test_the_event_record_has_what_was_decided_about_requests(self):
        self.serve(latency=0.004, faults={"503": 0.02}, burst=5)
        record = self.top / "record"
        asked = self.load("--record", record)["requests"]
        content = record.read_bytes()
        self.assertEqual(len(content) % 48, 16)
        kinds = Counter(kind for _, kind, _ in struct.iter_unpack("<qH38s", content[16:]))
        wanted, grouped, hedged, throttled, again = (kinds[kind] for kind in (28, 29, 30, 33, 35))  # docs/event-record.md
        self.assertEqual(kinds[26], 1)
        self.assertEqual(wanted, SAMPLES)
        self.assertGreaterEqual(grouped + hedged + again, asked["sent"], "some may have waited for neighbours")
        self.assertEqual((hedged, throttled, again), (asked["hedges"], asked["throttled"], asked["retries"]))

    def shards(self):
        """The ledger's samples in four tar files."""
        place = self.top / "shards"
        place.mkdir()
        for shard in range(4):
            with tarfile.open(place / f"shard-{shard:03}.tar", "w", format=tarfile.USTAR_FORMAT) as tar:
                for number in range(shard * SAMPLES // 4, (shard + 1) * SAMPLES // 4):
                    name = ledger.name(number, SAMPLES)
                    tar.add(self.folder / name, arcname=name)
        return place

    def http(self, name):
        return f"{self.environment['AWS_ENDPOINT_URL']}/data/{name}"

    def test_neighbours_share_requests(self):
        shards = self.shards()
        plain = self.load("--in-order", place=shards / "shard-{000..003}.tar")
        stub = self.serve(shards)
        self.load("--in-order", place=self.http("shard-{000..003}.tar"))  # makes the index
        before = stub.stats.as_dict()
        report = self.load("--in-order", place=self.http("shard-{000..003}.tar"))
        self.assertEqual(self.hashes(report), self.hashes(plain))
        self.assertLessEqual(report["requests"]["sent"], SAMPLES / 3)
        served = stub.stats.as_dict()["bytes"] - before["bytes"]
        self.assertLessEqual(served, 1.1 * NEEDED, "headers of the tar, and nothing else")

    def test_an_interrupted_run_does_not_wait_for_a_silent_store(self):
        for number in (signal.SIGINT, signal.SIGTERM):
            stub = self.serve()
            process = self.start("run", "s3://data/", *self.base, "--epochs", 1000)
            self.assertTrue(wait_until(lambda: stub.stats.as_dict()["gets"] >= 30))
            stub.options.set("latency", 1000)
            time.sleep(0.2)
            began = time.monotonic()
            process.send_signal(number)
            process.communicate(timeout=program.DEADLINE)
            self.assertLess(time.monotonic() - began, 5)
            self.assertEqual(process.returncode, program.stop_code(number))

    def test_only_certificates_of_a_trusted_authority_count(self):
        chain, key = self.top / "chain.pem", self.top / "key.pem"
        try:
            subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-subj", "/CN=stub", "-days", "2", "-addext",
                            "subjectAltName=IP:127.0.0.1", "-keyout", key, "-out", chain], check=True, capture_output=True)
        except (FileNotFoundError, subprocess.CalledProcessError) as error:
            self.skipTest(f"no certificate: {error}")
        self.serve(certificate=(chain, key))
        self.assert_fails(self.foreload("run", "s3://data/", *self.base), "127.0.0.1", "SSL_CERT_FILE", codes=(1,))
        for name in ("SSL_CERT_FILE", "AWS_CA_BUNDLE"):
            self.environment.update({name: str(chain)})
            self.assertEqual(self.hashes(self.load()), self.hashes(self.load(place=self.folder)))
            del self.environment[name]


if __name__ == "__main__":
    program.main()
