# SPDX-License-Identifier: Apache-2.0
"""agree and fuse, from files to tables, JSON and maps."""
import csv
import io
import json
import os
import pathlib
import pty
import shutil
import signal
import subprocess
import time

import numpy as np
import pytest

from rcn_testing import (METHODS, PROGRAM, blobs, golden, leftovers, raters, read_image, read_png, rotation, run, signals, start,
                         wait_for_handler, wait_until, write_image, write_nifti, write_nrrd, write_nrrd_4d, write_png,
                         write_tiff)


def fuse(folder, files, method, *options, name="out.nrrd"):
    """The map and the JSON."""
    out = folder / name
    answer = run("fuse", "--method", method, *raters(files), "-o", out, "--json", "-", *options)
    return read_image(out), answer.json


# ---- golden vectors --------------------------------------------------------------------------------

GOLDEN = {
    3: dict(histogram=[326, 117, 39, 30], prior=.1855468750, total=86.78352704, marked=69,
            sensitivity=(.67681031, .83452788, .5334457), specificity=(.95469599, .91398093, .87840147)),
    4: dict(histogram=[267, 146, 39, 37, 23], prior=.2084960938, total=87.86211150, marked=80,
            sensitivity=(.69187874, .78803647, .54880051, .79697658),
            specificity=(.95942342, .90625349, .88262962, .83030059)),
}


@pytest.fixture(params=[3, 4])
def golden_case(request, tmp_path):
    masks = golden(request.param)
    files = {name: write_nrrd(tmp_path / f"{name}.nrrd", m) for name, m in zip("ABCD", masks)}
    return request.param, masks, files


def test_golden_masks():
    assert [int(m.sum()) for m in golden(4)] == [78, 109, 98, 142]


def test_golden_levels(golden_case, tmp_path):
    k, masks, files = golden_case
    levels, _ = fuse(tmp_path, files, "orc")
    assert levels.array.dtype == np.float32
    assert np.array_equal(levels.array, np.sum(masks, 0))
    assert np.bincount(levels.array.astype(int).ravel()).tolist() == GOLDEN[k]["histogram"]
    answer = run("agree", *raters(files), "--json", "-").json
    assert [level["voxels"] for level in answer["levels"]] == GOLDEN[k]["histogram"]
    assert [answer["raters"][name]["voxels"] for name in files] == [int(m.sum()) for m in masks]


def test_golden_staple(golden_case, tmp_path):
    k, masks, files = golden_case
    want = GOLDEN[k]
    posterior, answer = fuse(tmp_path, files, "staple")
    assert answer["prior"] == pytest.approx(want["prior"], abs=1e-9)
    assert list(answer["sensitivity"].values()) == pytest.approx(want["sensitivity"], abs=1e-6)
    assert list(answer["specificity"].values()) == pytest.approx(want["specificity"], abs=1e-6)
    assert list(answer["sensitivity"]) == list(files) and answer["converged"] and answer["region_voxels"] == 512
    assert posterior.array.astype(float).sum() == pytest.approx(want["total"], abs=1e-4)
    assert (posterior.array >= .5).sum() == want["marked"]
    mask, _ = fuse(tmp_path, files, "staple", "--mask")
    assert np.array_equal(mask.array, posterior.array >= .5)
    if k == 3:
        pattern = masks[0] + 2 * masks[1] + 4 * masks[2]
        by_pattern = [.00736153, .246577, .284389, .946056, .0577179, .729958, .766485, .993144]
        assert np.abs(posterior.array - np.take(by_pattern, pattern)).max() < 1e-6


def test_golden_staple_depends_on_background(tmp_path):
    masks = [np.pad(m, 8) for m in golden(3)]
    files = {name: write_nrrd(tmp_path / f"{name}.nrrd", m) for name, m in zip("ABC", masks)}
    posterior, answer = fuse(tmp_path, files, "staple")
    assert list(answer["sensitivity"].values()) == pytest.approx((.67436, .83905, .56575), abs=1e-5)
    pattern = masks[0] + 2 * masks[1] + 4 * masks[2]
    assert posterior.array[pattern == 5][0] == pytest.approx(.9897, abs=1e-4)
    # The box around all marks, as an option, and reported.
    boxed, answer = fuse(tmp_path, files, "staple", "--margin", "0")
    assert answer["region_voxels"] == 512
    assert answer["prior"] == pytest.approx(GOLDEN[3]["prior"], abs=1e-9)


def test_golden_majority(golden_case, tmp_path):
    k, masks, files = golden_case
    votes = np.sum(masks, 0)
    median, _ = fuse(tmp_path, files, "median")
    assert np.array_equal(median.array, 2 * votes >= k)
    strict, _ = fuse(tmp_path, files, "median", "--tie", "background")
    assert np.array_equal(strict.array, 2 * votes > k)
    if k == 4:
        assert (median.array.sum(), strict.array.sum()) == (99, 60)


def test_golden_agreement(golden_case):
    k, masks, files = golden_case
    answer = run("agree", *raters(files), "--json", "-").json
    votes = np.sum(masks, 0).astype(float)
    p_i = (votes * (votes - 1) + (k - votes) * (k - votes - 1)) / (k * (k - 1))
    share = votes.mean() / k
    chance = share**2 + (1 - share)**2
    assert answer["whole"]["fleiss_kappa"] == pytest.approx((p_i.mean() - chance) / (1 - chance), abs=1e-12)
    for pair in answer["pairs"]:
        a, b = (masks["ABCD".index(pair[end])].astype(bool) for end in "ab")
        assert pair["dice"] == pytest.approx(2 * (a & b).sum() / (a.sum() + b.sum()), abs=1e-12)
        assert pair["jaccard"] == pytest.approx((a & b).sum() / (a | b).sum(), abs=1e-12)
    assert len(answer["pairs"]) == k * (k - 1) // 2
    assert answer["volumes_ml"]["union"] == pytest.approx((votes > 0).sum() / 1000)
    assert answer["volumes_ml"]["disputed"] == pytest.approx(((votes > 0) & (votes < k)).sum() / 1000)
    balance = np.sum(masks[1:], 0, dtype=int) * 2 - (k - 1)  # of the others: a voxel with 0 does not count
    others, mine = balance > 0, (masks[0] > 0) & (balance != 0)
    dice = 2 * (others & mine).sum() / (others.sum() + mine.sum())
    assert answer["raters"]["A"]["dice_to_others"] == pytest.approx(dice, abs=1e-12)


