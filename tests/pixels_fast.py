#!/usr/bin/python3
"""The decode mode `fast` against Pillow's draft mode, and how far it is from `exact`.

usage: pixels_fast.py PREP_TOOL

Pillow opens the JPEG at 1/2, 1/4 or 1/8 of its size and resizes the same part of it: not one level may differ. Against
`exact` the mean difference must stay within what docs/design/prep.md states. Exit code 77 means skipped.
"""
import math
import os
import sys
import tempfile

import pixels
from pixels import BILINEAR, Comparison, Image, Tool, np

IMAGES = 60
MOST_MEAN_DIFFERENCE = 10.0  # levels, of one of these hard pictures; photographs are near 1


def fraction(box, target):
    """The eighths at which `fast` decodes, said once more."""
    for eighths in (1, 2, 4):
        if box[2] * eighths >= 8 * target and box[3] * eighths >= 8 * target:
            return eighths
    return 8


def opened_at(path, eighths):
    image = Image.open(path)
    width, height = image.size
    if eighths < 8:
        scale = 8 // eighths
        image.draft(None, (max(1, width // scale), max(1, height // scale)))
        assert image.size == ((width * eighths + 7) // 8, (height * eighths + 7) // 8), (image.size, eighths)
    return image.convert("RGB")


def compare_one(tool, path, target, key, compare):
    chain = f"random_resized_crop({target})"
    width, height = Image.open(path).size
    box = [int(word) for word in tool("box", width, height, chain, *key).split()]
    eighths = fraction(box, target)
    begin = [value * eighths / 8 for value in box[:2]]
    end = [(first + size) * eighths / 8 for first, size in zip(box[:2], box[2:])]
    left, top = (math.floor(value) for value in begin)
    cut = opened_at(path, eighths).crop((left, top, math.ceil(end[0]), math.ceil(end[1])))
    part = (begin[0] - left, begin[1] - top, end[0] - left, end[1] - top)
    expected = np.array(cut.resize((target, target), BILINEAR, box=part))
    ours = np.frombuffer(tool("run", path, chain, "u8", "nhwc", *key, "fast"), np.uint8).reshape(expected.shape)
    compare.check(f"fast at {eighths}/8 vs Pillow", path, ours, expected, 0)
    exact = tool.tensor(path, chain, key=key).reshape(expected.shape)
    difference = np.abs(ours.astype(int) - exact.astype(int)).mean()
    if difference > (0 if eighths == 8 else MOST_MEAN_DIFFERENCE):
        compare.failures.append(f"{path}: {eighths}/8 differs from exact by {difference:.2f} levels on average")
    return eighths


def main():
    tool, compare, used = Tool(sys.argv[1]), Comparison(), set()
    rng = np.random.default_rng(pixels.SEED)
    with tempfile.TemporaryDirectory(prefix="foreload-test-") as folder:
        for number in range(IMAGES):
            path = os.path.join(folder, f"{number:03}.jpg")
            width, height = (int(value) for value in rng.integers(60, 500, 2))
            image = pixels.picture(rng, width, height)
            (image.convert("L") if number % 7 == 6 else image).save(
                path, quality=int(rng.integers(50, 95)), subsampling=number % 3, progressive=number % 5 == 4)
            for target in (9, 30, 70):
                used.add(compare_one(tool, path, target, (pixels.SEED, 0, number), compare))
    for what, (count, worst) in sorted(compare.worst.items()):
        print(f"{what}: {count} pictures, at most {worst} levels")
    for failure in compare.failures[:20]:
        print(failure)
    if used != {1, 2, 4, 8}:
        print(f"only {sorted(used)} eighths were tried")
    return 1 if compare.failures or used != {1, 2, 4, 8} else 0


if __name__ == "__main__":
    sys.exit(main())
