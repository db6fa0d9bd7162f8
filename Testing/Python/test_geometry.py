# SPDX-License-Identifier: Apache-2.0
"""What voxels measure: pictures without spacing, images that are one voxel thin, axes that are not at right angles."""
import csv
import io
import json
import struct

import numpy as np
import pytest

from rcn_testing import blobs, raters, read_image, refused, run, write_dicom, write_image, write_png, write_tiff


def discs():
    """Three outlines of one thing in 40 x 30 pixels."""
    y, x = np.mgrid[:30, :40]
    return [(((x - cx) ** 2 + (y - cy) ** 2) < r * r).astype(np.uint8) for cx, cy, r in ((18, 14, 8), (20, 14, 8), (18, 17, 9))]


# ---- pictures ----------------------------------------------------------------------------------------

@pytest.mark.parametrize("write", [write_png, write_tiff])
def test_pictures_are_measured_in_pixels(tmp_path, write):
    masks = discs()
    files = {k: write(tmp_path / f"{k}{'.png' if write is write_png else '.tif'}", m * 255) for k, m in zip("ABC", masks)}
    done = run("agree", *raters(files), "--json", tmp_path / "a.json", "--csv", tmp_path / "a.csv")
    assert "40 x 30 pixels (the file has no spacing)" in done.out
    assert "Area (pixels)" in done.out and "Hausdorff 95 % (pixels)" in done.out and "Center x, y (pixels)" in done.out
    assert "mm" not in done.out and "mL" not in done.out and not done.err
    answer = run("agree", *raters(files), "--json", "-").json
    assert answer["geometry"]["unit"] == "pixel" and answer["geometry"]["spacing_mm"] is None
    assert answer["geometry"]["origin_ras_mm"] is None
    assert answer["raters"]["A"]["volume_ml"] is None and answer["raters"]["A"]["voxels"] == masks[0].sum()
    assert set(answer["volumes_ml"].values()) == {None}
    assert answer["volumes_voxels"]["union"] == np.any(masks, 0).sum()
    pair = answer["pairs"][0]
    assert pair["hausdorff95_mm"] is None and pair["mean_surface_mm"] is None
    assert pair["hausdorff95_pixels"] == 2 and pair["mean_surface_pixels"] > 0
    region = answer["disputed_regions"][0]
    assert region["volume_ml"] is None and region["centroid_ras_mm"] is None and region["centroid_index"][2] == 0
    row = next(csv.DictReader(io.StringIO((tmp_path / "a.csv").read_text("utf-8"))))
    assert row["union_ml"] == "" and int(row["union_voxels"]) == np.any(masks, 0).sum()
    # The page as well.
    run("report", *raters(files), "-o", tmp_path / "r.html")
    page = (tmp_path / "r.html").read_text("utf-8")
    assert "Area (pixels)" in page and "Hausdorff 95 % (pixels)" in page and "Center x, y (pixels)" in page
    assert "(mm" not in page and " mm²" not in page and " mL" not in page


@pytest.mark.parametrize("spacing, unit", [((1, 1), "mm"), ((.5, .5), "mm"), (None, "pixel")])
def test_dicom_without_spacing(spacing, unit, tmp_path):
    path = write_dicom(tmp_path / "a.dcm", discs()[0], spacing=spacing)
    assert run("agree", "--rater", f"A={path}", "--json", "-").json["geometry"]["unit"] == unit
    # In a folder too, alone and with others.
    for number in range(2):
        write_dicom(tmp_path / f"{number}.dcm", discs()[0], (0, 0, 2 * number), spacing=spacing)
        path.unlink(missing_ok=True)
        assert run("agree", "--rater", f"A={tmp_path}", "--json", "-").json["geometry"]["unit"] == unit


