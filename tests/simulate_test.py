#!/usr/bin/python3
"""foreload simulate from outside: reports, errors, sweeps, presets, the page, and decisions against those of real runs.

    tests/simulate_test.py FORELOAD [unittest arguments]
"""
import random
import shutil
import subprocess
import unittest

import program
from program import ProgramTest

CHROMIUM = "/usr/bin/chromium"
SMALL = ["--samples", 4000, "--batch", 20, "--epochs", 3, "--accelerator", 500, "--prep", 300, "--cores", 4, "--storage-rate", "20MB/s",
         "--cache", "200MB"]


class SimulateTest(ProgramTest):
    def simulate(self, *arguments, **options):
        return self.report("simulate", *arguments, **options)

    def refused(self, *arguments, code=2):
        done = self.foreload("simulate", *arguments)
        self.assertEqual(done.returncode, code, done.out + done.err)
        return done.err

    def test_a_report_says_where_time_and_bytes_went(self):
        report = self.simulate(*SMALL, "--hosts", 2, "--system", "all")
        self.assertEqual(report["setup"]["hosts"], 2)
        names = [system["name"] for system in report["systems"]]
        for name in ("none", "naive", "page-cache", "lru", "minio", "partitioned", "locality", "nopfs", "lobster", "local", "partial",
                     "echo", "coordinated", "foreload"):
            self.assertIn(name, names)
        for system in report["systems"]:
            self.assertEqual(len(system["epochs"]), 3)
            for epoch in system["epochs"]:
                shares = epoch["utilisation"] + epoch["stall"]["fetch"] + epoch["stall"]["prep"] + epoch["sync"]
                self.assertAlmostEqual(shares, 1, places=5)
                self.assertEqual(epoch["sent_bytes"], epoch["bytes"]["peer"])

    def test_the_same_seed_gives_the_same_record(self):
        arguments = [*SMALL, "--hosts", 3, "--jitter", 0.1, "--faults", 3]
        first, second = (self.simulate(*arguments)["systems"] for _ in range(2))
        self.assertEqual(first, second)
        other = self.simulate(*arguments, "--seed", 1)["systems"]
        self.assertNotEqual(first[-1]["record_hash"], other[-1]["record_hash"])

    def test_faults_change_no_batch(self):
        calm = self.simulate(*SMALL, "--hosts", 4)["systems"]
        rough = self.simulate(*SMALL, "--hosts", 4, "--fault", "dead-host:2@2s-6s", "--fault", "slow-storage@1s-9s*5", "--faults", 6)["systems"]
        for before, after in zip(calm, rough):
            self.assertEqual([epoch["order_hash"] for epoch in before["epochs"]], [epoch["order_hash"] for epoch in after["epochs"]])
            self.assertGreater(after["seconds"], before["seconds"])

    def test_a_file_and_flags_describe_a_cluster(self):
        file = self.top / "mine.toml"
        file.write_text("[hosts]\nhosts = 4  # many\ncache = 1GB\n[storage]\nstorage_rate = \"2GB/s\"\n")
        setup = self.simulate("--cluster", file, "--cache", "2GB", "--samples", 1000, "--batch", 10)["setup"]
        self.assertEqual((setup["hosts"], setup["cache"], setup["storage-rate"]), (4, 2e9, 2e9))
        file.write_text("hosts = 4\nhost = 5\n")
        self.assertIn("mine.toml, line 2", self.refused("--cluster", file))

    def test_a_sweep_finds_its_knee(self):
        report = self.simulate(*SMALL, "--sweep", "storage-rate=5MB/s..640MB/s", "--system", "foreload")
        curve, = report["what_if"]
        rates = [point["samples_per_s"] for point in curve["points"]]
        self.assertEqual(rates, sorted(rates))
        self.assertLess(curve["knee"]["x"], 640e6)
        self.assertGreater(curve["knee"]["x"], 5e6)

    def test_prices_make_a_cost(self):
        file = self.top / "prices"
        file.write_text("currency = EUR\ncore_hour = 0.04\ngb_hour = 0.005\ngpu_hour = 2.5\n")
        report = self.simulate(*SMALL, "--prices", file, "--memory", "64GB", "--system", "none")
        system, = report["systems"]
        hour = 4 * 0.04 + 64 * 0.005 + 2.5
        self.assertAlmostEqual(system["epoch_cost"], hour * system["epochs"][-1]["seconds"] / 3600, places=6)

    def test_what_can_not_be_is_refused_in_words(self):
        self.assertIn("storage-rate", self.refused("--storage-rate", 0))
        self.assertIn("does not fit", self.refused("--memory", "1GB", "--cache", "2GB"))
        self.assertIn("global batch", self.refused("--samples", 10))
        self.assertIn("there is no preset", self.refused("--preset", "coordle", code=1))
        self.assertIn("there is no system", self.refused("--system", "foreloda", code=1))
        self.assertIn("sweep", self.refused("--sweep", "hosts=9..1"))
        self.assertIn("fault", self.refused("--fault", "dead-host:7@1s-2s"))
        self.assertIn("--budget", self.refused("--budget", "1GB"))
        self.assertIn("as it was published", self.refused("--preset", "echo", "--hosts", 3))
        self.refused("--faults", -1)

    def test_what_would_take_hours_asks_first(self):
        said = self.refused("--hosts", 4096, "--learners", 8, "--samples", "1000000000", "--epochs", 50, "--batch", 64)
        self.assertIn("--yes", said)
        self.assertIn("hours", said)

    def test_presets_are_listed_and_run(self):
        listed = {preset["name"]: preset for preset in self.simulate("--list")["presets"]}
        self.assertIn("coordl-misses", listed)
        for preset in listed.values():
            self.assertTrue(preset["source"] and preset["assumed"])
        preset, = self.simulate("--preset", "coordl-search")["presets"]
        for row in preset["rows"]:
            self.assertLess(abs(row["ratio"] - 1), 0.15, row)
            self.assertTrue(row["foreload_ahead_or_equal"], row)

    def test_decisions_are_those_of_the_runtime(self):
        """What stands where is the same; what memory keeps is, too, sample by sample, so bytes by origin agree."""
        chance = random.Random(5)
        folder = self.top / "set"
        for number in range(4000):
            path = folder / f"c{number % 3}" / f"{number:04}.bin"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(chance.randbytes(1000 + chance.randrange(7000)))
        chain = ["--chain", "ragged(u8, 8000, headerless=1)"]
        common = [folder, "--batch", 8, "--seed", 11, "--epochs", 3, *chain]
        for budget in ("12MiB", "16MiB", "200MiB"):
            run = self.report("run", *common, "--memory", budget, "--workers", 2, "--hash")
            simulated, = self.simulate(*common, "--budget", budget, "--cores", 2, "--system", "foreload")["systems"]
            for real, modelled in zip(run["epochs"], simulated["epochs"]):
                self.assertEqual(modelled["order_hash"], real["order_hash"])
                whole = sum(modelled["bytes"].values())
                # Who stands at the end of an epoch and at the beginning of the next is on its way already, and read once.
                self.assertLess(abs(modelled["bytes"]["source"] - real["bytes"]["source"]) / whole, 0.01, (budget, real, modelled))

    def test_the_page_is_one_file_with_every_system(self):
        page = self.top / "page.html"
        self.simulate(*SMALL, "--system", "all", "--report", page)
        text = page.read_text()
        self.assertIn("<!doctype html", text.lower())
        for name in ("foreload", "page-cache", "nopfs"):
            self.assertIn(name, text)
        self.simulate(*SMALL, "--sweep", "cores=1..8", "--report", page)
        self.assertIn("knee", page.read_text())

    @unittest.skipUnless(shutil.which(CHROMIUM), "there is no Chromium")
    def test_a_browser_renders_the_page(self):
        page = self.top / "page.html"
        self.simulate(*SMALL, "--sweep", "cores=1..8", "--system", "foreload", "--report", page)
        done = subprocess.run([CHROMIUM, "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", f"--user-data-dir={self.top / 'profile'}",
                               "--virtual-time-budget=2000", "--dump-dom", f"file://{page}"], capture_output=True, text=True, timeout=120,
                              env=self.environment)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("<svg", done.stdout)
        self.assertIn("knee", done.stdout)
        self.assertNotIn("violates the following Content Security Policy", done.stderr)

    def test_help_has_every_parameter(self):
        done = self.foreload("simulate", "--help")
        self.assertEqual(done.returncode, 0)
        for parameter in self.simulate(*SMALL)["setup"]:
            self.assertIn(f"--{parameter}", done.out)


if __name__ == "__main__":
    program.main()
