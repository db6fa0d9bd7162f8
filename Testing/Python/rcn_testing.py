# SPDX-License-Identifier: Apache-2.0
"""What the tests share: the program, small image writers and readers, and phantom raters.

Arrays are indexed [z, y, x] (or [y, x]), x fastest in memory, as everywhere in the project. Writers
need NumPy only, so that they are independent of the program's own image library.
"""
import contextlib
import ctypes
import gzip
import json
import os
import pathlib
import struct
import subprocess
import time
import zlib

import numpy as np
import pytest

BUILD = pathlib.Path(os.environ.get("RCN_BUILD", pathlib.Path(__file__).parents[2] / "build"))
PROGRAM = BUILD / "bin" / "rater-consensus"
# Real masks, where somebody has them.
DATA = pathlib.Path(os.environ.get("RCN_DATA", pathlib.Path(__file__).parents[3] / "shared" / "data"))

needs_peers = pytest.mark.skipif(os.environ.get("RCN_PEERS") != "1",
                                 reason="compares with other packages: ./run test --peers")
METHODS = ["orc", "random", "median", "soft", "soft-gaussian", "staple", "simple", "svls"]


class Result:
    def __init__(self, code, out, err):
        self.code, self.out, self.err = code, out, err

    @property
    def json(self):
        return json.loads(self.out)


def execute(words, check=True, timeout=120, **options):
    """Runs any command to its end. With check it must succeed."""
    done = subprocess.run(words, capture_output=True, timeout=timeout, stdin=subprocess.DEVNULL, **options)
    result = Result(done.returncode, done.stdout.decode(errors="replace"), done.stderr.decode(errors="replace"))
    if check:
        assert result.code == 0, result.err
    return result


def run(*words, **options):
    """Runs rater-consensus; the options are those of execute."""
    return execute([str(PROGRAM), *map(os.fspath, words)], **options)


def start(*words, **options):
    """Starts rater-consensus and does not wait for it. Its output can be read through pipes."""
    options = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "stdin": subprocess.DEVNULL, **options}
    return subprocess.Popen([str(PROGRAM), *map(os.fspath, words)], **options)


def wait_until(condition, seconds=60):
    """Asks until the condition is true; a test never waits for a fixed time instead."""
    deadline = time.monotonic() + seconds
    while not (value := condition()):
        assert time.monotonic() < deadline, "waited in vain"
        time.sleep(.002)
    return value


def signals(process, field):
    """A set of signals from /proc: SigCgt, which the process handles, or ShdPnd, which were sent and not delivered yet."""
    status = pathlib.Path(f"/proc/{process.pid}/status").read_text("utf-8")
    bits = int(status.split(field + ":")[1].split()[0], 16)
    return {number for number in range(1, 65) if bits >> (number - 1) & 1}


def wait_for_handler(process, kind):
    """Until the program has begun to listen to a signal."""
    def listens():
        assert process.poll() is None
        return kind in signals(process, "SigCgt")
    wait_until(listens)


def refused(*words, says, folder=None, code=2, **options):
    """Runs, expects one line on standard error with all the words, and no trace in the folder."""
    before = sorted(p for p in folder.rglob("*")) if folder else None
    done = run(*words, check=False, **options)
    assert done.code == code, (done.code, done.err)
    assert done.out == ""
    assert done.err.startswith("rater-consensus: ") and done.err.endswith("\n") and done.err.count("\n") == 1, done.err
    for word in [says] if isinstance(says, str) else says:
        assert word in done.err, done.err
    if folder:
        assert sorted(p for p in folder.rglob("*")) == before
    return done.err


@contextlib.contextmanager
def small_disk(folder, size):
    """A file system of its own in a new folder, where this is allowed."""
    folder.mkdir()
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.mount(b"tmpfs", str(folder).encode(), b"tmpfs", 0, f"size={size}".encode()) != 0:
        pytest.skip("not allowed to mount a small file system")
    try:
        yield folder
    finally:
        libc.umount2(str(folder).encode(), 2)


def raters(files):
    """{"A": path} -> ["--rater", "A=path", ...]"""
    return [word for name, path in files.items() for word in ("--rater", f"{name}={path}")]


# ---- phantoms --------------------------------------------------------------------------------------

