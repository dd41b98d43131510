"""Wrong arguments: the class is documented, the message names the argument and what was given."""
import warnings

import foreload
import pytest
from conftest import ARRAY, MEMORY
from foreload import _ranks


def opened(dataset, **options):
    return foreload.DataLoader(dataset, **{"transform": ARRAY, "memory": MEMORY, **options})


@pytest.mark.parametrize("options, words", [
    ({"batch_size": 0}, "batch_size.*0"), ({"batch_size": "8"}, "batch_size.*'8'"), ({"batch_size": 2.5}, "batch_size.*2.5"),
    ({"batch_size": True}, "batch_size"), ({"batch_size": None}, "batch_size=None"), ({"shuffle": "yes"}, "shuffle.*'yes'"),
    ({"seed": -1}, "seed.*-1"), ({"num_workers": -1}, "num_workers option should be non-negative"),
    ({"num_workers": 1000}, "num_workers"), ({"workers": -1}, "workers.*-1"), ({"workers": 257}, "workers.*257"),
    ({"workers": "2"}, "workers.*'2'"), ({"workers": True}, "workers"), ({"workers": 2, "num_workers": 3}, "num_workers=3.*workers=2"),
    ({"workers": 0, "num_workers": 3}, "num_workers=3.*workers=0"), ({"workers": 0}, "foreload agent --host"),
    ({"workers": 0, "host": False}, "foreload agent --host"), ({"timeout": -1}, "timeout option should be non-negative"),
    ({"memory": "lots"}, "memory.*lots"), ({"memory": 0}, "memory"), ({"memory": "0"}, "memory"),
    ({"on_error": "ignore"}, "on_error.*'ignore'"), ({"rank": 0}, "rank.*without world_size"),
    ({"rank": 2, "world_size": 2}, "Invalid rank 2, rank should be in the interval"), ({"world_size": 0, "rank": 0}, "world_size"),
    ({"last_batch": "maybe"}, "last_batch"), ({"last_batch": "pad", "drop_last": True}, "contradict"),
    ({"sampler": object()}, "sampler"), ({"sampler": object(), "shuffle": True}, "sampler option is mutually exclusive with shuffle"),
    ({"batch_sampler": object(), "batch_size": 4}, "batch_sampler option is mutually exclusive"),
    ({"collate_fn": list}, "collate_fn"), ({"collate_fn": 3}, "collate_fn"), ({"batch_transform": 3}, "batch_transform"),
    ({"transform": 3}, "transform"), ({"transform": [3]}, "transform"), ({"transform": "no_such_op"}, "no_such_op"),
    ({"transform": [len, foreload.Resize(3)]}, "callables come last"), ({"dtype": "f99"}, "dtype"), ({"layout": "hwc"}, "layout"),
    ({"subset": []}, "subset"), ({"subset": 3}, "subset"), ({"held_batches": 0}, "held_batches"),
    ({"output": "jax"}, "output"), ({"epochs": 0}, "epochs"), ({"index_folder": 3}, "index_folder"), ({"storage": "fast"}, "fast"),
    ({"generator": 7}, "generator.*7"), ({"generator": 7, "seed": 1}, "generator.*7"),
])
def test_wrong_values_are_refused_by_name(arrays, options, words):
    with pytest.raises(foreload.ConfigError, match=words) as caught:
        opened(arrays, **options)
    assert isinstance(caught.value, ValueError) and isinstance(caught.value, foreload.ForeloadError)


def test_unknown_arguments_are_pythons_business(arrays):
    with pytest.raises(TypeError, match="batchsize"):
        opened(arrays, batchsize=3)


@pytest.mark.parametrize("dataset", [3, None, [], {"a": 1}.keys(), object(), iter([]), b"train", bytearray(b"train"),
                                     {0: 1}, ["train", 3], [b"train", "valid"], ("train", None)])
def test_what_is_no_dataset_is_refused(dataset):
    with pytest.raises(foreload.ConfigError, match="dataset"):
        foreload.DataLoader(dataset)


