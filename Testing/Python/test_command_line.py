# SPDX-License-Identifier: Apache-2.0
"""What all commands have in common: what --quiet does not hide, exit codes, the version in every JSON, and that nothing
is overwritten that is read."""
import json
import os
import resource
import shutil
import signal

import pytest

from rcn_testing import disc_list, leftovers, refused, run, start, wait_for_handler, wait_until

TINY = ["--epochs", "1", "--width", "8", "--depth", "1", "--batch", "4", "--threads", "1"]


@pytest.fixture(scope="module")
def setting(tmp_path_factory):
    """A data list, a model and its predictions; beside the list, broken.json with a damaged case of every split."""
    folder = tmp_path_factory.mktemp("setting")
    data = disc_list(folder, counts=(4, 3, 3))
    run("train", "--data", data, "-o", folder / "m.safetensors", *TINY, "--strategy", "rps", "--no-recalibration", "--quiet")
    run("predict", "--model", folder / "m.safetensors", "--data", data, "-o", folder / "pred", "--threads", "1", "--quiet")
    content = json.loads(data.read_text("utf-8"))
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
    assert all("-gone.nrrd" in one["sentence"] and one["sentence"] in done.err for one in result["left_out"])


def test_nothing_left_out(setting, tmp_path):
    done = run(*commands(setting, tmp_path, setting / "list.json")["agree"], "--quiet")
    assert done.out == done.err == "" and json.loads((tmp_path / "r.json").read_text("utf-8"))["left_out"] == []


def test_every_json_has_the_version(setting, tmp_path):
    version = run("--version").out.split()[1]
    for name, words in commands(setting, tmp_path, setting / "list.json").items():
        run(*words, "--quiet", *(["--force"] if name == "recalibrate" else []))
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
        words.append("--force")
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
    def hand_over():
        try:  # nobody reads the list where the signal was heard before
            with os.fdopen(os.open(pipe, os.O_WRONLY | os.O_NONBLOCK), "w") as stream:
                stream.write(content)
            return True
        except OSError:
            return process.poll() is not None

    process = start(*words)
    wait_for_handler(process, how)
    process.send_signal(how)
    if pipe:
        wait_until(hand_over)
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


# ---- nothing that is read is overwritten ----

