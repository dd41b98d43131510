"""Analyses for the tests of reports: documents as `foreload analyze --json` prints them, made by the model's own formulas,
so that their numbers fit together."""


def shares(fetch, prep, accelerator):
    """min(F, P, G), and whose time goes where."""
    rate = min(fetch, prep, accelerator)
    without_fetch = min(prep, accelerator)
    busy = rate / accelerator
    fetch_stall = 1 - rate / without_fetch
    return {"samples_per_s": rate, "utilisation": busy, "busy": busy, "fetch_stall": fetch_stall,
            "prep_stall": max(0.0, 1 - busy - fetch_stall)}


def bound(fetch, prep, accelerator):
    rate = min(fetch, prep, accelerator)
    return "accelerator" if rate == accelerator else "prep" if rate == prep else "fetch"


class Job:
    """A machine and a dataset. Rates in samples/s."""
    samples = 1_281_167
    mean = 114_660

    def __init__(self, storage=400.0, per_core=300.0, cores=4, accelerator=1920.0, cached=0.35, memory=60_000.0):
        self.storage, self.per_core, self.cores = storage, per_core, cores
        self.accelerator, self.cached, self.memory = accelerator, cached, memory

    def fetch(self, cached=None, storage=None):
        cached = self.cached if cached is None else cached
        storage = self.storage if storage is None else storage
        return min(self.memory / cached if cached > 0 else 1e12, storage / (1 - cached) if cached < 1 else 1e12)

    def prep(self, cores=None):
        return self.per_core * (cores or self.cores) ** 0.95

    @property
    def gigabytes(self):
        return self.samples * self.mean / 1e9

    def point(self, x, cached=None, storage=None, cores=None, accelerators=1):
        of = shares(self.fetch(cached, storage), self.prep(cores), self.accelerator * accelerators)
        del of["busy"]
        return {"x": x, **of}


def cache_curve(job):
    points = [job.point(job.gigabytes * i / 20, cached=i / 20) for i in range(21)]
    need = max(0.0, 1 - job.storage / min(job.prep(), job.accelerator))
    return {"name": "cache", "title": "Memory for the cache", "x_unit": "GB", "points": points,
            "here": job.cached * job.gigabytes,
            "knee": {"x": need * job.gigabytes,
                     "says": f"From {need * job.gigabytes:.0f} GB on, storage is not waited for after the first epoch."}}


def cores_curve(job):
    points = [job.point(cores, cores=cores) for cores in range(1, 17)]
    enough = next((point["x"] for point in points if point["prep_stall"] < 0.005), None)
    knee = enough and {"x": enough, "says": f"{enough} cores per accelerator are enough for prep."}
    return {"name": "cores", "title": "Cores per accelerator", "x_unit": "cores", "points": points, "here": job.cores,
            "knee": knee}


def storage_curve(job):
    megabytes = job.mean / 1e6
    points = [job.point(rate, storage=rate / megabytes) for rate in range(20, 421, 20)]
    return {"name": "storage", "title": "Storage rate", "x_unit": "MB/s", "points": points,
            "here": job.storage * megabytes, "knee": None}


def accelerators_curve(job):
    points = [job.point(count, accelerators=count) for count in (1, 2, 3, 4, 6, 8)]
    return {"name": "accelerators", "title": "Accelerators per host", "x_unit": "accelerators", "points": points, "here": 1,
            "knee": {"x": 1, "says": "One accelerator already takes all that this host delivers."}}


def option(job, label, here=False, measured=False, **changes):
    return {"label": label, **{k: v for k, v in job.point(0, **changes).items() if k != "x"}, "here": here,
            "measured": measured}


def figure(name, group, value, unit, spread=0.03, windows=9, how="whole samples in random order, O_DIRECT"):
    return {"name": name, "group": group, "value": value, "low": value * (1 - spread), "high": value * (1 + spread / 2),
            "unit": unit, "windows": windows, "how": how}


def measured(job):
    rate = job.storage * job.mean / 1e6
    return [
        figure("1 at once", "storage", rate * 0.2, "MB/s", 0.08),
        figure("32 at once", "storage", rate, "MB/s", 0.02),
        figure("128 at once", "storage", rate * 1.01, "MB/s", 0.02),
        figure("sequential", "storage", rate * 1.3, "MB/s", 0.01, how="one after the other, O_DIRECT"),
        figure("page cache", "cache", 3100, "MB/s", 0.05, how="the same files, read again"),
        figure("memory tier", "cache", 9400, "MB/s", 0.02, how="out of the tier into a batch"),
        figure("decode", "prep", 1000 / job.per_core * 0.7, "ms", 0.01, how="one core, per sample"),
        figure("whole chain, 1 thread", "prep", job.per_core, "samples/s", 0.01, how="samples in memory"),
        figure("whole chain, 4 threads", "prep", job.per_core * 3.7, "samples/s", 0.04, how="samples in memory"),
        figure("resnet18", "accelerator", job.accelerator, "samples/s", 0, 1, "given by --accelerator"),
    ]


