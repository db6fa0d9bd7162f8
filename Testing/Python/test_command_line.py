"""What all commands have in common: what --quiet does not hide, exit codes, and the version in every JSON."""
import json
import os
import pathlib
import resource
import signal
import subprocess
import time

import pytest

from rcn_testing import PROGRAM, disc_list, leftovers, run

TINY = ["--epochs", "1", "--width", "8", "--depth", "1", "--batch", "4", "--threads", "1"]


@pytest.fixture(scope="module")
def setting(tmp_path_factory):
    """A data list, a model and its predictions; beside the list, broken.json with a damaged case of every split."""
    folder = tmp_path_factory.mktemp("setting")
    data = disc_list(folder, counts=(4, 3, 3))
    run("train", "--data", data, "-o", folder / "m.safetensors", *TINY, "--quiet")
    run("predict", "--model", folder / "m.safetensors", "--data", data, "-o", folder / "pred", "--threads", "1", "--quiet")
    content = json.loads(data.read_text())
    for split in ("training", "validation", "test"):
        one = content[split][0]
        content[split].append({**one, "id": split + "-bad", "image": split + "-gone.nrrd", "label": {r: split + "-gone.nrrd" for r in one["label"]}})
    (folder / "broken.json").write_text(json.dumps(content))
    return folder


def one_case(folder):
    return [word for r in "ABC" for word in ("--rater", f"{r}={folder}/i0_{r}.nrrd")]


def commands(folder, out, data):
    """A run of each command that takes a data list; files go to `out`."""
    words = {
        "agree": ["agree", "--data", data, "--json", out / "r.json"],
        "fuse": ["fuse", "--method", "soft", "--data", data, "-o", out / "maps", "--json", out / "r.json"],
        "predict": ["predict", "--model", folder / "m.safetensors", "--data", data, "-o", out / "maps", "--json", out / "r.json"],
        "evaluate": ["evaluate", "--data", data, "--pred", folder / "pred", "--json", out / "r.json"],
        "recalibrate": ["recalibrate", "--method", "platt", "--data", data, "--pred", folder / "pred", "-o", out / "c.json", "--json", out / "r.json"],
        "report": ["report", "--data", data, "-o", out / "r.html", "--pictures", "1"],
        "train": ["train", "--data", data, "-o", out / "m.safetensors", *TINY, "--json", out / "r.json"],
        "study": ["study", "--data", data, "-o", out / "s", "--strategies", "median", *TINY, "--json", out / "r.json"],
    }
    return {name: [str(word) for word in line] for name, line in words.items()}


LISTS = ["agree", "fuse", "predict", "evaluate", "recalibrate", "report", "train", "study"]


@pytest.mark.parametrize("name", LISTS)
def test_quiet_names_what_was_left_out(name, setting, tmp_path):
    words = commands(setting, tmp_path, setting / "broken.json")[name]
    skips = name in ("train", "study")  # they go on only when told to
    done = run(*words, "--quiet", *(["--skip-bad"] if skips else []), check=False)
    assert done.code == (0 if skips else 1), done.err
    bad = {"recalibrate": ["validation"], "train": ["training", "validation"]}.get(name, ["training", "validation", "test"])
    assert done.out == ""
    for split in bad:
        assert [line for line in done.err.splitlines() if f"{split}-bad" in line and ("left out" in line.lower())], done.err
    if name == "report":
        return
    result = json.loads((tmp_path / "r.json").read_text("utf-8"))
    assert sorted(one["case"] for one in result["left_out"]) == sorted(split + "-bad" for split in bad)
    files = "_levels.nrrd" if name in ("evaluate", "recalibrate") else "-gone.nrrd"
    assert all(files in one["sentence"] and one["sentence"] in done.err for one in result["left_out"])


def test_nothing_left_out(setting, tmp_path):
    done = run(*commands(setting, tmp_path, setting / "list.json")["agree"], "--quiet")
    assert done.out == done.err == "" and json.loads((tmp_path / "r.json").read_text("utf-8"))["left_out"] == []


