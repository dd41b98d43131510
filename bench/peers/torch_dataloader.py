#!/usr/bin/python3
"""The same work through torch.utils.data.DataLoader + torchvision and through foreload, on two cores.

    torch_dataloader.py [--photos DIR] [--foreload COMMAND] [--rounds N] [--json]

Work: a folder of JPEGs, RandomResizedCrop(224), flip, normalise, f32 NCHW, batches of 64. torch gets its best number of worker
processes. Every round runs all of them, one after the other; figures are medians over the rounds. Rates are those of whole epochs
after the first, which both need to warm up. The time to the first batch counts from opening the loader: torch lists the folder each
time; foreload keeps an index of it, so there is one figure with that index and one without, measured in programs of their own.
Without --photos, `foreload generate` makes the pictures.
PYTHONPATH has to lead to the package. Exit code 1: a goal was missed.
"""
import argparse
import itertools
import json
import os
import pathlib
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
import time
import warnings

BATCH = 64
EPOCHS = 3
MEAN, STD = [0.485, 0.456, 0.406], [0.229, 0.224, 0.225]
GENERATED = 1536
LEAST = 1536  # fewer photographs are linked several times


# --- one loader in a process of its own

def torch_loader(folder, workers, batch=BATCH):
    import torch
    import torchvision
    from torchvision import transforms as t
    chain = t.Compose([t.RandomResizedCrop(224), t.RandomHorizontalFlip(), t.ToTensor(), t.Normalize(MEAN, STD)])
    warnings.filterwarnings("ignore", "This DataLoader will create")  # more workers than cores: that is what is tried out
    return torch.utils.data.DataLoader(torchvision.datasets.ImageFolder(folder, chain), batch_size=batch, shuffle=True,
                                       num_workers=workers, persistent_workers=workers > 0, drop_last=True)


def foreload_loader(folder, rewrite, index_folder=None):
    import foreload
    chain = [foreload.RandomResizedCrop(224), foreload.RandomHorizontalFlip(), foreload.ToTensor(), foreload.Normalize(MEAN, STD)]
    return foreload.DataLoader(folder, batch_size=BATCH, shuffle=True, transform=chain, drop_last=True, memory="2GiB", rewrite=rewrite,
                               index_folder=index_folder)


def cpu_seconds():
    return sum(use.ru_utime + use.ru_stime for use in map(resource.getrusage, (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)))


def import_all():
    """Which is nobody's work."""
    import torch
    import torchvision  # noqa: F401
    torch.set_num_threads(1)


def first_batch(folder, index_folder):
    """Prints how long foreload takes to its first batch."""
    import_all()
    import foreload  # noqa: F401
    begun = time.perf_counter()
    with foreload_loader(folder, "off", index_folder) as loader:
        next(iter(loader))
        print(json.dumps({"seconds": time.perf_counter() - begun}))


def measure(kind, folder, epochs):
    """Prints what one loader did."""
    import_all()
    begun, cpu = time.perf_counter(), cpu_seconds()
    loader = torch_loader(folder, int(kind[5:])) if kind.startswith("torch") else \
        foreload_loader(folder, "auto" if kind == "foreload-auto" else "off")
    first, seconds, images = [], [], 0
    for _ in range(epochs):
        start = time.perf_counter()
        for index, (pictures, labels) in enumerate(loader):
            if index == 0:
                first.append(time.perf_counter() - (begun if not seconds else start))
            images += len(labels)
        seconds.append(time.perf_counter() - start)
    per_epoch = images // epochs
    del pictures, labels, loader  # worker processes end here, and count
    print(json.dumps({"rate": per_epoch * (epochs - 1) / sum(seconds[1:]), "first": first[0], "again": first[1],
                      "cpu": (cpu_seconds() - cpu) / images}))


def serve(kind, folder):
    """For bench/host: several of these at once. Answers each line "rate SECONDS" with the images per second of that time."""
    try:
        import_all()
    except ImportError as missing:
        print(json.dumps({"error": str(missing)}), flush=True)
        return 1
    workers, batch = int(kind[5:]), 32
    loader = torch_loader(folder, workers, batch)
    images = (len(labels) for _ in itertools.count() for _, labels in loader)
    next(images)
    print(json.dumps({"opened": 1}), flush=True)
    for line in sys.stdin:
        for _ in range(2 * workers + 1):  # what was prepared while nobody asked is no rate
            next(images)
        start, count, elapsed = time.perf_counter(), 0, 0
        while elapsed < float(line.split()[1]):
            count += next(images)
            elapsed = time.perf_counter() - start
        wait_until_idle()
        print(json.dumps({"rate": count / elapsed}), flush=True)
    return 0


