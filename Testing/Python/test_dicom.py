# SPDX-License-Identifier: Apache-2.0
"""DICOM folders: a volume where the slices are one, and otherwise a sentence that names what is wrong with which of them."""
import numpy as np
import pytest

from rcn_testing import read_image, refused, run, write_dicom, write_nrrd

# So that every slice can be told from the others.
VOXELS = np.arange(10 * 6 * 7, dtype=np.int16).reshape(10, 6, 7) - 100


def write_series(folder, positions, slices=None, **options):
    """A file per position, named after its number, in an order that is not that of the slices."""
    folder.mkdir(exist_ok=True)
    for number, position in enumerate(positions):
        position = (0, 0, position) if np.isscalar(position) else position
        write_dicom(folder / f"{len(positions) - number:02}.dcm", VOXELS[number if slices is None else slices[number]], position,
                    **{"spacing": (.5, .75), **options})
    return folder


def geometry_of(folder):
    return run("agree", "--rater", f"A={folder}", "--json", "-", "--quiet").json["geometry"]


def voxel(folder, tmp_path, value):
    """Where the series has this value."""
    run("fuse", "--method", "median", "--rater", f"A={folder}:{value}", "-o", tmp_path / "o.nrrd", "--quiet")
    return np.argwhere(read_image(tmp_path / "o.nrrd").array).tolist()


def is_refused(folder, tmp_path, *says):
    image = write_nrrd(tmp_path / "mask.nrrd", np.ones((8, 6, 7), np.uint8))
    refused("agree", "--image", folder, "--rater", f"A={image}", says=[folder.name, *says], folder=tmp_path)
    refused("agree", "--rater", f"A={folder}", says=[folder.name, *says], folder=tmp_path)


@pytest.mark.parametrize("positions", [np.arange(10.), 100 - 2.5 * np.arange(10), np.round(.625 * np.arange(10), 1),
                                       3 * np.arange(10) + .0004 * (np.arange(10) % 2), [4.], [4., 9.]])