# ---- methods, dimensions, numbers of raters -------------------------------------------------------

@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("shape", [(13, 17), (5, 9, 11)])
def test_every_method(method, shape, tmp_path):
    masks = blobs(5, shape)
    files = {f"r{i}": write_nrrd(tmp_path / f"{i}.nrrd", m) for i, m in enumerate(masks)}
    image, answer = fuse(tmp_path, files, method)
    votes = np.sum(masks, 0)
    assert image.array.shape == shape and image.array.dtype == np.float32
    assert answer["method"] == method and answer["raters"] == list(files)
    assert set(answer["seconds"]) == {"read", "compute", "write"}
    assert np.isfinite(image.array).all()
    if method == "orc":
        assert np.array_equal(image.array, votes)
    elif method == "soft":
        assert np.allclose(image.array, votes / 5, atol=1e-7)
    elif method == "random":
        assert any(np.array_equal(image.array, m) for m in masks) and len(answer["kept"]) == 1
    elif method in ("median", "simple"):
        assert set(np.unique(image.array)) == {0, 1}
    else:
        assert 0 <= image.array.min() and image.array.max() <= 1.000001
    if method == "simple":
        assert 3 <= len(answer["kept"]) <= 5


def test_smoothing_by_hand(tmp_path):
    one = np.zeros((7, 7, 7), np.uint8)
    one[3, 3, 3] = 1
    files = {"A": write_nrrd(tmp_path / "a.nrrd", one)}
    svls, _ = fuse(tmp_path, files, "svls")
    assert svls.array[3, 3, 3] == pytest.approx(.5) and svls.array[3, 3, 2] == pytest.approx(.03082347, abs=1e-7)
    assert svls.array[3, 2, 2] == pytest.approx(.01869538, abs=1e-7)
    assert svls.array[2, 2, 2] == pytest.approx(.01133932, abs=1e-7)
    files = {"A": write_nrrd(tmp_path / "b.nrrd", one[3])}
    svls, _ = fuse(tmp_path, files, "svls")
    assert svls.array[3, 2] == pytest.approx(.07780742, abs=1e-7)
    assert svls.array[2, 2] == pytest.approx(.04719258, abs=1e-7)


@pytest.mark.parametrize("method", ["svls", "soft-gaussian"])
def test_narrow_gaussian_gives_numbers(method, tmp_path, case):
    for sigma in ("0.02", "1e-300"):
        image, _ = fuse(tmp_path, case, method, "--sigma", sigma)
        assert np.isfinite(image.array).all() and image.array.max() <= 1


@pytest.mark.parametrize("k", [1, 2, 8, 9, 16, 17, 33, 64])
def test_numbers_of_raters(k, tmp_path):
    masks = blobs(k, (6, 7, 8), seed=k)
    files = {f"r{i}": write_nrrd(tmp_path / f"{i}.nrrd", m, compress=False) for i, m in enumerate(masks)}
    votes = np.sum(masks, 0)
    levels, _ = fuse(tmp_path, files, "orc")
    assert np.array_equal(levels.array, votes)
    posterior, answer = fuse(tmp_path, files, "staple")
    assert np.isfinite(posterior.array).all() and len(answer["sensitivity"]) == k
    agreement = run("agree", *raters(files), "--json", "-").json
    assert len(agreement["pairs"]) == k * (k - 1) // 2 and len(agreement["levels"]) == k + 1
    text = run("agree", *raters(files)).out
    assert f"{k} rater" in text and "nan" not in text.lower()


def test_one_rater_is_not_compared(tmp_path, case):
    answer = run("agree", "--rater", f"A={case['A']}", "--json", "-").json
    assert answer["mean_dice"] is None and answer["whole"]["fleiss_kappa"] is None
    assert answer["disputed_region_count"] == 0


def test_all_empty(tmp_path):
    files = {n: write_nrrd(tmp_path / f"{n}.nrrd", np.zeros((4, 5, 6), np.uint8)) for n in "ABC"}
    for method in METHODS:
        image, answer = fuse(tmp_path, files, method)
        assert not image.array.any()
        assert len(answer["remarks"]) == 3
    answer = run("agree", *raters(files), "--json", "-").json
    assert answer["mean_dice"] == 1 and answer["pairs"][0]["kappa"] is None
    assert answer["pairs"][0]["hausdorff95_mm"] == 0


def test_identical_raters(tmp_path):
    mask = blobs(1, (9, 9, 9))[0]
    files = {n: write_nrrd(tmp_path / f"{n}.nrrd", mask) for n in "ABC"}
    answer = run("agree", *raters(files), "--json", "-").json
    assert answer["mean_dice"] == 1 and answer["whole"]["fleiss_kappa"] == pytest.approx(1)
    assert answer["pairs"][0]["hausdorff95_mm"] == 0 and answer["disputed_regions"] == []
    for method in ("orc", "median", "soft", "staple", "simple"):
        image, _ = fuse(tmp_path, files, method)
        assert np.allclose(image.array, mask * (3 if method == "orc" else 1), atol=1e-6)


def test_order_of_raters_does_not_matter(tmp_path, case):
    there, _ = fuse(tmp_path, case, "staple")
    back, _ = fuse(tmp_path, dict(reversed(case.items())), "staple")
    assert np.allclose(there.array, back.array, atol=1e-7)