def golden(count):
    """The golden raters: 8 x 8 x 8, a cube, up to four noisy raters from a linear congruence."""
    miss, alarm = (.10, .20, .30, .15), (.05, .10, .15, .20)
    truth = np.zeros((8, 8, 8), bool)
    truth[2:6, 2:6, 2:6] = True
    state, masks = 12345, []
    for k in range(count):
        mask = np.zeros(512, np.uint8)
        for i, inside in enumerate(truth.ravel()):
            state = (1664525 * state + 1013904223) % 2**32
            u = state / 2**32
            mask[i] = (not u < miss[k]) if inside else u < alarm[k]
        masks.append(mask.reshape(8, 8, 8))
    return masks


def blobs(count, shape, seed=0, noise=.05):
    """Raters who mark about the same ellipsoid, each a little shifted, with some noise."""
    random = np.random.default_rng(seed)
    grid = np.stack(np.meshgrid(*[np.linspace(-1, 1, n) for n in shape], indexing="ij"), -1)
    masks = []
    for _ in range(count):
        center = random.uniform(-.15, .15, len(shape))
        mask = (((grid - center) / random.uniform(.45, .65)) ** 2).sum(-1) < 1
        masks.append((mask ^ (random.random(shape) < noise)).astype(np.uint8))
    return masks


# ---- writers ---------------------------------------------------------------------------------------

NRRD_TYPES = {"uint8": "uint8", "int8": "int8", "uint16": "uint16", "int16": "int16", "uint32": "uint32",
              "int32": "int32", "uint64": "uint64", "int64": "int64", "float32": "float", "float64": "double"}


def _sizes(array, components=False):
    sizes = list(array.shape[::-1])
    return (sizes[1:], sizes[0]) if components else (sizes, 1)


def write_nrrd(path, array, spacing=None, origin=None, direction=None, components=False, compress=True,
               fields=None):
    """direction: columns are the axes, in LPS. components: the last array axis is the voxel's values."""
    array = np.ascontiguousarray(array)
    sizes, count = _sizes(array, components)
    n = len(sizes)
    spacing = np.ones(n) if spacing is None else np.asarray(spacing, float)
    origin = np.zeros(n) if origin is None else np.asarray(origin, float)
    direction = np.eye(n) if direction is None else np.asarray(direction, float)
    axes = ["(" + ",".join(repr(float(v)) for v in direction[:, a] * spacing[a]) + ")" for a in range(n)]
    space = "left-posterior-superior" if n == 3 else None
    lines = ["NRRD0004", f"type: {NRRD_TYPES[array.dtype.name]}", f"dimension: {n + components}",
             f"space: {space}" if space else f"space dimension: {n}",
             "sizes: " + " ".join(map(str, ([count] if components else []) + sizes)),
             "space directions: " + " ".join((["none"] if components else []) + axes),
             "kinds: " + " ".join((["list"] if components else []) + ["domain"] * n),
             "endian: little", "encoding: " + ("gzip" if compress else "raw"),
             "space origin: (" + ",".join(repr(float(v)) for v in origin) + ")"]
    lines += [f"{key}:={value}" for key, value in (fields or {}).items()]
    data = array.astype(array.dtype.newbyteorder("<")).tobytes()
    pathlib.Path(path).write_bytes("\n".join(lines).encode() + b"\n\n" +
                                   (gzip.compress(data, 1) if compress else data))
    return path


def write_nrrd_4d(path, arrays, spacing=(1, 1, 1)):
    """Volumes one after the other: the fourth axis runs slowest."""
    array = np.ascontiguousarray(np.stack(arrays))
    sizes = list(array.shape[::-1])
    header = ["NRRD0004", f"type: {NRRD_TYPES[array.dtype.name]}", "dimension: 4",
              "sizes: " + " ".join(map(str, sizes)),
              "spacings: " + " ".join(map(str, (*spacing, 1))), "endian: little", "encoding: raw"]
    pathlib.Path(path).write_bytes("\n".join(header).encode() + b"\n\n" + array.tobytes())
    return path


NIFTI_TYPES = {"uint8": 2, "int16": 4, "int32": 8, "float32": 16, "float64": 64, "int8": 256, "uint16": 512,
               "uint32": 768, "int64": 1024, "uint64": 1280}