def test_slices_in_any_order(positions, tmp_path):
    """Rising, falling, rounded to a tenth, with noise in the last digit, one alone, two."""
    positions = np.asarray(positions)
    folder = write_series(tmp_path / "series", positions)
    geometry = geometry_of(folder)
    step = np.ptp(positions) / max(1, len(positions) - 1) or 1
    assert geometry["size"] == [7, 6, len(positions)]
    assert geometry["spacing_mm"] == pytest.approx([.5, .75, step], rel=1e-3)
    assert geometry["origin_ras_mm"] == pytest.approx([0, 0, positions.min()])
    for number in {0, len(positions) // 2, len(positions) - 1}:
        z = number if positions[-1] >= positions[0] else len(positions) - 1 - number
        assert voxel(folder, tmp_path, VOXELS[number, 2, 3]) == [[z, 2, 3]]


@pytest.mark.parametrize("missing", [[4], [4, 5], [1], [8], [2, 6]])
def test_missing_slices(missing, tmp_path):
    positions = [z for z in range(10) if z not in missing]
    first = missing[0]
    names = [f"{len(positions) - positions.index(z):02}.dcm" for z in (first - 1, max(missing) + 1 if len(missing) < 2 or missing[1] == 5 else first + 1)]
    gap = len(missing) + 1 if missing == [4, 5] else 2
    is_refused(write_series(tmp_path / "series", positions), tmp_path, "misses slices", *names, f"{gap} mm apart", "1 mm are expected")


def test_missing_among_three(tmp_path):
    is_refused(write_series(tmp_path / "series", [0, 1, 3]), tmp_path, "misses slices", "(at 1 mm)", "(at 3 mm)", "2 mm apart", "1 mm are expected")


def test_missing_in_an_oblique_series(tmp_path):
    """Distances count along the slices' normal, whatever way that is."""
    orientation = (0, .8, .6, 1, 0, 0)
    normal = np.cross(orientation[:3], orientation[3:])
    places = [tuple(np.array([5, 6, 7]) + 2 * z * normal) for z in range(9) if z != 6]
    is_refused(write_series(tmp_path / "series", places, orientation=orientation), tmp_path, "misses slices", "4 mm apart", "2 mm are expected")
    whole = write_series(tmp_path / "whole", [tuple(np.array([5, 6, 7]) + 2 * z * normal) for z in range(9)], orientation=orientation)
    assert geometry_of(whole)["spacing_mm"] == pytest.approx([.5, .75, 2])


def test_uneven_distances(tmp_path):
    positions = [0, 2, 4, 6, 8, 9, 10, 11]
    is_refused(write_series(tmp_path / "series", positions), tmp_path, "mm apart where")
    is_refused(write_series(tmp_path / "nudged", [0, 1, 2, 3.3, 4, 5, 6]), tmp_path, "uneven distances", "1.3 mm apart", "1 mm are expected")
    # Slices drift apart by little, which adds up.
    is_refused(write_series(tmp_path / "drift", np.cumsum([1, 1, 1, 1, 1, 1.15, 1.15, 1.15, 1.15, 1.15])), tmp_path, "uneven distances")


def test_two_slices_at_one_position(tmp_path):
    is_refused(write_series(tmp_path / "series", [0, 1, 2, 2, 3]), tmp_path, "two slices at one position", "02.dcm (at 2 mm)", "03.dcm (at 2 mm)")
    is_refused(write_series(tmp_path / "times", [0, 0, 1, 1, 2, 2]), tmp_path, "two slices at one position", "time or echo")
    is_refused(write_series(tmp_path / "all", [0, 0, 0]), tmp_path, "two slices at one position")


def test_slices_that_are_not_alike(tmp_path):
    folder = write_series(tmp_path / "sizes", range(5))
    write_dicom(folder / "other.dcm", VOXELS[5, :4, :5], (0, 0, 5), spacing=(.5, .75))
    is_refused(folder, tmp_path, "different sizes", "7 x 6 pixels", "other.dcm", "5 x 4")
    folder = write_series(tmp_path / "pixels", range(5))
    write_dicom(folder / "other.dcm", VOXELS[5], (0, 0, 5), spacing=(.5, .8))
    is_refused(folder, tmp_path, "pixels of different sizes", "0.75 mm", "0.8 mm", "other.dcm")
    folder = write_series(tmp_path / "turned", range(5))
    write_dicom(folder / "other.dcm", VOXELS[5], (0, 0, 5), spacing=(.5, .75), orientation=(1, 0, 0, 0, 0, -1))
    is_refused(folder, tmp_path, "different orientations", "other.dcm")
    folder = write_series(tmp_path / "shifted", range(5))
    write_dicom(folder / "03.dcm", VOXELS[2], (0, 1.5, 2), spacing=(.5, .75))
    is_refused(folder, tmp_path, "shifted relative to each other", "03.dcm", "1.5 mm")
    folder = write_series(tmp_path / "two", range(5))
    write_dicom(folder / "other.dcm", VOXELS[5], (0, 0, 5), spacing=(.5, .75), series="1.2.9")
    is_refused(folder, tmp_path, "2 DICOM series")


def test_slices_without_position(tmp_path):
    folder = write_series(tmp_path / "series", range(5))
    write_dicom(folder / "lost.dcm", VOXELS[5], None, spacing=(.5, .75))
    is_refused(folder, tmp_path, "lost.dcm", "without a position")
    alone = tmp_path / "alone"
    alone.mkdir()
    write_dicom(alone / "lost.dcm", VOXELS[5], None)
    assert geometry_of(alone)["size"] == [7, 6, 1]


def test_frames_in_one_file(tmp_path):
    folder = tmp_path / "series"
    folder.mkdir()
    write_dicom(folder / "a.dcm", VOXELS, spacing=(.5, .75))
    assert geometry_of(folder)["size"] == [7, 6, 10]
    assert voxel(folder, tmp_path, VOXELS[4, 3, 2]) == [[4, 3, 2]]
    write_dicom(folder / "b.dcm", VOXELS, (0, 0, 10), spacing=(.5, .75))
    is_refused(folder, tmp_path, "more than one slice each", "a.dcm")


def test_gantry_tilt(tmp_path):
    """Slices that lie straight above each other while their planes lean: the third axis leans, no distance is invented."""
    tilt = np.deg2rad(25)
    orientation = (1, 0, 0, 0, np.cos(tilt), np.sin(tilt))
    folder = write_series(tmp_path / "series", [(0, 0, 2. * z) for z in range(8)], orientation=orientation)
    image = run("fuse", "--method", "median", "--rater", f"A={folder}:{VOXELS[5, 2, 3]}", "-o", tmp_path / "o.nrrd", "--quiet")
    image = read_image(tmp_path / "o.nrrd")
    assert image.spacing == pytest.approx([.5, .75, 2])
    assert image.direction[:, 2] == pytest.approx([0, 0, 1])
    assert image.direction[:, 1] == pytest.approx([0, np.cos(tilt), np.sin(tilt)])
    assert np.argwhere(image.array).tolist() == [[5, 2, 3]]
    gap = write_series(tmp_path / "gap", [(0, 0, 2. * z) for z in range(8) if z != 3], orientation=orientation)
    is_refused(gap, tmp_path, "misses slices", f"{4 * np.cos(tilt):.6g} mm apart")


def test_slices_with_scales_of_their_own(tmp_path):
    """As in PET: the first has whole numbers, which must not make whole numbers of the others."""
    folder = write_series(tmp_path / "series", range(4))
    write_dicom(folder / "02.dcm", VOXELS[2], (0, 0, 2), spacing=(.5, .75), slope="0.5")
    refused("agree", "--rater", f"A={folder}", says=["whole number", "(1, 0, 2)"], folder=tmp_path)


def test_files_that_end_too_early(tmp_path):
    folder = write_series(tmp_path / "series", range(3))
    file = folder / "02.dcm"
    whole = file.read_bytes()
    file.write_bytes(whole[:-20])
    is_refused(folder, tmp_path, "02.dcm", "ends before its voxels do")
    is_refused(file, tmp_path, "ends before its voxels do")
    file.write_bytes(whole)
    assert geometry_of(folder)["size"] == [7, 6, 3]
