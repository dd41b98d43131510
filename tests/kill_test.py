#!/usr/bin/python3
"""kill -9 at any moment: the rest of the stream is what it would have been, and nothing is left behind (R2, R3).

    tests/kill_test.py FORELOAD [unittest arguments]
"""
import json
import os
import resource
import signal
import subprocess
import time

import ledger
import program
from program import INDEX_FILE, ProgramTest, amount, log_lines, seeded, wait_until

IMAGE_CHAIN = "random_resized_crop(32), random_flip, normalize"


class KillTest(ProgramTest):
    def kill_after(self, process, log, lines):
        """Kills when the log has so many lines; whether it was still alive."""
        wait_until(lambda: process.poll() is not None or len(log_lines(log)) >= lines)
        self.assert_nothing_foreign(process)
        process.send_signal(signal.SIGKILL)
        process.communicate()
        self.assertTrue(program.is_group_empty(process.pid), "something is left running")
        return process.returncode == -signal.SIGKILL

    def kill_one(self, arguments, lines, rate):
        """A run that is killed after about so many batches, its log and its state. On a busy machine the run may end
        before it can be killed: then it is killed earlier."""
        log, state = self.top / "killed.log", self.top / "state.json"
        for _ in range(6):
            for path in (log, state):
                path.unlink(missing_ok=True)
            process = self.start("run", *arguments, "--hash", "--log", log, "--state", state, "--accelerator", rate)
            if self.kill_after(process, log, lines):
                return log_lines(log), state
            self.assertEqual(process.returncode, 0)
            lines = lines // 2 + 1
        self.fail("the run always ended before it was killed")