def write_nifti(path, array, spacing=None, origin=None, direction=None):
    """origin and direction in LPS, as everywhere here; NIfTI's own RAS is made of them. 2-D to 4-D."""
    array = np.ascontiguousarray(array)
    sizes, _ = _sizes(array)
    n = min(len(sizes), 3)
    spacing = [1.0] * n if spacing is None else list(spacing)
    matrix = np.eye(4)
    matrix[:n, :n] = (np.eye(n) if direction is None else np.asarray(direction)) * np.asarray(spacing)
    matrix[:n, 3] = np.zeros(n) if origin is None else origin
    matrix[:2] *= -1
    header = bytearray(352)
    struct.pack_into("<i", header, 0, 348)
    struct.pack_into("<8h", header, 40, len(sizes), *(sizes + [1] * (7 - len(sizes))))
    struct.pack_into("<hh", header, 70, NIFTI_TYPES[array.dtype.name], array.dtype.itemsize * 8)
    struct.pack_into("<8f", header, 76, 1.0, *(spacing + [1.0] * (7 - len(spacing))))
    struct.pack_into("<f", header, 108, 352.0)
    struct.pack_into("<f", header, 112, 1.0)
    header[123] = 2  # mm
    struct.pack_into("<hh", header, 252, 0, 1)
    for row in range(3):
        struct.pack_into("<4f", header, 280 + 16 * row, *matrix[row])
    header[344:348] = b"n+1\0"
    data = bytes(header) + array.tobytes()
    pathlib.Path(path).write_bytes(gzip.compress(data, 1) if str(path).endswith(".gz") else data)
    return path


META_TYPES = {"uint8": "MET_UCHAR", "int8": "MET_CHAR", "uint16": "MET_USHORT", "int16": "MET_SHORT",
              "uint32": "MET_UINT", "int32": "MET_INT", "uint64": "MET_ULONG_LONG", "int64": "MET_LONG_LONG",
              "float32": "MET_FLOAT", "float64": "MET_DOUBLE"}


def write_meta(path, array, spacing=None, origin=None, direction=None, compress=False):
    array = np.ascontiguousarray(array)
    sizes, _ = _sizes(array)
    n = len(sizes)
    matrix = np.eye(n) if direction is None else np.asarray(direction)
    data = array.tobytes()
    if compress:
        data = zlib.compress(data)
    text = [f"ObjectType = Image\nNDims = {n}\nBinaryData = True\nBinaryDataByteOrderMSB = False",
            f"CompressedData = {bool(compress)}", f"CompressedDataSize = {len(data)}" if compress else None,
            "TransformMatrix = " + " ".join(repr(float(v)) for v in matrix.T.ravel()),
            "Offset = " + " ".join(repr(float(v)) for v in (np.zeros(n) if origin is None else origin)),
            "ElementSpacing = " + " ".join(repr(float(v)) for v in (np.ones(n) if spacing is None else spacing)),
            "DimSize = " + " ".join(map(str, sizes)), f"ElementType = {META_TYPES[array.dtype.name]}",
            "ElementDataFile = LOCAL"]
    pathlib.Path(path).write_bytes("\n".join(t for t in text if t).encode() + b"\n" + data)
    return path


def png_chunk(kind, body):
    return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))


def write_png(path, array, palette=None, transparent=None):
    """[y, x] gray, [y, x, 2] gray and alpha, [y, x, 3] or [y, x, 4] color; uint8 or uint16. palette: bytes, the array holds its
    entries then. transparent: bytes of the chunk tRNS."""
    array = np.asarray(array)
    height, width = array.shape[:2]
    depth = 8 * array.dtype.itemsize
    rows = array.astype(array.dtype.newbyteorder(">")).reshape(height, -1)
    data = b"".join(b"\0" + row.tobytes() for row in rows)
    kind = 3 if palette else 0 if array.ndim == 2 else {2: 4, 3: 2, 4: 6}[array.shape[2]]
    pathlib.Path(path).write_bytes(
        b"\x89PNG\r\n\x1a\n" + png_chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, depth, kind, 0, 0, 0))
        + (png_chunk(b"PLTE", palette) if palette else b"") + (png_chunk(b"tRNS", transparent) if transparent else b"")
        + png_chunk(b"IDAT", zlib.compress(data)) + png_chunk(b"IEND", b""))
    return path


