# SPDX-License-Identifier: Apache-2.0
"""Fusion and agreement against other packages: SimpleITK, scikit-learn, scikit-image, SciPy, plain NumPy."""
import itertools
import json

import numpy as np
import pytest

from rcn_testing import DATA, blobs, needs_peers, raters, read_image, rotation, run, write_image, write_nrrd

pytestmark = needs_peers
sitk = pytest.importorskip("SimpleITK")
ndimage = pytest.importorskip("scipy.ndimage")


def files_of(folder, masks, **geometry):
    return {f"r{i}": write_nrrd(folder / f"r{i}.nrrd", m, **geometry) for i, m in enumerate(masks)}


def fuse(folder, files, method, *options):
    answer = run("fuse", "--method", method, *raters(files), "-o", folder / "out.nrrd", "--json", "-", *options).json
    return read_image(folder / "out.nrrd").array, answer


def agree(files, *options):
    return run("agree", *raters(files), "--json", "-", "--regions", "1000000", *options).json


# ---- STAPLE ----------------------------------------------------------------------------------------

def itk_staple(masks):
    """ITK's filter to its fixed point: posterior, sensitivity, specificity. NaN where all are empty."""
    staple = sitk.STAPLEImageFilter()
    staple.SetForegroundValue(1.0)
    staple.SetMaximumIterations(100000)
    posterior = sitk.GetArrayFromImage(staple.Execute([sitk.GetImageFromArray(m) for m in masks]))
    return posterior, np.array(staple.GetSensitivity()), np.array(staple.GetSpecificity())


def check_staple(folder, masks):
    masks = [np.ascontiguousarray(m, np.uint8) for m in masks]
    posterior, sensitivity, specificity = itk_staple(masks)
    ours, answer = fuse(folder, files_of(folder, masks), "staple")
    assert answer["converged"]
    assert np.abs(ours - posterior).max() < 1e-6
    assert np.abs(np.array(list(answer["sensitivity"].values())) - sensitivity).max() < 1e-6
    assert np.abs(np.array(list(answer["specificity"].values())) - specificity).max() < 1e-6


@pytest.mark.parametrize("k", range(2, 9))
@pytest.mark.parametrize("shape", [(40, 50), (12, 20, 24)])
def test_staple_random(k, shape, tmp_path):
    check_staple(tmp_path, blobs(k, shape, seed=k))


@pytest.mark.parametrize("k", [2, 3, 5])
def test_staple_pure_noise(k, tmp_path):
    random = np.random.default_rng(k)
    check_staple(tmp_path, [random.random((9, 10, 11)) < p for p in random.uniform(.1, .5, k)])


@pytest.mark.parametrize("shape", [(40, 50), (12, 20, 24)])
def test_staple_one_empty_rater(shape, tmp_path):
    masks = blobs(4, shape)
    masks[2][...] = 0
    check_staple(tmp_path, masks)


@pytest.mark.parametrize("shape", [(40, 50), (12, 20, 24)])
def test_staple_identical_raters(shape, tmp_path):
    check_staple(tmp_path, blobs(1, shape) * 4)


def test_staple_all_empty(tmp_path):
    """ITK says NaN; nothing marked is nothing marked."""
    masks = [np.zeros((6, 7), np.uint8)] * 3
    assert np.isnan(itk_staple(masks)[0]).any()
    assert not fuse(tmp_path, files_of(tmp_path, masks), "staple")[0].any()