def test_a_subset_of_what_is_not_there_is_refused(arrays):
    with pytest.raises(foreload.DatasetNotFound, match="1000"):
        opened(arrays, subset=[1000])


def test_an_unreadable_dataset_is_named(tmp_path):
    with pytest.raises(foreload.DatasetNotFound, match="nowhere") as caught:
        foreload.DataLoader(tmp_path / "nowhere")
    assert isinstance(caught.value, FileNotFoundError)
    (tmp_path / "bad.tar").write_bytes(b"no tar" * 1000)
    with pytest.raises(foreload.ForeloadError, match="bad.tar"):
        foreload.DataLoader(tmp_path / "bad.tar")


def test_a_bad_sample_is_named_with_file_and_offset(tmp_path):
    (tmp_path / "a").mkdir()
    for number in range(4):
        (tmp_path / "a" / f"{number}.bin").write_bytes(bytes(64 if number != 2 else 63))
    with opened(tmp_path, batch_size=2) as loader:
        batches = iter(loader)
        next(batches)
        with pytest.raises(foreload.SampleError, match=r"2\.bin.*offset 0|offset 0.*2\.bin"):
            next(batches)
        with pytest.raises(foreload.SampleError):  # the next epoch meets it again
            list(loader)
    with opened(tmp_path, batch_size=2, on_error="replace") as loader:
        assert sum(len(labels) for _, labels in loader) == 4
        assert {bad["key"] for bad in loader.stats()["quarantine"]} == {"a/2.bin"}  # of later epochs as well: it works ahead
        assert loader.stats()["epochs"][0]["replaced"] == 1


@pytest.mark.parametrize("mapped", [False, True])
def test_a_new_iterator_after_a_bad_first_batch_begins_the_next_epoch(tmp_path, mapped):
    class Bad:
        def __len__(self):
            return 8

        def __getitem__(self, index):
            if index == 0:
                raise foreload.SampleError("0.bin is broken")
            return index

    (tmp_path / "a").mkdir()
    for number in range(8):
        (tmp_path / "a" / f"{number}.bin").write_bytes(bytes(64 if number else 63))
    options = {"transform": None} if mapped else {}
    with opened(Bad() if mapped else tmp_path, batch_size=2, with_ids=True, **options) as loader:
        for epoch in range(3):
            batches = iter(loader)
            assert (loader.state_dict()["epoch"], loader.state_dict()["position"]) == (epoch, 0)
            with pytest.raises(foreload.SampleError, match="0.bin"):
                next(batches)
            with pytest.raises(foreload.StaleIterator):
                next(batches)
            assert (loader.state_dict()["epoch"], loader.state_dict()["position"]) == (epoch, 0)
        state = {**loader.state_dict(), "position": 2}  # behind it
        loader.load_state_dict(state)
        assert [id for batch in loader for id in batch[-2].tolist()] == [2, 3, 4, 5, 6, 7]
        loader.set_epoch(7)
        with pytest.raises(foreload.SampleError):
            next(iter(loader))
        assert loader.state_dict()["epoch"] == 7


def test_changed_data_is_noticed(tmp_path):
    (tmp_path / "a").mkdir()
    for number in range(40):
        (tmp_path / "a" / f"{number:02}.bin").write_bytes(bytes(64))
    with opened(tmp_path, batch_size=1, storage="2ms", memory="64MiB") as loader:
        (tmp_path / "a" / "39.bin").write_bytes(bytes(32))
        with pytest.raises(foreload.DataChanged, match="39.bin"):
            for images, labels in loader:
                pass


def test_too_little_memory_is_refused_with_numbers(images):
    with pytest.raises(foreload.OutOfMemory, match="MiB"):
        foreload.DataLoader(images, batch_size=64, memory="1MiB")


def test_meaningless_arguments_warn_once(arrays):
    from foreload import _arguments
    _arguments._warned.clear()
    for name, value in (("prefetch_factor", 4), ("persistent_workers", True), ("timeout", 5), ("worker_init_fn", print)):
        with pytest.warns(foreload.ForeloadWarning, match=name) as caught:
            opened(arrays, **{name: value}).close()
        assert caught[0].filename == __file__
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            opened(arrays, **{name: value}).close()