def contents(folder):
    return {path: path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


@pytest.fixture
def files(setting, tmp_path):
    """Copies that a test may lose."""
    shutil.copytree(setting, tmp_path / "f")
    return tmp_path / "f"


def spared(folder, *words, says):
    before = contents(folder)
    refused(*words, says=says, folder=folder, cwd=folder)
    assert contents(folder) == before


RATERS = ["--rater", "A=i0_A.nrrd", "--rater", "B=i0_B.nrrd", "--rater", "C=i0_C.nrrd"]
ONE = [*RATERS, "--image", "i0.nrrd"]
MANY = ["--data", "list.json"]
JUDGED = ["--prob", "pred/c0_levels.nrrd", *RATERS]
LISTED = [*MANY, "--pred", "pred"]
OVERWRITES = [
    (["fuse", "--method", "orc", *RATERS, "-o", "i0_A.nrrd"], ["-o i0_A.nrrd", "--rater A"]),
    (["fuse", "--method", "orc", *RATERS, "-o", "./pred/../i0_B.nrrd"], ["i0_B.nrrd", "--rater B"]),
    (["fuse", "--method", "orc", *ONE, "-o", "i0.nrrd"], ["-o i0.nrrd", "--image"]),
    (["fuse", "--method", "orc", *RATERS, "-o", "new.nrrd", "--json", "i0_C.nrrd"], ["--json i0_C.nrrd", "--rater C"]),
    (["fuse", "--method", "orc", "--rater", "X=i0_A.nrrd:1", "-o", "i0_A.nrrd"], ["--rater X"]),
    (["fuse", "--method", "orc", *RATERS, "-o", "new.nrrd", "--json", "new.nrrd"], ["-o new.nrrd", "--json new.nrrd", "the same file"]),
    (["fuse", "--method", "orc", *MANY, "-o", "maps", "--json", "list.json"], ["--json list.json", "--data"]),
    (["fuse", "--method", "orc", *MANY, "-o", "maps", "--json", "i5_B.nrrd"], ["i5_B.nrrd", "case c5"]),
    (["agree", *RATERS, "--levels", "i0_A.nrrd"], ["--levels i0_A.nrrd", "--rater A"]),
    (["agree", *RATERS, "--entropy", "i0_A.nrrd"], ["--entropy", "--rater A"]),
    (["agree", *MANY, "--csv", "i3.nrrd"], ["--csv i3.nrrd", "case c3"]),
    (["agree", *RATERS, "--json", "x", "--csv", "x"], ["--json x", "--csv x"]),
    (["report", *ONE, "-o", "i0.nrrd"], ["-o i0.nrrd", "--image"]),
    (["report", *ONE, "--pred", "m=pred/c0_levels.nrrd", "-o", "pred/c0_levels.nrrd"], ["--pred"]),
    (["report", *LISTED, "-o", "pred/c4_levels.nrrd"], ["c4_levels.nrrd", "--pred"]),
    (["report", *MANY, "--model", "m=m.safetensors", "-o", "m.safetensors"], ["-o m.safetensors", "--model"]),
    (["evaluate", *JUDGED, "--json", "pred/c0_levels.nrrd"], ["--json", "--prob"]),
    (["evaluate", *JUDGED, "--region-mask", "i0_B.nrrd", "--json", "i0_B.nrrd"], ["--json i0_B.nrrd"]),
    (["evaluate", *LISTED, "--json", "pred/c1_levels.nrrd"], ["--json", "--pred"]),
    (["evaluate", *LISTED, "--plot", "p.svg", "--json", "p.svg"], ["p.svg", "the same file"]),
    (["recalibrate", "--method", "platt", *LISTED, "-o", "list.json"], ["-o list.json", "--data"]),
    (["recalibrate", "--method", "platt", *LISTED, "--model", "m.safetensors", "-o", "m.safetensors"], ["-o m.safetensors", "--model"]),
    (["predict", "--model", "m.safetensors", *MANY, "-o", "new", "--json", "m.safetensors"], ["--json m.safetensors", "--model"]),
    (["predict", "--model", "m.safetensors", "--image", "i0.nrrd", "-o", "new", "--json", "i0.nrrd"], ["--json i0.nrrd", "--image"]),
    (["predict", "--model", "m.safetensors", *MANY, "-o", "pred", "--json", "pred/predictions.json"], ["--json", "-o", "the same file"]),
    (["train", *MANY, "-o", "new.safetensors", "--json", "list.json"], ["--json list.json", "--data"]),
    (["train", *MANY, "-o", "new.safetensors", "--init", "m.safetensors", "--json", "m.safetensors"], ["--json", "--init"]),
    (["train", *MANY, "--init", "m.checkpoint.safetensors", "-o", "m.safetensors"], ["m.checkpoint.safetensors", "--init"]),
    (["train", *MANY, "--rehearse", "broken.json", "-o", "new.safetensors", "--json", "broken.json"], ["--json broken.json", "--rehearse"]),
    (["study", *MANY, "-o", "s", "--json", "i1.nrrd"], ["--json i1.nrrd", "case c1"]),
    (["view", *ONE, "--screenshot", "i0.nrrd"], ["--screenshot i0.nrrd", "--image"]),
]


@pytest.mark.parametrize("words,says", OVERWRITES, ids=lambda value: " ".join(value[:1]) if isinstance(value, list) else "")
def test_inputs_are_not_overwritten(words, says, files):
    spared(files, *words, says=says)


@pytest.mark.parametrize("link", ["symbolic", "hard"])
def test_inputs_are_not_overwritten_through_links(link, files):
    (files / "l.nrrd").symlink_to("i0_A.nrrd") if link == "symbolic" else os.link(files / "i0_A.nrrd", files / "l.nrrd")
    spared(files, "fuse", "--method", "orc", *RATERS, "-o", "l.nrrd", says=["-o l.nrrd", "i0_A.nrrd", "--rater A"])
    spared(files, "fuse", "--method", "orc", "--rater", "A=l.nrrd", "-o", "i0_A.nrrd", says=["-o i0_A.nrrd", "--rater A"])
    (files / "d").symlink_to(files)
    spared(files, "agree", *MANY, "--json", "d/list.json", says=["--json d/list.json", "--data"])
    (files / "new1").symlink_to("new2")  # to a file that is not there yet
    spared(files, "agree", *RATERS, "--json", "new1", "--csv", "new2", says=["--json new1", "--csv new2"])


def test_maps_of_a_list_do_not_replace_its_images(files):
    """The name that a map would get is that of an image or a mask."""
    content = json.loads((files / "list.json").read_text("utf-8"))
    one = content["test"][0]
    (files / "in").mkdir()
    for name in (f"{one['id']}_soft.nrrd", f"{one['id']}_prob.nrrd"):
        shutil.copy(files / one["image"], files / "in" / name)
    one["image"] = f"in/{one['id']}_prob.nrrd"
    (files / "a.json").write_text(json.dumps(content))
    spared(files, "predict", "--model", "m.safetensors", "--data", "a.json", "-o", "in", says=[one["image"], f"case {one['id']}"])
    spared(files, "predict", "--model", "m.safetensors", "--data", "a.json", "--split", "test", "-o", "in", says=f"case {one['id']}")
    run("predict", "--model", "m.safetensors", "--data", "a.json", "--split", "validation", "-o", "in", "--quiet", cwd=files)
    one["image"] = f"in/{one['id']}_soft.nrrd"
    (files / "a.json").write_text(json.dumps(content))
    spared(files, "fuse", "--method", "soft", "--data", "a.json", "-o", "in", says=[one["image"], f"case {one['id']}"])
    shutil.copy(files / "i4.nrrd", files / "in" / "c4.nrrd")  # whose maps lie beside it, as if they were images
    spared(files, "predict", "--model", "m.safetensors", "--image", "in", "-o", "in", says="--image")


def test_a_header_brings_its_data_file(files):
    (files / "h.mhd").write_text("ObjectType = Image\nNDims = 2\nDimSize = 32 32\nElementType = MET_UCHAR\nElementDataFile = h.raw\n")
    (files / "h.raw").write_bytes(bytes(32 * 32))
    spared(files, "agree", *RATERS, "--image", "h.mhd", "--json", "h.raw", says=["--json h.raw", "--image"])


def test_what_may_be_written(files):
    """New files, older results, devices, and a model that goes on from itself."""
    for _ in range(2):
        run("fuse", "--method", "orc", *RATERS, "-o", "o.nrrd", "--json", "o.json", "--quiet", cwd=files)
        run("evaluate", *LISTED, "--json", "pred/result.json", "--plot", "pred/plot.svg", "--quiet", cwd=files)
        run("report", *ONE, "-o", "r.html", "--quiet", cwd=files)
        run("agree", *RATERS, "--json", "/dev/null", "--csv", "/dev/null", "--quiet", cwd=files)
        run("predict", "--model", "m.safetensors", *MANY, "-o", "pred", "--quiet", cwd=files)
    done = run("train", *MANY, "--init", "m.safetensors", "-o", "m.safetensors", *TINY, "--quiet", check=False, cwd=files)
    assert "overwrite what" not in done.err


# ---- help and the way out ----

REGIONS = ["whole", "box", "band", "disputed"]
METHODS = ["orc", "random", "median", "soft", "soft-gaussian", "staple", "simple", "svls"]
CHOICES = [
    ("fuse", "--method", METHODS), ("evaluate", "--region", REGIONS), ("recalibrate", "--region", REGIONS),
    ("recalibrate", "--method", ["temperature", "platt", "beta", "isotonic"]),
    ("train", "--arch", ["unet", "fpn-resnet18", "fpn-resnet34", "fpn-resnet50", "unet3d"]),
    ("train", "--strategy", ["ordinal", "rps", *METHODS[1:], "ce", "brier", "emd", "corn", "coral", "cumulative-link", "binomial", "beta-binomial", "beta-binomial-voxel", "dirichlet-multinomial"])]


@pytest.mark.parametrize("command, option, names", CHOICES)
def test_choices_are_the_contract(command, option, names):
    """Help lists the names of the contract, all of them and no others; anything else is refused with the same list."""
    text = " ".join(run(command, "--help").out.split())
    entries = [entry for entry in text.split(f" {option} ") if f": {', '.join(names)} -" in entry]
    assert entries, text
    refused(command, option, "Majority", says=[option, ", ".join(names) + ", not 'Majority'"])


def test_lines_of_help_are_short_and_have_no_spaces_at_the_end():
    for command in ["", *LISTS, "view", "demo"]:
        lines = run(*([command] if command else []), "--help").out.splitlines()
        assert lines and not [line for line in lines if line != line.rstrip()]
        assert not [line for line in lines if len(line) > 96 and not line.startswith("  rater-consensus")]


def test_words_that_do_not_fit():
    refused("fuse", "--methode", "soft", says="Unknown option --methode; see rater-consensus fuse --help.")
    refused("fuse", "soft", says="Unexpected argument 'soft'; see rater-consensus fuse --help.")
    refused("fusion", says="Unknown command 'fusion'; see rater-consensus --help.")
    refused("agree", "--rater", "=a.nrrd", says="--rater =a.nrrd: give the rater a name")
