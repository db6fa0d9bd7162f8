# SPDX-License-Identifier: Apache-2.0
"""Bad input: one line that names the file or option and says what to do, exit code 2, nothing left behind."""
import json
import os
import pathlib
import resource
import struct
import subprocess
import zlib

import numpy as np
import pytest

from rcn_testing import (PROGRAM, blobs, golden, leftovers, raters, read_nrrd, refused, rotation, run, small_disk, start, write_image,
                         write_meta, write_nifti, write_nrrd, write_nrrd_4d, write_png, write_tiff)

ROOT = os.geteuid() == 0


def both(files, *options, says, folder, **more):
    """agree and fuse refuse alike, with every output asked for."""
    refused("agree", *raters(files), "--json", folder / "o.json", "--csv", folder / "o.csv",
            "--levels", folder / "l.nrrd", *options, says=says, folder=folder, **more)
    refused("fuse", "--method", "staple", *raters(files), "-o", folder / "o.nrrd", "--json", folder / "o.json", *options,
            says=says, folder=folder, **more)


# ---- files -----------------------------------------------------------------------------------------

def test_missing_file(case, tmp_path):
    both({**case, "D": tmp_path / "nowhere.nrrd"}, says=["nowhere.nrrd", "does not exist"], folder=tmp_path)


@pytest.mark.parametrize("name", ["a.nrrd", "a.nii", "a.nii.gz", "a.mha", "a.png", "a.tif", "a.txt", "a", "a.dcm"])
@pytest.mark.parametrize("content", [b"", b"This is no image.\n", bytes(range(256)) * 8])
def test_not_an_image(name, content, case, tmp_path):
    path = tmp_path / name
    path.write_bytes(content)
    refused("agree", *raters({"A": case["A"], "X": path}), says=[str(path)], folder=tmp_path)


def test_unreadable(case, tmp_path):
    if ROOT:
        pytest.skip("root may read everything")
    case["B"].chmod(0)
    both(case, says=["B.nrrd", "cannot be read"], folder=tmp_path)


def test_empty_folder_is_no_series(case, tmp_path):
    (tmp_path / "empty").mkdir()
    refused("agree", *raters({**case, "D": tmp_path / "empty"}), says=["empty", "DICOM"], folder=tmp_path)


FORMATS = ["a.nrrd", "raw.nrrd", "a.nii", "a.nii.gz", "a.mha", "z.mha", "a.png", "a.tif"]


def whole(path, dtype="uint8"):
    mask = (np.random.default_rng(3).random((40, 50)) < .4).astype(dtype)
    if path.name == "raw.nrrd":
        return write_nrrd(path, mask, compress=False)
    if path.name == "z.mha":
        return write_meta(path, mask, compress=True)
    return write_image(path, mask)


@pytest.mark.parametrize("share", [.02, .3, .9, .995])
@pytest.mark.parametrize("name", FORMATS)
def test_truncated(name, share, tmp_path):
    path = whole(tmp_path / name)
    good = write_nrrd(tmp_path / "good.nrrd", np.ones((40, 50), np.uint8))
    run("agree", *raters({"G": good, "X": path}))
    data = path.read_bytes()
    path.write_bytes(data[:int(len(data) * share)])
    both({"G": good, "X": path}, says=[str(path)], folder=tmp_path)


@pytest.mark.parametrize("name", ["a.nrrd", "a.nii.gz", "z.mha", "a.png"])
def test_damaged(name, tmp_path):
    """Bytes in the middle of the compressed voxels are wrong: the checksum tells."""
    path = whole(tmp_path / name)
    data = bytearray(path.read_bytes())
    middle = len(data) * 3 // 4
    for i in range(middle, middle + 20):
        data[i] ^= 0x5A
    path.write_bytes(bytes(data))
    refused("agree", *raters({"X": path}), says=[str(path)], folder=tmp_path)


def nrrd_header(path, **changes):
    fields = {"type": "uint8", "dimension": "3", "sizes": "4 4 4", "spacings": "1 1 1", "encoding": "raw", **changes}
    text = "NRRD0004\n" + "".join(f"{k.replace('_', ' ')}: {v}\n" for k, v in fields.items() if v) + "\n"
    path.write_bytes(text.encode() + bytes([0, 1] * 32))
    return path