def wait_until_idle():
    """Worker processes prepare some batches more: until they have, or for five seconds."""
    def ticks(pid):
        try:
            with open(f"/proc/{pid}/stat") as file:
                return sum(int(word) for word in file.read().rpartition(")")[2].split()[11:13])
        except OSError:
            return 0

    before = None
    for _ in range(25):
        used = sum(ticks(pid) for pid in descendants(os.getpid()))
        if used == before:
            return
        before = used
        time.sleep(0.2)


def hand_over():
    """Microseconds from a finished batch in C++ to tensors in Python: batches are given time to be ready."""
    import foreload
    import torch
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as folder:
        for name in "ab":
            (pathlib.Path(folder) / name).mkdir()
            for number in range(2 * BATCH):
                (pathlib.Path(folder) / name / f"{number}.bin").write_bytes(bytes(1024))
        times = []
        with foreload.DataLoader(folder, batch_size=BATCH, shuffle=True, memory="64MiB", transform="array(u8, 1024, headerless=1)") as loader:
            for _ in range(100):
                batches = iter(loader)
                for _ in range(len(loader)):
                    time.sleep(0.002)
                    start = time.perf_counter()
                    images, labels = next(batches)
                    times.append(time.perf_counter() - start)
    print(json.dumps({"seconds": statistics.median(times[len(times) // 4:])}))


# --- the comparison

def tree_memory(pid):
    """Bytes of a process and its descendants, shared pages counted once (PSS)."""
    total = 0
    for each in [pid, *descendants(pid)]:
        try:
            with open(f"/proc/{each}/smaps_rollup") as file:
                total += sum(int(line.split()[1]) for line in file if line.startswith("Pss:")) * 1024
        except (OSError, ValueError):
            pass
    return total


def descendants(pid):
    try:
        with open(f"/proc/{pid}/task/{pid}/children") as file:
            children = [int(word) for word in file.read().split()]
    except OSError:
        return []
    return children + [below for child in children for below in descendants(child)]


def child(*arguments):
    """Runs this program in a mode of its own; its report."""
    done = subprocess.run([sys.executable, "-B", __file__, "--mode", *map(str, arguments)], stdout=subprocess.PIPE, text=True)
    if done.returncode != 0:
        sys.exit(f"torch_dataloader.py: {' '.join(map(str, arguments))} failed")
    return json.loads(done.stdout)


def peak_memory(*arguments):
    """The same in a run that is not timed: looking at a process's pages disturbs it."""
    process = subprocess.Popen([sys.executable, "-B", __file__, "--mode", *map(str, arguments)], stdout=subprocess.PIPE, text=True)
    peak = [0]

    def watch():
        while process.poll() is None:
            peak[0] = max(peak[0], tree_memory(process.pid))
            time.sleep(0.25)

    watcher = threading.Thread(target=watch)
    watcher.start()
    process.communicate()
    watcher.join()
    return peak[0]


def command_rate(command, folder):
    """The C++ loop: images/s of the epochs after the first."""
    done = subprocess.run([command, "run", folder, "--batch", str(BATCH), "--epochs", str(EPOCHS), "--last", "drop", "--memory", "2GiB",
                           "--rewrite", "off", "--chain", "random_resized_crop(224), random_flip, normalize", "--json"],
                          check=True, capture_output=True, text=True)
    epochs = json.loads(done.stdout)["epochs"][1:]
    return sum(epoch["samples"] for epoch in epochs) / sum(epoch["seconds"] for epoch in epochs)


def folder_of_photos(photos, scratch):
    """The photographs in class folders below `scratch`, linked as often as needed to have LEAST of them."""
    files = sorted(path for path in pathlib.Path(photos).rglob("*") if path.suffix.lower() in (".jpg", ".jpeg"))
    if not files:
        sys.exit(f"torch_dataloader.py: no JPEGs below {photos}")
    folder = scratch / "photos"
    for number in range(max(LEAST, len(files))):
        path = folder / f"class{number % 4}" / f"{number:05}.jpg"
        path.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(files[number % len(files)], path)
    return folder


def converted(command, folder, scratch):
    """The same pictures after `foreload convert`; None where the command can not."""
    done = subprocess.run([command, "convert", folder, scratch / "converted"], capture_output=True, text=True)
    if done.returncode != 0:
        print(f"torch_dataloader.py: convert failed: {done.stderr.strip()}", file=sys.stderr)
        return None
    return scratch / "converted"


def first_batches(folder):
    """Of two programs that share an index folder: the first has to build the index."""
    with tempfile.TemporaryDirectory(prefix="foreload-bench-") as index:
        cold, warm = (child("first_batch", folder, index)["seconds"] for _ in range(2))
    return {"first_cold": cold, "first": warm}


def best_workers(folder, cores):
    rates = {workers: child("measure", f"torch{workers}", folder, 2)["rate"] for workers in range(1, cores + 2)}
    return max(rates, key=rates.get)


def compare(arguments, scratch):
    cores = len(os.sched_getaffinity(0))
    if arguments.photos:
        folder, data = folder_of_photos(arguments.photos, scratch), "photographs"
    else:
        folder, data = scratch / "generated", "generated pictures"
        subprocess.run([arguments.foreload, "generate", folder, "--images", str(GENERATED)], check=True, stdout=subprocess.DEVNULL)
    shards = converted(arguments.foreload, folder, scratch)
    workers = best_workers(folder, cores)
    runs = {"torch": [], "raw": [], "auto": [], "command": [], **({"converted": []} if shards else {})}
    for _ in range(arguments.rounds):
        runs["torch"].append(child("measure", f"torch{workers}", folder, EPOCHS))
        runs["raw"].append(child("measure", "foreload-raw", folder, EPOCHS))
        runs["command"].append({"rate": command_rate(arguments.foreload, folder)})
        runs["auto"].append(child("measure", "foreload-auto", folder, EPOCHS))
        if shards:
            runs["converted"].append(child("measure", "foreload-converted", shards, EPOCHS))
        for kind, place in (("raw", folder), ("converted", shards)):
            if kind in runs:
                runs[kind][-1].update(first_batches(place))
    for kind, loader, place in (("torch", f"torch{workers}", folder), ("raw", "foreload-raw", folder), ("converted", "foreload-converted", shards)):
        if kind in runs:
            runs[kind][0]["peak"] = peak_memory("measure", loader, place, EPOCHS)
    how = f"{data}, {cores} cores, batch {BATCH}, torch with {workers} worker(s), median of {arguments.rounds} interleaved rounds"
    return rows(runs, bool(arguments.photos), how) + [
        row("hand_over", 1e6 * child("hand_over")["seconds"], "us", "the batch is ready; next() to two torch tensors, median of 300", 50, False)]


def row(name, value, unit, how, goal=None, at_least=True):
    """A figure without a goal is only stated. One that could not be measured has missed it."""
    met = goal is None or value is not None and (value >= goal if at_least else value <= goal)
    wanted = "-" if goal is None else f"{'≥' if at_least else '≤'} {goal}"
    return {"name": f"peers/torch/{name}", "value": 0.0 if value is None else value, "unit": unit, "goal": wanted, "ok": met, "how": how}


def rows(runs, photographs, how):
    def median(kind, what):
        return statistics.median(run[what] for run in runs[kind] if what in run) if kind in runs else None

    def ratio(kind, other):
        """Of runs of the same round."""
        return statistics.median(a["rate"] / b["rate"] for a, b in zip(runs[kind], runs[other])) if kind in runs else None

    data = "photographs" if photographs else "generated"
    found = [row(f"raw_against_torch_{data}", ratio("raw", "torch"), "ratio", how, 3.2 if photographs else None),
             row(f"converted_against_torch_{data}", ratio("converted", "torch"), "ratio", how, 3.8 if photographs else None),
             row(f"raw_with_rewrite_against_torch_{data}", ratio("auto", "torch"), "ratio", how),
             row("python_loop_against_cpp_loop", ratio("raw", "command"), "ratio", how, 0.97)]
    for kind in (kind for kind in ("torch", "raw", "converted") if kind in runs):
        listed = {"first": f"{how}, the index exists already", "first_cold": f"{how}, the index has to be built"} if kind != "torch" else {}
        for what, unit, name in (("rate", "images/s", "rate"), ("first", "s", "first_batch"), ("first_cold", "s", "first_batch_without_index"),
                                 ("again", "s", "first_batch_of_second_epoch"), ("cpu", "s", "cpu_per_image"),
                                 ("peak", "bytes", "peak_memory_of_process_tree")):
            if what in runs[kind][0]:
                found.append(row(f"{kind}_{name}", median(kind, what), unit, listed.get(what, how)))
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--photos", help="folder of JPEGs; default: generated pictures")
    parser.add_argument("--foreload", default=os.environ.get("FORELOAD_CLI", "foreload"), help="the command (default: FORELOAD_CLI, PATH)")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--mode", nargs="+", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.mode:
        name, *rest = arguments.mode
        if name == "measure":
            return measure(rest[0], rest[1], int(rest[2]))
        if name == "serve":
            return serve(*rest)
        return first_batch(*rest) if name == "first_batch" else hand_over()
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:2])
    with tempfile.TemporaryDirectory(prefix="foreload-bench-") as scratch:
        found = compare(arguments, pathlib.Path(scratch))
    if arguments.json:
        print(json.dumps(found, indent=1))
    else:
        for each in found:
            print(f"{'ok  ' if each['ok'] else 'MISS'} {each['name']:<60} {each['value']:>14,.4g} {each['unit']:<9} goal {each['goal']}")
    return 0 if all(each["ok"] for each in found) else 1


if __name__ == "__main__":
    sys.exit(main())
