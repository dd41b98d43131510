#!/usr/bin/python3
"""What is delivered depends on the data, the seed and the chain, and on nothing else.

    tests/hashes_test.py FORELOAD [unittest arguments]
"""
import io
import shutil
import subprocess
import tarfile

import ledger
import program
from program import ProgramTest, amount, seeded

IMAGE_CHAIN = "random_resized_crop(32), random_flip, normalize"


def hashes(report):
    return [(epoch["order_hash"], epoch["content_hash"]) for epoch in report["epochs"]]


class SameHashesTest(ProgramTest):
    """Images, so that random crops and floating point take part."""

    def setUp(self):
        super().setUp()
        self.folder = self.images(count=40)
        self.reference = hashes(self.run_images())
        self.assertEqual(len(set(self.reference)), 2, "two epochs have two orders")

    def run_images(self, *arguments, place=None, chain=IMAGE_CHAIN, seed=5):
        return self.report("run", place or self.folder, "--batch", 7, "--epochs", 2, "--chain", chain, "--seed", seed,
                           "--hash", *arguments)

    def assert_same(self, *arguments):
        report = self.run_images(*arguments)
        self.assertEqual(hashes(report), self.reference, arguments)
        return report

    def test_any_number_of_threads(self):
        for threads in (1, 2, 3, 8):
            self.assertEqual(self.assert_same("--workers", threads)["threads"], threads)

    def test_both_ways_of_reading(self):
        self.assertEqual(self.assert_same("--io", "threads")["io"], "threads")
        done = self.foreload("run", self.folder, "--batch", 7, "--io", "uring")
        if done.returncode != 0:
            self.skipTest(f"no io_uring here: {done.err.strip()}")
        self.assertEqual(self.assert_same("--io", "uring")["io"], "uring")

    def test_past_the_page_cache(self):
        for engine in ("threads", self.run_images()["io"]):
            self.assert_same("--direct", "--io", engine)

    def test_cached_uncached_and_in_little_memory(self):
        whole = self.assert_same()["epochs"]
        self.assertEqual(whole[1]["bytes"]["source"], 0)
        self.assertEqual(self.assert_same("--no-cache")["cache"], {"capacity_bytes": 0, "used_bytes": 0, "rewritten": 0})
        small = self.assert_same("--memory", "8MB", "--workers", 1)
        source = small["epochs"][1]["bytes"]["source"]
        self.assertTrue(0 < source < small["dataset"]["bytes"], source)
        self.assert_same("--no-cache", "--direct", "--memory", "8MB", "--workers", 1)

    def test_every_eviction_policy(self):
        little = ["--memory", "8MB", "--workers", 1]
        for policy in ("static", "frequency", "belady", "lru"):
            self.assert_same("--eviction", policy)
            self.assert_same("--eviction", policy, "--no-cache")
            small = self.assert_same("--eviction", policy, *little)
            source = small["epochs"][1]["bytes"]["source"]
            self.assertTrue(0 < source <= small["dataset"]["bytes"], source)
            self.assert_same("--eviction", policy, *little, "--disk", self.top / "disk")

    def test_from_slow_storage(self):
        self.assert_same("--storage", "20MB/s,2ms", "--no-cache")

    def test_another_seed_or_chain_shows_in_the_hashes(self):
        orders, contents = zip(*self.reference)
        other = hashes(self.run_images(seed=6))
        self.assertTrue(set(orders).isdisjoint(order for order, _ in other))
        flat = hashes(self.run_images(chain="random_resized_crop(32), normalize"))
        self.assertEqual([order for order, _ in flat], list(orders))
        self.assertTrue(set(contents).isdisjoint(content for _, content in flat))

    def test_tar_and_folder_of_the_same_files(self):
        fingerprint = self.run_images()["dataset"]["fingerprint"]
        for index in self.folder.glob(".foreload*"):
            index.unlink()
        subprocess.run(["tar", "--sort=name", "-cf", self.top / "gnu.tar", "-C", self.folder, "."], check=True)
        for name, kind in (("pax", tarfile.PAX_FORMAT), ("ustar", tarfile.USTAR_FORMAT), ("old", tarfile.GNU_FORMAT)):
            with tarfile.open(self.top / f"{name}.tar", "w", format=kind) as tar:
                tar.add(self.folder, arcname="data")
        for name in ("gnu", "pax", "ustar", "old"):
            report = self.run_images(place=self.top / f"{name}.tar")
            self.assertEqual(report["dataset"]["fingerprint"], fingerprint, name)
            self.assertEqual(hashes(report), self.reference, name)

    def test_a_copy_elsewhere(self):
        shutil.copytree(self.folder, self.top / "copy")
        self.assertEqual(hashes(self.run_images(place=self.top / "copy")), self.reference)


