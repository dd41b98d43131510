"""Ranks of one job on a machine find and share its host by themselves."""
import json
import os
import subprocess
import sys
import uuid

import pytest
from conftest import DEADLINE, finished, run_script, script
from foreload import _ranks
from learners import LEARNER, LENGTH, MEMORY, SAMPLES, all_of, learners, told


def torchrun(rank, world=2, local=2, port=29500, **more):
    return {"RANK": str(rank), "WORLD_SIZE": str(world), "LOCAL_WORLD_SIZE": str(local), "MASTER_ADDR": "127.0.0.1",
            "MASTER_PORT": str(port), "TORCHELASTIC_RUN_ID": "none", "TORCHELASTIC_RESTART_COUNT": "0", **more}


def srun(rank, world, tasks, node=0):
    return {"SLURM_PROCID": str(rank), "SLURM_NTASKS": str(world), "SLURM_STEP_TASKS_PER_NODE": tasks, "SLURM_NODEID": str(node),
            "SLURM_JOB_ID": "41", "SLURM_STEP_ID": "0"}


MPIRUN = {"OMPI_COMM_WORLD_RANK": "1", "OMPI_COMM_WORLD_SIZE": "4", "OMPI_COMM_WORLD_LOCAL_SIZE": "2", "PMIX_NAMESPACE": "99"}


def test_ranks_of_one_job_on_one_machine_find_the_same_name():
    job = _ranks.job_here(0, 4, torchrun(0, 4))
    assert job.ranks == 2 and job == _ranks.job_here(1, 4, torchrun(1, 4))
    others = [_ranks.job_here(0, 4, torchrun(0, 4, port=29501)), _ranks.job_here(0, 4, torchrun(0, 4, TORCHELASTIC_RUN_ID="7")),
              _ranks.job_here(2, 7, srun(2, 7, "2(x2),3", 1)), _ranks.job_here(1, 4, MPIRUN)]
    assert len({job.name} | {other.name for other in others}) == 5
    assert all(len(other.name) <= 26 for other in others)  # a host's name has 48 letters; the budget comes behind


@pytest.mark.parametrize("tasks, node, ranks", [("2(x2),3", 0, 2), ("2(x2),3", 1, 2), ("2(x2),3", 2, 3), ("4", 3, 4), ("1,2", 1, 2)])
def test_slurm_says_how_many_tasks_a_node_has(tasks, node, ranks):
    assert _ranks.job_here(0, 7, srun(0, 7, tasks, node)).ranks == ranks
    assert _ranks.on_this_host(7, srun(0, 7, tasks, node)) == ranks


@pytest.mark.parametrize("environment", [
    {}, torchrun(0, local=1), {**torchrun(0), "LOCAL_WORLD_SIZE": "?"}, {"RANK": "0", "WORLD_SIZE": "2", "LOCAL_WORLD_SIZE": "2"},
    torchrun(1), torchrun(0, world=3), srun(0, 2, "1(x2)"), srun(0, 2, "2(y2)"), srun(0, 2, "1,1", 5),
    {**srun(0, 2, "2"), "SLURM_STEP_ID": ""}, {"PMI_RANK": "0", "PMI_SIZE": "2", "MPI_LOCALNRANKS": "2"}])
def test_who_is_alone_or_not_of_the_job_is_not_taken_into_its_host(environment):
    """Rank 0 of 2: alone on its machine, unnamed, or given by hand while the launcher says otherwise."""
    assert _ranks.job_here(0, 2, environment) is None


JOB = """
with opened(memory=sys.argv[2] or None) as loader:
    say(ready=True)
    seen = [epoch(loader) for _ in range(3)]
    sys.stdin.readline()
    say(seen=seen, source=source(loader), host=loader.host, budget=loader.stats()["memory_budget_bytes"])
"""


def start_job(arrays, memory, port, text=JOB, **more):
    ranks = [script(LEARNER + text, arrays, memory, stdin=subprocess.PIPE, env={**os.environ, **torchrun(rank, port=port, **more)})
             for rank in range(2)]
    for rank in ranks:
        assert told(rank) == {"ready": True}, finished(rank)[2]
    return all_of(ranks)


def a_port():
    return uuid.uuid4().int % 60000


def test_ranks_of_a_job_put_their_memory_together(arrays):
    port = a_port()
    with_memory, without, budget_set = (start_job(arrays, MEMORY, port), start_job(arrays, "", port),
                                        start_job(arrays, "", port, FORELOAD_MEMORY="256MiB"))
    everything = SAMPLES * LENGTH
    for ranks in (with_memory, without, budget_set):
        assert ranks[0]["host"] == ranks[1]["host"] and ranks[0]["budget"] == ranks[1]["budget"]
        assert everything / 2 < sum(rank["source"] for rank in ranks) <= everything
        assert [rank["seen"] for rank in ranks] == [rank["seen"] for rank in with_memory]
    assert with_memory[0]["budget"] == 2 * (64 << 20)
    assert budget_set[0]["budget"] == 2 * (192 << 20)  # three quarters, as for a loader that is alone
    assert len({ranks[0]["host"] for ranks in (with_memory, without, budget_set)}) == 3