def write_tiff(path, array, samples=1, palette=None):
    """[y, x] or [z, y, x] (a page per slice), uncompressed, little endian. samples: the last axis holds that many values per
    voxel, the last of which is alpha. palette: 3 x 256 numbers of 16 bits; the array holds its entries then."""
    array = np.asarray(array)
    pages = array if array.ndim == (3 if samples == 1 else 4) else array[None]
    kind = {"u": 1, "i": 2, "f": 3}[array.dtype.kind]
    out, last = bytearray(b"II*\0\0\0\0\0"), 4
    for page in pages:
        data = np.ascontiguousarray(page).tobytes()
        at = len(out)
        out += data + b"\0" * (len(data) % 2)
        tags = [(256, 4, page.shape[1]), (257, 4, page.shape[0]), (258, 3, 8 * page.dtype.itemsize), (259, 3, 1),
                (262, 3, 3 if palette is not None else 1 if samples < 3 else 2), (273, 4, at), (277, 3, samples),
                (278, 4, page.shape[0]), (279, 4, len(data)), (339, 3, kind)]
        if samples > 1:
            tags.insert(-1, (338, 3, 2))
        if palette is not None:
            tags.insert(-1, (320, 3, len(out)))
            out += np.asarray(palette, "<u2").tobytes()
        struct.pack_into("<I", out, last, len(out))
        out += struct.pack("<H", len(tags)) + b"".join(struct.pack("<HHII", t, f, 768 if t == 320 else 1, v) for t, f, v in tags)
        last = len(out)
        out += b"\0\0\0\0"
    pathlib.Path(path).write_bytes(bytes(out))
    return path


def write_dicom(path, array, position=(0, 0, 0), spacing=(1, 1), series="1.2.3.4", orientation=(1, 0, 0, 0, 1, 0), slope="1"):
    """[y, x] of int16 as a CT slice, or [z, y, x] as the frames of one file; position or spacing None: it does not say."""
    array = np.ascontiguousarray(array, "<i2")
    text = "\\".join
    secondary = "1.2.840.10008.5.1.4.1.1.2" if array.ndim == 2 else "1.2.840.10008.5.1.4.1.1.7.3"
    uid = f"{series}.{abs(hash(str(path))) % 10**9}"

    def element(group, number, kind, value):
        value = value.encode() if isinstance(value, str) else value
        value += (b"\0" if kind == "UI" else b" ") * (len(value) % 2)
        size = struct.pack("<HI", 0, len(value)) if kind in ("OB", "OW") else struct.pack("<H", len(value))
        return struct.pack("<HH", group, number) + kind.encode() + size + value

    short = struct.Struct("<H").pack
    meta = element(2, 1, "OB", b"\0\1") + element(2, 2, "UI", secondary) + element(2, 3, "UI", uid) + element(2, 0x10, "UI", "1.2.840.10008.1.2.1")
    body = [element(8, 0x16, "UI", secondary), element(8, 0x18, "UI", uid), element(8, 0x60, "CS", "CT"),
            element(0x20, 0xd, "UI", "1.2.3"), element(0x20, 0xe, "UI", series), element(0x20, 0x13, "IS", "1")]
    if position is not None:
        body.append(element(0x20, 0x32, "DS", text(f"{v:.10g}" for v in position)))
    body += [element(0x20, 0x37, "DS", text(f"{v:.10g}" for v in orientation)), element(0x28, 2, "US", short(1)),
             element(0x28, 4, "CS", "MONOCHROME2")]
    if array.ndim == 3:
        body.append(element(0x28, 8, "IS", str(len(array))))
    body += [element(0x28, 0x10, "US", short(array.shape[-2])), element(0x28, 0x11, "US", short(array.shape[-1]))]
    if spacing is not None:
        body.append(element(0x28, 0x30, "DS", text(f"{v:.10g}" for v in spacing[::-1])))
    body += [element(0x28, 0x100, "US", short(16)), element(0x28, 0x101, "US", short(16)), element(0x28, 0x102, "US", short(15)), element(0x28, 0x103, "US", short(1)),
             element(0x28, 0x1052, "DS", "0"), element(0x28, 0x1053, "DS", slope), element(0x7fe0, 0x10, "OW", array.tobytes())]
    pathlib.Path(path).write_bytes(bytes(128) + b"DICM" + element(2, 0, "UL", struct.pack("<I", len(meta))) + meta + b"".join(body))
    return path