def test_seed_decides_the_draw(tmp_path, case):
    drawn = {fuse(tmp_path, case, "random", "--seed", str(s))[1]["kept"][0] for s in range(20)}
    assert drawn == {"A", "B", "C"}
    again = [fuse(tmp_path, case, "random", "--seed", "7")[1]["kept"] for _ in range(2)]
    assert again[0] == again[1]


def test_type_uint8(tmp_path, case):
    image, _ = fuse(tmp_path, case, "orc", "--type", "uint8")
    assert image.array.dtype == np.uint8 and np.array_equal(image.array, np.sum(golden(3), 0))


@pytest.mark.parametrize("method", METHODS)
def test_threads_give_identical_bytes(method, tmp_path):
    masks = blobs(5, (40, 50, 60))
    files = {f"r{i}": write_nrrd(tmp_path / f"{i}.nrrd", m) for i, m in enumerate(masks)}
    bytes_ = []
    for threads in ("1", "2", "3"):
        fuse(tmp_path, files, method, "--threads", threads, name=f"t{threads}.nrrd")
        bytes_.append((tmp_path / f"t{threads}.nrrd").read_bytes())
    assert bytes_[0] == bytes_[1] == bytes_[2]


def test_threads_give_identical_figures(tmp_path):
    masks = blobs(9, (20, 50, 60))
    files = {f"r{i}": write_nrrd(tmp_path / f"{i}.nrrd", m) for i, m in enumerate(masks)}
    answers = []
    for threads in ("1", "2"):
        answer = run("agree", *raters(files), "--json", "-", "--threads", threads).json
        del answer["seconds"]
        answers.append(answer)
    assert answers[0] == answers[1]


# ---- which voxels are marked ----------------------------------------------------------------------

TYPES = ["uint8", "int8", "uint16", "int16", "uint32", "int32", "uint64", "int64", "float32", "float64"]


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("extension", [".nrrd", ".nii.gz", ".mha"])
def test_mask_types(dtype, extension, tmp_path):
    values = (np.arange(3 * 4 * 5) % 4).reshape(3, 4, 5)
    path = write_image(tmp_path / f"labels{extension}", values.astype(dtype))
    any_, _ = fuse(tmp_path, {"A": path}, "soft")
    assert np.array_equal(any_.array, values > 0)
    two, _ = fuse(tmp_path, {"A": f"{path}:3", "B": f"{path}:1,3"}, "orc")
    assert np.array_equal(two.array, (values == 3) * 2 + (values == 1) * 1)


def test_negative_label(tmp_path):
    values = np.array([[-1, 0, 1, 2]] * 3, np.int16)
    path = write_nrrd(tmp_path / "a.nrrd", values)
    image, _ = fuse(tmp_path, {"A": f"{path}:-1"}, "soft")
    assert np.array_equal(image.array, values == -1)


def test_several_labels_in_one_file(tmp_path):
    """Overlap-free raters in one label map: the same file under several names."""
    values = np.repeat(np.arange(4, dtype=np.uint8), 6).reshape(4, 6)
    path = write_nrrd(tmp_path / "a.nrrd", values)
    answer = run("agree", *raters({f"L{v}": f"{path}:{v}" for v in (1, 2, 3)}), "--json", "-").json
    assert [answer["raters"][f"L{v}"]["voxels"] for v in (1, 2, 3)] == [6, 6, 6]
    assert answer["mean_dice"] == 0


def test_several_labels_that_count_as_one(tmp_path):
    """Any value marks unless one is chosen: which values these are is said, once for a list."""
    labels = np.zeros((4, 5, 6), np.int16)
    labels[1:3, 1:4] = [[[1], [4], [2]], [[1], [2], [2]]]
    many = np.arange(120, dtype=np.uint16).reshape(4, 5, 6)
    files = {"A": write_nrrd(tmp_path / "a.nrrd", labels), "B": write_nifti(tmp_path / "b.nii", (labels == 2).astype(np.uint8) * 255)}
    says = "Several label values count as marked: 1, 2 and 4 of A ("
    for command in (["agree"], ["fuse", "--method", "soft", "-o", tmp_path / "o.nrrd"]):
        done = run(*command, *raters(files))
        assert says in done.err and "a.nrrd). To take one of them" in done.err and "NAME=FILE:3" in done.err and done.err.count("\n") == 1
        assert run(*command, *raters({**files, "A": f"{files['A']}:2"})).err == ""
        assert run(*command, *raters({**files, "A": f"{files['A']}:1,2,4"})).err == ""
        assert "1 and 2 of A" in run(*command, *raters(files), "--unanswered", "4").err
    assert "1, 2, 3, 4, 5, 6, 7, 8 and more of M" in run("agree", "--rater", f"M={write_nrrd(tmp_path / 'm.nrrd', many)}").err
    both = run("agree", *raters({"A": files["A"], "B": files["A"], "C": files["A"]}), "--json", "-")
    assert "a.nrrd), and in 2 other masks." in both.err and both.json["remarks"] == [both.err.strip()]
    prob = write_nrrd(tmp_path / "p.nrrd", (labels > 0).astype(np.float32))
    assert says in run("evaluate", "--prob", prob, *raters(files)).err
    data = tmp_path / "list.json"
    case_ = {"label": {"A": "a.nrrd", "B": "b.nii"}}
    data.write_text(json.dumps({"test": [{"id": f"c{i}", **case_} for i in range(3)]}))
    for i in range(3):
        write_nrrd(tmp_path / f"c{i}_prob.nrrd", (labels > 0).astype(np.float32))
    for words in (["agree"], ["fuse", "--method", "soft", "-o", tmp_path / "maps"], ["evaluate", "--pred", tmp_path],
                  ["report", "-o", tmp_path / "r.html"]):
        assert run(*words, "--data", data).err.count("Several label values") == 1, words
    data.write_text(json.dumps({"test": [{"id": "c0", "label": {"A": {"file": "a.nrrd", "value": 2}, "B": "b.nii"}}]}))
    assert "Several label values" not in run("agree", "--data", data).err