def test_ranks_that_ask_for_other_amounts_have_what_they_asked_for(arrays):
    text = JOB.replace("opened(memory=sys.argv[2] or None)", "opened(memory=['64MiB', '32MiB'][int(os.environ['RANK'])])")
    ranks = start_job(arrays, "", a_port(), text)
    assert [rank["budget"] for rank in ranks] == [2 * (64 << 20), 2 * (32 << 20)]


@pytest.mark.parametrize("options", ["host=False", "host=''", "rank=0, world_size=1", "eviction='lru'", "rewrite='on'"])
def test_a_rank_that_wants_to_be_alone_is(arrays, options):
    text = LEARNER + f"""
with opened({options}) as loader:
    epoch(loader)
    say(host=loader.host, budget=loader.stats()["memory_budget_bytes"])
"""
    code, out, err = finished(script(text, arrays, env={**os.environ, **torchrun(0)}))
    assert (code, json.loads(out), err) == (0, {"host": "", "budget": 64 << 20}, "")


def test_ranks_of_a_job_over_several_machines_share_with_those_of_their_own(arrays):
    """Half of the job is elsewhere: the host has memory and room for those that are here."""
    ranks = start_job(arrays, MEMORY, a_port(), world=4, local=2)
    assert ranks[0]["host"] == ranks[1]["host"] != ""
    assert [rank["budget"] for rank in ranks] == [2 * (64 << 20)] * 2
    assert sum(rank["source"] for rank in ranks) <= SAMPLES * LENGTH
    alone = [run_script(LEARNER + "with opened(host=False) as loader: say(seen=[epoch(loader) for _ in range(3)])", arrays,
                        env={**os.environ, **torchrun(rank, world=4)}) for rank in range(2)]
    assert [rank["seen"] for rank in ranks] == [json.loads(text)["seen"] for text in alone]


def test_a_rank_that_can_not_join_goes_on_alone_with_one_warning(arrays):
    """Somebody else listens at all places of the host."""
    environment = torchrun(0, port=a_port())
    name = f"{_ranks.job_here(0, 2, environment).name}-{2 * (64 << 20)}"
    text = LEARNER + f"""
import socket
places = []
for index in range(64):
    places.append(socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET))
    places[-1].bind(f"\\0foreload/{{os.geteuid()}}/{name}/{{index}}")
    places[-1].listen()
with opened() as loader, opened(seed=6, workers=0) as other:  # who is alone prepares for itself
    epoch(loader), epoch(other)
    say(host=loader.host, budget=loader.stats()["memory_budget_bytes"])
"""
    code, out, err = finished(script(text, arrays, env={**os.environ, **environment}))
    assert code == 0 and json.loads(out) == {"host": "", "budget": 64 << 20}, err
    assert err.count("ForeloadWarning") == 1 and name in err and "host=False" in err


def test_what_is_wrong_with_the_loader_itself_is_told_without_a_word_of_hosts(tmp_path):
    code, out, err = finished(script(LEARNER + "opened()", tmp_path / "missing", env={**os.environ, **torchrun(0, port=a_port())}))
    assert code == 1 and "DatasetNotFound" in err and "host" not in err.splitlines()[-1] and "ForeloadWarning" not in err
    assert "During handling" not in err and "direct cause" not in err


def test_torchrun_needs_no_extra_line(arrays, tmp_path):
    pytest.importorskip("torch")
    program = tmp_path / "program.py"
    program.write_text(LEARNER + """
loader = opened()
seen = [epoch(loader) for _ in range(3)]
open(sys.argv[2] + "/done" + os.environ["RANK"], "w").close()
while not all(os.path.exists(f"{sys.argv[2]}/done{rank}") for rank in range(2)): time.sleep(0.01)
with open(sys.argv[2] + "/" + os.environ["RANK"], "w") as file:
    json.dump({"seen": seen, "source": source(loader), "host": loader.host}, file)
""")
    done = subprocess.run([sys.executable, "-B", "-m", "torch.distributed.run", "--redirects", "2", "--tee", "2", "--nproc_per_node", "2",
                           "--master_port", str(1024 + a_port()), program, arrays, tmp_path], capture_output=True, text=True,
                          timeout=DEADLINE)
    assert done.returncode == 0, done.stderr
    ranks = [json.loads((tmp_path / str(rank)).read_text()) for rank in range(2)]
    assert ranks[0]["host"] == ranks[1]["host"] != ""
    assert sum(rank["source"] for rank in ranks) <= SAMPLES * LENGTH
    alone = all_of(learners("with opened(rank=int(sys.argv[2]), world_size=int(sys.argv[3])) as loader: "
                            "say(seen=[epoch(loader) for _ in range(3)])", arrays, 2))
    assert [rank["seen"] for rank in ranks] == [rank["seen"] for rank in alone]
