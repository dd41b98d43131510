"""From the arguments of DataLoader to the options of a loader: torch's names and meanings first, then foreload's own."""
from __future__ import annotations

import os
from typing import Any, Dict, List, Optional, Tuple

from . import _arguments as arguments
from . import _peers, _ranks, _torchvision, transforms
from ._arguments import warn_once
from .errors import ConfigError

# torch's arguments without a meaning here: (what says that it is not used, why).
MEANINGLESS = {
    "timeout": (0, "a loader waits as long as it takes, and Ctrl-C ends the wait"),
    "worker_init_fn": (None, "there are no worker processes"),
    "multiprocessing_context": (None, "there are no worker processes"),
    "prefetch_factor": (None, "how far ahead to work is decided by the program"),
    "persistent_workers": (False, "threads live as long as the loader"),
    "pin_memory_device": ("", "the device of pinned memory is the current one"),
}
FLAGS = ("shuffle", "pin_memory", "drop_last", "as_dict", "with_ids", "cache", "trust_index", "follow")
PATHS = ("index_folder", "record", "disk")
WORDS = ("label_field", "io", "storage")
DEFAULT_SHAPES = ((3, 224, 224), (224, 224, 3))  # of images without a transform
NO_SIZE = ("transform has nothing that gives all images one size: put RandomResizedCrop(size), Resize((height, width)), or "
           "Resize(size) and CenterCrop(size) first, or leave transform out for the default (RandomResizedCrop(224), "
           "RandomHorizontalFlip, Normalize)")


class Settings:
    """What the arguments of a DataLoader came to."""

    def __init__(self) -> None:
        self.options: Dict[str, Any] = {}
        self.memory: Optional[int] = None
        self.host: Optional[str] = None  # its name; empty: alone; None: that of the ranks of the job
        self.callables: List[Any] = []
        self.has_chain = False
        self.no_chain = False  # a transform was given, but nothing of it runs in C++
        self.sampled: Optional[int] = None  # over how many samples the sampler goes
        self.drop_last = False
        self.collates = False  # there is a collate_fn


def torch_meanings(given: Dict[str, Any]) -> None:
    """Checks the contradictions that torch checks, in its words, and takes samplers for what they mean."""
    if given["batch_sampler"] is not None:
        if not arguments.same(given["batch_size"], 1) or given["shuffle"] or given["sampler"] is not None or given["drop_last"]:
            raise ConfigError("batch_sampler option is mutually exclusive with batch_size, shuffle, sampler, and drop_last")
        raise ConfigError("batch_sampler is not supported: the order of batches is fixed by seed and epoch; use batch_size, "
                          "shuffle, drop_last and subset")
    if given["batch_size"] is None:
        if given["shuffle"] or given["drop_last"]:
            raise ConfigError("batch_size=None option disables auto-batching and is mutually exclusive with shuffle, and drop_last")
        raise ConfigError("batch_size=None (no automatic batching) is not supported: use batch_size=1 and take the first sample")
    if given["sampler"] is not None:
        if given["shuffle"]:
            raise ConfigError("sampler option is mutually exclusive with shuffle")
        _take_sampler(given, given["sampler"])
    workers = given["num_workers"]
    if isinstance(workers, int) and not isinstance(workers, bool) and workers < 0:
        raise ConfigError("num_workers option should be non-negative; num_workers=0 chooses the number of threads by itself, "
                          f"got {workers}")
    if isinstance(given["timeout"], (int, float)) and given["timeout"] < 0:
        raise ConfigError(f"timeout option should be non-negative, got {given['timeout']}")
    for name, (unused, reason) in MEANINGLESS.items():
        if not arguments.same(given[name], unused):
            warn_once(f"{name} has no meaning here and is ignored: {reason}")
    if given["generator"] is not None:
        if not callable(getattr(given["generator"], "initial_seed", None)):
            raise arguments.wrong("generator", "a torch.Generator", given["generator"])
        if given["seed"] is None:
            given["seed"] = given["generator"].initial_seed() % (1 << 63)


