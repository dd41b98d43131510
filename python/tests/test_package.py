"""The package as it is installed and typed."""
import ast
import os
import pathlib
import subprocess
import sys

import foreload
import pytest
from conftest import ARRAY, CLI, DEADLINE, SOAK
from foreload import _foreload

FOLDER = pathlib.Path(foreload.__file__).parent
TOP = pathlib.Path(__file__).resolve().parents[2]


def public(thing):
    return {name for name in dir(thing) if not name.startswith("_")}


def test_the_stub_names_what_the_extension_has():
    stub = ast.parse((FOLDER / "_foreload.pyi").read_text())
    classes = {node.name: node for node in stub.body if isinstance(node, ast.ClassDef)}
    functions = {node.name for node in stub.body if isinstance(node, ast.FunctionDef)}
    assert {"version", *classes, *functions} == public(_foreload)
    for name, node in classes.items():
        methods = {item.name for item in node.body if isinstance(item, ast.FunctionDef) and not item.name.startswith("_")}
        assert methods == public(getattr(_foreload, name)), name


def test_every_public_name_exists_and_is_listed():
    assert (FOLDER / "py.typed").exists()
    assert all(hasattr(foreload, name) for name in foreload.__all__)
    classes = {name for name, value in vars(foreload).items() if isinstance(value, type)}
    assert classes <= set(foreload.__all__)


def test_everything_public_says_what_it_is():
    for name in foreload.__all__:
        thing = getattr(foreload, name)
        assert len((vars(thing).get("__doc__") if isinstance(thing, type) else thing.__doc__) or "") > 20, name
        for member, value in (vars(thing).items() if isinstance(thing, type) else ()):
            if not member.startswith("_") and callable(value):
                assert value.__doc__, f"{name}.{member}"


def test_the_documents_name_every_exception_and_transform():
    text = (TOP / "docs" / "python.md").read_text()
    missing = [name for name in foreload.__all__ if name not in text and name not in ("Transform", "DatasetView")]
    assert missing == []


def test_an_installed_package_works_without_the_build(tmp_path):
    build = pathlib.Path(CLI).parent
    subprocess.run(["cmake", "--install", build, "--component", "python", "--prefix", tmp_path], check=True, stdout=subprocess.DEVNULL)
    place, = tmp_path.glob("lib/python3*/*-packages")
    assert not list(tmp_path.glob("bin/*")) and not any(path.is_symlink() for path in place.rglob("*"))
    done = subprocess.run([sys.executable, "-c", "import foreload; print(foreload.__file__, foreload.__version__)"],
                          env={**os.environ, "PYTHONPATH": str(place)}, cwd=tmp_path, capture_output=True, text=True)
    assert done.stdout.startswith(str(place)), done.stderr


def test_an_installed_package_finds_the_agent_that_was_installed_with_it(arrays, tmp_path):
    build = pathlib.Path(CLI).parent
    for component in (["--component", "python"], []):
        subprocess.run(["cmake", "--install", build, *component, "--prefix", tmp_path], check=True, stdout=subprocess.DEVNULL)
    place, = tmp_path.glob("lib/python3*/*-packages")
    program = tmp_path / "bin" / "foreload"
    text = """
import socket, sys, foreload
with socket.create_server(("127.0.0.1", 0)) as server: port = server.getsockname()[1]
try:
    with foreload.DataLoader(sys.argv[1], transform=sys.argv[2], memory="64MiB", host=sys.argv[3], peers=[f"127.0.0.1:{port}"],
                             output="numpy") as loader:
        print(loader.stats()["hosts"])
except foreload.ConfigError as error:
    print(error)
"""
    environment = {name: value for name, value in os.environ.items() if name != "FORELOAD_PROGRAM"}
    environment.update(PYTHONPATH=str(place), PATH="/nowhere")
    run = [sys.executable, "-B", "-c", text, arrays, ARRAY, f"test-{os.getpid()}"]
    done = subprocess.run(run, env=environment, capture_output=True, text=True, timeout=DEADLINE)
    assert done.stdout == "1\n" or f"{program} agent" in done.stdout and "has no transport" in done.stdout, done.stderr
    program.unlink()
    done = subprocess.run(run, env=environment, capture_output=True, text=True, timeout=DEADLINE)
    assert "peers need an agent" in done.stdout and "PATH" in done.stdout, done.stderr



@pytest.mark.skipif(not SOAK, reason="compiles everything: FORELOAD_SOAK=1")
def test_pip_install(tmp_path):
    subprocess.run([sys.executable, "-m", "pip", "install", "--no-build-isolation", "--no-deps", "--target", tmp_path, TOP], check=True)
    done = subprocess.run([sys.executable, "-c", "import foreload; print(foreload.__file__)"],
                          env={**os.environ, "PYTHONPATH": str(tmp_path)}, cwd=tmp_path, capture_output=True, text=True)
    assert done.stdout.startswith(str(tmp_path)), done.stderr
