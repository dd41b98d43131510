"""What memory keeps, through Python: the same batches with every policy, and what is refused."""
import pytest

import foreload
from conftest import ARRAY, MEMORY


def read(arrays, **options):
    with foreload.DataLoader(arrays, batch_size=10, shuffle=True, seed=3, transform=ARRAY, memory=MEMORY, output="numpy",
                             epochs=2, **options) as loader:
        return [(images.tobytes(), labels.tobytes()) for _ in range(2) for images, labels in loader]


def test_every_policy_delivers_the_same(arrays):
    plain = read(arrays, cache=False)
    for policy in ("static", "frequency", "belady", "lru"):
        assert read(arrays, eviction=policy) == plain, policy


@pytest.mark.parametrize("options, words", [
    ({"eviction": "fifo"}, "eviction.*fifo"), ({"eviction": None}, "eviction"),
    ({"eviction": "belady", "rewrite": "on"}, "rewrite.*eviction")])
def test_wrong_arguments_are_named(arrays, options, words):
    with pytest.raises(foreload.ConfigError, match=words):
        read(arrays, **options)