def test_every_json_has_the_version(setting, tmp_path):
    version = run("--version").out.split()[1]
    for name, words in commands(setting, tmp_path, setting / "list.json").items():
        run(*words, "--quiet", *(["--force"] if name == "recalibrate" and "--force" in run("recalibrate", "--help").out else []))
        if name != "report":
            (tmp_path / "r.json").rename(tmp_path / f"{name}.json")
    single = one_case(setting)
    run("agree", *single, "--quiet", "--json", tmp_path / "agree-one.json")
    run("fuse", "--method", "staple", *single, "-o", tmp_path / "o.nrrd", "--quiet", "--json", tmp_path / "fuse-one.json")
    run("evaluate", "--prob", tmp_path / "o.nrrd", *single, "--quiet", "--json", tmp_path / "evaluate-one.json")
    found = sorted(tmp_path.rglob("*.json"))
    assert len(found) >= 14
    for path in found:
        assert next(iter(json.loads(path.read_text("utf-8")).items())) == ("version", version), path


# ---- exit codes ----

def limited(words, size):
    """Runs it where no file may grow further than `size` bytes: a full disk, as far as it can tell."""
    def limit():
        resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))
    return run(*words, "--quiet", check=False, preexec_fn=limit)


@pytest.mark.parametrize("name", LISTS)
def test_full_disk(name, setting, tmp_path):
    """One sentence and exit code 1; what is written in vain does not stay."""
    words = commands(setting, tmp_path, setting / "list.json")[name]
    if name == "recalibrate":
        words[words.index("--method") + 1] = "isotonic"
        words += ["--force"] if "--force" in run("recalibrate", "--help").out else []
    done = limited(words, 200)
    assert done.code == 1, done.err
    assert done.err.startswith("rater-consensus: ") and done.err.count("\n") == 1, done.err
    assert "disk is full" in done.err or "File too large" in done.err, done.err
    assert not leftovers(tmp_path) and not list(tmp_path.rglob("*.part"))


@pytest.mark.parametrize("words", [["agree", "--json"], ["agree", "--csv"], ["agree", "--levels"], ["fuse", "--method", "soft", "-o"],
                                   ["report", "-o"]])
def test_full_disk_with_one_case(words, setting, tmp_path):
    target = tmp_path / ("r.nrrd" if words[-1] in ("--levels", "-o") else "r.txt")
    target.write_text("old")
    done = limited([words[0], *words[1:], target, *one_case(setting)], 16)
    assert done.code == 1 and "cannot be written" in done.err and done.err.count("\n") == 1, (done.code, done.err)
    assert target.read_text() == "old" and not leftovers(tmp_path)


def interrupted(words, pipe, content, how):
    """The command waits for its data list, hears the signal, and gets the list only then."""
    process = subprocess.Popen([str(PROGRAM), *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    handled = 0
    while not handled >> (how - 1) & 1:
        assert process.poll() is None
        handled = int(pathlib.Path(f"/proc/{process.pid}/status").read_text("utf-8").split("SigCgt:")[1].split()[0], 16)
    process.send_signal(how)
    while pipe and process.poll() is None:
        try:  # nobody reads the list where the signal was heard before
            with os.fdopen(os.open(pipe, os.O_WRONLY | os.O_NONBLOCK), "w") as stream:
                stream.write(content)
            break
        except OSError:
            time.sleep(.005)
    out, err = process.communicate(timeout=60)
    return process.returncode, out, err.decode()


@pytest.mark.skipif(not os.path.isdir("/proc/self"), reason="needs /proc")
@pytest.mark.parametrize("name", LISTS)
def test_ctrl_c(name, setting, tmp_path):
    content = json.loads((setting / "list.json").read_text("utf-8"))
    for split in ("training", "validation", "test"):
        for case in content[split]:
            case["image"] = str(setting / case["image"])
            case["label"] = {rater: str(setting / file) for rater, file in case["label"].items()}
    pipe = tmp_path / "list.json"
    os.mkfifo(pipe)
    words = commands(setting, tmp_path, pipe)[name]
    code, out, err = interrupted(words, pipe, json.dumps(content), signal.SIGINT)
    assert code == 130, (code, err)
    assert out == b"" and err.startswith("rater-consensus: ") and err.count("\n") == 1, err
    assert not [p for p in tmp_path.rglob("*") if p.is_file()]


@pytest.mark.skipif(not os.path.isdir("/proc/self"), reason="needs /proc")
@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM])
def test_demo_stopped(how, tmp_path):
    code, out, err = interrupted(["demo", "-o", str(tmp_path / "demo")], None, "", how)
    assert code == 128 + how and out == b"" and err.count("\n") == 1, (code, err)


def test_exit_codes_are_told():
    for words in (["--help"], ["--man"]):
        text = run(*words).out
        assert "130" in text and "disk is full" in text