def remedies(job):
    rate = shares(job.fetch(), job.prep(), job.accelerator)["samples_per_s"]

    def remedy(title, then, says, command=None, python=None):
        return {"title": title, "gain": then / rate - 1, "samples_per_s": then, "no_stall": then >= job.accelerator, "says": says, "command": command,
                "python": python}

    return sorted([
        remedy("Convert to crop-addressable records", min(job.fetch() * 2.1, job.prep() * 1.8, job.accelerator),
               "Half of the bytes are read, and only the crop is decoded. Takes about 97 minutes once, and 147 GB of disk.",
               "foreload convert /data/imagenet/train /data/imagenet-records"),
        remedy("Cache 104 GB instead of 51 GB", min(job.fetch(0.71), job.prep(), job.accelerator),
               "Storage is not waited for from the second epoch on. The first epoch stays as it is.",
               "foreload run /data/imagenet/train --memory 104GB",
               'loader = foreload.DataLoader("/data/imagenet/train", batch_size=256,\n'
               '                             memory="104GB")'),
        remedy("4 more cores per accelerator", min(job.fetch(), job.prep(8), job.accelerator),
               "Prep scales to 8 threads on this machine: measured up to 4."),
    ], key=lambda remedy: -remedy["gain"])


def analysis(job=None):
    job = job or Job()
    later = shares(job.fetch(), job.prep(), job.accelerator)
    first = shares(job.fetch(0), job.prep(), job.accelerator)
    rate = later["samples_per_s"]
    side = {"requests": 512, "bytes": 512 * job.mean, "cpu_seconds": 512 / job.per_core, "samples_per_s": job.storage}
    return {
        "schema": 1, "command": "analyze", "version": "0.1.0",
        "dataset": {"uri": "/data/imagenet/train", "fingerprint": "9f86d081884c7d65", "samples": job.samples,
                    "bytes": job.samples * job.mean, "mean_bytes": job.mean,
                    "sizes": {"smallest": 508, "p10": 38_912, "median": 109_527, "p90": 170_201, "p99": 461_823,
                              "largest": 15_903_277}, "form": "raw"},
        "machine": {"cores": 4, "memory_bytes": 68_719_476_736, "cpu": "AMD EPYC 7763 64-Core Processor"},
        "job": {"accelerator": "resnet18 on a V100", "accelerators": 1, "hosts": 1, "threads": job.cores,
                "memory_bytes": 51_000_000_000, "cached_share": job.cached, "dtype": "f32",
                "chain": "random_resized_crop(224), random_flip, normalize"},
        "measured": measured(job),
        "missing": [{"what": "Network between hosts", "why": "no --peers were given"},
                    {"what": "Disk tier", "why": "no --disk was given"}],
        "prediction": {**later, "low": rate * 0.96, "high": rate * 1.03,
                       "bound": bound(job.fetch(), job.prep(), job.accelerator),
                       "first_epoch": {**first, "bound": bound(job.fetch(0), job.prep(), job.accelerator)},
                       "fetch_samples_per_s": job.fetch(), "prep_samples_per_s": job.prep(),
                       "accelerator_samples_per_s": job.accelerator},
        "what_if": [cache_curve(job), cores_curve(job), storage_curve(job), accelerators_curve(job)],
        "choices": [
            {"name": "form", "title": "Raw files, records, crop-addressable",
             "options": [option(job, "raw files", here=True, measured=True), option(job, "records", storage=job.storage * 1.4),
                         option(job, "crop-addressable", storage=job.storage * 2.1, cores=job.cores * 2)]},
            {"name": "cache_policy", "title": "Who keeps the samples",
             "options": [option(job, "page cache", cached=job.cached * 0.4), option(job, "never evict", here=True),
                         option(job, "partitioned over hosts", cached=min(1.0, job.cached * 2))]}],
        "remedies": remedies(job),
        "raw_against_record": {"samples": 512, "raw": side,
                               "record": {**side, "requests": 9, "samples_per_s": job.storage * 1.4},
                               "crop_addressable": {"requests": 512, "bytes": 512 * job.mean // 2,
                                                    "cpu_seconds": 512 / job.per_core / 1.8,
                                                    "samples_per_s": job.storage * 2.1}},
        "prices": {"currency": "EUR",
                   "here": {"cores": 4, "memory_gb": 51, "utilisation": later["utilisation"], "per_million_samples": 0.87},
                   "cheapest": {"cores": 8, "memory_gb": 104, "utilisation": 0.97, "per_million_samples": 0.52}},
        "check": [{"point": "as it is", "predicted": rate, "measured": rate * 1.021, "off": -0.0206},
                  {"point": "half of the storage rate", "predicted": rate / 2, "measured": rate / 2.07, "off": 0.035},
                  {"point": "half of the cache", "predicted": rate * 0.8, "measured": rate * 0.79, "off": 0.0127}],
        "seconds": 48.2, "bytes_read": 1_734_000_000,
    }