def test_torchs_samplers_are_taken_for_what_they_mean(arrays):
    data = pytest.importorskip("torch.utils.data")
    everything = list(range(100))

    def ids(**options):
        with opened(arrays, batch_size=10, with_ids=True, **options) as loader:
            return [id for batch in loader for id in batch[2].tolist()]

    assert ids(sampler=data.SequentialSampler(everything)) == everything
    assert ids(sampler=data.RandomSampler(everything)) == ids(shuffle=True) != everything
    sampler = data.distributed.DistributedSampler(everything, num_replicas=2, rank=1, shuffle=True, seed=9)
    assert ids(sampler=sampler) == ids(shuffle=True, seed=9, rank=1, world_size=2)
    assert sorted(ids(sampler=data.SubsetRandomSampler(range(40, 60)))) == list(range(20))  # ids count inside the subset
    sampler = data.distributed.DistributedSampler(everything, num_replicas=3, rank=1, shuffle=False, drop_last=True)
    assert ids(sampler=sampler) == ids(rank=1, world_size=3, last_batch="drop")


@pytest.mark.parametrize("kind, options, words", [
    ("SequentialSampler", {}, "sampler goes over 50 samples.*100"), ("RandomSampler", {}, "sampler goes over 50 samples.*100"),
    ("RandomSampler", {"num_samples": 20}, "num_samples"), ("RandomSampler", {"replacement": True}, "replacement"),
])
def test_samplers_of_other_samples_are_refused(arrays, kind, options, words):
    data = pytest.importorskip("torch.utils.data")
    with pytest.raises(foreload.ConfigError, match=words):
        opened(arrays, sampler=getattr(data, kind)(range(50), **options))
    with pytest.raises(foreload.ConfigError, match=words.replace("100", "60")):
        foreload.DataLoader(list(range(60)), sampler=getattr(data, kind)(range(50), **options))


@pytest.mark.parametrize("transform", [[], [foreload.ToTensor()], foreload.PILToTensor(), [len], len])
def test_a_transform_that_gives_images_no_size_is_refused(images, transform):
    for options in ({}, {"layout": "nhwc"}, {"dtype": "u8"}):
        with pytest.raises(foreload.ConfigError, match="transform.*one size.*Resize"):
            foreload.DataLoader(images, transform=transform, memory=MEMORY, **options)


def test_a_compose_that_gives_images_no_size_is_refused(images):
    t = pytest.importorskip("torchvision.transforms")
    with pytest.raises(foreload.ConfigError, match="transform.*one size.*Resize"):
        foreload.DataLoader(images, transform=t.Compose([t.ToTensor()]), memory=MEMORY)


@pytest.mark.parametrize("shape", [(2, 5), (3, 224, 224)])  # the second is also that of images by default
def test_arrays_need_no_size(tmp_path, shape):
    numpy = pytest.importorskip("numpy")
    (tmp_path / "a").mkdir()
    numpy.save(tmp_path / "a" / "0.npy", numpy.zeros(shape, numpy.uint8))
    for transform in ([], [lambda sample: sample + 1]):
        with foreload.DataLoader(tmp_path, transform=transform, memory=MEMORY, output="numpy") as loader:
            arrays, _ = next(iter(loader))
            assert arrays.shape == (1, *shape) and arrays.max() == len(transform)


