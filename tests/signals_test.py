#!/usr/bin/python3
"""Ctrl-C and SIGTERM at any moment end every command within five seconds, with the right exit code (R18).

    tests/signals_test.py FORELOAD [unittest arguments]
"""
import json
import os
import pathlib
import re
import signal
import subprocess
import time

import ledger
import program
from program import ProgramTest, amount, log_lines, seeded, stop_code, wait_until

LIMIT = 5  # seconds


def is_caught(pid, number):
    """Whether the process has come so far that it handles the signal: a busy machine may take long to load it."""
    try:
        status = pathlib.Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return False
    return bool(int(re.search(r"^SigCgt:\s*(\w+)", status, re.M)[1], 16) >> (number - 1) & 1)


class SignalTest(ProgramTest):
    def stop(self, process, number, wait):
        """Sends the signal after `wait` seconds, or when `wait` says so. Checks the end; returns standard error."""
        if callable(wait):
            self.assertTrue(wait_until(lambda: wait() or process.poll() is not None, 30), "never came so far")
        else:
            time.sleep(wait)
        if wait != 0:
            wait_until(lambda: is_caught(process.pid, number) or process.poll() is not None, 10)
        ended_before = process.poll() is not None
        sent = time.monotonic()
        process.send_signal(number)
        try:
            process.out, process.err = process.communicate(timeout=LIMIT)
        except subprocess.TimeoutExpired:
            self.fail(f"{number.name} is not obeyed within {LIMIT} s")
        self.assertLess(time.monotonic() - sent, LIMIT)
        self.assertFalse(ended_before, f"ended by itself: {process.returncode} {process.err}")
        self.assertTrue(program.is_group_empty(process.pid), "something is left running")
        # In the first milliseconds, before main, the signal itself ends the process: a shell shows the same code.
        codes = {stop_code(number)} | ({-number} if wait == 0 else set())
        self.assertIn(process.returncode, codes, process.err)
        self.assertLessEqual(len(process.err.splitlines()), 1, process.err)
        self.assertNotIn("defect", process.err)
        return process

    def check(self, *arguments, times=1, longest=0.3):
        chance = seeded(self.id().rsplit(".", 1)[1])
        for turn in range(times):
            for number in (signal.SIGINT, signal.SIGTERM):
                wait = chance.random() * longest + 0.03
                with self.subTest(number=number.name, wait=wait, arguments=arguments):
                    self.stop(self.start(*arguments), number, wait)


class RunTest(SignalTest):
    def setUp(self):
        super().setUp()
        self.folder = self.ledger("set", 200)
        self.base = ["run", self.folder, "--batch", 8, "--chain", ledger.chain()]

    def test_while_running(self):
        self.check(*self.base, "--epochs", 10**7, times=amount(50))

    def test_while_waiting_for_slow_storage(self):
        for extra in ([], ["--io", "threads"], ["--no-cache"], ["--direct"], ["--workers", 8]):
            self.check(*self.base, "--storage", "1kB/s", *extra, times=1 if not program.SOAK else 10)

    def test_while_one_read_takes_minutes(self):
        self.check(*self.base, "--storage", "1B/s,1min", "--json")

    def test_while_the_accelerator_computes_a_long_step(self):
        self.check(*self.base, "--accelerator", 0.5)

    def test_while_images_are_decoded(self):
        self.check("run", self.images(), "--batch", 8, "--epochs", 10**6, "--no-cache")

    def test_in_the_first_milliseconds(self):
        for turn in range(amount(50)):
            for number in (signal.SIGINT, signal.SIGTERM):
                self.stop(self.start(*self.base, "--epochs", 10**7), number, 0)

    def test_a_pipe_without_a_reader_is_refused_and_not_waited_for(self):
        os.mkfifo(self.top / "pipe")
        for flag in ("--log", "--record"):
            process = self.start(*self.base, flag, self.top / "pipe")
            _, errors = process.communicate(timeout=LIMIT)
            self.assertEqual(process.returncode, 2)
            self.assertIn("it is a pipe", errors)

    def test_a_signal_that_was_ignored_stays_ignored(self):
        process = self.start(*self.base, "--epochs", 10, "--accelerator", 5000,
                             preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_IGN))
        time.sleep(0.1)
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=program.DEADLINE)
        self.assertEqual(process.returncode, 0, errors)

    def test_the_state_is_that_of_the_last_batch(self):
        arguments = [*self.base[1:], "--epochs", 3]
        whole, _ = self.logged(*arguments)
        log, state = self.top / "stopped.log", self.top / "state"
        for number in (signal.SIGINT, signal.SIGTERM):
            log.unlink(missing_ok=True)
            process = self.start(*self.base, "--epochs", 3, "--hash", "--log", log, "--state", state,
                                 "--accelerator", 800)
            self.stop(process, number, lambda: len(log_lines(log)) >= 20)
            before = log_lines(log)
            rest, _ = self.logged(*arguments, "--resume", state)
            self.assertEqual(before + rest, whole)

    def test_json_says_that_it_was_stopped(self):
        process = self.stop(self.start(*self.base, "--storage", "1kB/s", "--json"), signal.SIGTERM, 0.2)
        self.assertEqual(json.loads(process.out)["error"]["code"], "Cancelled")