def test_masks_in_pixels_follow_the_image(tmp_path):
    masks = discs()
    files = {k: write_png(tmp_path / f"{k}.png", m * 255) for k, m in zip("ABC", masks)}
    image = write_image(tmp_path / "i.nrrd", np.random.default_rng(1).random((30, 40), np.float32), spacing=(.5, .5))
    done = run("agree", *raters(files), "--image", image)
    assert "40 x 30 pixels of 0.5 x 0.5 mm" in done.out and "Area (mm²)" in done.out
    assert "A.png has no spacing; its pixels are taken for those of" in done.err
    answer = run("agree", *raters(files), "--image", image, "--json", "-").json
    assert answer["geometry"]["unit"] == "mm" and answer["pairs"][0]["hausdorff95_mm"] == 1
    # Of another size they are refused as ever.
    write_png(tmp_path / "A.png", masks[0][:, 1:] * 255)
    refused("agree", *raters(files), "--image", image, says="another size")
    # Nor is a pixel taken for a millimeter.
    refused("agree", *raters(files), "--image", image, "--resample", says=["another size", "without spacing cannot be resampled"])
    refused("agree", *raters(files), "--resample", says=["another size", "without spacing cannot be resampled"])


def test_band_counts_pixels(tmp_path):
    files = {k: write_png(tmp_path / f"{k}.png", m * 255) for k, m in zip("ABC", discs())}
    same = {k: write_image(tmp_path / f"{k}.nrrd", m) for k, m in zip("ABC", discs())}
    run("fuse", "--method", "soft", *raters(files), "-o", tmp_path / "p.nrrd")
    voxels = [run("evaluate", "--prob", tmp_path / "p.nrrd", *raters(f), "--region", "band", "--band", "2", "--json", "-").json
              for f in (files, same)]
    assert voxels[0]["mr_ece"] == voxels[1]["mr_ece"]


# ---- thin images -------------------------------------------------------------------------------------

def test_the_thin_axis_is_found(tmp_path):
    masks = discs()
    found = []
    for axis in range(3):
        files = {k: write_image(tmp_path / f"{axis}{k}.nrrd", np.expand_dims(m, axis), spacing=np.insert([2., 2.], 2 - axis, 7.))
                 for k, m in zip("ABC", masks)}
        done = run("agree", *raters(files))
        assert "40 x 30 pixels of 2 x 2 mm" in done.out and "Area (mm²)" in done.out
        answer = run("agree", *raters(files), "--json", "-").json
        maps = []
        for method in ("svls", "soft-gaussian"):
            run("fuse", "--method", method, *raters(files), "-o", tmp_path / "f.nrrd")
            maps.append(read_image(tmp_path / "f.nrrd").array.squeeze())
        found.append(([(p["hausdorff95_mm"], p["mean_surface_mm"]) for p in answer["pairs"]], maps))
    for pairs, maps in found[1:]:
        assert np.allclose(pairs, found[0][0], atol=1e-6)
        assert all(np.allclose(a, b, atol=1e-7) for a, b in zip(maps, found[0][1]))


# ---- axes that are not at right angles ----------------------------------------------------------------

TILT = np.deg2rad(25)
LEANING = [[1, 0, 0], [0, 1, np.sin(TILT)], [0, 0, np.cos(TILT)]]  # a gantry's: the third axis leans towards the second


