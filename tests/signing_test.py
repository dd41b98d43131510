#!/usr/bin/python3
"""Our signatures against botocore's: random keys, queries, ranges and credentials.

    tests/signing_test.py SIGN_TOOL
"""
import datetime
import os
import random
import subprocess
import sys
import unittest
import urllib.parse
from unittest import mock

try:
    import botocore.auth
    import botocore.awsrequest
    import botocore.credentials
except ImportError:
    print("skipped: python3-botocore is not installed", file=sys.stderr)
    sys.exit(77)

TOOL = ""
REQUESTS = 2500
UNRESERVED = "abcXYZ019-._~"
ODD = "*=:+ !'()@,;$&?#%[]{}\"<>|\\^`"
FOREIGN = "éß漢😀\u0301\u00a0"


def text(chance, alphabet, longest):
    return "".join(chance.choice(alphabet) for _ in range(chance.randrange(longest)))


def key(chance):
    parts = [text(chance, UNRESERVED + ODD + FOREIGN, 12) for _ in range(chance.randrange(1, 6))]
    return "/".join(part for part in parts if part not in (".", "..")) + chance.choice(["", "/", "//"])


def query(chance):
    """Encoded as a URL needs it, but unsorted, with repetitions and names without value."""
    pairs = []
    for _ in range(chance.choice([0, 0, 1, 2, 6])):
        name = urllib.parse.quote(text(chance, UNRESERVED + ODD + FOREIGN, 8) or "n", safe="-_.~")
        value = urllib.parse.quote(text(chance, UNRESERVED + ODD + FOREIGN, 12), safe="-_.~")
        pairs.append(chance.choice([name, f"{name}=", f"{name}={value}", f"{name}={value}"]))
    if chance.random() < 0.3 and pairs:
        pairs.append(chance.choice(pairs))
    return "&".join(pairs)


def request(chance):
    first = chance.randrange(1 << 40)
    return {
        "time": chance.randrange(1 << 31),
        "region": chance.choice(["us-east-1", "eu-central-1", "cn-north-1", "auto"]),
        "access": text(chance, "ABCDEFGHIJ0123456789", 20) or "A",
        "secret": text(chance, "abcABC0123456789/+=", 40) or "s",
        "token": chance.choice(["", text(chance, "abcABC0123456789/+=", 400)]),
        "method": chance.choice(["GET", "HEAD"]),
        "base": chance.choice(["https://bucket.s3.us-east-1.amazonaws.com/", "http://127.0.0.1:9000/bucket/",
                               "https://host:443/bucket/", "http://host:80/", "http://host:443/b/"]),
        "key": key(chance),
        "query": query(chance),
        "range": chance.choice(["", f"bytes={first}-{first + chance.randrange(1 << 20)}"]),
    }


def oracle(wanted, url):
    """What botocore signs, and the Authorization header that it makes."""
    credentials = botocore.credentials.Credentials(wanted["access"], wanted["secret"], wanted["token"] or None)
    signer = botocore.auth.S3SigV4Auth(credentials, "s3", wanted["region"])
    headers = {"Range": wanted["range"]} if wanted["range"] else {}
    asked = botocore.awsrequest.AWSRequest(method=wanted["method"], url=url, headers=headers)
    with mock.patch("botocore.auth.datetime") as clock:
        moment = datetime.datetime.fromtimestamp(wanted["time"], datetime.timezone.utc)
        clock.datetime.utcnow.return_value = moment.replace(tzinfo=None)
        # The hash of the empty body, also where botocore would leave the body unsigned.
        with mock.patch.object(signer, "_should_sha256_sign_payload", return_value=True):
            signer.add_auth(asked)
    return asked.headers["Authorization"]


class SigningTest(unittest.TestCase):
    def test_random_requests_are_signed_as_botocore_signs_them(self):
        seed = int(os.environ.get("FORELOAD_SEED") or random.SystemRandom().randrange(1 << 32))
        print(f"signing: FORELOAD_SEED={seed} repeats this", file=sys.stderr)
        chance = random.Random(seed)
        requests = [request(chance) for _ in range(REQUESTS)]
        lines = "".join("\t".join(str(field) for field in each.values()) + "\n" for each in requests)
        done = subprocess.run([TOOL], input=lines.encode(), stdout=subprocess.PIPE, timeout=120, check=True)
        answers = done.stdout.decode().splitlines()
        self.assertEqual(len(answers), len(requests))
        for wanted, answer in zip(requests, answers):
            url, authorization = answer.split("\t")
            expected = wanted["base"] + urllib.parse.quote(wanted["key"], safe="/-_.~")
            self.assertEqual(url, expected + ("?" + wanted["query"] if wanted["query"] else ""))
            self.assertEqual(authorization, oracle(wanted, url), wanted)


if __name__ == "__main__":
    if len(sys.argv) < 2 or sys.argv[1].startswith("-"):
        sys.exit(f"usage: {sys.argv[0]} SIGN_TOOL [unittest arguments]")
    TOOL = os.path.abspath(sys.argv.pop(1))
    unittest.main()
