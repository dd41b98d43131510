"""The recipes of docs/cluster.md say what the program understands."""
import os
import pathlib
import re
import subprocess

import pytest
from conftest import CLI, DEADLINE

DOCS = pathlib.Path(__file__).resolve().parents[2] / "docs"


@pytest.fixture
def manifest():
    yaml = pytest.importorskip("yaml")
    return {part["kind"]: part for part in yaml.safe_load_all((DOCS / "kubernetes" / "train.yaml").read_text())}


def pod(part):
    return part["spec"]["template"]["spec"]


def flags_of(*command):
    help = subprocess.run([CLI, *command, "--help"], check=True, capture_output=True, text=True, timeout=DEADLINE).stdout
    return set(re.findall(r"--[a-z][a-z-]*", help))


def test_kubernetes_pods_share_one_folder_and_know_what_they_mount(manifest):
    agent, train = pod(manifest["DaemonSet"]), pod(manifest["Job"])
    paths = []
    for spec in (agent, train):
        volumes = {volume["name"]: volume for volume in spec["volumes"]}
        for container in spec["initContainers"] + spec["containers"]:
            assert {mount["name"] for mount in container["volumeMounts"]} <= set(volumes)
        paths.append(volumes["sockets"]["hostPath"]["path"])
        assert spec["securityContext"]["runAsUser"] == 1000 and spec["nodeSelector"] == {"foreload": "train"}
    assert paths[0] == paths[1] == "/run/foreload"
    assert manifest["DaemonSet"]["spec"]["selector"]["matchLabels"] == manifest["DaemonSet"]["spec"]["template"]["metadata"]["labels"]
    assert manifest["Job"]["spec"]["completions"] == len(manifest["ConfigMap"]["data"]["PEERS"].split(","))
    arguments = agent["containers"][0]["args"]
    keys = {mount["mountPath"] for mount in agent["containers"][0]["volumeMounts"]}
    assert arguments[0] == "agent" and arguments[arguments.index("--credentials") + 1] in keys


def test_kubernetes_ranks_are_in_the_order_of_the_nodes(manifest, tmp_path):
    (tmp_path / "torchrun").write_text("#!/bin/sh\necho \"$@\"\n")
    (tmp_path / "torchrun").chmod(0o755)
    train = pod(manifest["Job"])["containers"][0]
    peers = manifest["ConfigMap"]["data"]["PEERS"]
    for rank, node in enumerate(peers.split(",")):
        told = subprocess.run(train["command"], check=True, capture_output=True, text=True, timeout=DEADLINE, env={
            "PATH": f"{tmp_path}:{os.environ['PATH']}", "PEERS": peers, "LEARNERS": "8", "NODE": node}).stdout
        assert told.startswith(f"--nnodes 2 --node_rank {rank} --nproc_per_node 8 --master_addr {peers.split(',')[0]} ")


def test_every_flag_of_the_recipes_exists():
    texts = [(DOCS / "cluster.md").read_text(), (DOCS / "kubernetes" / "train.yaml").read_text()]
    known = {command: flags_of(command) for command in ("agent", "run", "top")}
    used = [(command, flag) for text in texts for command, rest in re.findall(r"foreload (agent|run|top)\b([^\n`;]*)", text)
            for flag in re.findall(r"--[a-z][a-z-]*", rest)]
    assert len(used) > 10
    assert [(command, flag) for command, flag in used if flag not in known[command]] == []