@pytest.mark.parametrize("changes", [
    {"sizes": "1000000 1000000 1000000"}, {"sizes": "4294967296 4294967296 4"}, {"sizes": "99999999999999999999 4 4"},
    {"sizes": "100000 100000 10"}, {"sizes": "-4 4 4"}, {"sizes": "0 4 4"}, {"sizes": "4 4"}, {"sizes": "four 4 4"},
    {"sizes": "2147483648 1 1"}, {"spacings": "0 1 1"}, {"spacings": "inf 1 1"}, {"type": "block"}, {"dimension": "99"},
    {"dimension": "1", "sizes": "64", "spacings": "1"}, {"encoding": "gzip"}, {"encoding": "magic"}])
def test_hostile_nrrd(changes, tmp_path):
    run("agree", "--rater", f"A={nrrd_header(tmp_path / 'good.nrrd')}")
    path = nrrd_header(tmp_path / "bad.nrrd", **changes)
    refused("agree", "--rater", f"A={path}", says="bad.nrrd", folder=tmp_path)


def nifti_with(path, offset, format_, *values):
    data = bytearray(write_nifti(path, np.eye(4, dtype=np.uint8)[None].repeat(4, 0)).read_bytes())
    struct.pack_into(format_, data, offset, *values)
    path.write_bytes(bytes(data))
    return path


@pytest.mark.parametrize("change", [
    (40, "<8h", 3, 32767, 32767, 32767, 1, 1, 1, 1), (40, "<8h", 3, -4, 4, 4, 1, 1, 1, 1), (40, "<8h", 3, 0, 4, 4, 1, 1, 1, 1),
    (40, "<8h", 7, 99, 99, 99, 99, 99, 99, 99), (40, "<8h", 0, 4, 4, 4, 1, 1, 1, 1), (70, "<h", 9999), (70, "<h", 32),
    (280, "<4f", float("nan"), 0, 0, 0), (108, "<f", 1e30), (108, "<f", float("nan"))])
def test_hostile_nifti(change, tmp_path):
    path = nifti_with(tmp_path / "bad.nii", *change)
    done = run("agree", "--rater", f"A={path}", check=False)
    assert done.code in (0, 2), (done.code, done.err)  # ITK repairs some of them
    if done.code == 2:
        assert "bad.nii" in done.err and done.err.count("\n") == 1
    else:
        assert "nan" not in done.out.lower()


@pytest.mark.parametrize("change", [
    ("DimSize = 4 4 4", "DimSize = 100000 100000 100000"), ("DimSize = 4 4 4", "DimSize = -4 4 4"),
    ("DimSize = 4 4 4", "DimSize = 4 4"), ("NDims = 3", "NDims = 99"), ("MET_UCHAR", "MET_NONSENSE"),
    ("ElementSpacing = 1.0", "ElementSpacing = nan"), ("ElementSpacing = 1.0", "ElementSpacing = 0"),
    ("LOCAL", "/nowhere/at/all.raw")])
def test_hostile_meta(change, tmp_path):
    path = write_meta(tmp_path / "bad.mha", np.eye(4, dtype=np.uint8)[None].repeat(4, 0))
    path.write_bytes(path.read_bytes().replace(change[0].encode(), change[1].encode()))
    refused("agree", "--rater", f"A={path}", says="bad.mha", folder=tmp_path)


def test_hostile_png(tmp_path):
    path = write_png(tmp_path / "bad.png", np.eye(8, dtype=np.uint8))
    data = bytearray(path.read_bytes())
    struct.pack_into(">II", data, 16, 2**31 - 1, 2**31 - 1)
    struct.pack_into(">I", data, 29, zlib.crc32(bytes(data[12:29])))
    path.write_bytes(bytes(data))
    refused("agree", "--rater", f"A={path}", says="bad.png", folder=tmp_path)


def test_hostile_tiff(tmp_path):
    path = write_tiff(tmp_path / "bad.tif", np.eye(8, dtype=np.uint8))
    data = bytearray(path.read_bytes())
    at = data.index(struct.pack("<HHI", 256, 4, 1)) + 8
    struct.pack_into("<I", data, at, 2**31 - 1)
    path.write_bytes(bytes(data))
    refused("agree", "--rater", f"A={path}", says="bad.tif", folder=tmp_path)