def test_file_name_with_colon_and_equals(tmp_path):
    mask = blobs(1, (6, 6))[0]
    path = write_nrrd(tmp_path / "a=b:3.nrrd", mask)
    image, _ = fuse(tmp_path, {"A": path}, "soft")
    assert np.array_equal(image.array, mask)
    answer = run("agree", "--rater", path, "--json", "-").json
    assert list(answer["raters"]) == ["a=b:3"]


@pytest.mark.parametrize("layers", [1, 2])
def test_slicer_segmentation(layers, tmp_path):
    a, b = blobs(2, (5, 6, 7))
    if layers == 1:
        b = b & ~a & 1  # one layer cannot hold an overlap
        array, places = a + 2 * b, [(1, 0), (2, 0)]
    else:
        array, places = np.stack([a, b], -1), [(1, 0), (1, 1)]
    fields = {}
    for i, (name, (value, layer)) in enumerate(zip(["Dr. Müller", "Dr. B"], places)):
        fields |= {f"Segment{i}_Name": name, f"Segment{i}_LabelValue": value, f"Segment{i}_Layer": layer,
                   f"Segment{i}_ID": f"Segment_{i}"}
    path = write_nrrd(tmp_path / "raters.seg.nrrd", array, components=layers > 1, fields=fields)
    answer = run("agree", "--rater", path, "--json", "-").json
    assert list(answer["raters"]) == ["Dr. Müller", "Dr. B"]
    assert [r["voxels"] for r in answer["raters"].values()] == [a.sum(), b.sum()]
    run("fuse", "--method", "orc", "--rater", path, "-o", tmp_path / "o.nrrd")
    assert np.array_equal(read_image(tmp_path / "o.nrrd").array, a + b)


def test_four_dimensional_files(tmp_path):
    masks = blobs(3, (4, 5, 6))
    for path in (write_nifti(tmp_path / "a.nii.gz", np.stack(masks)), write_nrrd_4d(tmp_path / "a.nrrd", masks)):
        run("fuse", "--method", "orc", "--rater", path, "-o", tmp_path / "o.nrrd")
        assert np.array_equal(read_image(tmp_path / "o.nrrd").array, np.sum(masks, 0))
        answer = run("agree", "--rater", f"team={path}", "--json", "-").json
        assert list(answer["raters"]) == ["team.1", "team.2", "team.3"]


def test_components_as_raters(tmp_path):
    masks = blobs(4, (4, 5, 6))
    path = write_nrrd(tmp_path / "a.nrrd", np.stack(masks, -1), components=True)
    answer = run("agree", "--rater", path, "--json", "-").json
    assert list(answer["raters"]) == ["r1", "r2", "r3", "r4"]
    assert [r["voxels"] for r in answer["raters"].values()] == [m.sum() for m in masks]


def test_nifti_neighbors(tmp_path):
    """a.nii and a.nii.gz in one folder are two files; niftilib takes the voxels of a.nii for both."""
    a, b = blobs(2, (4, 5, 6))
    files = {"A": write_nifti(tmp_path / "a.nii", a), "B": write_nifti(tmp_path / "a.nii.gz", b)}
    image, _ = fuse(tmp_path, files, "orc")
    assert np.array_equal(image.array, a + b)
    done = run("agree", "--rater", f"B={tmp_path / 'a.nii.gz'}:7", check=False)
    assert done.code == 2 and str(tmp_path / "a.nii.gz") in done.err


def test_unanswered(tmp_path):
    a = np.array([[1, 1, 0, 0, 9, 9]] * 2, np.uint8)
    b = np.array([[1, 0, 1, 0, 1, 0]] * 2, np.uint8)
    files = {"A": write_nrrd(tmp_path / "a.nrrd", a), "B": write_nrrd(tmp_path / "b.nrrd", b)}
    image, _ = fuse(tmp_path, files, "soft", "--unanswered", "9")
    assert np.allclose(image.array[0], [1, .5, .5, 0, 1, 0])
    answer = run("agree", *raters(files), "--unanswered", "9", "--json", "-").json
    assert answer["pairs"][0]["dice"] == pytest.approx(.5)  # over the voxels that both looked at
    assert answer["raters"]["A"]["voxels"] == 4
    staple, _ = fuse(tmp_path, files, "staple", "--unanswered", "9")
    assert np.isfinite(staple.array).all()


# ---- geometry --------------------------------------------------------------------------------------

GEOMETRY = {2: dict(spacing=[.5, .75], origin=[-10.5, 33.25], direction=rotation(30, 2)),
            3: dict(spacing=[.5, .75, 3], origin=[-10.5, 33.25, 7], direction=rotation(20))}


@pytest.mark.parametrize("into", [".nrrd", ".nii.gz", ".nii", ".mha"])
@pytest.mark.parametrize("from_", [".nrrd", ".nii.gz", ".mha"])
@pytest.mark.parametrize("n", [2, 3])
def test_geometry_round_trip(n, from_, into, tmp_path):
    masks = blobs(2, (6, 7, 8)[-n:])
    files = {k: write_image(tmp_path / f"{k}{from_}", m, **GEOMETRY[n]) for k, m in zip("AB", masks)}
    image, _ = fuse(tmp_path, files, "soft", name=f"out{into}")
    assert image.array.ndim == n
    assert np.allclose(image.array, np.mean(masks, 0))
    for key, value in GEOMETRY[n].items():
        assert np.allclose(getattr(image, key), value, atol=2e-6), key


