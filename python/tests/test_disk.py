"""The disk cache through Python: what comes from where, and what is refused."""
import pytest

import foreload
from conftest import ARRAY, MEMORY


def read(arrays, **options):
    with foreload.DataLoader(arrays, batch_size=10, shuffle=True, seed=3, transform=ARRAY, memory=MEMORY, output="numpy",
                             **options) as loader:
        content = [(images.tobytes(), labels.tobytes()) for images, labels in loader]
        loader.epoch_summary()
        return content, loader.stats()


def test_a_second_loader_reads_nothing_from_the_source(arrays, tmp_path, capsys):
    plain, without = read(arrays)
    assert without["disk"] == {"capacity_bytes": 0, "used_bytes": 0, "damaged": 0}
    first, _ = read(arrays, disk=tmp_path / "cache")
    capsys.readouterr()
    again, stats = read(arrays, disk=tmp_path / "cache", disk_size="1GB")
    assert plain == first == again
    moved = stats["epochs"][0]["bytes"]
    assert moved["source"] == 0 and moved["disk"] == stats["disk"]["used_bytes"] > 0
    summary = capsys.readouterr().out
    assert "disk" in summary and max(map(len, summary.splitlines())) <= 80


@pytest.mark.parametrize("options, words", [
    ({"disk_size": "1GB"}, "disk"), ({"disk": 7}, "disk"), ({"disk": "x", "disk_size": "lots"}, "disk_size.*lots"),
    ({"disk": "x", "disk_size": 0}, "disk_size"),
    ({"disk": ""}, "disk is empty"), ({"disk": "/nowhere/below/cache"}, "disk.*/nowhere/below")])
def test_wrong_arguments_are_named(arrays, options, words):
    with pytest.raises(foreload.ConfigError, match=words):
        read(arrays, **options)


def test_a_map_style_dataset_has_no_disk(tmp_path):
    with pytest.raises(foreload.ConfigError, match="disk"):
        foreload.DataLoader([1, 2, 3], disk=tmp_path)


def test_a_second_loader_at_once_warns(arrays, tmp_path):
    with foreload.DataLoader(arrays, transform=ARRAY, memory=MEMORY, disk=tmp_path):
        with pytest.warns(UserWarning, match="in use"):
            read(arrays, disk=tmp_path)