def test_tiff_in_tiles(tmp_path):
    path = write_tiff(tmp_path / "tiles.tif", np.eye(16, dtype=np.uint16))
    rows = struct.pack("<HHII", 278, 4, 1, 16)
    assert rows in path.read_bytes()
    path.write_bytes(path.read_bytes().replace(rows, struct.pack("<HHII", 322, 4, 1, 16)))
    refused("agree", "--rater", f"A={path}", says=["tiles.tif", "in tiles", "save it without tiles"], folder=tmp_path)


# ---- geometry --------------------------------------------------------------------------------------

@pytest.mark.parametrize("what,geometry", [
    ("spacing", dict(spacing=(1, 1, 1.25))), ("origin", dict(origin=(0, 5, 0))), ("direction", dict(direction=rotation(30)))])
def test_other_geometry(what, geometry, case, tmp_path):
    other = write_nrrd(tmp_path / "other.nrrd", golden(1)[0], **geometry)
    both({**case, "D": other}, says=[f"other.nrrd has another {what} than", "A.nrrd", "--resample", "size 8x8x8"], folder=tmp_path)
    image = write_nrrd(tmp_path / "image.nrrd", np.ones((8, 8, 8), np.int16), **geometry)
    both(case, "--image", image, says=[f"A.nrrd has another {what} than", "image.nrrd", "--resample"], folder=tmp_path)


def test_other_size(case, tmp_path):
    other = write_nrrd(tmp_path / "other.nrrd", np.ones((8, 8, 9), np.uint8))
    both({**case, "D": other}, says=["other.nrrd has another size than", "9x8x8", "8x8x8"], folder=tmp_path)


def test_other_dimension(case, tmp_path):
    other = write_nrrd(tmp_path / "flat.nrrd", np.ones((8, 8), np.uint8))
    both({**case, "D": other}, says=["flat.nrrd has another size than"], folder=tmp_path)


# ---- voxels ----------------------------------------------------------------------------------------

@pytest.mark.parametrize("dtype", ["uint8", "float32"])
def test_all_zero_image(dtype, case, tmp_path):
    image = write_nrrd(tmp_path / "image.nrrd", np.zeros((8, 8, 8), dtype))
    both(case, "--image", image, says=["image.nrrd is zero everywhere"], folder=tmp_path)


@pytest.mark.parametrize("value,shown", [(.5, "0.5"), (-1.25, "-1.25")])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_labels_that_are_no_whole_numbers(value, shown, dtype, case, tmp_path):
    mask = golden(1)[0].astype(dtype)
    mask[6, 5, 4] = value
    bad = write_nrrd(tmp_path / "bad.nrrd", mask)
    for files in ({**case, "D": bad}, {**case, "D": f"{bad}:1"}):
        both(files, says=["bad.nrrd", shown, "(4, 5, 6)", "whole number"], folder=tmp_path)


def write_pair(path, array):
    """A NIfTI pair, path.hdr and path.img."""
    data = bytearray(write_nifti(path.with_suffix(".nii"), array).read_bytes())
    path.with_suffix(".nii").unlink()
    struct.pack_into("<f", data, 108, 0)
    data[344:348] = b"ni1\0"
    path.with_suffix(".hdr").write_bytes(bytes(data[:348]))
    path.with_suffix(".img").write_bytes(bytes(data[352:]))
    return path


def write_big_endian_nifti(path, array):
    data = write_nifti(path, array).read_bytes()
    out = bytearray(data)
    for format_, first, end in [("i", 0, 4), ("h", 40, 56), ("h", 70, 74), ("f", 76, 116), ("h", 252, 256), ("f", 256, 328)]:
        for at in range(first, end, struct.calcsize(format_)):
            struct.pack_into(">" + format_, out, at, *struct.unpack_from("<" + format_, data, at))
    path.write_bytes(bytes(out[:352]) + array.astype(array.dtype.newbyteorder(">")).tobytes())
    return path


NOT_FINITE = {"a.nrrd": write_nrrd, "raw.nrrd": lambda p, a: write_nrrd(p, a, compress=False), "a.nii": write_nifti,
              "a.nii.gz": write_nifti, "big.nii": write_big_endian_nifti, "a.hdr": write_pair, "a.mha": write_meta,
              "z.mha": lambda p, a: write_meta(p, a, compress=True), "a.tif": write_tiff}


@pytest.mark.parametrize("dtype,value,shown", [("float32", np.nan, "nan"), ("float64", np.nan, "nan"), ("float32", np.inf, "inf"),
                                               ("float64", -np.inf, "-inf")])