def test_centroids_are_where_slicer_shows_them(tmp_path):
    a = np.zeros((6, 7, 8), np.uint8)
    b = a.copy()
    a[2:4, 3, 4] = 1
    files = {k: write_nrrd(tmp_path / f"{k}.nrrd", m, **GEOMETRY[3]) for k, m in (("A", a), ("B", b))}
    region = run("agree", *raters(files), "--json", "-").json["disputed_regions"][0]
    g = GEOMETRY[3]
    lps = np.array(g["origin"]) + g["direction"] @ (np.array(g["spacing"]) * [4, 3, 2.5])
    assert region["centroid_ras_mm"] == pytest.approx(lps * [-1, -1, 1], abs=1e-6)
    assert region["voxels"] == 2 and region["volume_ml"] == pytest.approx(2 * .5 * .75 * 3 / 1000)
    assert region["marked_by"] == ["A"] and region["most_votes"] == 1 and region["voxel"] in ([4, 3, 2], [4, 3, 3])


def test_png(tmp_path):
    masks = blobs(3, (12, 15))
    files = {k: write_png(tmp_path / f"{k}.png", m * 255) for k, m in zip("ABC", masks)}
    done = run("fuse", "--method", "soft", *raters(files), "-o", tmp_path / "o.png")
    assert "65535" in done.err
    assert np.array_equal(read_png(tmp_path / "o.png"), np.rint(np.mean(masks, 0) * 65535))
    done = run("fuse", "--method", "median", *raters(files), "-o", tmp_path / "o.png")
    assert "255" in done.err
    assert np.array_equal(read_png(tmp_path / "o.png"), (np.sum(masks, 0) >= 2) * 255)
    run("fuse", "--method", "orc", *raters(files), "-o", tmp_path / "o.png")
    assert np.array_equal(read_png(tmp_path / "o.png"), np.sum(masks, 0))
    run("fuse", "--method", "orc", "--type", "uint8", *raters(files), "-o", tmp_path / "o.png")
    assert np.array_equal(read_png(tmp_path / "o.png"), np.sum(masks, 0))
    # What was written is a mask that can be read again.
    run("fuse", "--method", "median", *raters(files), "-o", tmp_path / "m.png", "--quiet")
    answer = run("agree", *raters({**files, "M": tmp_path / "m.png"}), "--json", "-").json
    assert answer["raters"]["M"]["voxels"] == (np.sum(masks, 0) >= 2).sum()


@pytest.mark.parametrize("shape", [(12, 15), (4, 12, 15)])
def test_tiff(shape, tmp_path):
    masks = blobs(3, shape)
    files = {k: write_image(tmp_path / f"{k}.tif", m) for k, m in zip("ABC", masks)}
    run("fuse", "--method", "orc", *raters(files), "-o", tmp_path / "o.tif")
    answer = run("agree", *raters({"O": tmp_path / "o.tif"}), "--json", "-").json
    assert answer["geometry"]["size"] == list(shape[::-1])
    assert answer["raters"]["O"]["voxels"] == (np.sum(masks, 0) > 0).sum()
    three = run("agree", "--rater", f"O={tmp_path / 'o.tif'}:3", "--json", "-").json
    assert three["raters"]["O"]["voxels"] == (np.sum(masks, 0) == 3).sum()


COLORS = bytes([0, 0, 0, 255, 0, 0, 0, 255, 0, 9, 9, 9])


@pytest.mark.parametrize("dtype", ["uint8", "uint16"])
def test_alpha_is_no_rater(dtype, tmp_path):
    mask, other = blobs(2, (20, 30))
    alpha = np.full_like(mask, 255)
    files = {"G": write_png(tmp_path / "g.png", (mask * 200).astype(dtype)), "O": write_png(tmp_path / "o.png", other)}
    expected = run("agree", *raters(files), "--json", "-").json
    for what in (write_png(tmp_path / "alpha.png", np.dstack([mask * 200, alpha]).astype(dtype)),
                 write_png(tmp_path / "clear.png", (mask * 200).astype(dtype), transparent=b"\0\0")):
        answer = run("agree", *raters({**files, "G": what}), "--json", "-").json
        assert answer["raters"] == expected["raters"] and answer["pairs"] == expected["pairs"]
        # An image has its gray values only.
        run("agree", "--image", what, *raters(files))


@pytest.mark.parametrize("name", ["a.png", "clear.png", "a.tif"])
def test_palette_entries_are_labels(name, tmp_path):
    """Two entries of one color, and black ones, are still different labels."""
    labels = blobs(1, (20, 30))[0] + blobs(1, (20, 30), seed=8)[0]
    labels[0, 0] = 3
    path = tmp_path / name
    if name == "a.tif":
        write_tiff(path, labels, palette=np.zeros((3, 256), int))
    else:
        write_png(path, labels, palette=COLORS[:6] + COLORS[:6], transparent=b"\0" if name == "clear.png" else None)
    for what, expected in ((path, labels > 0), (f"{path}:2", labels == 2), (f"{path}:1,3", (labels == 1) | (labels == 3))):
        run("fuse", "--method", "median", "--rater", f"A={what}", "-o", tmp_path / "o.nrrd", "--quiet")
        assert np.array_equal(read_image(tmp_path / "o.nrrd").array.reshape(labels.shape), expected)


@pytest.mark.parametrize("extension", [".tif", ".png"])
def test_lost_geometry_is_said(extension, tmp_path):
    mask = blobs(1, (6, 7))[0]
    path = write_nrrd(tmp_path / "a.nrrd", mask, **GEOMETRY[2])
    done = run("fuse", "--method", "soft", "--rater", f"A={path}", "-o", tmp_path / f"o{extension}")
    assert "origin" in done.err and f"o{extension}" in done.err


