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
    """A job in a session and a folder of its own; nothing of it outlives the block. What it says goes to a file: Open MPI
    prints a line for each of its attempts to read from the dead, and must not wait for a reader."""

    def __init__(self, hosts, *arguments, options=()):
        self.command = [*MPIRUN, "-n", str(hosts), *options, PROGRAM, *arguments]

    def __enter__(self):
        self.folder = tempfile.mkdtemp(prefix="foreload-mpi-")
        self.said = pathlib.Path(self.folder, "said")
        with self.said.open("wb") as said:
            self.process = subprocess.Popen(self.command, stdin=subprocess.DEVNULL, stdout=said, stderr=subprocess.STDOUT,
                                            cwd=self.folder, start_new_session=True,
                                            env={**os.environ, "TMPDIR": self.folder})
        return self

    def output(self):
        return self.said.read_text(errors="replace")

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.process.terminate()  # and mpirun ends what it has started
        try:
            self.process.wait(timeout=PATIENCE)
        except subprocess.TimeoutExpired:
            self.process.kill()  # without it no process of the job goes on
            self.process.wait()
        shutil.rmtree(self.folder, ignore_errors=True)


class PeersMpiTest(unittest.TestCase):
    def passes(self, hosts, *arguments, options=()):
        with Job(hosts, *arguments, options=options) as job:
            job.process.wait(timeout=DEADLINE)
            output = job.output()
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

    def test_notes_to_a_stopped_host_do_not_pile_up(self):
        small = ["--mca", "btl_tcp_sndbuf", "4096", "--mca", "btl_tcp_rcvbuf", "4096",
                 "-x", "FORELOAD_TEST_SMALL_SOCKETS=1"]
        self.passes(2, "--gtest_filter=*DoNotPileUp*", options=[*SOCKETS, *small])

    def test_one_host_has_nobody_to_read_from(self):
        self.passes(1, "--gtest_filter=*AHostAlone*:*AWakeEnds*:*WithoutWork*")

    def test_a_killed_host_ends_the_job_and_leaves_nothing(self):
        before = shared_memory()
        with Job(4, "--hold") as job:
            # Not by what it says: mpirun may pass that on late.
            held = lambda: [int(path.name) for path in pathlib.Path(job.folder).glob("pid/*")]
            self.assertTrue(wait_until(lambda: len(held()) == 4, PATIENCE), job.output())
            pids = held()
            start = time.monotonic()
            os.kill(pids[2], signal.SIGKILL)
            # Ten seconds are enough, but not on a machine that is given to others.
            self.assertTrue(wait_until(lambda: job.process.poll() is not None, PATIENCE), job.output()[-2000:])
            self.assertNotEqual(job.process.returncode, 0)
            self.assertTrue(wait_until(lambda: is_session_empty(job.process.pid), PATIENCE), "processes are left")
            self.assertTrue(wait_until(lambda: not (shared_memory() - before), PATIENCE), shared_memory() - before)
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