def write_image(path, array, **geometry):
    """By extension."""
    name = str(path)
    if name.endswith(".nrrd"):
        return write_nrrd(path, array, **geometry)
    if name.endswith((".nii", ".nii.gz")):
        return write_nifti(path, array, **geometry)
    if name.endswith(".mha"):
        return write_meta(path, array, **geometry)
    if name.endswith(".png"):
        return write_png(path, array)
    return write_tiff(path, array)


# ---- readers: of what the program writes -----------------------------------------------------------

class Image:
    def __init__(self, array, spacing, origin, direction):
        self.array, self.spacing, self.origin, self.direction = array, np.array(spacing), np.array(origin), np.array(direction)


def read_nrrd(path):
    head, data = pathlib.Path(path).read_bytes().split(b"\n\n", 1)
    fields = dict(line.split(": ", 1) for line in head.decode().split("\n")[1:] if ": " in line and not line.startswith("#"))
    sizes = [int(s) for s in fields["sizes"].split()]
    if fields["encoding"] in ("gzip", "gz"):
        data = gzip.decompress(data)
    types = {"float": "<f4", "double": "<f8", "unsigned char": "u1", "uint8": "u1", "int16": "<i2", "short": "<i2", "uint16": "<u2", "unsigned short": "<u2"}
    array = np.frombuffer(data, types[fields["type"]]).reshape(sizes[::-1])
    vectors = [np.array([float(v) for v in part.strip("()").split(",")])
               for part in fields["space directions"].split() if part != "none"]
    spacing = [np.linalg.norm(v) for v in vectors]
    direction = np.stack([v / s for v, s in zip(vectors, spacing)], 1)
    origin = [float(v) for v in fields["space origin"].strip("()").split(",")]
    return Image(array, spacing, origin, direction)


def read_nifti(path):
    raw = pathlib.Path(path).read_bytes()
    raw = gzip.decompress(raw) if str(path).endswith(".gz") else raw
    dims = struct.unpack_from("<8h", raw, 40)
    n, sizes = dims[0], dims[1:1 + dims[0]]
    types = {2: "u1", 16: "<f4"}
    code, = struct.unpack_from("<h", raw, 70)
    offset = int(struct.unpack_from("<f", raw, 108)[0])
    array = np.frombuffer(raw, types[code], count=int(np.prod(sizes)), offset=offset).reshape(sizes[::-1])
    matrix = np.array([struct.unpack_from("<4f", raw, 280 + 16 * r) for r in range(3)])
    matrix[:2] *= -1
    spacing = np.linalg.norm(matrix[:, :3], axis=0)
    return Image(array, spacing[:n], matrix[:n, 3], (matrix[:, :3] / spacing)[:n, :n])


def read_meta(path):
    raw = pathlib.Path(path).read_bytes()
    end = raw.index(b"ElementDataFile = LOCAL\n") + len(b"ElementDataFile = LOCAL\n")
    fields = dict(line.split(" = ", 1) for line in raw[:end].decode().strip().split("\n"))
    sizes = [int(s) for s in fields["DimSize"].split()]
    data = raw[end:]
    if fields.get("CompressedData") == "True":
        data = zlib.decompress(data)
    types = {"MET_FLOAT": "<f4", "MET_UCHAR": "u1"}
    array = np.frombuffer(data, types[fields["ElementType"]]).reshape(sizes[::-1])
    n = len(sizes)
    matrix = np.array([float(v) for v in fields["TransformMatrix"].split()]).reshape(n, n).T
    return Image(array, [float(v) for v in fields["ElementSpacing"].split()],
                 [float(v) for v in fields["Offset"].split()], matrix)