def test_resample(tmp_path):
    fine = np.zeros((8, 8, 8), np.uint8)
    fine[2:6, 2:6, 2:6] = 1
    coarse = fine[::2, ::2, ::2]
    a = write_nrrd(tmp_path / "a.nrrd", coarse, spacing=(2, 2, 2))
    b = write_nrrd(tmp_path / "b.nrrd", fine)
    done = run("agree", *raters({"A": a, "B": b}), "--resample", "--json", "-")
    answer = done.json
    assert answer["geometry"]["size"] == [4, 4, 4] and answer["mean_dice"] == 1
    assert len(answer["remarks"]) == 1 and "resampled" in answer["remarks"][0] and "b.nrrd" in answer["remarks"][0]


def test_tolerance(tmp_path, case):
    shifted = write_nrrd(tmp_path / "s.nrrd", golden(1)[0], origin=(.005, 0, 0))
    files = raters({"A": case["A"], "S": shifted})
    run("agree", *files)  # five thousandths of a voxel are nothing
    assert run("agree", *files, "--tolerance", "0.001", check=False).code == 2
    far = write_nrrd(tmp_path / "f.nrrd", golden(1)[0], origin=(.3, 0, 0))
    files = raters({"A": case["A"], "F": far})
    assert run("agree", *files, check=False).code == 2
    run("agree", *files, "--tolerance", "0.5")


def test_image_gives_the_geometry(tmp_path, case):
    image = write_nrrd(tmp_path / "i.nrrd", np.full((8, 8, 8), 5, np.int16))
    answer = run("agree", *raters(case), "--image", image, "--json", "-").json
    assert answer["geometry"]["size"] == [8, 8, 8]


# ---- data lists ------------------------------------------------------------------------------------

@pytest.fixture
def dataset(tmp_path):
    """Labels in every way a list may give them; c03 has no rater B, c06 cannot be used."""
    masks = {f"c0{i}": blobs(3, (6, 7, 8), seed=i) for i in range(1, 6)}
    for id_, (a, b, c) in masks.items():
        for name, mask in zip("ABC", (a, b, c)):
            write_nrrd(tmp_path / f"{id_}_{name}.nrrd", mask * 3)
    write_nifti(tmp_path / "c04.nii.gz", np.stack(masks["c04"]))
    write_nrrd(tmp_path / "c05.nrrd", np.full((6, 7, 8), 7, np.int16))
    (tmp_path / "c06_A.nrrd").write_text("no image")
    entries = {
        "training": [
            {"id": "c01", "label": {n: f"c01_{n}.nrrd" for n in "ABC"}},
            {"id": "c02", "label": [f"c02_{n}.nrrd" for n in "ABC"], "value": 3},
            {"id": "c03", "label": [f"c03_A.nrrd", None, {"file": "c03_C.nrrd", "value": 3}]},
        ],
        "validation": [{"id": "c04", "label": "c04.nii.gz"}],
        "test": [
            {"image": "c05.nrrd", "label": {"A": "c05_A.nrrd", "B": None, "C": {"file": "c05_C.nrrd", "value": [2, 3]}}},
        ]}
    path = tmp_path / "list.json"
    path.write_text(json.dumps({"raters": list("ABC"), **entries}))
    return path, masks, entries


def test_agree_over_a_list(dataset, tmp_path):
    path, masks, _ = dataset
    done = run("agree", "--data", path, "--csv", tmp_path / "o.csv", "--json", tmp_path / "o.json")
    rows = list(csv.DictReader(io.StringIO((tmp_path / "o.csv").read_text("utf-8"))))
    assert [r["case"] for r in rows] == ["c01", "c02", "c03", "c04", "c05"]
    assert [r["raters"] for r in rows] == ["3", "3", "2", "3", "2"]
    assert [r["split"] for r in rows] == ["training"] * 3 + ["validation", "test"]
    answer = json.loads((tmp_path / "o.json").read_text("utf-8"))
    dice = []
    for id_, one, row in zip(masks, answer["cases"], rows):
        present = [n for n in "ABC" if not (n == "B" and id_ in ("c03", "c05"))]
        assert one["case"] == id_ and list(one["raters"]) == present
        for n in present:
            assert one["raters"][n]["voxels"] == masks[id_]["ABC".index(n)].sum()
        assert float(row["mean_dice"]) == pytest.approx(one["mean_dice"], abs=1e-9)
        dice.append(one["mean_dice"])
    summary = answer["summary"]["mean_dice"]
    assert summary["mean"] == pytest.approx(np.mean(dice)) and summary["cases"] == 5
    assert (summary["lowest"], summary["highest"]) == pytest.approx((min(dice), max(dice)))
    assert set(answer["seconds"]) == {"read", "compute", "write"}
    assert all(word in done.out for word in ("c01", "c05", "Over all cases"))


def test_list_to_standard_output(dataset):
    path, _, _ = dataset
    rows = list(csv.DictReader(io.StringIO(run("agree", "--data", path, "--csv", "-").out)))
    assert len(rows) == 5
    assert len(run("agree", "--data", path, "--json", "-").json["cases"]) == 5
    only = run("agree", "--data", path, "--json", "-", "--split", "training").json["cases"]
    assert [c["case"] for c in only] == ["c01", "c02", "c03"]


def test_csv_of_one_case(case, tmp_path):
    rows = list(csv.DictReader(io.StringIO(run("agree", *raters(case), "--csv", "-").out)))
    assert len(rows) == 1 and rows[0]["raters"] == "3"


def test_fuse_over_a_list(dataset, tmp_path):
    path, masks, _ = dataset
    out = tmp_path / "maps" / "orc"
    answer = run("fuse", "--method", "orc", "--data", path, "-o", out, "--json", "-", "--format", ".nii.gz").json
    assert sorted(p.name for p in out.iterdir()) == [f"c0{i}_orc.nii.gz" for i in range(1, 6)]
    for one in answer["cases"]:
        a, b, c = masks[one["case"]]
        votes = a + c if one["case"] in ("c03", "c05") else a + b + c
        assert np.array_equal(read_image(one["output"]).array, votes)
    assert not leftovers(tmp_path)