def _take_sampler(given: Dict[str, Any], sampler: Any) -> None:
    own = type(sampler).__module__.startswith("torch.utils.data.")  # not another one of that name
    kind = type(sampler).__name__ if own else f"{type(sampler).__module__}.{type(sampler).__qualname__}"
    if kind == "SequentialSampler":
        given["shuffle"] = False
    elif kind == "RandomSampler":
        if getattr(sampler, "replacement", False) or len(sampler) != len(sampler.data_source):
            raise ConfigError("sampler RandomSampler with replacement or num_samples is not supported: an epoch is every sample "
                              "once; use shuffle=True, or subset=[...] for a part of the dataset")
        given["shuffle"] = True
    elif kind == "WeightedRandomSampler":
        if not sampler.replacement:
            raise ConfigError("sampler WeightedRandomSampler without replacement is not supported: draws by weight are with "
                              "replacement; use replacement=True, or shuffle=True for every sample once")
        given["weights"], given["num_samples"], given["shuffle"] = sampler.weights, sampler.num_samples, True
    elif kind == "SubsetRandomSampler" and given["subset"] is None:
        given["subset"], given["shuffle"] = [int(index) for index in sampler.indices], True
    elif kind == "DistributedSampler":
        given["shuffle"] = sampler.shuffle
        given["seed"] = sampler.seed if given["seed"] is None else given["seed"]
        if given["rank"] is None and given["world_size"] is None:
            given["rank"], given["world_size"] = sampler.rank, sampler.num_replicas
        if getattr(sampler, "drop_last", False) and given["last_batch"] is None and not given["drop_last"]:
            given["last_batch"] = "drop"
            warn_once("DistributedSampler(drop_last=True) is taken for last_batch=\"drop\": the whole last step is left out if it "
                      "is not full")
    else:
        raise ConfigError(f"sampler {kind} is not supported: the order is fixed by shuffle, seed and epoch; use shuffle=True, "
                          "weights=[...], or subset=[...] for a part of the dataset. A DistributedSampler is not needed")


def prep_threads(torchs: Any, own: Any) -> Optional[int]:
    """How many threads prepare here; None: as many as the process may run on."""
    torchs = arguments.whole("num_workers", torchs, 0, 256)
    if own is None:
        return torchs or None
    own = arguments.whole("workers", own, 0, 256)
    if torchs not in (0, own):  # torch's 0 is what it is when nobody gives it
        raise ConfigError(f"num_workers={torchs} and workers={own} contradict each other: give one of them")
    return own


def last_batch(drop_last: bool, asked: Optional[str]) -> str:
    if asked is None:
        return "drop" if drop_last else "auto"
    asked = arguments.word("last_batch", asked, ["auto", "ragged", "pad", "drop"])
    if drop_last and asked != "drop":
        raise ConfigError(f"drop_last=True and last_batch={asked!r} contradict each other")
    return asked


def weight_list(given: Any) -> List[float]:
    """Any sequence of numbers; tensors and arrays too. What a weight may be is checked by the library."""
    try:
        values = list(given.tolist() if callable(getattr(given, "tolist", None)) else given)
    except TypeError:
        values = []
    if not values or isinstance(given, (str, bytes, dict, set)):
        raise arguments.wrong("weights", "a sequence of numbers, one per sample", given)
    for index, value in enumerate(values):
        if type(value) is not float:
            try:
                values[index] = float("" if isinstance(value, (str, bytes)) else value)
            except (TypeError, ValueError, OverflowError):
                raise arguments.wrong(f"weights[{index}]", "a number", value) from None
    return values


def order_options(given: Dict[str, Any]) -> Dict[str, Any]:
    """What relaxes the order; left out when not asked for."""
    options: Dict[str, Any] = {}
    if given["weights"] is not None:
        options["weights"] = weight_list(given["weights"])
    for name, option, least, most in (("num_samples", "epoch_samples", 1, 1 << 48), ("echo", "echo", 1, 1000),
                                      ("echo_window", "echo_window", 1, 1 << 40), ("homes", "homes", 1, 1 << 20)):
        if given[name] is not None:
            options[option] = arguments.whole(name, given[name], least, most)
    if given["reshuffle"] is not None:
        options["reshuffle"] = arguments.share("reshuffle", given["reshuffle"])
    return options