def real_cases(name, count):
    path = DATA / name
    if not path.exists():
        return []
    cases = [c for split in ("training", "validation", "test") for c in json.loads(path.read_text("utf-8")).get(split, [])]
    return [(path, c) for c in cases[::max(1, len(cases) // count)][:count]]


def real_masks(path, case):
    labels = case["label"].values() if isinstance(case["label"], dict) else case["label"]
    return [(sitk.GetArrayFromImage(sitk.ReadImage(str(path.parent / label))) > 0).astype(np.uint8) for label in labels if label]


@pytest.mark.parametrize("name", ["lidc4/dataset.json", "cfos/dataset.json", "cfos/dataset-missing.json"])
def test_staple_real(name, tmp_path):
    cases = real_cases(name, 5)
    if not cases:
        pytest.skip("no real masks here")
    for path, one in cases:
        check_staple(tmp_path, real_masks(path, one))


# ---- agreement -------------------------------------------------------------------------------------

@pytest.mark.parametrize("shape", [(30, 35), (10, 15, 20)])
def test_pairs(shape, tmp_path):
    metrics = pytest.importorskip("sklearn.metrics")
    masks = blobs(4, shape)
    for pair in agree(files_of(tmp_path, masks))["pairs"]:
        a, b = (masks[int(pair[end][1:])] for end in "ab")
        overlap = sitk.LabelOverlapMeasuresImageFilter()
        overlap.Execute(sitk.GetImageFromArray(a), sitk.GetImageFromArray(b))
        assert pair["dice"] == pytest.approx(overlap.GetDiceCoefficient(), abs=1e-9)
        assert pair["jaccard"] == pytest.approx(overlap.GetJaccardCoefficient(), abs=1e-9)
        assert pair["kappa"] == pytest.approx(metrics.cohen_kappa_score(a.ravel(), b.ravel()), abs=1e-9)


def plain_overall(votes, answered):
    """Fleiss, Krippendorff (nominal) and Gwet over voxels, straight from their papers; NaN: no answer."""
    table = np.stack([answered - votes, votes], 1).astype(float)  # voxel x category
    n = table.sum(1)
    full = n == n.max()
    p_j = (table[full] / n.max()).mean(0)
    p_i = (table[full] * (table[full] - 1)).sum(1) / (n.max() * (n.max() - 1))
    fleiss = (p_i.mean() - (p_j**2).sum()) / (1 - (p_j**2).sum())
    units = table[n >= 2]
    coincidence = np.zeros((2, 2))
    for row in units:
        m = row.sum()
        for c, k in itertools.product(range(2), repeat=2):
            coincidence[c, k] += row[c] * (row[k] - (c == k)) / (m - 1)
    totals = coincidence.sum(0)
    all_ = totals.sum()
    observed = coincidence[0, 1] + coincidence[1, 0]
    expected = 2 * totals[0] * totals[1] / (all_ - 1)
    agreement = ((units * (units - 1)).sum(1) / (units.sum(1) * (units.sum(1) - 1))).mean()
    share = (table[n > 0, 1] / n[n > 0]).mean()
    chance = 2 * share * (1 - share)
    return fleiss, 1 - observed / expected, (agreement - chance) / (1 - chance)


@pytest.mark.parametrize("k", [2, 3, 7])
@pytest.mark.parametrize("missing", [False, True])
def test_overall(k, missing, tmp_path):
    masks = blobs(k, (9, 10, 11), seed=k)
    random = np.random.default_rng(k)
    if missing:
        for mask in masks[1:]:
            mask[random.random(mask.shape) < .1] = 9
    answer = agree(files_of(tmp_path, masks), *(["--unanswered", "9"] if missing else []))
    marked = np.sum([m == 1 for m in masks], 0).ravel()
    answered = np.sum([m != 9 for m in masks], 0).ravel()
    for where, inside in (("whole", answered > 0), ("union", marked > 0)):
        figures = answer[where]
        want = plain_overall(marked[inside], answered[inside])
        assert (figures["fleiss_kappa"], figures["krippendorff_alpha"], figures["gwet_ac1"]) == pytest.approx(want, abs=1e-9)


def surface_distances(a, b, spacing):
    """Between the surface voxels of two masks, both ways; spacing as the array's axes."""
    def surface(mask):
        cross = ndimage.generate_binary_structure(mask.ndim, 1)
        return mask & ~ndimage.binary_erosion(mask, cross, border_value=0)
    sa, sb = surface(a > 0), surface(b > 0)
    return (ndimage.distance_transform_edt(~sb, sampling=spacing)[sa], ndimage.distance_transform_edt(~sa, sampling=spacing)[sb])


@pytest.mark.parametrize("shape,spacing", [((30, 35), (.7, 1.3)), ((12, 15, 20), (.5, .8, 3)), ((1, 30, 35), (.7, 1.3, 5)),
                                           ((12, 15, 20), (1, 1, 1))])
@pytest.mark.parametrize("turned", [False, True])
def test_surface_distances(shape, spacing, turned, tmp_path):
    masks = blobs(3, shape, noise=.01)
    masks[0][..., -6:] = 1  # touches the border
    direction = rotation(25, len(shape)) if turned else None
    for pair in agree(files_of(tmp_path, masks, spacing=spacing, direction=direction))["pairs"]:
        a, b = (masks[int(pair[end][1:])] for end in "ab")
        if shape[0] == 1:  # one slice is flat: nothing above or below
            there, back = surface_distances(a[0], b[0], spacing[1::-1])
        else:
            there, back = surface_distances(a, b, spacing[::-1])
        assert pair["hausdorff95_mm"] == pytest.approx(max(np.percentile(there, 95), np.percentile(back, 95)), rel=1e-5)
        assert pair["mean_surface_mm"] == pytest.approx(np.concatenate([there, back]).mean(), rel=1e-5)


@pytest.mark.parametrize("shape", [(40, 50), (10, 15, 20)])
def test_disputed_regions(shape, tmp_path):
    measure = pytest.importorskip("skimage.measure")
    masks = blobs(3, shape, noise=.03)
    votes = np.sum(masks, 0)
    labels = measure.label((votes > 0) & (votes < 3), connectivity=len(shape))
    found = agree(files_of(tmp_path, masks))["disputed_regions"]
    assert len(found) == labels.max()
    want = {}
    for region in measure.regionprops(labels):
        center = (list(region.centroid[::-1]) + [0])[:3]
        want[tuple(np.round(center, 6))] = region
    for region in found:
        peer = want[tuple(np.round(region["centroid_index"], 6))]
        inside = labels == peer.label
        assert region["voxels"] == peer.area
        assert region["most_votes"] == votes[inside].max()
        assert region["marked_by"] == [f"r{i}" for i, m in enumerate(masks) if m[inside].any()]
        assert inside[tuple(region["voxel"][::-1][-len(shape):])]


# ---- smoothing -------------------------------------------------------------------------------------

@pytest.mark.parametrize("sigma", [.5, 1, 2, 3])
@pytest.mark.parametrize("shape", [(30, 35), (10, 15, 20), (3, 4, 5), (1, 9)])
def test_soft_gaussian(sigma, shape, tmp_path):
    masks = blobs(3, shape)
    ours, _ = fuse(tmp_path, files_of(tmp_path, masks), "soft-gaussian", "--sigma", str(sigma))
    want = ndimage.gaussian_filter(np.mean(masks, 0), sigma, mode="nearest", truncate=4)
    assert np.abs(ours - want).max() < 1e-6


@pytest.mark.parametrize("shape", [(30, 35), (10, 15, 20), (2, 2, 2)])
def test_svls(shape, tmp_path):
    masks = blobs(3, shape)
    offsets = np.stack(np.meshgrid(*[[-1, 0, 1]] * len(shape), indexing="ij"), -1)
    kernel = np.exp(-.5 * (offsets**2).sum(-1))
    center = (1,) * len(shape)
    kernel[center] = 0
    kernel *= .5 / kernel.sum()
    kernel[center] = .5
    ours, _ = fuse(tmp_path, files_of(tmp_path, masks), "svls")
    assert np.abs(ours - ndimage.convolve(np.mean(masks, 0), kernel, mode="nearest")).max() < 1e-6


# ---- files -----------------------------------------------------------------------------------------

GEOMETRY = {2: dict(spacing=(.5, .75), origin=(-10.5, 33.25), direction=rotation(30, 2)),
            3: dict(spacing=(.5, .75, 3), origin=(-10.5, 33.25, 7), direction=rotation(20))}


@pytest.mark.parametrize("extension", [".nrrd", ".nii", ".nii.gz", ".mha"])
@pytest.mark.parametrize("n", [2, 3])
def test_our_files_there(n, extension, tmp_path):
    masks = blobs(2, (6, 7, 8)[-n:])
    files = files_of(tmp_path, masks, **GEOMETRY[n])
    out = tmp_path / f"out{extension}"
    run("fuse", "--method", "soft", *raters(files), "-o", out)
    image = sitk.ReadImage(str(out))
    assert image.GetDimension() == n and image.GetPixelID() == sitk.sitkFloat32
    assert np.allclose(sitk.GetArrayFromImage(image), np.mean(masks, 0))
    assert np.allclose(image.GetSpacing(), GEOMETRY[n]["spacing"], atol=2e-6)
    assert np.allclose(image.GetOrigin(), GEOMETRY[n]["origin"], atol=2e-6)
    assert np.allclose(np.reshape(image.GetDirection(), (n, n)), GEOMETRY[n]["direction"], atol=2e-6)


@pytest.mark.parametrize("extension", [".tif", ".png"])
def test_our_pictures_there(extension, tmp_path):
    masks = blobs(3, (9, 11))
    out = tmp_path / f"out{extension}"
    run("fuse", "--method", "orc", *raters(files_of(tmp_path, masks)), "-o", out)
    assert np.array_equal(sitk.GetArrayFromImage(sitk.ReadImage(str(out))), np.sum(masks, 0))


@pytest.mark.parametrize("extension", [".nrrd", ".nii", ".nii.gz", ".mha", ".mhd", ".nhdr", ".tif", ".png"])
@pytest.mark.parametrize("n", [2, 3])
def test_their_files_here(n, extension, tmp_path):
    if extension == ".png" and n == 3:
        pytest.skip("PNG is flat")
    masks = blobs(2, (6, 7, 8)[-n:])
    files = {}
    for i, mask in enumerate(masks):
        image = sitk.GetImageFromArray(mask)
        image.SetSpacing(GEOMETRY[n]["spacing"])
        image.SetOrigin(GEOMETRY[n]["origin"])
        image.SetDirection(np.ravel(GEOMETRY[n]["direction"]))
        files[f"r{i}"] = tmp_path / f"r{i}{extension}"
        sitk.WriteImage(image, str(files[f"r{i}"]), True)
    ours, _ = fuse(tmp_path, files, "orc")
    assert np.array_equal(ours, np.sum(masks, 0))
    if extension not in (".tif", ".png"):
        image = read_image(tmp_path / "out.nrrd")
        for key, value in GEOMETRY[n].items():
            assert np.allclose(getattr(image, key), value, atol=2e-6), key


def test_truncated_detached_data(tmp_path):
    image = sitk.GetImageFromArray(blobs(1, (20, 20, 20))[0])
    sitk.WriteImage(image, str(tmp_path / "a.mhd"), False)
    raw = tmp_path / "a.raw"
    raw.write_bytes(raw.read_bytes()[:4000])
    done = run("agree", "--rater", f"A={tmp_path / 'a.mhd'}", check=False)
    assert done.code == 2 and "a.mhd" in done.err and done.err.count("\n") == 1


def test_dicom_series(tmp_path):
    array = np.random.default_rng(0).integers(-1000, 1000, (5, 16, 20)).astype(np.int16)
    folder = tmp_path / "series"
    folder.mkdir()
    writer = sitk.ImageFileWriter()
    writer.KeepOriginalImageUIDOn()
    for z in range(5):
        slice_ = sitk.GetImageFromArray(array[z])
        slice_.SetSpacing((.5, .75))
        for key, value in {"0020|000e": "1.2.3.4", "0020|000d": "1.2.3", "0008|0060": "CT", "0008|0018": f"1.2.3.4.{z}",
                           "0020|0032": f"-10\\20\\{3 * z}", "0020|0037": "1\\0\\0\\0\\1\\0", "0020|0013": str(z),
                           "0018|0050": "3"}.items():
            slice_.SetMetaData(key, value)
        writer.SetFileName(str(folder / f"{9 - z}.dcm"))
        writer.Execute(slice_)
    names = sitk.ImageSeriesReader.GetGDCMSeriesFileNames(str(folder))
    peer = sitk.ReadImage(names)
    mask = blobs(1, (5, 16, 20))[0]
    files = {"A": write_image(tmp_path / "a.nrrd", mask, spacing=peer.GetSpacing(), origin=peer.GetOrigin())}
    answer = run("agree", *raters(files), "--image", folder, "--json", "-").json
    assert answer["geometry"]["size"] == [20, 16, 5]
    assert answer["geometry"]["spacing_mm"] == pytest.approx(peer.GetSpacing())
    assert answer["geometry"]["origin_ras_mm"] == pytest.approx(np.array(peer.GetOrigin()) * [-1, -1, 1])
    # The series itself as a mask: its values are labels too.
    values = [int(v) for v in np.unique(array)[:3]]
    run("fuse", "--method", "soft", "--rater", f"S={folder}:{','.join(map(str, values))}", "-o", tmp_path / "s.nrrd")
    assert np.array_equal(read_image(tmp_path / "s.nrrd").array, np.isin(sitk.GetArrayFromImage(peer), values))