@pytest.mark.parametrize("name", NOT_FINITE)
def test_not_finite(name, dtype, value, shown, tmp_path):
    """In image, mask, map and region, in every format: never a number. A map may have it where nobody looks."""
    if name == "a.tif" and dtype == "float64":
        pytest.skip("TIFF has no float64 here")
    write = NOT_FINITE[name]
    good = write_image(tmp_path / "good.nrrd", golden(1)[0])
    array = golden(1)[0].astype(dtype)
    bad = write(tmp_path / name, array)
    run("agree", "--image", bad, "--rater", f"A={bad}", "--tolerance", "1", "--quiet")
    array[6, 5, 4] = value
    array[7, 5, 4] = np.nan
    write(bad, array)
    says = [name, f"value {shown} ", "(4, 5, 6)"]
    refused("agree", "--image", bad, "--rater", f"A={good}", says=says, folder=tmp_path)
    refused("agree", "--rater", f"A={bad}", says=says, folder=tmp_path)
    refused("evaluate", "--prob", bad, "--rater", f"A={good}", says=[name, shown, "(4, 5, 6)", "probability"], folder=tmp_path)
    refused("evaluate", "--prob", good, "--rater", f"A={good}", "--region-mask", bad, says=says, folder=tmp_path)
    where = write_nrrd(tmp_path / "where.nrrd", np.isfinite(array).astype(np.uint8))
    tolerant = ["--rater", f"A={good}", "--region-mask", where, "--tolerance", "1", "--json", "-"]
    assert run("evaluate", "--prob", bad, *tolerant).json["dice"] == 1


def test_not_finite_in_a_later_volume(tmp_path):
    array = np.ones((3, 4, 5, 6), np.float32)
    array[2, 3, 2, 1] = np.nan
    good = write_nrrd(tmp_path / "good.nrrd", np.ones((4, 5, 6), np.uint8))
    for bad in (write_nifti(tmp_path / "a.nii.gz", array), write_nrrd_4d(tmp_path / "a.nrrd", array)):
        refused("agree", "--image", bad, "--rater", f"A={good}", says=[bad.name, "value nan ", "(1, 2, 3)"], folder=tmp_path)
        refused("agree", "--rater", bad, says=[bad.name, "value nan ", "(1, 2, 3)"], folder=tmp_path)


def test_label_value_absent(case, tmp_path):
    both({"A": case["A"], "B": f"{case['B']}:7"}, says=["7", "does not occur in", "B.nrrd"], folder=tmp_path)
    both({"A": case["A"], "B": f"{case['B']}:7,9"}, says=["7", "9", "does not occur in", "B.nrrd"], folder=tmp_path)


@pytest.mark.parametrize("suffix", [":", ":x", ":1,", ":1.5", ":1,,2", ":99999999999999999999", ":,"])
def test_bad_label_value(suffix, case, tmp_path):
    both({"A": f"{case['A']}{suffix}"}, says=["--rater", suffix, "label value"], folder=tmp_path)


def test_color_picture(tmp_path):
    for path in (write_png(tmp_path / "color.png", np.zeros((6, 7, 3), np.uint8)),
                 write_png(tmp_path / "alpha.png", np.zeros((6, 7, 4), np.uint8)),
                 write_png(tmp_path / "clear.png", np.zeros((6, 7, 3), np.uint8), transparent=bytes(6)),
                 write_tiff(tmp_path / "alpha.tif", np.zeros((6, 7, 4), np.uint8), samples=4)):
        both({"A": path}, says=[path.name, "color picture", "gray", "palette"], folder=tmp_path)


@pytest.mark.parametrize("dtype,bits", [("int32", "32"), ("uint32", "32"), ("float64", "64"), ("float16", "16"), ("int64", "64")])
def test_tiff_types_that_would_be_misread(dtype, bits, tmp_path):
    path = write_tiff(tmp_path / "a.tif", golden(1)[0].astype(dtype))
    both({"A": path}, says=["a.tif", bits + " bits", "NRRD"], folder=tmp_path)


def test_tiff_with_alpha(tmp_path):
    gray = golden(1)[0][4]
    for dtype in (np.uint8, np.uint16):
        path = write_tiff(tmp_path / "a.tif", np.dstack([gray, 1 - gray]).astype(dtype), samples=2)
        both({"A": path}, says=["a.tif", "alpha", "PNG"], folder=tmp_path)