def subset_options(given: Any) -> Dict[str, Any]:
    if given is None:
        return {}
    if not isinstance(given, (list, tuple, range)) or not given:
        raise arguments.wrong("subset", "a non-empty list of ids or keys", given)
    if all(isinstance(item, str) for item in given):
        return {"subset_keys": [arguments.text("subset", item) for item in given]}
    return {"subset_ids": [arguments.whole("subset", item) for item in given]}


def host_name(given: Any) -> Optional[str]:
    if given is None:
        return None
    if arguments.same(given, False):
        return ""
    return os.fsdecode(arguments.text("host", given, "a name, the path of a folder, or False for a loader that is alone"))


def chain_options(given: Dict[str, Any], settings: Settings) -> None:
    transform = given["transform"]
    if transform is not None and (_torchvision.is_torchvision(transform) or
                                  isinstance(transform, (list, tuple)) and any(map(_torchvision.is_torchvision, transform))):
        transform = _torchvision.from_torchvision(transform)
    chain, marked, settings.callables = transforms.split([] if transform is None else transform)
    settings.has_chain, settings.no_chain = bool(chain), transform is not None and not chain
    dtype = transforms.dtype_name(given["dtype"]) if given["dtype"] is not None else marked
    settings.options["chain"] = chain
    settings.options["dtype"] = arguments.word("dtype", dtype or "f32", ["u8", "f16", "f32"])
    settings.options["layout"] = arguments.word("layout", given["layout"], ["nchw", "nhwc"])


def read(given: Dict[str, Any]) -> Settings:
    """Everything but the dataset itself."""
    if given["weights"] is not None:
        if given["sampler"] is not None:
            raise ConfigError("sampler option is mutually exclusive with weights")
        if given["shuffle"] is None:
            given["shuffle"] = True  # as with torch's WeightedRandomSampler nobody asks for it
    for name in FLAGS:
        given[name] = arguments.flag(name, False if name == "shuffle" and given[name] is None else given[name])
    torch_meanings(given)
    settings = Settings()
    kind = type(given["sampler"]).__name__
    if kind in ("SequentialSampler", "RandomSampler"):
        settings.sampled = len(given["sampler"])
    elif kind == "DistributedSampler":
        settings.sampled = len(given["sampler"].dataset)
    options = settings.options
    options["batch"] = arguments.whole("batch_size", given["batch_size"], 1, 1 << 32)
    options["global_batch"] = 0 if given["global_batch"] is None else \
        arguments.whole("global_batch", given["global_batch"], 1, 1 << 40)
    options["shuffle"] = arguments.flag("shuffle", given["shuffle"])  # a sampler may have changed it
    options["seed"] = 0 if given["seed"] is None else arguments.whole("seed", given["seed"])
    options["workers"] = prep_threads(given["num_workers"], given["workers"])
    settings.drop_last = given["drop_last"]
    options["last_batch"] = last_batch(settings.drop_last, given["last_batch"])
    options["on_error"] = arguments.word("on_error", given["on_error"], ["fail", "replace"])
    options["rank"], options["world"] = _ranks.resolve(given["rank"], given["world_size"])
    options["local_world"] = _ranks.on_this_host(options["world"])
    options["held_batches"] = arguments.whole("held_batches", given["held_batches"], 1, 32)
    options["epochs"] = 0 if given["epochs"] is None else arguments.whole("epochs", given["epochs"], 1)
    options["cache"] = given["cache"]
    options["trust_index"] = given["trust_index"]
    options["decode"] = arguments.word("decode", given["decode"], ["exact", "fast"])
    options["rewrite"] = arguments.word("rewrite", given["rewrite"], ["auto", "off", "on"])
    options["eviction"] = arguments.word("eviction", given["eviction"], ["static", "frequency", "belady", "lru"])
    options["max_replacements"] = arguments.whole("max_replacements", given["max_replacements"])
    arguments.word("output", given["output"], ["auto", "torch", "numpy"])
    for name in PATHS + WORDS:
        if given[name] is not None:
            options[name] = arguments.text(name, given[name], "a path" if name in PATHS else "a string")
    if options.get("disk") == b"":
        raise ConfigError("disk is empty: name a folder, or leave it out")
    settings.memory = arguments.memory("memory", given["memory"])
    settings.host = host_name(given["host"])
    options.update(_peers.options(given, options["world"]))
    if "peers" in options and settings.host == "":
        raise ConfigError("peers and host=False contradict each other: other machines are talked to by this one's agent, which is a "
                          "process of its host")
    options["follow"] = given["follow"]
    if given["disk_size"] is not None:
        options["disk_bytes"] = arguments.memory("disk_size", given["disk_size"])
    options.update(order_options(given))
    options.update(subset_options(given["subset"]))
    chain_options(given, settings)
    for name in ("batch_transform", "collate_fn"):
        if given[name] is not None and not callable(given[name]):
            raise arguments.wrong(name, "callable", given[name])
    settings.collates = given["collate_fn"] is not None
    return settings