def test_bad_case_is_left_out(dataset, tmp_path):
    path, masks, entries = dataset
    entries["training"].insert(1, {"id": "c06", "label": {"A": "c06_A.nrrd"}})
    entries["test"].append({"id": "c07", "label": {"A": "nowhere.nrrd"}})
    path.write_text(json.dumps({"raters": list("ABC"), **entries}))
    done = run("agree", "--data", path, "--json", "-", check=False)
    assert done.code == 1
    assert [c["case"] for c in done.json["cases"]] == list(masks)
    lines = done.err.strip().split("\n")
    assert len(lines) == 3 and "c06" in lines[0] and "c06_A.nrrd" in lines[0]
    assert "nowhere.nrrd does not exist" in lines[1] and "2 of 7" in lines[2]
    done = run("fuse", "--method", "soft", "--data", path, "-o", tmp_path / "o", check=False)
    assert done.code == 1 and len(list((tmp_path / "o").iterdir())) == 5


def test_list_names_raters_by_itself(tmp_path, case):
    """Without "raters": by name, or r1, r2, ... in order; whole numbers are ids too."""
    path = tmp_path / "list.json"
    path.write_text(json.dumps({"training": [{"id": 7, "label": {n: f"{n}.nrrd" for n in "ABC"}}]}))
    answer = run("agree", "--data", path, "--json", "-").json["cases"][0]
    assert answer["case"] == "7" and list(answer["raters"]) == ["A", "B", "C"]
    path.write_text(json.dumps({"test": [{"id": "x", "label": ["A.nrrd", "B.nrrd"]}]}))
    assert list(run("agree", "--data", path, "--json", "-").json["cases"][0]["raters"]) == ["r1", "r2"]


# ---- what people see -------------------------------------------------------------------------------

def test_table_is_aligned_and_has_units(tmp_path, case):
    text = run("agree", *raters(case)).out
    for words in ("Volume (mL)", "Hausdorff 95 % (mm)", "Cohen's κ", "Fleiss' κ", "Center R, A, S (mm)", "3 raters, 8 x 8 x 8"):
        assert words in text
    table = text.split("Pairs of raters")[1].split("\n\n")[0].split("\n")[1:]
    assert len({len(line) for line in table}) == 1
    flat = write_nrrd(tmp_path / "flat.nrrd", golden(1)[0][4])
    assert "Area (mm²)" in run("agree", "--rater", f"A={flat}").out


def test_quiet(tmp_path, case):
    done = run("fuse", "--method", "soft", *raters(case), "-o", tmp_path / "o.nrrd", "--quiet")
    assert done.out == "" and done.err == ""


def test_names_of_any_language(tmp_path, case):
    names = ["Дарья", "山田", "Zoë B."]
    answer = run("agree", *raters(dict(zip(names, case.values()))), "--json", "-").json
    assert list(answer["raters"]) == names


def test_maps_of_agree(tmp_path, case):
    run("agree", *raters(case), "--levels", tmp_path / "l.nrrd", "--entropy", tmp_path / "e.mha")
    votes = np.sum(golden(3), 0)
    assert np.array_equal(read_image(tmp_path / "l.nrrd").array, votes)
    m = votes / 3
    with np.errstate(all="ignore"):
        entropy = np.where((m > 0) & (m < 1), -(m * np.log2(m) + (1 - m) * np.log2(1 - m)), 0)
    assert np.allclose(read_image(tmp_path / "e.mha").array, entropy, atol=1e-6)


def test_regions_option(case):
    all_ = run("agree", *raters(case), "--json", "-", "--regions", "100000").json
    sizes = [r["voxels"] for r in all_["disputed_regions"]]
    assert sizes == sorted(sizes, reverse=True) and len(sizes) == all_["disputed_region_count"]
    none = run("agree", *raters(case), "--json", "-", "--regions", "0").json
    assert none["disputed_regions"] == [] and none["disputed_region_count"] == len(sizes)


@pytest.mark.parametrize("words", [["--help"], ["help"], ["agree", "--help"], ["fuse", "--help"], ["fuse", "-h"], ["--version"]])
def test_help(words):
    done = run(*words)
    assert done.out.strip() and done.err == ""
    assert max(map(len, done.out.split("\n"))) <= 130
    if words[0] == "fuse":
        assert all(m in done.out for m in METHODS)


def test_man_page():
    page = run("--man").out
    assert page.startswith(".TH") and all(f".SS {c}" in page for c in ("agree", "fuse"))
    for option in ("--rater", "--method", "--resample"):
        assert option.replace("-", "\\-") in page
    # Every control line is one that man(7) knows.
    known = (".TH", ".SH", ".SS", ".TP", ".B", ".br")
    assert all(line.split()[0] in known for line in page.split("\n") if line.startswith("."))
    if shutil.which("man"):
        done = subprocess.run(["man", "--warnings", "-l", "-"], input=page.encode(), capture_output=True,
                              env={**os.environ, "MANPAGER": "cat", "LC_ALL": "C.UTF-8"})
        assert done.stderr == b"" and b"rater-consensus" in done.stdout


def test_bash_completion(tmp_path):
    script = tmp_path / "completion"
    script.write_text(run("--bash-completion").out)
    assert subprocess.run(["bash", "-n", script]).returncode == 0

    def complete(*words):
        line = " ".join(f"'{w}'" for w in words)
        command = (f"source {script}; COMP_WORDS=({line}); COMP_CWORD={len(words) - 1}; _rater_consensus; "
                   'printf "%s\\n" "${COMPREPLY[@]}"')
        return subprocess.run(["bash", "-c", command], capture_output=True, text=True).stdout.split()
    assert "agree" in complete("rater-consensus", "a")
    assert complete("rater-consensus", "fuse", "--method", "st") == ["staple"]
    assert complete("rater-consensus", "agree", "--reg") == ["--regions"]