def test_tiff_pages_that_differ(tmp_path):
    small = write_tiff(tmp_path / "a.tif", np.ones((2, 4, 5), np.uint8))
    data = bytearray(small.read_bytes())
    last = data.rindex(struct.pack("<HHI", 256, 4, 1)) + 8
    struct.pack_into("<I", data, last, 500)
    small.write_bytes(bytes(data))
    both({"A": small}, says=["a.tif", "pages of different size"], folder=tmp_path)


def test_jpeg_mask(tmp_path):
    for name in ("mask.jpg", "mask.JPEG"):
        path = tmp_path / name
        path.write_bytes(b"\xff\xd8\xff\xe0\0\x10JFIF\0")
        both({"A": path}, says=[name, "JPEG", "PNG or NRRD"], folder=tmp_path)


# ---- raters ----------------------------------------------------------------------------------------

def test_same_rater_twice(case, tmp_path):
    words = ["--rater", f"A={case['A']}", "--rater", f"A={case['B']}"]
    refused("agree", *words, says=["rater A is named twice", "B.nrrd"], folder=tmp_path)
    refused("fuse", "--method", "orc", *words, "-o", tmp_path / "o.nrrd", says="rater A is named twice", folder=tmp_path)


def test_no_rater(tmp_path):
    refused("agree", says=["--rater", "--data"])
    refused("fuse", "--method", "orc", "-o", tmp_path / "o.nrrd", says=["--rater", "--data"], folder=tmp_path)
    refused("agree", "--image", tmp_path / "i.nrrd", says="--rater")


def test_too_many_raters(case, tmp_path):
    both({f"r{i}": case["A"] for i in range(65)}, says=["1 to 64 raters", "65"], folder=tmp_path)
    many = write_nrrd(tmp_path / "many.nrrd", np.ones((3, 4, 5, 65), np.uint8), components=True)
    refused("agree", "--rater", many, says=["1 to 64 raters", "65"], folder=tmp_path)


@pytest.mark.parametrize("word,says", [("=a.nrrd", "name before"), ("A=", "file after"), ("A=:3", "file after"), ("", "--rater")])
def test_bad_rater_words(word, says):
    refused("agree", "--rater", word, says=says)


@pytest.mark.parametrize("address", ["http://localhost:8080", "https://example.org/a.nii.gz:3", "s3://bucket/a=b.nrrd", "gs+x://a/1"])
def test_address_is_no_file(address, case, tmp_path):
    """Neither a file nor, behind its colon, a label value."""
    says = [address, "is an address", "download"]
    both({**case, "D": address}, says=["--rater", *says], folder=tmp_path)
    refused("agree", "--rater", address, says=["--rater", *says], folder=tmp_path)
    refused("agree", *raters(case), "--image", address, says=["--image", *says], folder=tmp_path)
    refused("agree", *raters(case), f"--json={address}", says=["--json", *says], folder=tmp_path)
    refused("evaluate", *raters(case), "--prob", address, says=["--prob", *says], folder=tmp_path)
    refused("agree", "--data", address, says=["--data", *says], folder=tmp_path)
    for entry in ({"image": address, "label": {"A": "a.nrrd"}}, {"label": {"A": address}}, {"label": {"A": {"file": address}}}):
        (tmp_path / "list.json").write_text(json.dumps({"test": [{"id": "c", **entry}]}))
        refused("agree", "--data", tmp_path / "list.json", says=["list.json", *says], folder=tmp_path)


def test_address_of_a_file(case, tmp_path):
    refused("agree", "--rater", f"A=file://{case['A']}", says=["file://", "without file://"], folder=tmp_path)
    # A heading is no file.
    run("report", *raters(case), "-o", tmp_path / "r.html", "--title", "http://localhost:8080")


def test_rater_name_must_be_text(case):
    refused("agree", "--rater", b"\xff=" + str(case["A"]).encode(), says="UTF-8")


# ---- options ---------------------------------------------------------------------------------------

@pytest.mark.parametrize("words,says", [
    (["frobnicate"], ["frobnicate", "--help"]), (["agree", "--frobnicate"], ["--frobnicate", "agree --help"]),
    (["agree", "stray.nrrd"], ["stray.nrrd", "--help"]), (["fuse", "--method", "vote"], ["--method", "vote", "staple"]),
    (["agree", "--rater"], ["--rater needs NAME=FILE"]), (["agree", "--json", "--quiet"], ["--json needs FILE"]),
    (["agree", "--quiet=yes"], ["--quiet takes no value"]), (["agree", "--split", "all"], ["--split", "training"]),
    (["agree", "--threads", "1", "--threads", "2"], ["--threads is given twice"])])
