"""What the tests of whole programs share: starting foreload, watching it, and judging what it leaves behind."""
import atexit
import contextlib
import functools
import hashlib
import json
import os
import pathlib
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest

import ledger

FORELOAD = ""
SOAK = os.environ.get("FORELOAD_SOAK") == "1"
DEADLINE = 60  # seconds; far more than any call needs, so that a hang is a failure and not a hang
INDEX_FILE = re.compile(r"\.foreload-index-[0-9a-f]{16}")


def amount(full):
    """How often: `full` when soaking, otherwise a tenth, and at least five."""
    return full if SOAK else max(5, full // 10)


def seeded(name):
    """A source of chance that can be repeated."""
    seed = int(os.environ.get("FORELOAD_SEED") or random.SystemRandom().randrange(1 << 32))
    print(f"{name}: FORELOAD_SEED={seed} repeats this", file=sys.stderr, flush=True)
    return random.Random(f"{seed} {name}")


def main():
    global FORELOAD
    if len(sys.argv) < 2 or sys.argv[1].startswith("-"):
        sys.exit(f"usage: {sys.argv[0]} FORELOAD [unittest arguments]")
    FORELOAD = os.path.abspath(sys.argv.pop(1))
    # The test's module is __main__; this one was imported by it, so both see the same FORELOAD.
    unittest.main(module="__main__", verbosity=2 if SOAK else 1)


def start(*arguments, before=(), **options):
    """A foreload in a session of its own, so that whatever it might start can be found; `before`: words of a program
    that becomes it."""
    options.setdefault("stdout", subprocess.PIPE)
    options.setdefault("stderr", subprocess.PIPE)
    return subprocess.Popen([*before, FORELOAD, *map(str, arguments)], text=True, start_new_session=True, **options)


def is_group_empty(group):
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return True
    return False


def wait_until(condition, seconds=DEADLINE):
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if condition():
            return True
        time.sleep(0.001)
    return False


@functools.lru_cache(maxsize=None)
def generated(count):
    folder = tempfile.mkdtemp(prefix="foreload-test-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    subprocess.run([FORELOAD, "generate", folder, "--images", str(count), "--classes", "4"], check=True,
                   timeout=DEADLINE, stdout=subprocess.DEVNULL)
    return folder


def log_lines(path):
    """The complete lines of a --log file."""
    try:
        text = pathlib.Path(path).read_text()
    except FileNotFoundError:
        return []
    return [json.loads(line) for line in text[:text.rfind("\n") + 1].splitlines()]


def foreign_files(pid, top):
    """What a running process has open or mapped in the places where things are left behind, except below `top`."""
    found = set()
    with contextlib.suppress(FileNotFoundError, ProcessLookupError, PermissionError):
        for number in os.listdir(f"/proc/{pid}/fd"):
            with contextlib.suppress(FileNotFoundError):
                found.add(os.readlink(f"/proc/{pid}/fd/{number}"))
        maps = pathlib.Path(f"/proc/{pid}/maps").read_text()
        found |= {line.split(None, 5)[5] for line in maps.splitlines() if len(line.split(None, 5)) == 6}
    places = ("/dev/shm/", "/tmp/", "/var/tmp/", "/run/")
    ours = (str(top), os.path.dirname(FORELOAD))
    return sorted(path for path in found if path.startswith(places) and not path.startswith(ours))


@contextlib.contextmanager
def memory_cgroup(limit):
    """A new group with that limit, v1 or v2, or None."""
    name = f"foreload-test-{os.getpid()}"
    for parent, file in ((pathlib.Path("/sys/fs/cgroup/memory"), "memory.limit_in_bytes"),
                         (pathlib.Path("/sys/fs/cgroup"), "memory.max")):
        group = parent / name
        try:
            group.mkdir()
        except OSError:
            continue
        try:
            (group / file).write_text(str(limit))
            swap = group / "memory.swap.max"
            if swap.exists():
                swap.write_text("0")
            yield group
        except (FileNotFoundError, PermissionError):
            continue
        finally:
            wait_until(lambda: not (group / "cgroup.procs").read_text(), 5)
            group.rmdir()
        return
    yield None


class ProgramTest(unittest.TestCase):
    def setUp(self):
        self.top = pathlib.Path(tempfile.mkdtemp(prefix="foreload-test-"))
        self.addCleanup(shutil.rmtree, self.top, ignore_errors=True)
        home = self.top / "home"
        home.mkdir()
        self.environment = {**os.environ, "HOME": str(home), "XDG_CACHE_HOME": str(home / "cache"), "TMPDIR": str(home)}

    def start(self, *arguments, **options):
        process = start(*arguments, env=self.environment, **options)
        self.addCleanup(self.end, process)
        return process

    @staticmethod
    def end(process):
        if process.poll() is None:
            process.kill()
        process.communicate()

    def foreload(self, *arguments, **options):
        """Runs it to its end; everything that it started has to be gone then."""
        process = self.start(*arguments, **options)
        try:
            process.out, process.err = process.communicate(timeout=DEADLINE)
        except subprocess.TimeoutExpired:
            self.fail(f"does not end: {' '.join(map(str, arguments))}")
        self.assertTrue(is_group_empty(process.pid), "something is left running")
        return process

    def foreload_as(self, user, *arguments, preexec_fn=None):
        """The same as another user, who may read and write the test's folder. REQUIRES: root."""
        for path in (self.top, *self.top.rglob("*")):
            os.chown(path, user, user, follow_symlinks=False)

        def become():
            if preexec_fn:
                preexec_fn()
            os.setgroups([])
            os.setgid(user)
            os.setuid(user)

        try:
            return self.foreload(*arguments, preexec_fn=become)
        except PermissionError:
            self.skipTest(f"{FORELOAD} is out of reach for other users")

    def report(self, *arguments, **options):
        done = self.foreload(*arguments, "--json", **options)
        self.assertEqual(done.returncode, 0, done.err)
        return json.loads(done.out)

    def logged(self, *arguments, **options):
        """The log of a run with hashes, and its report."""
        log = self.top / f"log{time.monotonic_ns()}"
        report = self.report("run", *arguments, "--hash", "--log", log, **options)
        return log_lines(log), report

    def ledger(self, name, samples, size=ledger.SIZE):
        return ledger.write_folder(self.top / name, samples, size)

    def images(self, name="images", count=40):
        """A copy of generated images; they are made once per process, because that takes long."""
        return pathlib.Path(shutil.copytree(generated(count), self.top / name))

    def assert_fails(self, done, *words, codes=(1, 2)):
        """One line that names the thing, and the exit code of a failure: no signal, no check of ours."""
        self.assertIn(done.returncode, codes, f"{done.args[1:]}: {done.err}")
        errors = [line for line in done.err.splitlines() if not line.startswith("foreload: warning: ")]
        self.assertEqual(len(errors), 1, f"{done.args[1:]}: {done.err}")
        self.assertTrue(errors[0].startswith("foreload: "), errors[0])
        for word in map(str, words):
            self.assertIn(word, errors[0], f"{done.args[1:]}")

    def assert_degrades_or_refuses(self, done, hashes):
        """It either works, and then rightly, or refuses with numbers and advice; a signal is neither."""
        self.assertGreaterEqual(done.returncode, 0, f"ended by a signal: {done.err}")
        if done.returncode == 0:
            report = json.loads(done.out)
            self.assertEqual([epoch["content_hash"] for epoch in report["epochs"]], hashes)
            self.assertEqual(report["quarantine"], [])
            return
        self.assert_fails(done, codes=(1,))
        self.assertEqual(json.loads(done.out)["error"]["code"], "NoMemory", done.err)
        self.assertRegex(done.err, r"\d")
        self.assertRegex(done.err, "lower|raise|fewer|smaller")

    def assert_nothing_foreign(self, process):
        self.assertEqual(foreign_files(process.pid, self.top), [])

    def tree(self):
        """Names and contents of everything below the test's folder, except indexes."""
        found = {}
        for path in self.top.rglob("*"):
            if INDEX_FILE.fullmatch(path.name):
                continue
            name = str(path.relative_to(self.top))
            if path.is_symlink() or not path.is_file():
                found[name] = os.lstat(path).st_mode
            else:
                found[name] = hashlib.sha256(path.read_bytes()).hexdigest()
        return found


class HostProgramTest(ProgramTest):
    """Members of a host that no other test has."""

    def setUp(self):
        super().setUp()
        self.host = f"test-{os.getpid()}-{random.randrange(10**9)}"

    def batches(self, process):
        """That this learner of the host has taken so far."""
        done = self.foreload("top", "--host", self.host, "--json")
        learners = json.loads(done.out)["learners"] if done.returncode == 0 else []
        return sum(learner["batches"] for learner in learners if learner["process"] == process.pid)

    def learner(self, *arguments):
        """A run that goes on and on, and has begun."""
        process = self.start("run", *arguments, "--epochs", 10**7, "--host", self.host, "--json")
        self.assertTrue(wait_until(lambda: self.batches(process) > 0 or process.poll() is not None))
        self.assertIsNone(process.poll())
        return process

    def assert_goes_on(self, process):
        before = self.batches(process)
        self.assertTrue(wait_until(lambda: self.batches(process) > before + 50), "it stands still")


class RefusalTest(ProgramTest):
    def refused(self, *arguments, words=(), codes=(1, 2)):
        """Runs it as text and with --json; both have to fail alike and to change no file."""
        before = self.tree()
        done = self.foreload(*arguments)
        self.assert_fails(done, *words, codes=codes)
        again = self.foreload(*arguments, "--json")
        self.assertEqual(again.returncode, done.returncode)
        report = json.loads(again.out)
        self.assertEqual((report["schema"], report["command"]), (1, arguments[0]))
        self.assertEqual(f"foreload: {report['error']['message']}", again.err.splitlines()[-1])
        self.assertEqual(self.tree(), before)
        report["error"]["warnings"] = done.err
        return report["error"]

    def warned(self, *arguments, words=()):
        """Runs it: it succeeds with one warning that has all the words."""
        done = self.foreload(*arguments)
        self.assertEqual(done.returncode, 0, done.err)
        warnings = done.err.splitlines()
        fitting = [line for line in warnings if all(str(word) in line for word in words)]
        self.assertEqual(len(fitting), 1, f"{words} in {warnings}")
        return done


def stop_code(number):
    return 128 + number
