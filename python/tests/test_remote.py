"""Datasets by URL through Python: the samples of the folder, what a refusal raises, and what an open asks for."""
import pathlib
import sys
import tarfile

import foreload
import pytest
from conftest import MEMORY
from test_same_as_cli import epoch_hashes

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tests"))
from object_store_stub import Connection, Stub  # noqa: E402

KEY, SECRET = "AKIDEXAMPLE", "dont-print-this-secret"


class KnownConnection(Connection):
    """Answers only one key; whether the signature fits it is the business of tests/remote_test.py."""

    def answer(self, request):
        known = f"Credential={KEY}/" in request.headers.get("authorization", "")
        return super().answer(request) if known else self.fail(403, "InvalidAccessKeyId", request)


class KnownStub(Stub):
    def serve(self, client):
        KnownConnection(self, client).run()


@pytest.fixture
def environment(monkeypatch, tmp_path):
    """Nobody else's credentials and indexes."""
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AWS_PROFILE", "AWS_REGION",
                 "AWS_DEFAULT_REGION", "AWS_SHARED_CREDENTIALS_FILE", "AWS_CONFIG_FILE", "AWS_ENDPOINT_URL_S3", "http_proxy",
                 "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return monkeypatch


@pytest.fixture
def bucket(environment, images, tmp_path):
    """Serves the folder "set" and the same as "set.tar"; a function that starts a stub in front of it."""
    root = tmp_path / "root"
    root.mkdir()
    (root / "set").mkdir()
    for path in sorted(images.rglob("*.jpg")):
        copy = root / "set" / path.relative_to(images)
        copy.parent.mkdir(exist_ok=True)
        copy.write_bytes(path.read_bytes())
    with tarfile.open(root / "set.tar", "w") as archive:
        archive.add(root / "set", arcname=".")
    stubs = []

    def serve(kind=Stub, **options):
        stubs.append(kind(root, **options).start())
        environment.setenv("AWS_ENDPOINT_URL", stubs[-1].endpoint)
        return stubs[-1]

    yield serve
    for stub in stubs:
        stub.stop()


def opened(dataset, **options):
    return foreload.DataLoader(dataset, **{"batch_size": 16, "shuffle": True, "seed": 11, "memory": MEMORY, **options})


def two_epochs(dataset, **options):
    with opened(dataset, **options) as loader:
        return [epoch_hashes(loader) for _ in range(2)], loader.stats(), len(loader.dataset), loader.dataset.classes


def test_the_same_hashes_from_folder_and_urls(bucket, images):
    stub = bucket()
    local = two_epochs(images)
    for place in (f"{stub.url}/set.tar", "s3://data/set.tar", "s3://data/set/", "s3://data/set"):
        for options in ({}, {"cache": False}):
            remote = two_epochs(place, **options)
            assert remote[0] == local[0] and remote[2:] == local[2:], place
            assert remote[1]["requests"]["sent"] > 0 == local[1]["requests"]["sent"]


def test_batches_and_labels_are_those_of_the_folder(bucket, images):
    bucket()
    batches = []
    for place in (images, "s3://data/set/"):
        with opened(place, output="numpy") as loader:
            batches.append([(pictures.tobytes(), labels.tolist()) for pictures, labels in loader])
    assert batches[0] == batches[1]


def test_wrong_credentials_are_a_read_error_that_says_what_to_check(bucket, environment, images):
    bucket(KnownStub)
    environment.setenv("AWS_ACCESS_KEY_ID", "AKIDOTHER")
    environment.setenv("AWS_SECRET_ACCESS_KEY", SECRET)
    for place in ("s3://data/set/", "s3://data/set.tar"):
        with pytest.raises(foreload.ReadError) as caught:
            opened(place)
        words = str(caught.value)
        assert isinstance(caught.value, OSError) and SECRET not in words
        assert "s3://data/set" in words and "AWS_ACCESS_KEY_ID" in words
    environment.setenv("AWS_ACCESS_KEY_ID", KEY)
    assert two_epochs("s3://data/set/")[0] == two_epochs(images)[0]


def test_no_credentials_where_some_are_needed(bucket):
    bucket(authorised=True)
    with pytest.raises(foreload.ReadError, match="no credentials were found.*AWS_ACCESS_KEY_ID"):
        opened("s3://data/set/")


def test_half_a_pair_of_keys_is_a_wrong_configuration(bucket, environment):
    bucket()
    environment.setenv("AWS_ACCESS_KEY_ID", KEY)
    with pytest.raises(foreload.ConfigError, match="both are needed"):
        opened("s3://data/set/")


@pytest.mark.parametrize("place", ["s3://missing/set/", "s3://data/nothing/", "s3://data/nothing.tar"])
def test_what_is_not_there_is_not_found(bucket, place):
    bucket()
    with pytest.raises(foreload.DatasetNotFound, match=place.rstrip("/")):
        opened(place)


def test_an_object_that_changes_ends_the_epoch(bucket, tmp_path):
    bucket()
    with opened("s3://data/set/", cache=False, epochs=2) as loader:
        for path in (tmp_path / "root" / "set").rglob("*.jpg"):
            path.write_bytes(path.read_bytes() + b"x")
        with pytest.raises(foreload.DataChanged, match="changed since it was indexed"):
            for _ in range(2):
                for _ in loader:
                    pass


def test_an_open_lists_once_and_a_trusting_one_not_at_all(bucket):
    stub = bucket()

    def lists(**options):
        before = stub.stats.as_dict()["lists"]
        with opened("s3://data/set/", **options):
            return stub.stats.as_dict()["lists"] - before

    assert lists(trust_index=True) == 1, "there is no index yet"
    assert lists() == 1
    assert lists(trust_index=True) == 0
    with pytest.raises(foreload.ConfigError, match="trust_index"):
        opened("s3://data/set/", trust_index="yes")
