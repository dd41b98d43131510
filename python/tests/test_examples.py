"""Every example runs; losses are the same to the bit for any number of threads and across kill and resume."""
import difflib
import os
import re
import subprocess
import sys

import pytest
from conftest import DEADLINE, EXAMPLES, SOAK, finished

pytest.importorskip("torchvision")


def start(name, *arguments):
    return subprocess.Popen([sys.executable, "-B", EXAMPLES / name, *map(str, arguments)], stdout=subprocess.PIPE,
                            stderr=subprocess.PIPE, text=True)


def lines(name, *arguments):
    code, out, err = finished(start(name, *arguments))
    assert code == 0, err
    return out.splitlines()


def losses(text):
    """{(epoch, position): loss as hex} of train_resume.py."""
    return {(int(epoch), int(position)): loss for epoch, position, loss in
            re.findall(r"^epoch (\d+) position (\d+) loss (\S+)$", text, re.MULTILINE)}


def test_the_two_versions_differ_by_the_loader_only_and_learn(example_data):
    texts = [(EXAMPLES / f"train_{name}.py").read_text().splitlines() for name in ("torch", "foreload")]
    changed = [line for line in difflib.ndiff(*texts) if line[:2] in ("- ", "+ ")]
    words = ("import", "train_", "Image classification", "transforms.", "foreload.", "dataset =", "loader =")
    assert all(any(word in line for word in words) for line in changed), changed
    assert len(changed) <= 20
    assert len(lines("train_torch.py", example_data, 1)) == 1
    values = [float(line.split()[-1]) for line in lines("train_foreload.py", example_data, 6)]
    assert min(values[-2:]) < values[0]


def test_losses_are_the_same_for_any_number_of_threads_and_across_kills(example_data, tmp_path):
    curves = [losses("\n".join(lines("train_resume.py", example_data, tmp_path / f"threads{threads}", 2, threads)))
              for threads in (1, 2, 4)]
    assert len(curves[0]) == 30
    assert curves[0] == curves[1] == curves[2]
    for kill in range(10 if SOAK else 1):
        checkpoint = tmp_path / f"killed{kill}"
        process = start("train_resume.py", example_data, checkpoint, 2)
        for _ in range(5 + 7 * (kill % 4)):
            process.stdout.readline()
        process.kill()
        seen = losses(process.communicate(timeout=DEADLINE)[0])
        rest = losses("\n".join(lines("train_resume.py", example_data, checkpoint, 2)))
        assert rest and {**curves[0], **seen, **rest} == curves[0]
        assert max(rest) == max(curves[0])


def test_two_ranks_see_each_sample_once(example_data, tmp_path):
    # Redirects by number, because those of torch 1.13 have no default under Python 3.11.
    torchrun = [sys.executable, "-B", "-m", "torch.distributed.run", "--nproc_per_node", "2", "--redirects", "2", "--tee", "2",
                "--log_dir", tmp_path, "--master_addr", "127.0.0.1",
                "--master_port", str(20000 + os.getpid() % 20000), EXAMPLES / "train_ddp.py", example_data, "2"]
    done = subprocess.run(torchrun, capture_output=True, text=True, timeout=DEADLINE)
    assert done.returncode == 0, done.stderr
    found = re.findall(r"epoch (\d) loss \S+ batches per rank \[15\] samples 240 different 240", done.stdout)
    assert found == ["0", "1"], done.stdout


def test_without_torch(example_data):
    out = lines("numpy_only.py", example_data)
    assert out[-1].startswith("mean colour [")
    assert "fetch stall" in out[0]