def fetch_bound():
    return analysis(Job(storage=400, per_core=500))


def prep_bound():
    return analysis(Job(storage=2400, per_core=260, cores=3))


def no_stall():
    return analysis(Job(storage=4000, per_core=900, cores=4, accelerator=755, cached=1.0))


HOSTILE = ['<script>window.harmed=1</script>', '"><img src=x onerror="window.harmed=1">', "'-alert(1)-'", "</title></style><b>",
           "line\nbreak\ttab \x00\x1b[31m\x7f", "turned \u202egnp.exe", "&amp; &#60;", "大きいデータ 🙂", "{{7*7}} %s %n {}",
           "n" * 4096, "\ufffe\uffff", ""]


def hostile(name):
    """The same analysis, where every text is that name."""
    def replaced(value, key=None):
        if isinstance(value, dict):
            return {k: replaced(v, k) for k, v in value.items()}
        if isinstance(value, list):
            return [replaced(item) for item in value]
        return name if isinstance(value, str) and key != "bound" else value

    return replaced(fetch_bound())


def absurd():
    """Numbers that no machine has."""
    document = fetch_bound()
    document["prediction"].update(samples_per_s=1e308, low=-1e308, high=1e308, utilisation=17.0, busy=-3.0, fetch_stall=1e30,
                                  prep_stall=1e-300, fetch_samples_per_s=-1.0, prep_samples_per_s=0.0)
    document["dataset"].update(samples=-1, bytes=1e30, mean_bytes=-5)
    document["what_if"] = [
        {"name": "none", "title": "No points", "x_unit": "GB", "points": [], "here": 1e308, "knee": None},
        {"name": "one", "title": "One point", "x_unit": "GB", "points": [{"x": 3, "samples_per_s": 5}], "here": 3, "knee": None},
        {"name": "huge", "title": "Huge", "x_unit": "MB/s", "here": 1e290,
         "points": [{"x": x, "samples_per_s": y, "utilisation": u, "fetch_stall": 9e99, "prep_stall": -1}
                    for x, y, u in ((-1e299, 1e299, 1e-9), (0, -1e299, 0), (1e299, 1e308, 0.5), (5, 0, -1))],
         "knee": {"x": 1e300, "says": "far away"}},
        {"name": "many", "title": "Many points", "x_unit": "cores", "here": 500, "knee": {"x": 501, "says": "close"},
         "points": [{"x": i, "samples_per_s": (i * 7919) % 1000, "utilisation": 0.5, "fetch_stall": 0.25, "prep_stall": 0.25}
                    for i in range(1000)]},
        {"name": "flat", "title": "Flat", "x_unit": "hosts", "here": None, "knee": {"x": 2, "says": "x"},
         "points": [{"x": x, "samples_per_s": 0, "utilisation": 0, "fetch_stall": 0, "prep_stall": 1} for x in (2, 2, 2)]},
        {"name": "narrow", "title": "Narrow", "x_unit": "GB", "here": 1e9, "knee": {"x": 1e9 + 1, "says": "x"},
         "points": [{"x": 1e9 + i / 2, "samples_per_s": 123456789.5 + i / 8, "utilisation": 1} for i in range(5)]},
    ]
    document["remedies"][0].update(gain=1e9)
    document["remedies"][1].update(gain=-0.4)
    return document


def nothing():
    return {}


def all_null():
    return {key: None for key in analysis()}


def rates_without_accelerator():
    document = fetch_bound()
    for field in ("utilisation", "busy", "bound", "accelerator_samples_per_s", "first_epoch"):
        document["prediction"][field] = None
    for what_if in document["what_if"]:
        for point in what_if["points"]:
            point["utilisation"] = point["fetch_stall"] = point["prep_stall"] = None
    document["remedies"] = []
    document["choices"] = []
    return document