def test_usage(words, says):
    refused(*words, says=says)


def test_no_words_at_all():
    done = run(check=False)
    assert done.code == 2 and "agree" in done.err and done.out == ""


@pytest.mark.parametrize("option,value", [
    ("--threads", "-1"), ("--threads", "many"), ("--threads", "5000"), ("--threads", ""), ("--tolerance", "-1"),
    ("--tolerance", "nan"), ("--tolerance", "x"), ("--unanswered", "1.5"), ("--unanswered", "1e5")])
def test_bad_number(option, value, case, tmp_path):
    both(case, option, value, says=option, folder=tmp_path)


@pytest.mark.parametrize("method,option,value,says", [
    ("soft-gaussian", "--sigma", "0", "sigma"), ("soft-gaussian", "--sigma", "1000", "sigma"), ("svls", "--sigma", "x", "--sigma"),
    ("random", "--seed", "-1", "--seed"), ("staple", "--confidence", "0", "confidence"), ("staple", "--margin", "-2", "--margin"),
    ("simple", "--alpha", "-1", "alpha"), ("median", "--tie", "maybe", "--tie"), ("soft", "--type", "uint8", "--type uint8")])
def test_bad_method_option(method, option, value, says, case, tmp_path):
    refused("fuse", "--method", method, *raters(case), "-o", tmp_path / "o.nrrd", option, value, says=says, folder=tmp_path)


def test_fuse_needs_method_and_output(case, tmp_path):
    refused("fuse", *raters(case), "-o", tmp_path / "o.nrrd", says="--method", folder=tmp_path)
    refused("fuse", "--method", "orc", *raters(case), says="-o", folder=tmp_path)


def test_raters_or_list(case, tmp_path):
    refused("agree", *raters(case), "--data", tmp_path / "list.json", says=["--rater", "--data"], folder=tmp_path)


def test_one_standard_output(case):
    refused("agree", *raters(case), "--json", "-", "--csv", "-", says=["--json", "--csv", "standard output"])


# ---- data lists ------------------------------------------------------------------------------------

ONE = '{"id": "c", "label": {"A": "A.nrrd"}}'


@pytest.mark.parametrize("text,says", [
    ("", "not valid JSON"), ("{", "not valid JSON"), ("[]", "object"), ("7", "not valid JSON"), ("{}", "has no case"),
    ('{"training": []}', "has no case"), ('{"training": {}}', '"training" must be an array'),
    ('{"training": [7]}', "must be an object"), ('{"training": [{"label": "a"}]}', 'neither "id" nor "image"'),
    ('{"training": [{"id": "c"}]}', 'has no "label"'), ('{"training": [{"id": "c", "label": 7}]}', "a label must be"),
    ('{"training": [{"id": "c", "label": {}}]}', "no rater"), ('{"training": [{"id": "c", "label": [null]}]}', "no rater"),
    ('{"training": [{"id": "c", "label": {"": "a"}}]}', "without a name"),
    ('{"training": [{"id": "c", "label": {"A": ["a"]}}]}', "a label must be"),
    ('{"training": [{"id": "c", "label": {"A": ""}}]}', "a label must be"),
    ('{"training": [{"id": 1.5, "label": {"A": "a"}}]}', '"id" must be'),
    ('{"training": [{"id": "a/b", "label": {"A": "a"}}]}', "usable as a file name"),
    ('{"training": [{"id": "..", "label": {"A": "a"}}]}', "usable as a file name"),
    (f'{{"training": [{ONE}], "test": [{ONE}]}}', "in the list twice"),
    ('{"training": [{"id": "c", "id": "d", "label": "a"}]}', "not valid JSON"),
    ('{"raters": "A", "training": []}', '"raters" must be an array'), ('{"raters": [""], "training": []}', '"raters" must be'),
    ('{"raters": ["A", "A"], "training": []}', "the rater A twice"),
    (f'{{"raters": ["B"], "training": [{ONE}]}}', "not among"),
    ('{"raters": ["B"], "training": [{"id": "c", "label": ["a", "b"]}]}', "more labels than"),
    (f'{{"training": [{ONE}, {{"id": "d", "label": ["a", "b"]}}]}}', "another way"),
    ('{"value": 1.5, "training": []}', '"value" must be'), (f'{{"value": "x", "training": [{ONE}]}}', '"value" must be'),
    ('{"training": [{"id": "c", "image": 7, "label": "a"}]}', '"image" must be'),
    ('{"training": [{"id": "c", "label": {"A": {"value": 3}}}]}', "a label must be"),
    ('{"training": [{"id": "c", "label": [' + ",".join(f'"{i}"' for i in range(65)) + "]}]}", "more than 64 raters"),
    ("[" * 100000, "not valid JSON"), ('{"a": "\xff"}'.encode("latin1"), "not valid JSON")])