# ---- terminals and signals -------------------------------------------------------------------------

@pytest.fixture(scope="module")
def large(tmp_path_factory):
    """Enough voxels that a run takes a while: about a second to read, more to write."""
    folder = tmp_path_factory.mktemp("large")
    random = np.random.default_rng(1)
    files = {}
    for name in "ABCDE":
        mask = (random.random((100, 256, 256)) < .3).astype(np.uint8)
        files[name] = write_nrrd(folder / f"{name}.nrrd", mask, compress=False)
    return folder, files


def on_terminal(words):
    """Standard error on a pseudo terminal; what was shown, and the exit code."""
    master, slave = pty.openpty()
    process = start(*words, stderr=slave, stdout=subprocess.DEVNULL)
    os.close(slave)
    shown = b""
    while True:
        try:
            piece = os.read(master, 4096)
        except OSError:
            break
        if not piece:
            break
        shown += piece
    os.close(master)
    return shown.decode(), process.wait()


def test_progress_on_a_terminal_only(case, tmp_path):
    words = ["fuse", "--method", "svls", *raters(case), "-o", tmp_path / "o.nrrd"]
    shown, code = on_terminal(words)
    assert code == 0 and "[" in shown and "% " in shown and shown.endswith("\r\x1b[K")
    shown, code = on_terminal([*words, "--quiet"])
    assert code == 0 and shown == ""
    assert run(*words).err == ""


def has_written(folder):
    return any(p.stat().st_size for p in leftovers(folder) if p.exists())


def wait_until_writing(folder):
    wait_until(lambda: has_written(folder))


def has_open(process, path):
    """Whether a process has a file open."""
    folder = pathlib.Path(f"/proc/{process.pid}/fd")
    try:
        return any(os.path.realpath(name) == str(path) for name in folder.iterdir())
    except OSError:  # the process or a file of it is gone
        return False


def wait_until_it(does, process, files, folder):
    """Until the program starts, reads, computes (all files are read) or writes; or until a quick machine is done with it."""
    def done():
        return process.poll() is not None

    if does == "reads":
        wait_until(lambda: has_open(process, files["A"]) or done())
    elif does == "computes":
        wait_until(lambda: has_open(process, files["E"]) or done())
        wait_until(lambda: not has_open(process, files["E"]))
    elif does == "writes":
        wait_until(lambda: has_written(folder) or done())


@pytest.mark.parametrize("does,kind", [("starts", signal.SIGINT), ("reads", signal.SIGINT), ("computes", signal.SIGTERM),
                                       ("writes", signal.SIGINT)])
def test_interrupt(does, kind, large, tmp_path):
    """Whatever it was doing: reading, computing or writing."""
    _, files = large
    out = tmp_path / "o.nrrd"
    out.write_text("old")
    process = start("fuse", "--method", "soft-gaussian", "--sigma", "2", *raters(files), "-o", out)
    wait_for_handler(process, kind)
    wait_until_it(does, process, files, tmp_path)
    process.send_signal(kind)
    err = process.communicate(timeout=60)[1].decode()
    code = process.returncode
    if code == 0 and does != "starts":  # a quick machine was done before: then the new file is whole
        assert out.read_bytes().startswith(b"NRRD") and not leftovers(tmp_path)
        return
    assert code == 128 + kind, err
    assert err.startswith("rater-consensus: Canceled") and err.count("\n") == 1
    assert out.read_text("utf-8") == "old" and not leftovers(tmp_path)


def test_interrupt_while_writing(large, tmp_path):
    _, files = large
    out = tmp_path / "o.nrrd"
    out.write_text("old")
    process = start("fuse", "--method", "soft", *raters(files), "-o", out)
    wait_until_writing(tmp_path)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 130 and err.startswith(b"rater-consensus: Canceled while writing")
    assert out.read_text("utf-8") == "old" and not leftovers(tmp_path)


def test_second_interrupt_ends_at_once(large, tmp_path):
    _, files = large
    out = tmp_path / "o.nrrd"
    process = start("fuse", "--method", "soft-gaussian", *raters(files), "-o", out, "--threads", "1")
    wait_until_writing(tmp_path)
    process.send_signal(signal.SIGINT)
    wait_until(lambda: process.poll() is not None or signal.SIGINT not in signals(process, "ShdPnd"))  # it has heard it
    ended = process.poll() is not None  # the first one was enough
    process.send_signal(signal.SIGINT)
    started = time.time()
    process.communicate(timeout=60)
    assert process.returncode == (130 if ended else -signal.SIGINT) and time.time() - started < 2
    assert not out.exists() and not leftovers(tmp_path)


def test_kill_leaves_the_old_output(large, tmp_path):
    """Nothing can be tidied after SIGKILL, but what was there before must still be there."""
    _, files = large
    out = tmp_path / "o.nrrd"
    out.write_text("old")
    process = start("fuse", "--method", "soft-gaussian", *raters(files), "-o", out, stdout=subprocess.DEVNULL, stderr=None)
    wait_until_writing(tmp_path)
    process.kill()
    process.wait()
    assert process.returncode == -signal.SIGKILL
    assert out.read_text("utf-8") == "old"
    assert len(leftovers(tmp_path)) == 1


def test_closed_pipe(case):
    done = subprocess.run(["bash", "-c", f"set -o pipefail; {PROGRAM} agree {' '.join(map(str, raters(case)))} --json - | head -c 10"],
                          capture_output=True)
    assert done.returncode in (0, 2, 128 + signal.SIGPIPE) and done.stderr.count(b"\n") <= 1