def read_png(path):
    """Gray, unfiltered by us: all five filters of the format."""
    raw = pathlib.Path(path).read_bytes()
    at, data = 8, b""
    while at < len(raw):
        size, kind = struct.unpack_from(">I4s", raw, at)
        body = raw[at + 8:at + 8 + size]
        if kind == b"IHDR":
            width, height, depth, color = struct.unpack_from(">IIBB", body)
        if kind == b"IDAT":
            data += body
        at += 12 + size
    assert color == 0
    step = depth // 8
    stride = width * step
    lines, data = [], zlib.decompress(data)
    before = bytearray(stride)
    for y in range(height):
        mode, line = data[y * (stride + 1)], bytearray(data[y * (stride + 1) + 1:(y + 1) * (stride + 1)])
        for i in range(stride):
            left = line[i - step] if i >= step else 0
            up, corner = before[i], before[i - step] if i >= step else 0
            if mode == 4:
                p = left + up - corner
                near = min((abs(p - left), 0, left), (abs(p - up), 1, up), (abs(p - corner), 2, corner))[2]
            else:
                near = {0: 0, 1: left, 2: up, 3: (left + up) // 2}[mode]
            line[i] = (line[i] + near) & 255
        lines.append(bytes(line))
        before = line
    return np.frombuffer(b"".join(lines), ">u2" if depth == 16 else "u1").reshape(height, width)


def read_image(path):
    name = str(path)
    if name.endswith(".nrrd"):
        return read_nrrd(path)
    return read_nifti(path) if name.endswith((".nii", ".nii.gz")) else read_meta(path)


def rotation(degrees, n=3):
    """About the last axis in 2-D, about a slanted axis in 3-D."""
    a = np.deg2rad(degrees)
    turn = np.array([[np.cos(a), -np.sin(a)], [np.sin(a), np.cos(a)]])
    if n == 2:
        return turn
    first, second = np.eye(3), np.eye(3)
    first[:2, :2] = turn
    second[1:, 1:] = turn
    return first @ second


def reordered(array, axes, flips, spacing, origin, direction=None):
    """The same volume in the same place, stored otherwise: new axis a (x, y, z) is the old axis axes[a], backwards where
    flips[a]. The array [z, y, x, ...] and the geometry for a writer."""
    direction = np.eye(3) if direction is None else np.asarray(direction, float)
    spacing, sizes = np.asarray(spacing, float), array.shape[2::-1]
    first = np.array([0.0, 0.0, 0.0])
    for new, old in enumerate(axes):
        first[old] = sizes[old] - 1 if flips[new] else 0
    place = np.asarray(origin) + direction @ (spacing * first)
    turned = array.transpose(*[2 - axes[2 - k] for k in range(3)], *range(3, array.ndim))
    turned = np.flip(turned, [2 - a for a in range(3) if flips[a]])
    return np.ascontiguousarray(turned), {
        "spacing": spacing[list(axes)], "origin": place, "direction": direction[:, list(axes)] * np.where(flips, -1.0, 1.0)}


def leftovers(folder):
    """Temporary files that a run forgot."""
    return [p for p in pathlib.Path(folder).rglob("*") if p.name.startswith(".rcn-")]


def disc_list(folder, counts=(8, 3, 5), raters="ABC", name="list.json"):
    """A data list of blurred discs; each rater draws the border somewhere else."""
    rng = np.random.default_rng(7)
    splits = dict(zip(("training", "validation", "test"), counts))
    data, number = {"raters": list(raters)}, 0
    y, x = np.mgrid[:32, :32]
    for split, count in splits.items():
        data[split] = []
        for _ in range(count):
            distance = np.hypot(y - rng.uniform(11, 21), x - rng.uniform(11, 21)) - rng.uniform(5, 9)
            image = 1 / (1 + np.exp(distance)) + rng.normal(0, 0.1, (32, 32))
            write_image(folder / f"i{number}.nrrd", image.astype(np.float32))
            label = {}
            for k, rater in enumerate(raters):
                label[rater] = f"i{number}_{'ABCDEFGH'[k]}.nrrd"
                write_image(folder / label[rater], (distance < k - 1 + rng.normal(0, 0.4)).astype(np.uint8))
            data[split].append({"id": f"c{number}", "image": f"i{number}.nrrd", "label": label})
            number += 1
    path = folder / name
    path.write_text(json.dumps(data))
    return path
