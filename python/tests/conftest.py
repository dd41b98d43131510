"""What the tests share: generated data, the command to compare with, and scripts in processes of their own.

Run by ctest with PYTHONPATH and FORELOAD_CLI set. FORELOAD_SOAK=1 runs the long ones in full length.
"""
import json
import os
import pathlib
import subprocess
import sys
import textwrap
import uuid

import pytest

CLI = os.environ.get("FORELOAD_CLI", "")
SOAK = os.environ.get("FORELOAD_SOAK") == "1"
EXAMPLES = pathlib.Path(__file__).resolve().parents[2] / "examples"
DEADLINE = 120  # seconds; far more than anything needs, so that a hang is a failure
MEMORY = "256MiB"
LAUNCHED = ("RANK", "WORLD_SIZE", "SLURM_PROCID", "SLURM_NTASKS", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "PMI_RANK",
            "PMI_SIZE")

for name in LAUNCHED:  # the tests themselves are no learner of anything
    os.environ.pop(name, None)
os.environ["FORELOAD_PROGRAM"] = CLI  # the agent that a loader with peers starts
os.environ["OMP_NUM_THREADS"] = "1"  # the machine's few cores are for the loaders


@pytest.fixture(scope="session")
def images(tmp_path_factory):
    """120 JPEGs in four classes."""
    folder = tmp_path_factory.mktemp("images") / "train"
    subprocess.run([CLI, "generate", folder, "--images", "120", "--classes", "4"], check=True, timeout=DEADLINE,
                   stdout=subprocess.DEVNULL)
    return folder


@pytest.fixture(scope="session")
def arrays(tmp_path_factory):
    """100 headerless samples of 64 bytes; byte 0 … 7 of sample i are i."""
    folder = tmp_path_factory.mktemp("arrays") / "train"
    for number in range(100):
        path = folder / f"c{number // 25}" / f"{number:03}.bin"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(number.to_bytes(8, "little") + bytes(range(56)))
    return folder


@pytest.fixture(scope="session")
def example_data(tmp_path_factory):
    sys.path.insert(0, str(EXAMPLES))
    import data

    return data.generated(str(tmp_path_factory.mktemp("examples") / "data"))


@pytest.fixture
def host():
    """A name that no other test has."""
    return f"test-{uuid.uuid4().hex[:16]}"


ARRAY = "array(u8, 64, headerless=1)"


def report(*arguments):
    """`foreload run … --json`."""
    done = subprocess.run([CLI, "run", *map(str, arguments), "--json"], check=True, timeout=DEADLINE, capture_output=True, text=True)
    return json.loads(done.stdout)


def script(text, *arguments, **options):
    """A Python program in a process of its own, started."""
    options.setdefault("stdout", subprocess.PIPE)
    options.setdefault("stderr", subprocess.PIPE)
    return subprocess.Popen([sys.executable, "-B", "-c", textwrap.dedent(text), *map(str, arguments)], text=True, **options)


def finished(process, seconds=DEADLINE):
    """(exit code, stdout, stderr); a hang is a failure."""
    try:
        out, err = process.communicate(timeout=seconds)
    except subprocess.TimeoutExpired:
        process.kill()
        process.communicate()
        pytest.fail(f"does not end within {seconds} s")
    return process.returncode, out, err


def run_script(text, *arguments, **options):
    code, out, err = finished(script(text, *arguments, **options))
    assert code == 0, err
    return out
