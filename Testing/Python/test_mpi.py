# SPDX-License-Identifier: Apache-2.0
"""Several processes through MPI: one model, the same results, and one message when something goes wrong.

Two and four processes on this machine, more than it has cores; and two in network namespaces of their own, joined
by a cable that the test lays.
"""
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import time

import numpy as np
import pytest

from rcn_testing import PROGRAM, Result, execute, run, small_disk, wait_until, write_nrrd
from test_train import make_list, quick, rows

pytestmark = pytest.mark.slow


def linked_mpi():
    """The mpirun that belongs to the MPI that the program was built with; None without one."""
    libraries = subprocess.run(["ldd", PROGRAM], capture_output=True, text=True).stdout
    name = "mpirun.openmpi" if "libmpi.so" in libraries or "open-rte" in libraries else "mpirun.mpich" if "libmpich" in libraries else None
    return name and (shutil.which(name) or shutil.which("mpirun"))


MPIRUN = linked_mpi()
if not MPIRUN:
    pytest.skip("built without MPI", allow_module_level=True)
if "train" not in run("--help").out:
    pytest.skip("built without networks", allow_module_level=True)
OPEN_MPI = "openmpi" in os.path.realpath(MPIRUN) or "orterun" in os.path.realpath(MPIRUN)
# Waiting processes must leave the cores to others, and root may run tests.
ENVIRONMENT = {**os.environ, "OMP_WAIT_POLICY": "passive", "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}


def mpi_words(count, *words):
    several = ["--oversubscribe"] if OPEN_MPI else []
    return [MPIRUN, *several, "-n", str(count), str(PROGRAM), *map(os.fspath, words)]


def mpi(count, *words, **options):
    """Runs the program as so many processes."""
    return execute(mpi_words(count, *words), **{"timeout": 240, "env": ENVIRONMENT, **options})


def messages(text):
    """The program's own lines among those of mpirun."""
    return [line for line in text.splitlines() if line.startswith("rater-consensus: ")]


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    return make_list(tmp_path_factory.mktemp("mpi") / "data")


def same_course(model, other, digits=5):
    first, second = rows(model), rows(other)
    assert len(first) == len(second)
    for one, two in zip(first, second):
        for key in ("loss", "rps", "mr_ece_majority", "auc"):
            # Rounding turns the ranks of nearly equal probabilities, and moves probabilities over the limit of a bin.
            close = 10 ** -digits * (10 if key in ("auc", "mr_ece_majority") else 1)
            assert float(one[key]) == pytest.approx(float(two[key]), rel=close, abs=close), key


# ---- training ----

@pytest.fixture(scope="module")
def alone(data, tmp_path_factory):
    """One process with steps of eight samples, to compare with."""
    model = tmp_path_factory.mktemp("alone") / "m.safetensors"
    run("train", "--data", data, "-o", model, *quick(batch=8, samples=2, rate=0.003, threads=1))
    return model


@pytest.mark.parametrize("count", [2, 4])
def test_one_model(data, alone, tmp_path, count):
    """1 x 8, 2 x 4 and 4 x 2 samples: the same losses and validation figures, printed and written once."""
    model = tmp_path / "m.safetensors"
    done = mpi(count, "train", "--data", data, "-o", model,
               *quick(batch=8 // count, samples=2, rate=0.003, threads=1), "--json", tmp_path / "m.json")
    same_course(alone, model)
    assert done.out.count("Trained on 8 cases") == 1 and done.err.count("Epoch 1/3") == 1
    result = json.loads((tmp_path / "m.json").read_text("utf-8"))
    assert result["seconds"]["waiting"] > 0 and len(result["cases"]["training"]) == 8
    assert sorted(p.name for p in tmp_path.iterdir()) == ["m.checkpoint.safetensors", "m.json", "m.log.csv", "m.safetensors"]


def test_default_batch_is_that_of_one_process(data, tmp_path):
    words = [w for w in quick(rate=0.003, threads=1)]
    at = words.index("--batch")
    del words[at:at + 2]
    run("train", "--data", data, "-o", tmp_path / "one.safetensors", *words, "--norm", "instance")
    mpi(2, "train", "--data", data, "-o", tmp_path / "two.safetensors", *words, "--norm", "instance")
    same_course(tmp_path / "one.safetensors", tmp_path / "two.safetensors")


def test_local_norms(data, alone, tmp_path):
    """Statistics of each process's own samples: another course, but still one model."""
    model = tmp_path / "m.safetensors"
    mpi(2, "train", "--data", data, "-o", model, *quick(batch=4, samples=2, rate=0.003, threads=1), "--batch-norm", "local")
    losses = [[float(r["loss"]) for r in rows(m)] for m in (alone, model)]
    assert losses[0] != pytest.approx(losses[1], rel=1e-6) and losses[0] == pytest.approx(losses[1], rel=0.2)


def test_normalization_and_rehearsal(data, tmp_path):
    """What is measured on all cases is measured together; old cases are shared out too."""
    old = make_list(tmp_path / "old", training=5, validation=0, test=0, first=50)
    words = [*quick(rate=0.003, threads=1, epochs=2), "--normalize", "fixed", "--rehearse", old]
    run("train", "--data", data, "-o", tmp_path / "one.safetensors", *words)
    two = [w if w != "4" else "2" for w in words]
    mpi(2, "train", "--data", data, "-o", tmp_path / "two.safetensors", *two)
    same_course(tmp_path / "one.safetensors", tmp_path / "two.safetensors")


def test_resumed_by_other_numbers(data, alone, tmp_path):
    """Begun by two processes, gone on by four and by one: the course of one that never stopped."""
    model = tmp_path / "m.safetensors"
    options = {"samples": 2, "rate": 0.003, "threads": 1}
    words = ["train", "--data", data, "-o", model]
    process = subprocess.Popen(mpi_words(2, *words, *quick(batch=4, **options), "--checkpoint-seconds", "0"), env=ENVIRONMENT,
                               stderr=subprocess.PIPE, text=True)
    for line in process.stderr:
        if line.startswith("Epoch 1/3"):
            break
    process.send_signal(signal.SIGTERM)
    process.stderr.read()
    process.wait(timeout=60)
    assert (tmp_path / "m.checkpoint.safetensors").exists()
    done = mpi(4, *words, *quick(batch=4, **options), "--resume", check=False)
    assert "steps of 8 samples" in done.err, done.err
    assert done.code == 0, done.err
    same_course(alone, model)
    done = run(*words, *quick(batch=8, **options), "--resume")  # finished: nothing left to do
    same_course(alone, model)


def test_more_processes_than_samples(tmp_path):
    few = make_list(tmp_path / "few", training=2, validation=1, test=0)
    done = mpi(4, "train", "--data", few, "-o", tmp_path / "m.safetensors", *quick(batch=1, epochs=1), check=False)
    assert done.code == 2 and len(messages(done.err)) == 1 and "too few for 4 processes" in done.err, done.err


# ---- lists of cases ----

@pytest.fixture(scope="module")
def predicted(data, alone, tmp_path_factory):
    folder = tmp_path_factory.mktemp("predicted")
    run("predict", "--model", alone, "--data", data, "-o", folder, "--threads", "1", "--no-recalibration")
    return folder


def without_times(path):
    """A result file, without how long it took."""
    content = path.read_bytes()
    if path.suffix != ".json":
        return content
    result = json.loads(content)
    result.pop("seconds", None)
    return json.dumps(result)


@pytest.mark.parametrize("command", ["agree", "fuse", "predict", "evaluate", "recalibrate"])
@pytest.mark.parametrize("count", [2, 4])
def test_lists_give_the_same(data, alone, predicted, tmp_path, command, count):
    """Files, tables, remarks and exit code are those of one process, where one case of the list is damaged."""
    words = {"agree": ["--csv", "a.csv", "--json", "a.json"],
             "fuse": ["--method", "random", "-o", "maps", "--format", ".png", "--type", "uint8", "--json", "f.json"],
             "predict": ["--model", alone, "-o", "maps", "--json", "p.json"],
             "evaluate": ["--pred", predicted, "--versus", predicted, "--region", "box", "--json", "e.json", "--plot", "e.svg"],
             "recalibrate": ["--method", "temperature", "--split", "training", "--pred", predicted, "-o", "c.json", "--json", "r.json",
                             "--force"]}[command]
    content = json.loads(data.read_text("utf-8"))
    bad = {**content["training"][2], "id": "damaged", "image": "damaged.png"}
    bad["label"] = {name: "damaged.png" for name in bad["label"]}
    (data.parent / "damaged.png").write_bytes(b"no image")
    content["training"].insert(3, bad)
    listed = data.parent / "damaged.json"
    listed.write_text(json.dumps(content))
    results = []
    for folder, go in ((tmp_path / "one", run), (tmp_path / "many", lambda *w, **o: mpi(count, *w, **o))):
        folder.mkdir()
        done = go(command, "--data", listed, "--threads", "1", *words, check=False, cwd=folder)
        assert done.code == 1, done.err
        remarks = [line for line in done.err.splitlines() if "case" in line.lower() and "mpirun" not in line]
        assert any("damaged" in line for line in remarks)
        results.append((done.out, remarks, {p.relative_to(folder): without_times(p) for p in folder.rglob("*") if p.is_file()}))
    assert results[0][2].keys() == results[1][2].keys() and len(results[0][2]) > 1
    assert results[0] == results[1]


@pytest.fixture(scope="module")
def crowd(tmp_path_factory):
    """Forty cases of many sizes, whose figures and their sums use all digits; with a probability for each."""
    folder = tmp_path_factory.mktemp("crowd")
    rng = np.random.default_rng(3)
    content = {"raters": list("ABC"), "test": []}
    for i in range(40):
        shape = (int(rng.integers(9, 31)), int(rng.integers(9, 31)))
        share = rng.random(shape)
        label = {r: write_nrrd(folder / f"{i}{r}.nrrd", (share > rng.uniform(.3, .7)).astype(np.uint8), spacing=(.7 + i / 97, 1.3)).name
                 for r in "ABC"}
        write_nrrd(folder / f"c{i}_prob.nrrd", np.clip(share + rng.normal(0, .2, shape), 0, 1).astype(np.float32), spacing=(.7 + i / 97, 1.3))
        content["test"].append({"id": f"c{i}", "label": label})
    (folder / "list.json").write_text(json.dumps(content))
    return folder


@pytest.mark.parametrize("count", [2, 3])
def test_the_very_numbers(crowd, tmp_path, count):
    """Means over many cases, in all digits, in the table, the JSON and the CSV."""
    commands = [["agree", "--json", "a.json", "--csv", "a.csv"],
                ["fuse", "--method", "staple", "-o", "maps", "--json", "f.json"],
                ["evaluate", "--pred", crowd, "--region", "box", "--json", "e.json", "--plot", "e.svg"]]
    results = []
    for folder, go in ((tmp_path / "one", run), (tmp_path / "many", lambda *w, **o: mpi(count, *w, **o))):
        folder.mkdir()
        outs = [go(command, "--data", crowd / "list.json", *words, "--threads", "1", cwd=folder).out for command, *words in commands]
        # How long it took is the only thing that may differ.
        texts = {p.name: re.sub(rb'"seconds": \{[^}]*\}', b"", p.read_bytes()) for p in folder.rglob("*") if p.is_file()}
        results.append((outs, texts))
    assert len(results[0][1]) == 45
    assert results[0] == results[1]


def test_a_study_judged_by_several(data, tmp_path):
    """The same models, predicted and judged by one and by two: the same tables, byte for byte."""
    words = ["study", "--data", data, "--strategies", "rps", *quick(epochs=1, threads=1)]
    run(*words, "-o", tmp_path / "one")
    shutil.copytree(tmp_path / "one", tmp_path / "two")
    shutil.rmtree(tmp_path / "two" / "predictions")
    tables = ["table.json", "table.md"]
    for name in tables:
        (tmp_path / "two" / name).unlink()
    mpi(2, *words, "-o", tmp_path / "two")
    for name in tables:
        one, two = ((tmp_path / folder / name).read_text("utf-8") for folder in ("one", "two"))
        assert one == two.replace(str(tmp_path / "two"), str(tmp_path / "one"))  # the command stands there as it was typed


def test_one_case_is_one_process_work(data, tmp_path):
    case = json.loads(data.read_text("utf-8"))["training"][0]
    words = [w for name, path in case["label"].items() for w in ("--rater", f"{name}={data.parent / path}")]
    assert mpi(2, "agree", *words).out == run("agree", *words).out


def test_study(data, tmp_path):
    """Trained together, predicted and judged by shares: the table of one process up to rounding."""
    tables = []
    for folder, go, batch in ((tmp_path / "one", run, 4), (tmp_path / "two", lambda *w: mpi(2, *w), 2)):
        go("study", "--data", data, "-o", folder, "--strategies", "rps,median", *quick(batch=batch, rate=0.003, threads=1, epochs=2))
        tables.append(json.loads((folder / "table.json").read_text("utf-8")))
    assert len(tables[0]["rows"]) == len(tables[1]["rows"]) == 3
    for one, two in zip(tables[0]["rows"], tables[1]["rows"]):
        assert one["strategy"] == two["strategy"]
        for region, figures in one["figures"].items():
            for name, cell in figures.items():
                other = two["figures"][region][name]["value"]
                assert (cell["value"] is None) == (other is None), (region, name)
                assert cell["value"] is None or cell["value"] == pytest.approx(other, rel=1e-4, abs=1e-5), (region, name)


# ---- failing ----

def one_message(done, rank, says):
    """One line that names process, machine and reason; `rank` may be a pattern."""
    lines = messages(done.err)
    assert len(lines) == 1, done.err
    assert re.search(f"process {rank} of", lines[0]) and os.uname().nodename in lines[0] and says in lines[0], lines[0]


def test_unreadable_case(data, tmp_path):
    """Only the second process reads it; all end with its message."""
    content = json.loads(data.read_text("utf-8"))
    content["training"][-1]["image"] = "gone.png"
    (data.parent / "gone.json").write_text(json.dumps(content))
    done = mpi(2, "train", "--data", data.parent / "gone.json", "-o", tmp_path / "m.safetensors", *quick(), check=False)
    assert done.code == 2
    one_message(done, 1, "gone.png")
    assert not list(tmp_path.iterdir())
    done = mpi(2, "train", "--data", data.parent / "gone.json", "-o", tmp_path / "m.safetensors", *quick(epochs=1, batch=2), "--skip-bad")
    assert done.err.count("Left out: Case tr7") == 1


def test_all_fail_alike(data, tmp_path):
    done = mpi(4, "train", "--data", data.parent / "no such list.json", "-o", tmp_path / "m.safetensors", check=False)
    assert done.code == 2
    one_message(done, "[0-3]", "no such list.json")  # whichever is heard first
    done = mpi(2, "train", "--no-such-option", check=False)
    assert done.code == 2 and len(messages(done.err)) == 1 and "--no-such-option" in done.err
    assert mpi(2, "--help").out == run("--help").out


def test_full_disk(data, tmp_path):
    with small_disk(tmp_path / "disk", "100k") as disk:
        done = mpi(2, "train", "--data", data, "-o", disk / "m.safetensors", *quick(batch=2, width=32, epochs=1), check=False)
        assert done.code != 0
        one_message(done, 0, "m.")
        assert not [p for p in disk.iterdir() if p.name.endswith(".safetensors") and p.stat().st_size < 1000]


@pytest.mark.skipif(not OPEN_MPI, reason="tells its processes apart by Open MPI's variables")
def test_out_of_memory(data, tmp_path):
    """The second process may not have much memory."""
    script = tmp_path / "limited.sh"
    script.write_text('[ "$OMPI_COMM_WORLD_RANK" = 1 ] && ulimit -v 1300000\nexec "$@"\n')
    words = mpi_words(2, "train", "--data", data, "-o", tmp_path / "m.safetensors", *quick(batch=2, width=512, depth=4, epochs=1, threads=1))
    at = words.index(str(PROGRAM))
    words[at:at] = ["sh", str(script)]
    done = subprocess.run(words, capture_output=True, timeout=120, env=ENVIRONMENT, text=True)
    assert done.returncode == 1, done.stderr
    one_message(Result(done.returncode, done.stdout, done.stderr), 1, "Out of memory")


def descendants(pid):
    parents = {}
    for entry in pathlib.Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                parents[int(entry.name)] = int((entry / "stat").read_text().rsplit(")", 1)[1].split()[1])
            except OSError:
                pass
    found, front = [], [pid]
    while front:
        front = [child for child, parent in parents.items() if parent in front]
        found += front
    return found


def ranks_of(pid):
    """{rank: pid} of the program's processes below mpirun."""
    found = {}
    for child in descendants(pid):
        try:
            if os.path.realpath(f"/proc/{child}/exe") == os.path.realpath(PROGRAM):
                environment = pathlib.Path(f"/proc/{child}/environ").read_bytes().split(b"\0")
                for entry in environment:
                    name, _, value = entry.partition(b"=")
                    if name in (b"OMPI_COMM_WORLD_RANK", b"PMI_RANK"):
                        found[int(value)] = child
        except OSError:
            pass
    return found


def is_running(pid):
    """A zombie is not: nobody has asked yet how it ended."""
    try:
        return pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False


@pytest.mark.skipif(not os.path.isdir("/proc/self"), reason="needs /proc")
@pytest.mark.parametrize("rank", [0, 1])
def test_killed(data, tmp_path, rank):
    """A process is killed: all end, nothing is left running, and training goes on from a whole checkpoint."""
    model = tmp_path / "m.safetensors"
    words = ["train", "--data", data, "-o", model, *quick(batch=2, epochs=1000), "--checkpoint-seconds", "0"]
    process = subprocess.Popen(mpi_words(2, *words), env=ENVIRONMENT, stderr=subprocess.PIPE, text=True)
    for line in process.stderr:
        if line.startswith("Epoch 3/"):
            break
    ranks = ranks_of(process.pid)
    assert sorted(ranks) == [0, 1]
    os.kill(ranks[rank], signal.SIGKILL)
    began = time.monotonic()
    rest = process.stderr.read()
    assert process.wait(timeout=60) != 0
    assert time.monotonic() - began < 30  # not a matter of speed: it would wait for ever
    if OPEN_MPI:
        assert f"process rank {rank}" in rest and os.uname().nodename in rest and "signal 9" in rest
    assert not messages(rest), rest
    # mpirun may end a moment before the last process that it told to.
    wait_until(lambda: not any(is_running(pid) for pid in ranks.values()))
    epochs = len(rows(model))
    process = subprocess.Popen(mpi_words(2, *words, "--resume"), env=ENVIRONMENT, stderr=subprocess.PIPE, text=True)
    seen = [line for line, _ in zip(process.stderr, range(2)) if line.startswith("Epoch")]
    process.terminate()
    process.stderr.read()
    process.wait(timeout=60)
    assert seen and epochs - 1 <= int(seen[0].split()[1].split("/")[0]) <= epochs + 1


# ---- machines of their own, as far as the network knows ----

@pytest.fixture
def two_machines(tmp_path):
    """Two network namespaces joined by a cable; skipped where that is not allowed. Gives the words that run something in
    the first, and the agent with which mpirun starts processes in the second."""
    tag = f"rcn{os.getpid() % 10000}"
    names = [f"{tag}a", f"{tag}b"]

    def ip(*words):
        return subprocess.run(["ip", *words], capture_output=True).returncode == 0
    if not shutil.which("ip") or not ip("netns", "add", names[0]):
        pytest.skip("not allowed to make network namespaces")
    try:
        made = ip("netns", "add", names[1]) and ip("link", "add", names[0], "netns", names[0], "type", "veth", "peer", "name", names[1],
                                                   "netns", names[1])
        for i, name in enumerate(names):
            made = (made and ip("-n", name, "addr", "add", f"10.213.77.{i + 1}/24", "dev", name) and ip("-n", name, "link", "set", name, "up")
                    and ip("-n", name, "link", "set", "lo", "up"))
        if not made:
            pytest.skip("not allowed to join network namespaces")
        agent = tmp_path / "agent.sh"  # agent HOST COMMAND ...
        agent.write_text(f'#!/bin/sh\nshift\nexec ip netns exec {names[1]} unshare -u sh -c "hostname second-machine; $*"\n')
        agent.chmod(0o755)
        yield ["ip", "netns", "exec", names[0]], agent
    finally:
        for name in names:
            ip("netns", "del", name)


@pytest.mark.skipif(not OPEN_MPI, reason="written for Open MPI's way to start processes elsewhere")
def test_two_machines(data, alone, tmp_path, two_machines):
    """Two processes that have only a network between them; then one of them fails and is named with its machine."""
    inside, agent = two_machines
    launch = [*inside, MPIRUN, "--host", "10.213.77.1,10.213.77.2", "-n", "2", "--mca", "plm_rsh_agent", str(agent), "--mca", "pml", "ob1",
              "--mca", "btl", "tcp,self", "--mca", "btl_tcp_if_include", "10.213.77.0/24", "--mca", "oob_tcp_if_include",
              "10.213.77.0/24", str(PROGRAM)]
    model = tmp_path / "m.safetensors"
    words = ["train", "--data", str(data), "-o", str(model), *quick(batch=4, samples=2, rate=0.003, threads=1)]
    done = subprocess.run([*launch, *words], capture_output=True, timeout=240, env=ENVIRONMENT, text=True, encoding="utf-8")
    assert done.returncode == 0, done.stderr
    same_course(alone, model)
    content = json.loads(data.read_text("utf-8"))
    content["training"][-1]["image"] = "away.png"
    (data.parent / "away.json").write_text(json.dumps(content))
    words[2] = str(data.parent / "away.json")
    words.append("--overwrite")
    done = subprocess.run([*launch, *words], capture_output=True, timeout=240, env=ENVIRONMENT, text=True, encoding="utf-8")
    lines = messages(done.stderr)
    assert done.returncode == 2 and len(lines) == 1 and "process 1 of 2 on second-machine" in lines[0] and "away.png" in lines[0], done.stderr