class OtherCommandsTest(SignalTest):
    def test_generate(self):
        self.check("generate", self.top / "new", "--images", 10**6)

    def test_bench(self):
        self.check("bench", self.images(), "--batch", 8, "--rounds", 100, longest=2)

    def test_bench_while_waiting_for_slow_storage(self):
        folder = self.ledger("set", 100)
        self.check("bench", folder, "--batch", 8, "--chain", ledger.chain(), "--storage", "1B/s")

    def test_indexing_is_given_up_and_not_finished_first(self):
        folder = self.ledger("set", 6000)
        for command in (["index", folder], ["run", folder, "--chain", ledger.chain(), "--epochs", 10**6]):
            process = self.start(*command)
            # A stopped process can not finish: so the signal comes while it indexes, whatever the machine is doing.
            time.sleep(0.01)
            process.send_signal(signal.SIGSTOP)
            if list(folder.glob(".foreload*")):
                self.skipTest("indexing was too fast to be interrupted")
            process.send_signal(signal.SIGTERM)
            process.send_signal(signal.SIGCONT)
            process.communicate(timeout=LIMIT)
            self.assertIn(process.returncode, (143, -signal.SIGTERM))
            self.assertEqual(list(folder.glob(".foreload*")), [], command[0])


class ClosedStreamsTest(ProgramTest):
    """Who reads the output may go away."""

    def setUp(self):
        super().setUp()
        self.base = ["run", self.ledger("set", 30), "--batch", 8, "--chain", ledger.chain()]

    def code(self, *arguments, **options):
        process = self.start(*arguments, **options)
        process.communicate(timeout=program.DEADLINE)
        return process.returncode

    def test_standard_output(self):
        for extra in ([], ["--json"]):
            with open("/dev/full", "w") as full:
                self.assertEqual(self.code(*self.base, *extra, stdout=full), 1)
            self.assertEqual(self.code(*self.base, *extra, preexec_fn=lambda: os.close(1)), 1)
            reading, writing = os.pipe()
            os.close(reading)
            self.assertIn(self.code(*self.base, *extra, stdout=writing), (1, -signal.SIGPIPE))
            os.close(writing)

    def test_standard_error(self):
        for arguments, code in ((["run", self.top / "missing"], 1), (["run", "--nonsense"], 2), (self.base, 0)):
            with open("/dev/full", "w") as full:
                self.assertEqual(self.code(*arguments, stderr=full), code)
            self.assertEqual(self.code(*arguments, preexec_fn=lambda: os.close(2)), code)

    def test_help_that_can_not_be_written_is_a_failure(self):
        for arguments in (["--help"], ["--version"], ["run", "--help"]):
            with open("/dev/full", "w") as full:
                self.assertEqual(self.code(*arguments, stdout=full), 1)

    def test_a_closed_stream_never_becomes_a_file_of_ours(self):
        log = self.top / "log"
        self.code(*self.base, "--log", log, "--hash", preexec_fn=lambda: os.closerange(0, 3))
        for line in log.read_text().splitlines():
            json.loads(line)


if __name__ == "__main__":
    program.main()
