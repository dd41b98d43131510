#!/usr/bin/python3
"""WebP pixels against Pillow on generated images.

usage: pixels_webp.py PREP_TOOL

Decoding must equal Pillow's convert('RGB'), whole and in boxes, for lossy and lossless files with and without alpha; crop
and resize must be within one level. Exit code 77 means skipped: Pillow with WebP or NumPy is not there.
"""
import os
import subprocess
import sys
import tempfile

try:
    import numpy as np
    from PIL import Image, features
except ImportError as missing:
    print(f"skipped: {missing}; install python3-pil and python3-numpy")
    sys.exit(77)

SEED = 20240612
IMAGES = 60
BILINEAR = Image.Resampling.BILINEAR if hasattr(Image, "Resampling") else Image.BILINEAR


def picture(rng, width, height, channels):
    """Waves and noise; alpha from none to full."""
    y, x = np.mgrid[0:height, 0:width].astype(np.float64)
    planes = [127 + 120 * np.sin(x * rng.uniform(0, 0.3) + y * rng.uniform(0, 0.3) + rng.uniform(0, 6))
              for _ in range(channels)]
    pixels = np.stack(planes, axis=-1) + rng.normal(0, rng.uniform(0, 25), (height, width, channels))
    return Image.fromarray(np.clip(pixels, 0, 255).astype(np.uint8))


def make_file(rng, folder, number):
    width, height = (int(v) for v in rng.integers(1, 30 if number % 5 == 0 else 400, 2))
    path = os.path.join(folder, f"{number:03}.webp")
    image = picture(rng, width, height, 4 if number % 2 else 3)
    image.save(path, lossless=number % 3 == 0, quality=int(rng.integers(0, 101)), method=int(rng.integers(0, 7)),
               exact=bool(rng.integers(2)))
    return path


def read_ppm(data):
    _, width, height, _ = data.split(maxsplit=4)[:4]
    size = int(width) * int(height) * 3
    return np.frombuffer(data[-size:], np.uint8).reshape(int(height), int(width), 3)


def main():
    if len(sys.argv) != 2:
        print(__doc__)
        return 2
    if not features.check("webp"):
        print("skipped: Pillow has no WebP")
        return 77
    rng = np.random.default_rng(SEED)
    failures = []

    def tool(*words):
        return subprocess.run([sys.argv[1], *map(str, words)], check=True, stdout=subprocess.PIPE).stdout

    def check(what, path, ours, theirs, allowed):
        worst = int(np.abs(ours.astype(int) - theirs.astype(int)).max()) if ours.shape == theirs.shape else 256
        if worst > allowed:
            failures.append(f"{what} of {os.path.basename(path)} (seed {SEED}): differs by {worst}")

    with tempfile.TemporaryDirectory() as folder:
        for number in range(IMAGES):
            path = make_file(rng, folder, number)
            image = Image.open(path).convert("RGB")
            whole = np.array(image)
            check("decode", path, read_ppm(tool("decode", path)), whole, 0)
            x, y = (int(rng.integers(0, side)) for side in image.size)
            width, height = (int(rng.integers(1, side - at + 1)) for side, at in zip(image.size, (x, y)))
            check("box", path, read_ppm(tool("decode", path, x, y, width, height)), whole[y:y + height, x:x + width], 0)
            ours = np.frombuffer(tool("run", path, "resize(45:130)", "u8", "nhwc", 0, 0, 0), np.uint8).reshape(45, 130, 3)
            check("resize", path, ours, np.array(image.resize((130, 45), BILINEAR)), 1)
    for failure in failures[:20]:
        print("FAILED:", failure)
    print(f"{IMAGES} images, {len(failures)} failures")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