class LedgerTest(ProgramTest):
    """Judged by the reference in ledger.py, which shares no code with foreload."""

    def judged(self, *arguments, samples=None, count=0):
        lines, report = self.logged(*arguments, "--chain", ledger.chain())
        self.assertEqual(ledger.judge_lines(lines, samples or ledger.standard_samples(count)), "")
        for what in ("order", "content"):
            total = ledger.add_hex(line[what] for line in lines)
            self.assertEqual(ledger.add_hex(epoch[f"{what}_hash"] for epoch in report["epochs"]), total)
        return lines, report

    def test_in_order_is_the_order_of_ids(self):
        folder = self.ledger("set", 53)
        lines, _ = self.judged(folder, "--in-order", "--batch", 8, "--epochs", 2, count=53)
        self.assertEqual([number for line in lines for number in line["ids"]], 2 * list(range(53)))

    def test_the_judge_finds_a_wrong_byte(self):
        folder = self.ledger("set", 20)
        wrong = ledger.standard_samples(20)
        wrong[7] = (wrong[7][0][:-1] + bytes([wrong[7][0][-1] ^ 1]), wrong[7][1])
        lines, _ = self.logged(folder, "--batch", 4, "--chain", ledger.chain())
        self.assertIn("content", ledger.judge_lines(lines, wrong))

    def judge_world(self, folder, samples, shape, last):
        """All ranks of a job, two epochs: every position once, at the right rank, repeats only as padding."""
        world, _, batch = shape
        everything = []
        for rank in range(world):
            lines, report = self.judged(folder, "--world", world, "--rank", rank, "--global-batch", batch,
                                        "--last", last, "--epochs", 2, count=samples)
            expected = ledger.shares(samples, (world, rank, batch), last)
            self.assertEqual([line["positions"] for line in lines], 2 * expected)
            padding = [[number for line in lines if line["epoch"] == epoch
                        for position, number in zip(line["positions"], line["ids"]) if position >= samples]
                       for epoch in (0, 1)]
            self.assertEqual([epoch["padded"] for epoch in report["epochs"]], padding if lines else [])
            everything += lines
        ids, times = ledger.positions_of(everything)
        self.assertEqual(set(times.values()), {1} if times else set())
        for epoch in (0, 1):
            order = [ids[epoch, position] for position in range(samples) if (epoch, position) in ids]
            self.assertEqual(len(order), len(set(order)))
            if last != "drop":
                self.assertEqual(sorted(order), list(range(samples)))
            for position in range(samples, len(times) // 2):
                self.assertEqual(ids[epoch, position], ids[epoch, position % samples])

    def test_every_position_exactly_once_over_all_ranks(self):
        chance = seeded("exactly_once")
        for turn in range(amount(200)):
            samples = chance.choice((1, 2, 3, chance.randrange(1, 40), chance.randrange(1, 300)))
            world = chance.choice((1, 1, 2, 3, chance.randrange(1, 9)))
            batch = chance.randrange(1, samples + 1)
            last = chance.choice(("auto", "ragged", "pad", "drop"))
            if batch < world:
                batch = min(samples, world) if last in ("auto", "drop") else world
            if world > samples:
                last = chance.choice(("ragged", "pad"))
            with self.subTest(samples=samples, world=world, batch=batch, last=last):
                folder = self.ledger(f"set{turn}", samples)
                self.judge_world(folder, samples, (world, 0, batch), last)

    def test_ranks_add_up_to_one_process(self):
        folder = self.ledger("set", 101)
        job = [folder, "--global-batch", 12, "--last", "ragged", "--epochs", 2]
        lines, report = self.judged(*job, count=101)
        one, total = ledger.steps(lines), hashes(report)
        for world in (2, 3):
            ranks = [self.judged(*job, "--world", world, "--rank", rank, count=101) for rank in range(world)]
            self.assertEqual(ledger.steps(line for lines, _ in ranks for line in lines), one)
            sums = [tuple(map(ledger.add_hex, zip(*epoch))) for epoch in zip(*(hashes(report) for _, report in ranks))]
            self.assertEqual(sums, total)

    def test_before_and_after_resume(self):
        folder, state = self.ledger("set", 90), self.top / "state"
        arguments = (folder, "--batch", 8, "--epochs", 3)
        whole, _ = self.judged(*arguments, count=90)
        self.judged(folder, "--batch", 8, "--epochs", 1, "--state", state, count=90)
        rest, _ = self.judged(*arguments, "--resume", state, "--workers", 3, count=90)
        self.assertEqual(rest, [line for line in whole if line["epoch"] >= 1])

    def test_concatenation_counts_on(self):
        first, second = self.ledger("a", 30), self.ledger("b", 50)
        both = ledger.standard_samples(30) + ledger.standard_samples(50)
        lines, report = self.judged(first, second, "--batch", 9, samples=both)
        self.assertEqual(report["dataset"]["samples"], 80)
        self.assertEqual(sorted(number for line in lines for number in line["ids"]), list(range(80)))

    def test_subset_takes_ids_in_the_order_given(self):
        folder, standard = self.ledger("set", 60), ledger.standard_samples(60)
        chosen = [41, 3, 3, 59, 0, 17]
        lines, _ = self.judged(folder, "--batch", 4, "--in-order", "--subset", ",".join(map(str, chosen)),
                               samples=[standard[number] for number in chosen])
        self.assertEqual([number for line in lines for number in line["ids"]], list(range(6)))
        (self.top / "keys").write_text("".join(ledger.name(number, 60) + "\n" for number in chosen))
        again, _ = self.judged(folder, "--batch", 4, "--in-order", "--subset", f"@{self.top}/keys",
                               samples=[standard[number] for number in chosen])
        self.assertEqual(again, lines)

    def write_shards(self, samples, shards, kind):
        """As WebDataset writes them: key.bin with key.cls or key.json; long names need the format's extensions."""
        for shard in range(shards):
            with tarfile.open(self.top / f"shard-{shard:03}.tar", "w", format=kind) as tar:
                for number in range(shard * samples // shards, (shard + 1) * samples // shards):
                    key = f"{'long' * 30}/{number:06}" if number % 2 else f"{number:06}"
                    tag = (b"%d" % (number % 7), "cls") if number % 3 else (b'{"kind": %d}' % (number % 7), "json")
                    for data, end in ((ledger.sample(number), "bin"), tag):
                        entry = tarfile.TarInfo(f"{key}.{end}")
                        entry.size = len(data)
                        tar.addfile(entry, io.BytesIO(data))

    def test_shards_with_labels_beside_the_samples(self):
        for name, kind in (("gnu", tarfile.GNU_FORMAT), ("pax", tarfile.PAX_FORMAT)):
            self.write_shards(60, 4, kind)
            samples = [(ledger.sample(number), number % 7) for number in range(60)]
            for uri in ("shard-{000..003}.tar", "shard-*.tar"):
                with self.subTest(format=name, uri=uri):
                    lines, _ = self.judged(self.top / uri, "--batch", 8, "--label-field", "kind", samples=samples)
                    self.assertEqual(sorted(number for line in lines for number in line["ids"]), list(range(60)))

    def test_xxh3_of_the_judge_is_that_of_libxxhash(self):
        values = {8: 0xdb86d781f5b8bd4a, 17: 0xce3f6da0a1ce63a2, 72: 0xc7c1816cda31f7b3, 128: 0x0de8157dd7737803}
        for length, value in values.items():
            self.assertEqual(ledger.xxh3(bytes(range(length)), 7), value, length)


if __name__ == "__main__":
    program.main()