class ResumeTest(KillTest):
    """R2."""

    def other_settings(self, chance):
        """All that may differ between the runs: threads, cache, engine."""
        settings = ["--workers", chance.choice((1, 2, 3, 8))]
        settings += chance.choice(([], ["--no-cache"], ["--memory", "24MB"], ["--direct"]))
        return settings + chance.choice(([], ["--io", "threads"]))

    def check(self, chance, arguments):
        whole, _ = self.logged(*arguments)
        per_epoch = len(whole) // 3
        for _ in range(amount(100) // 2):
            killed, state = self.kill_one([*arguments, *self.other_settings(chance)],
                                          chance.randrange(1, len(whole) - 5), rate=100 * len(whole[0]["ids"]))
            self.assertEqual(killed, whole[:len(killed)])
            position = json.loads(state.read_text())
            done = position["epoch"] * per_epoch + -(-position["position"] // whole[1]["positions"][0])
            self.assertLessEqual(done, len(killed), "a state is never ahead of what was consumed")
            settings = self.other_settings(chance)
            rest, _ = self.logged(*arguments, "--resume", state, *settings)
            self.assertEqual(rest, whole[done:], f"after {len(killed)} batches, resumed at {done} with {settings}")

    def test_samples_continue_bit_identically(self):
        folder = self.ledger("set", 310)
        self.check(seeded("resume_samples"),
                   [folder, "--batch", 7, "--epochs", 3, "--seed", 3, "--chain", ledger.chain()])

    def test_augmented_images_continue_bit_identically(self):
        folder = self.images(count=40)
        self.check(seeded("resume_images"), [folder, "--batch", 3, "--epochs", 3, "--chain", IMAGE_CHAIN])

    def test_a_chain_of_kills_delivers_everything_once(self):
        chance = seeded("chain_of_kills")
        folder = self.ledger("set", 300)
        arguments = [folder, "--batch", 6, "--epochs", 2, "--chain", ledger.chain()]
        whole, _ = self.logged(*arguments)
        got, state = {}, None
        for _ in range(100):
            log, resume = self.top / "part.log", ["--resume", state] if state else []
            log.unlink(missing_ok=True)
            process = self.start("run", *arguments, "--hash", "--log", log, "--state", self.top / "state.json",
                                 "--accelerator", 600, *resume)
            was_killed = self.kill_after(process, log, chance.randrange(1, 40))
            got.update({(line["epoch"], line["step"]): line for line in log_lines(log)})
            state = self.top / "state.json"
            if not was_killed:
                break
        self.assertFalse(was_killed, "no progress over a hundred starts")
        self.assertEqual(list(got.values()), whole)


class ElasticTest(KillTest):
    """R3: saved by one number of ranks, continued by another."""

    def test_the_remaining_global_order_is_the_same(self):
        chance = seeded("elastic")
        for turn in range(amount(50)):
            samples, before, after = chance.randrange(150, 400), chance.randrange(1, 9), chance.randrange(1, 9)
            batch, last = chance.randrange(8, 20), chance.choice(("auto", "ragged", "pad", "drop"))
            with self.subTest(samples=samples, before=before, after=after, batch=batch, last=last):
                folder = self.ledger(f"set{turn}", samples)
                shape = [folder, "--global-batch", batch, "--last", last, "--epochs", 2, "--chain", ledger.chain()]
                world = ["--world", before, "--rank", chance.randrange(before)]
                _, state = self.kill_one([*shape, *world], chance.randrange(1, 2 * (samples // batch) - 4),
                                         rate=100 * batch / before)
                self.check(samples, [*shape, "--world", after], state)

    def check(self, samples, arguments, state):
        """Positions from `samples` on are padding, which depends on the world."""
        ranks = range(arguments[-1])
        whole = [line for rank in ranks for line in self.logged(*arguments, "--rank", rank)[0]]
        rest = [line for rank in ranks for line in self.logged(*arguments, "--rank", rank, "--resume", state)[0]]
        saved = json.loads(state.read_text())
        start = saved["epoch"], saved["position"]
        expected, _ = ledger.positions_of(whole)
        ids, times = ledger.positions_of(rest)
        self.assertEqual({at: number for at, number in ids.items() if at[1] < samples},
                         {at: number for at, number in expected.items() if at >= start and at[1] < samples})
        self.assertEqual(set(times.values()), {1})
        contents = ledger.steps(whole)
        self.assertEqual(ledger.steps(rest), {step: contents[step] for step in ledger.steps(rest)})


class LeftoverTest(KillTest):
    """What a killed process leaves in the file system, and what the next start makes of it."""

    def hidden(self, folder):
        return sorted(path.name for path in folder.rglob(".*"))

    def assert_only_an_index(self, folder):
        names = self.hidden(folder)
        self.assertTrue(len(names) <= 1 and all(INDEX_FILE.fullmatch(name) for name in names), names)

    def test_killed_while_running(self):
        chance = seeded("killed_while_running")
        folder = self.ledger("set", 200)
        arguments = [folder, "--batch", 4, "--epochs", 2, "--chain", ledger.chain(), "--no-cache"]
        bucket = self.top / "bucket"
        before = set(self.tree()) | {"killed.log", "state.json", "bucket"}
        for _ in range(amount(50)):
            self.kill_one([*arguments, "--storage", f"50MB/s,bucket={bucket}"], chance.randrange(1, 60), rate=400)
            self.assertEqual(set(self.tree()) - before, set())
            self.assert_only_an_index(folder)
        started = time.monotonic()
        self.report("run", *arguments, "--storage", f"50MB/s,bucket={bucket}")
        self.assertLess(time.monotonic() - started, 3, "a next start works at once")

    def test_killed_while_indexing(self):
        chance = seeded("killed_while_indexing")
        folder = self.ledger("set", 1500)
        fingerprint = self.report("index", folder, "--rebuild")["dataset"]["fingerprint"]
        started = time.monotonic()
        self.report("index", folder, "--rebuild")
        usual = time.monotonic() - started
        for command in (["index", folder, "--rebuild"], ["run", folder, "--chain", ledger.chain()]):
            for _ in range(amount(50)):
                process = self.start(*command)
                time.sleep(chance.random() * 1.2 * usual)
                process.send_signal(signal.SIGKILL)
                process.communicate()
                self.assert_only_an_index(folder)
                report = self.report("index", folder)
                self.assertEqual(report["dataset"], {"uri": str(folder), "fingerprint": fingerprint, "samples": 1500,
                                                     "bytes": 1500 * ledger.SIZE})
                for path in folder.glob(".foreload*"):
                    path.unlink()

    def test_several_that_start_at_once_build_one_index(self):
        folder = self.ledger("set", 700)
        arguments = ["run", folder, "--batch", 50, "--chain", ledger.chain(), "--hash", "--json"]
        running = [self.start(*arguments) for _ in range(6)]
        outputs = [process.communicate(timeout=program.DEADLINE) for process in running]
        self.assertEqual([process.returncode for process in running], 6 * [0], outputs)
        self.assertEqual(len({json.loads(out)["epochs"][0]["content_hash"] for out, _ in outputs}), 1)
        self.assert_only_an_index(folder)

    def die_while_writing(self, *arguments):
        """Ends by SIGXFSZ inside the first write of more than 100 bytes: like kill -9 there, but never missed."""
        process = self.start(*arguments, stdout=subprocess.DEVNULL,
                             preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (100, 100)))
        process.communicate(timeout=program.DEADLINE)
        self.assertEqual(process.returncode, -signal.SIGXFSZ)

    def test_death_while_the_index_is_written_leaves_no_part_of_it(self):
        folder = self.ledger("set", 50)
        self.die_while_writing("index", folder)
        self.assertEqual(self.report("index", folder)["dataset"]["samples"], 50)
        self.assert_only_an_index(folder)

    def test_death_while_the_state_is_written_leaves_no_part_of_it(self):
        folder = self.ledger("set", 50)
        arguments = ["run", folder, "--batch", 5, "--chain", ledger.chain(), "--state", self.top / "state" / "job"]
        (self.top / "state").mkdir()
        self.report(*arguments)
        saved = (self.top / "state" / "job").read_text()
        self.die_while_writing(*arguments)
        self.assertEqual((self.top / "state" / "job").read_text(), saved)
        self.report(*arguments)
        self.assertEqual(os.listdir(self.top / "state"), ["job"])


if __name__ == "__main__":
    program.main()
