"""docs/python.md tells of every field of stats(), and of no other."""
import pathlib
import re

import pytest

import foreload
from conftest import ARRAY, MEMORY

GUIDE = pathlib.Path(__file__).resolve().parents[2] / "docs" / "python.md"


def fields(value, name=""):
    """Of nested dicts and lists of dicts: "epochs[].stall.fetch"."""
    if isinstance(value, dict):
        return {field for key, part in value.items() for field in fields(part, f"{name}.{key}" if name else key)}
    if isinstance(value, list) and value and isinstance(value[0], dict):
        return fields(value[0], name + "[]")
    return {name}


def documented():
    section = GUIDE.read_text(encoding="utf-8").split("## Statistics")[1].split("\n## ")[0]
    cells = [line.split("|")[1] for line in section.splitlines() if line.startswith("| `")]
    return [name for cell in cells for name in re.findall(r"`([^`]+)`", cell)]


class Failing:
    def __len__(self):
        return 8

    def __getitem__(self, number):
        if number == 3:
            raise ValueError("no such picture")
        return number


@pytest.mark.skipif(not GUIDE.exists(), reason="the documents are not installed")
@pytest.mark.parametrize("kind", ["files", "map-style"])
def test_every_field_is_documented(kind, tmp_path):
    (tmp_path / "a").mkdir()
    for number in range(8):
        (tmp_path / "a" / f"{number}.bin").write_bytes(bytes(64 if number != 3 else 63))
    options = {"transform": ARRAY, "memory": MEMORY} if kind == "files" else {}
    with foreload.DataLoader(tmp_path if kind == "files" else Failing(), batch_size=2, on_error="replace", output="numpy",
                             **options) as loader:
        assert len(list(loader)) == 4
        stats = loader.stats()
    assert stats["quarantine"] and stats["epochs"]
    names = documented()
    assert sorted(names) == sorted(fields(stats))
    assert len(names) == len(set(names))