def test_bad_list(text, says, tmp_path):
    path = tmp_path / "list.json"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    refused("agree", "--data", path, "--json", tmp_path / "o.json", says=["list.json", says], folder=tmp_path)
    refused("fuse", "--method", "orc", "--data", path, "-o", tmp_path / "maps", says=["list.json", says], folder=tmp_path)


def test_missing_list(tmp_path):
    refused("agree", "--data", tmp_path / "nowhere.json", says=["nowhere.json", "does not exist"], folder=tmp_path)
    refused("agree", "--data", tmp_path, says=[str(tmp_path), "cannot be read"], folder=tmp_path)


def test_empty_split(case, tmp_path):
    path = tmp_path / "list.json"
    path.write_text(f'{{"training": [{ONE}]}}')
    refused("agree", "--data", path, "--split", "test", says=["list.json", "no case"], folder=tmp_path)


def test_list_name_with_line_end(tmp_path):
    refused("agree", "--data", tmp_path / "two\nlines.json", says="does not exist", folder=tmp_path)
    refused("agree", "--rater", f"A={tmp_path}/two\nlines.nrrd", says="does not exist", folder=tmp_path)


# ---- outputs ---------------------------------------------------------------------------------------

OUTPUTS = [("-o", "o.nrrd"), ("-o", "o.nii.gz"), ("-o", "o.mha"), ("-o", "o.tif"), ("-o", "o.png"), ("--json", "o.json")]


@pytest.fixture
def flat(tmp_path):
    return {n: write_nrrd(tmp_path / f"{n}.nrrd", m) for n, m in zip("AB", blobs(2, (200, 200), noise=.3))}


def writing(files, option, path):
    """The words of a fuse that writes there; the map goes elsewhere when it is not what is tested."""
    words = ["fuse", "--method", "soft-gaussian", *raters(files), option, path]
    return words


@pytest.mark.parametrize("name,says", [
    ("o.mhd", ["o.mhd", ".mha"]), ("o.nhdr", ["o.nhdr", ".nrrd"]), ("o.jpg", ["o.jpg", "JPEG"]), ("o.xyz", ["o.xyz", ".nrrd"]),
    ("o", ["/o:", ".nrrd"]), ("missing/o.nrrd", ["missing/o.nrrd", "folder", "does not exist"]), ("A.nrrd/o.nrrd", ["A.nrrd", "folder"])])
def test_unsuitable_output(name, says, flat, tmp_path):
    refused("fuse", "--method", "soft", *raters(flat), "-o", tmp_path / name, says=says, folder=tmp_path)
    refused("agree", *raters(flat), "--levels", tmp_path / name, says=says, folder=tmp_path)


def test_output_is_a_folder(flat, tmp_path):
    (tmp_path / "o.nrrd").mkdir()
    refused("fuse", "--method", "soft", *raters(flat), "-o", tmp_path / "o.nrrd", says=["o.nrrd", "folder"], folder=tmp_path)


@pytest.mark.parametrize("type_", ["float32", "uint8"])
def test_volume_as_png(type_, case, tmp_path):
    refused("fuse", "--method", "orc", *raters(case), "-o", tmp_path / "o.png", "--type", type_,
            says=["o.png", "one slice", ".nrrd"], folder=tmp_path)


@pytest.mark.parametrize("option", ["--json", "--csv"])
@pytest.mark.parametrize("name", ["missing/o.txt", "A.nrrd/o.txt", "/proc/o.txt"])
def test_text_output_is_checked_first(option, name, case, tmp_path):
    refused("agree", *raters(case), "--levels", tmp_path / "l.nrrd", option, tmp_path / name, says=[option, name], folder=tmp_path)