@pytest.mark.parametrize("environment, expected", [
    ({}, (0, 1)),
    ({"RANK": "1", "WORLD_SIZE": "4", "SLURM_PROCID": "2", "SLURM_NTASKS": "8"}, (1, 4)),
    ({"SLURM_PROCID": "2", "SLURM_NTASKS": "8", "OMPI_COMM_WORLD_RANK": "3", "OMPI_COMM_WORLD_SIZE": "9"}, (2, 8)),
    ({"OMPI_COMM_WORLD_RANK": "3", "OMPI_COMM_WORLD_SIZE": "9", "PMI_RANK": "4", "PMI_SIZE": "10"}, (3, 9)),
    ({"PMI_RANK": "4", "PMI_SIZE": "10"}, (4, 10)),
    ({"RANK": "1", "PMI_RANK": "4", "PMI_SIZE": "10"}, (4, 10)),
])
def test_rank_and_world_come_from_the_launcher(environment, expected):
    assert _ranks.resolve(None, None, environment) == expected
    assert _ranks.resolve(5, 6, environment) == (5, 6)


def test_a_broken_launcher_environment_is_named():
    with pytest.raises(foreload.ConfigError, match="WORLD_SIZE.*'many'"):
        _ranks.resolve(None, None, {"RANK": "0", "WORLD_SIZE": "many"})
    with pytest.raises(foreload.ConfigError, match="torchrun"):
        _ranks.resolve(None, None, {"RANK": "4", "WORLD_SIZE": "4"})


def test_what_only_looks_like_a_number_is_no_local_size():
    assert _ranks.on_this_host(4, {"LOCAL_WORLD_SIZE": "\u00b2"}) == 4
    assert _ranks.on_this_host(4, {"LOCAL_WORLD_SIZE": "2"}) == 2


@pytest.mark.parametrize("options, threads", [({"workers": 3}, 3), ({"num_workers": 2}, 2), ({"workers": 2, "num_workers": 2}, 2),
                                              ({"workers": 1, "num_workers": 0}, 1), ({"workers": None, "num_workers": 3}, 3)])
def test_workers_and_num_workers_count_threads(arrays, options, threads):
    with opened(arrays, **options) as loader:
        assert loader.stats()["threads"] == threads


def test_a_map_style_dataset_needs_this_process():
    with pytest.raises(foreload.ConfigError, match="workers=0"):
        foreload.DataLoader(list(range(10)), workers=0)


def test_a_subset_by_ids_and_by_keys(arrays):
    for subset in ([7, 3, 50], ["c0/007.bin", "c0/003.bin", "c2/050.bin"]):
        with opened(arrays, batch_size=3, subset=subset, output="numpy") as loader:
            images, labels = next(iter(loader))
            assert images[:, 0].tolist() == [7, 3, 50] and labels.tolist() == [0, 0, 2]


def test_reports(arrays, capsys):
    with opened(arrays, batch_size=10, output="numpy") as loader:
        for _ in loader:
            pass
        stats = loader.stats()
        assert stats["epochs"][0]["samples"] == 100 and set(stats["epochs"][0]["stall"]) == {"total", "fetch", "prep"}
        loader.epoch_summary()
        text = capsys.readouterr().out
        assert "fetch stall" in text and text.splitlines()[1].split()[0] == "0"
        page = loader._repr_html_()
        assert page.count("<tr>") == 2 and "DatasetView" in page
        assert len(loader.dataset) == 100 and loader.dataset.classes == ["c0", "c1", "c2", "c3"]
        assert loader.dataset.locate(26)["key"] == "c1/026.bin"


def test_tqdm(arrays):
    tqdm = pytest.importorskip("tqdm")
    with opened(arrays, batch_size=10, output="numpy") as loader:
        bar = tqdm.tqdm(loader, disable=None)
        assert bar.total == 10
        assert sum(len(labels) for _, labels in bar) == 100


def test_the_summary_is_the_line_of_the_command(arrays, capsys):
    import subprocess
    from conftest import CLI
    done = subprocess.run([CLI, "run", arrays, "--batch", "10", "--chain", ARRAY, "--memory", MEMORY], capture_output=True, text=True,
                          check=True)
    theirs = next(line for line in done.stdout.splitlines() if line.startswith("epoch"))
    with opened(arrays, batch_size=10, output="numpy") as loader:
        for _ in loader:
            pass
        loader.epoch_summary()
    header, line = capsys.readouterr().out.splitlines()
    assert header == theirs and len(line) == len(header)