def check_no_chain(engine: Any) -> None:
    """An explicit transform without an op leaves .npy arrays as they are, but images would get the default's random crop."""
    if tuple(engine.describe()["shape"]) not in DEFAULT_SHAPES:
        return  # not what the default makes of images
    for id in range(min(8, engine.describe()["samples"])):
        where = engine.locate(id)
        try:
            with open(where["file"], "rb") as file:
                file.seek(where["offset"])
                if where["length"] and file.read(6) == b"\x93NUMPY":
                    return
        except OSError:
            pass  # then it is told by the shape alone
    raise ConfigError(NO_SIZE)


MOST_COMPARED = 200_000


def check_same(engine: Any, sampled: Optional[int], folder: Any) -> None:
    """Foreload goes by what lies on disk: it must be what the sampler or the ImageFolder goes by."""
    about = engine.describe()
    samples = about["samples"]
    if sampled is not None and sampled != samples:
        raise ConfigError(f"sampler goes over {sampled} samples, but the dataset has {samples}: use subset=[...] for a part of it")
    differs = _difference(folder, about, engine.locate) if folder is not None else ""
    if differs:
        raise ConfigError(f"dataset: this ImageFolder {differs}, which is what it reads: pass the root and subset=[...], or "
                          "torch.utils.data.Subset(dataset, range(len(dataset))) to have it read by Python")


def _difference(folder: Any, about: Dict[str, Any], locate: Any) -> str:
    """Between what an ImageFolder lists and what lies below its root; empty: none."""
    count = about["samples"]
    if len(folder.samples) != count:
        return f"has {len(folder.samples)} samples, but foreload finds {count} below its root"
    if list(folder.classes) != about["classes"]:
        return "has other classes than the folders below its root"
    if count > MOST_COMPARED:
        return ""
    try:
        if [label for _, label in folder.samples] != list(folder.targets):
            return "has targets that are not those of its samples"
        root = len(os.path.join(folder.root, ""))
        listed = {path[root:]: label for path, label in folder.samples}
    except (TypeError, ValueError) as error:
        return f"has another sample or label than (path, number) somewhere ({error})"
    for where in map(locate, range(count)):
        if listed.get(where["key"]) != where["label"]:
            return f"has another sample or label in place of {where['file']} (label {where['label']})"
    in_order = folder.samples == sorted(folder.samples, key=lambda pair: (pair[1], os.path.split(pair[0])))
    return "" if in_order else "has another order of its samples than the folders below its root"


def image_folder(dataset: Any, transform: Any) -> Optional[Tuple[str, Any]]:
    """torchvision's ImageFolder, if foreload can load it itself: (root, transforms)."""
    kind = type(dataset)
    plain = kind.__name__ == "ImageFolder" and kind.__module__ == "torchvision.datasets.folder"
    if not plain or getattr(dataset, "target_transform", None) or getattr(dataset.loader, "__name__", "") != "default_loader":
        return None
    if transform is not None or dataset.transform is None:
        return dataset.root, transform
    try:
        return dataset.root, _torchvision.from_torchvision(dataset.transform)
    except ConfigError as reason:
        warn_once(f"this ImageFolder is read by Python, which is slow: {reason}")
        return None