@pytest.mark.parametrize("extension", [".nrrd", ".mha"])
def test_tilted_axes(tmp_path, extension):
    mask = np.zeros((20, 20, 20), np.uint8)
    mask[5:15, 5:15, 5:15] = 1
    files = {k: write_image(tmp_path / f"{k}{extension}", m, spacing=(2, 2, 5), direction=LEANING)
             for k, m in zip("AB", (mask, np.roll(mask, 1, 0)))}
    done = run("agree", *raters(files), "--json", "-")
    assert done.err.count("not at right angles") == 1
    answer = done.json
    assert answer["raters"]["A"]["volume_ml"] == pytest.approx(20 * np.cos(TILT))  # 18.13, not 20
    assert answer["volumes_ml"]["intersection"] == pytest.approx(18 * np.cos(TILT))
    assert "dice" in answer["pairs"][0] and "hausdorff95_mm" not in answer["pairs"][0]
    cases = [{"id": str(i), "label": {k: str(f) for k, f in files.items()}} for i in range(3)]
    (tmp_path / "list.json").write_text(json.dumps({"training": cases}))
    assert run("agree", "--data", tmp_path / "list.json").err.count("not at right angles") == 1  # not of each case
    run("report", *raters(files), "-o", tmp_path / "r.html")
    assert "Hausdorff" not in (tmp_path / "r.html").read_text("utf-8")
    # The band is measured in the world, not along the axes.
    run("fuse", "--method", "soft", *raters(files), "-o", tmp_path / "p.nrrd")
    run("evaluate", "--prob", tmp_path / "p.nrrd", *raters(files), "--region", "band")


def test_tilted_dicom(tmp_path):
    folder = tmp_path / "series"
    folder.mkdir()
    for z in range(6):
        write_dicom(folder / f"{z}.dcm", np.ones((8, 10), np.int16), (0, 0, 5 * z), spacing=(2, 2),
                    orientation=(1, 0, 0, 0, np.cos(TILT), np.sin(TILT)))
    answer = run("agree", "--rater", f"A={folder}", "--json", "-").json
    assert answer["raters"]["A"]["volume_ml"] == pytest.approx(6 * 80 * 2 * 2 * 5 / 1000 * np.cos(TILT))


def test_tilted_nifti(tmp_path):
    """ITK does not read it, or takes another matrix of the header: no volume is better than a wrong one."""
    path = write_image(tmp_path / "a.nii", blobs(1, (6, 8, 10))[0], direction=LEANING)
    refused("agree", "--rater", f"A={path}", says="not at right angles")
    data = bytearray(path.read_bytes())
    struct.pack_into("<hh", data, 252, 1, 1)  # the same space by a quaternion, which cannot lean
    path.write_bytes(data)
    refused("agree", "--rater", f"A={path}", says="not at right angles")


# ---- the others ---------------------------------------------------------------------------------------

def test_a_tie_of_the_others_does_not_count(tmp_path):
    a, b, c = (np.zeros((1, 1, 12), np.uint8) for _ in range(3))
    a[..., :10] = b[..., :4] = c[..., 2:6] = 1
    files = {k: write_image(tmp_path / f"{k}.nrrd", m) for k, m in zip("ABC", (a, b, c))}
    done = run("agree", *raters(files))
    assert "(voxels where the others are split evenly do not count)" in done.out
    assert "With two raters" not in done.out
    answer = run("agree", *raters(files), "--json", "-").json["raters"]
    assert answer["A"]["dice_to_others"] == pytest.approx(.5) and answer["A"]["others_split_voxels"] == 4
    assert answer["B"]["dice_to_others"] == pytest.approx(4 / 6) and answer["B"]["specificity_to_others"] == 1
    del files["C"]
    done = run("agree", *raters(files))
    assert "With two raters, the majority (at least half of them) is every voxel that anybody marked." in done.out
    run("report", *raters(files), "-o", tmp_path / "r.html")
    page = (tmp_path / "r.html").read_text("utf-8")
    assert "With two raters, the majority" in page and "split evenly do not count" in page


# ---- voxels that nobody answered ----------------------------------------------------------------------

def test_a_gap_is_no_background(tmp_path):
    mask = np.ones((9, 9, 9), np.uint8)
    mask[4] = 7
    path = write_image(tmp_path / "a.nrrd", mask)
    for method in ("soft-gaussian", "svls"):
        run("fuse", "--method", method, "--rater", f"A={path}", "--unanswered", "7", "-o", tmp_path / "o.nrrd")
        assert np.allclose(read_image(tmp_path / "o.nrrd").array, mask == 1, atol=1e-6)
