"""foreload.measure_step: the rate of a training step alone."""
import time

import pytest

import foreload
from foreload import _step

torch = pytest.importorskip("torch")


def sleeping(duration):
    calls = []

    def step(images, labels):
        calls.append((images, labels))
        time.sleep(duration)

    return step, calls


BATCH = (torch.zeros(32, 3, 8, 8), torch.zeros(32, dtype=torch.int64))


def test_the_rate_is_samples_by_time():
    step, calls = sleeping(0.01)
    rate = foreload.measure_step(step, BATCH, seconds=0.5)
    # Never faster than it can be; slower by what sleeping too long and this machine's other work take.
    assert 32 / 0.01 / 20 < rate <= 32 / 0.01
    assert rate.low <= rate <= rate.high
    assert rate.windows >= 5


def test_the_one_batch_is_replayed():
    step, calls = sleeping(0)
    foreload.measure_step(step, BATCH, seconds=0.05)
    assert len(calls) > 3
    assert all(images is BATCH[0] and labels is BATCH[1] for images, labels in calls)


def test_a_real_step_trains():
    model = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(3 * 8 * 8, 10))
    optimiser = torch.optim.SGD(model.parameters(), lr=0.1)
    before = model[1].weight.detach().clone()

    def step(images, labels):
        optimiser.zero_grad()
        torch.nn.functional.cross_entropy(model(images), labels).backward()
        optimiser.step()

    rate = foreload.measure_step(step, (torch.randn(32, 3, 8, 8), BATCH[1]), seconds=0.2)
    assert rate > 0
    assert not torch.equal(before, model[1].weight)
    assert float(f"{rate}") == pytest.approx(rate)  # as it is given to --accelerator


@pytest.mark.parametrize("batch", [{"images": BATCH[0], "labels": BATCH[1]}, BATCH[0]])
def test_what_is_no_tuple_is_one_argument(batch):
    seen = []
    foreload.measure_step(seen.append, batch, seconds=0.02)
    assert seen[0] is batch


def test_a_device_is_waited_for_before_and_after_every_window(monkeypatch):
    waits = []
    monkeypatch.setattr(torch.cuda, "is_initialized", lambda: True)
    monkeypatch.setattr(torch.cuda, "synchronize", lambda: waits.append(1))
    step, _ = sleeping(0)
    rate = foreload.measure_step(step, BATCH, seconds=0.05)
    assert len(waits) == 2 * (rate.windows + 1)


def test_exceptions_of_the_step_come_through():
    def step(images, labels):
        raise ValueError("out of memory on the device")

    with pytest.raises(ValueError, match="on the device"):
        foreload.measure_step(step, BATCH)


@pytest.mark.parametrize("fn, batch, seconds, word", [
    (None, BATCH, 1, "fn must be callable"),
    (print, (), 1, "batch has no samples"),
    (print, (torch.zeros(0, 3),), 1, "batch has no samples"),
    (print, 7, 1, "batch has no samples"),
    (print, BATCH, 0, "seconds"),
    (print, BATCH, True, "seconds"),
    (print, BATCH, float("nan"), "seconds"),
])
def test_wrong_arguments_are_named(fn, batch, seconds, word):
    with pytest.raises(foreload.ConfigError, match=word):
        foreload.measure_step(fn, batch, seconds=seconds)


# Of nine values, the second to the eighth enclose the median with 96 %; of five, no two do with 95 %.
def test_the_interval_has_95_percent():
    assert _step._interval(9) == 1
    assert _step._interval(15) == 3
    assert _step._interval(5) == 0
    assert _step._interval(1) == 0
