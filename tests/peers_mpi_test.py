"""Peers over MPI, in real jobs of mpirun on this machine.

    tests/peers_mpi_test.py PEERS_MPI_TEST [unittest arguments]

The program is a GoogleTest whose processes make all tests together.
"""
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import unittest

PROGRAM = ""
MPIRUN = ["mpirun", "--allow-run-as-root", "--oversubscribe", "--bind-to", "none"]
# What a network without remote reads of memory comes down to: sockets, and gets that the other side has to answer.
SOCKETS = ["--mca", "osc", "pt2pt", "--mca", "btl", "tcp,self", "--mca", "btl_tcp_if_include", "lo", "-x", "FORELOAD_TEST_SOCKETS=1"]
DEADLINE = 300  # seconds; far more than a job needs
PATIENCE = 60


def shared_memory():
    return {path.name for path in pathlib.Path("/dev/shm").iterdir()}


def is_session_empty(session):
    """No process but zombies of init is left of it."""
    for path in pathlib.Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = path.read_text().rpartition(")")[2].split()
        except (FileNotFoundError, ProcessLookupError):
            continue
        if int(fields[3]) == session and fields[0] != "Z":
            return False
    return True


def wait_until(condition, seconds):
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if condition():
            return True
        time.sleep(0.05)
    return condition()


class Job:
    """A job in a session and a folder of its own; nothing of it outlives the block."""

    def __init__(self, hosts, *arguments, options=()):
        self.command = [*MPIRUN, "-n", str(hosts), *options, PROGRAM, *arguments]

    def __enter__(self):
        self.folder = tempfile.mkdtemp(prefix="foreload-mpi-")
        self.process = subprocess.Popen(self.command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                                        start_new_session=True, env={**os.environ, "TMPDIR": self.folder})
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.process.terminate()  # and mpirun ends what it has started
        self.process.stdout.close()
        self.process.wait()
        shutil.rmtree(self.folder, ignore_errors=True)


class PeersMpiTest(unittest.TestCase):
    def passes(self, hosts, *arguments, options=()):
        with Job(hosts, *arguments, options=options) as job:
            output, _ = job.process.communicate(timeout=DEADLINE)
            self.assertEqual(job.process.returncode, 0, output)
            self.assertEqual(output.count("[  PASSED  ]"), hosts, output)
            for line in re.findall(r"host .* without work", output):
                print(line, file=sys.stderr)

    def test_two_hosts(self):
        self.passes(2)

    def test_four_hosts(self):
        self.passes(4)

    def test_two_hosts_over_sockets(self):
        self.passes(2, options=SOCKETS)

    def test_one_host_has_nobody_to_read_from(self):
        self.passes(1, "--gtest_filter=*AHostAlone*:*AWakeEnds*:*WithoutWork*")

    def test_a_killed_host_ends_the_job_and_leaves_nothing(self):
        before = shared_memory()
        with Job(4, "--hold") as job:
            pids = []
            while len(pids) < 4:
                line = job.process.stdout.readline()
                self.assertTrue(line, "the job ended by itself")
                pids += [int(pid) for pid in re.findall(r"^pid (\d+)$", line)]
            start = time.monotonic()
            os.kill(pids[2], signal.SIGKILL)
            # Open MPI prints a line for each of its attempts to read from the dead, and must not wait for a reader.
            reader = threading.Thread(target=job.process.stdout.read)
            reader.start()
            # Ten seconds are enough, but not on a machine that is given to others.
            self.assertTrue(wait_until(lambda: job.process.poll() is not None, PATIENCE), "mpirun goes on")
            self.assertNotEqual(job.process.returncode, 0)
            self.assertTrue(wait_until(lambda: is_session_empty(job.process.pid), PATIENCE), "processes are left")
            self.assertTrue(wait_until(lambda: not (shared_memory() - before), PATIENCE), shared_memory() - before)
            reader.join()
            print(f"nothing is left after {time.monotonic() - start:.1f} s", file=sys.stderr)


def main():
    global PROGRAM
    if len(sys.argv) < 2 or sys.argv[1].startswith("-"):
        sys.exit(f"usage: {sys.argv[0]} PEERS_MPI_TEST [unittest arguments]")
    PROGRAM = os.path.abspath(sys.argv.pop(1))
    if shutil.which("mpirun") is None:
        print("skipped: there is no mpirun (openmpi-bin)", file=sys.stderr)
        sys.exit(77)
    unittest.main()


if __name__ == "__main__":
    main()