@pytest.mark.parametrize("name", ["o.nrrd", "o.nii.gz", "o.mha", "o.tif", "o.png"])
def test_no_write_permission_for_anybody(name, flat):
    """Not even root can make files in /proc."""
    refused("fuse", "--method", "soft", *raters(flat), "-o", f"/proc/{name}", says=[f"/proc/{name}", "cannot be written"])


@pytest.mark.parametrize("option,name", OUTPUTS)
def test_no_write_permission(option, name, flat, tmp_path):
    if ROOT:
        pytest.skip("root may write everywhere; see the test with /proc")
    folder = tmp_path / "closed"
    folder.mkdir(mode=0o555)
    words = ["-o", tmp_path / "o.nrrd"] if option == "--json" else []
    refused("fuse", "--method", "soft", *raters(flat), *words, option, folder / name, says=[name, "permission"], folder=tmp_path)


def test_list_into_a_file(case, tmp_path):
    path = tmp_path / "list.json"
    path.write_text(f'{{"training": [{ONE}]}}')
    refused("fuse", "--method", "orc", "--data", path, "-o", case["A"], says=["A.nrrd"], folder=tmp_path)


@pytest.fixture
def full_disk(tmp_path):
    with small_disk(tmp_path / "full", 65536) as folder:
        yield folder


@pytest.mark.parametrize("option,name", OUTPUTS)
def test_disk_full(option, name, flat, full_disk, tmp_path):
    (full_disk / "filler").write_bytes(bytes(61000 if option == "--json" else 30000))
    target = full_disk / name
    words = ["fuse", "--method", "soft-gaussian", *raters(flat), option, target]
    if option == "--json":
        files = {f"A{i:060}": flat["A"] for i in range(60)}  # long names: a large report
        words = ["agree", *raters(files), option, target]
        done = run(*words, check=False)
        assert done.code == 1 and done.err.count("\n") == 1
        assert name in done.err and "No space left" in done.err
    else:
        refused(*words, says=[name, "disk is full"], code=1)
    assert sorted(p.name for p in full_disk.iterdir()) == ["filler"]


@pytest.mark.parametrize("option,name", OUTPUTS)
@pytest.mark.parametrize("signal_ignored", [True, False])
def test_file_may_not_grow(option, name, signal_ignored, flat, tmp_path):
    """The same without a file system of its own; the old file stays."""
    target = tmp_path / name
    target.write_text("old")

    def limit():
        resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))
        if not signal_ignored:
            import signal
            signal.signal(signal.SIGXFSZ, signal.SIG_DFL)
    words = ["fuse", "--method", "soft-gaussian", *raters(flat), option, target]
    if option == "--json":
        words = ["agree", *raters({f"A{i:060}": flat["A"] for i in range(60)}), "--quiet", option, target]
    done = run(*words, check=False, preexec_fn=limit)
    assert done.code == 1, (done.code, done.err)
    assert name in done.err and "cannot be written" in done.err and done.err.count("\n") == 1
    assert target.read_text("utf-8") == "old" and not leftovers(tmp_path)


def test_devices_are_not_replaced(case, tmp_path):
    """A pipe or device is written to; as root it would be possible to replace /dev/null."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    process = start("agree", *raters(case), "--quiet", "--json", pipe, stdout=None, stderr=None)
    assert json.loads(pipe.read_text("utf-8"))["mean_dice"] > 0
    assert process.wait() == 0 and pipe.is_fifo()
    done = run("agree", *raters(case), "--quiet", "--json", "/dev/full", check=False)
    assert done.code == 1 and "No space left" in done.err
    assert pathlib.Path("/dev/full").is_char_device()
    image = tmp_path / "pipe.nrrd"
    os.mkfifo(image)
    refused("fuse", "--method", "orc", *raters(case), "-o", image, says=["pipe.nrrd", "not a regular file"], folder=tmp_path)


def test_standard_output_full(case):
    with open("/dev/full", "wb") as full:
        done = subprocess.run([str(PROGRAM), "agree", *map(str, raters(case)), "--json", "-"], stdout=full, stderr=subprocess.PIPE)
    assert done.returncode == 1 and b"tandard output cannot be written" in done.stderr


def test_long_name_and_stale_temporary(case, tmp_path):
    """Neither a name as long as the system allows nor the remains of a killed run stand in the way."""
    long = tmp_path / ("x" * 250 + ".nrrd")
    run("fuse", "--method", "orc", *raters(case), "-o", long)
    assert np.array_equal(read_nrrd(long).array, np.sum(golden(3), 0))
    assert not leftovers(tmp_path)
