# SPDX-License-Identifier: Apache-2.0
"""Scrolling through a volume with heat map and outlines in three linked views, without a graphics card.

A phantom of 512 x 512 x 300 voxels and five raters is opened in the slice views on a virtual screen (Xvfb) and scrolled
with the wheel; each step counts until the screen has the whole picture. Run with: ./run bench view
"""
import argparse
import json
import os
import shutil
import subprocess
import sys


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--size", type=int, nargs=3, default=[512, 512, 300], metavar=("X", "Y", "Z"))
    parser.add_argument("--raters", type=int, default=5)
    parser.add_argument("--slices", type=int, default=200)
    parser.add_argument("--at-most", type=float, default=0, help="fail when the median takes more milliseconds")
    parser.add_argument("--json", action="store_true", help="the figures as JSON in the last line")
    options = parser.parse_args()

    program = os.path.join(os.environ.get("RCN_BUILD", "build"), "bin", "bench_view")
    if not os.path.exists(program):
        sys.exit("bench_view: the viewer was not built: Qt is missing")
    command = [program, *map(str, options.size), str(options.raters), str(min(options.slices, options.size[2]))]
    environment = dict(os.environ, QT_QPA_PLATFORM="xcb", QT_SCALE_FACTOR="1")
    if shutil.which("xvfb-run"):
        command = ["xvfb-run", "-a", "-s", "-screen 0 1600x1000x24"] + command
    done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, text=True)
    if done.returncode:
        sys.exit("bench_view: the program failed")
    figures = json.loads(done.stdout.strip().splitlines()[-1])

    size = " x ".join(map(str, figures["size"]))
    print(f"{size} voxels, float32, {figures['raters']} raters: heat map and outlines in three views, 1400 x 900 pixels")
    print(f"  a slice, until it is on the screen  {figures['median_ms']:8.1f} ms   (95 % within {figures['p95_ms']:.1f} ms)")
    print(f"  processor time of it, all threads   {figures['processor_ms']:8.1f} ms")
    print(f"  from memory to the first picture    {figures['first_picture_s']:8.2f} s")
    print(f"  memory that the views add           {figures['views_mb']:8.0f} MB  (process at most {figures['peak_mb']:.0f} MB)")
    if figures["turn_ms"] is not None:
        print(f"  in 3-D, until surfaces are shown    {figures['surfaces_s']:8.2f} s   ({figures['triangles']} triangles)")
        print(f"  in 3-D, a picture while turning     {figures['turn_ms']:8.1f} ms")
    if options.json:
        print(json.dumps(figures))
    if 0 < options.at_most < figures["median_ms"]:
        sys.exit(f"bench_view: more than {options.at_most} ms")


if __name__ == "__main__":
    main()
