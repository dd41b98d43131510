#!/usr/bin/python3
"""Pixels against Pillow and djpeg on 200 generated images.

usage: pixels.py PREP_TOOL

Decoding must equal Pillow's convert('RGB') and, for JPEG, `djpeg -dct int`. Crops and resizes must be within
one level of Pillow's; normalised tensors must equal the same float32 arithmetic in NumPy. Exit code 77 means
skipped: Pillow or NumPy is not there.
"""
import os
import shutil
import struct
import subprocess
import sys
import tempfile
import zlib

try:
    import numpy as np
    from PIL import Image, ImageDraw
except ImportError as missing:
    print(f"skipped: {missing}; install python3-pil and python3-numpy")
    sys.exit(77)

SEED = 20240611
IMAGES = 200
BILINEAR = Image.Resampling.BILINEAR if hasattr(Image, "Resampling") else Image.BILINEAR


def picture(rng, width, height):
    """Gradients, noise and shapes: smooth parts, texture and hard edges."""
    y, x = np.mgrid[0:height, 0:width].astype(np.float64)
    planes = [(x * rng.uniform(0, 2) + y * rng.uniform(0, 2) + rng.uniform(0, 255)) % 256 for _ in range(3)]
    pixels = np.stack(planes, axis=-1) + rng.normal(0, rng.uniform(0, 30), (height, width, 3))
    image = Image.fromarray(np.clip(pixels, 0, 255).astype(np.uint8))
    draw = ImageDraw.Draw(image)
    for _ in range(6):
        corners = np.sort(rng.integers(0, [width, height], (2, 2)), axis=0).flatten().tolist()
        color = tuple(rng.integers(0, 256, 3).tolist())
        (draw.ellipse if rng.integers(2) else draw.rectangle)(corners, fill=color)
    return image


# --- PNG files that Pillow can not write ---

PASSES = [(0, 0, 8, 8), (4, 0, 8, 8), (0, 4, 4, 8), (2, 0, 4, 4), (0, 2, 2, 4), (1, 0, 2, 2), (0, 1, 1, 2)]


def packed_rows(values, depth):
    """`values`: height x width x channels; each row as PNG wants it, filter 0."""
    rows = b""
    for row in values.reshape(values.shape[0], -1):
        if depth == 16:
            data = row.astype(">u2").tobytes()
        elif depth == 8:
            data = row.astype(np.uint8).tobytes()
        else:
            bits = ((row[:, None] >> np.arange(depth - 1, -1, -1)) & 1).astype(np.uint8)
            data = np.packbits(bits.flatten()).tobytes()
        rows += b"\0" + data
    return rows


def write_png(path, values, depth, color_type, interlaced, palette):
    def chunk(name, data):
        return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))

    height, width = values.shape[:2]
    if interlaced:
        parts = [values[y::dy, x::dx] for x, y, dx, dy in PASSES]
        raw = b"".join(packed_rows(part, depth) for part in parts if part.size)
    else:
        raw = packed_rows(values, depth)
    header = struct.pack(">IIBBBBB", width, height, depth, color_type, 0, 0, int(interlaced))
    with open(path, "wb") as file:
        file.write(b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header))
        if palette is not None:
            file.write(chunk(b"PLTE", palette.astype(np.uint8).tobytes()))
        file.write(chunk(b"IDAT", zlib.compress(raw)) + chunk(b"IEND", b""))


RAW_PNGS = [(depth, color_type) for color_type, depths in
            {0: (1, 2, 4, 8, 16), 2: (8, 16), 3: (1, 2, 4, 8), 4: (8, 16), 6: (8, 16)}.items() for depth in depths]


def raw_png(rng, path, number, size):
    depth, color_type = RAW_PNGS[number % len(RAW_PNGS)]
    channels = {0: 1, 2: 3, 3: 1, 4: 2, 6: 4}[color_type]
    values = rng.integers(0, 1 << depth, (size[1], size[0], channels))
    palette = None
    if color_type == 3:  # one colour short: some indices have none
        palette = rng.integers(0, 256, (max(1, (1 << depth) - 1), 3))
    write_png(path, values, depth, color_type, bool(rng.integers(2)), palette)


# --- one file of each kind, in turn ---

def cjpeg(image, path, options):
    ppm = path + ".ppm"
    image.save(ppm)
    subprocess.run(["cjpeg", *options, "-outfile", path, ppm], check=True)
    os.unlink(ppm)


def make_file(rng, folder, number):
    # The file's number chooses its kind; every kind comes with several sizes, odd ones and tiny ones.
    width, height = (int(v) for v in rng.integers(1, 40 if number % 9 == 0 else 500, 2))
    image = picture(rng, width, height)
    kind = number % 20
    jpeg, png = (os.path.join(folder, f"{number:03}.{ext}") for ext in ("jpg", "png"))
    progressive = bool(rng.integers(2))
    quality = int(rng.integers(30, 98))
    if kind < 6:
        image.save(jpeg, quality=quality, subsampling=kind % 3, progressive=progressive)
        return jpeg
    if kind == 6:
        image.convert("L").save(jpeg, quality=quality, progressive=progressive)
        return jpeg
    if kind == 7:
        image.convert("CMYK").save(jpeg, quality=quality, progressive=progressive)
        return jpeg
    if kind in (8, 9) and shutil.which("cjpeg"):
        sampling = ["1x2", "4x1", "1x1,2x2,2x2", "4x2", "2x1,1x2,1x1"][number // 20 % 5]
        cjpeg(image, jpeg, ["-quality", str(quality), "-sample", sampling, *(["-progressive"] if progressive else []),
                            *(["-restart", "1"] if rng.integers(2) else [])])
        return jpeg
    if kind < 16:
        mode = ["L", "RGB", "P", "RGBA", "LA", "1"][kind - 10] if kind >= 10 else "RGB"
        image.convert(mode).save(png)
        return png
    if kind == 16:
        Image.fromarray(rng.integers(0, 65536, (height, width)).astype(np.uint16)).save(png)
        return png
    raw_png(rng, png, number // 20 * 3 + kind - 17, (width, height))
    return png


# --- comparisons ---

class Comparison:
    def __init__(self):
        self.worst = {}
        self.failures = []

    def check(self, what, path, ours, theirs, allowed):
        if ours.shape != theirs.shape:
            self.failures.append(f"{what} of {path}: shape {ours.shape}, expected {theirs.shape}")
            return
        difference = int(np.abs(ours.astype(np.int64) - theirs.astype(np.int64)).max(initial=0))
        count, worst = self.worst.get(what, (0, 0))
        self.worst[what] = (count + 1, max(worst, difference))
        if difference > allowed:
            self.failures.append(f"{what} of {path}: differs by {difference}")


def read_ppm(data):
    magic, width, height, _ = data.split(maxsplit=4)[:4]
    channels = 3 if magic == b"P6" else 1
    pixels = np.frombuffer(data[-int(width) * int(height) * channels:], np.uint8)
    pixels = pixels.reshape(int(height), int(width), channels)
    return np.repeat(pixels, 3, axis=2) if channels == 1 else pixels


class Tool:
    def __init__(self, path):
        self.path = path

    def __call__(self, *words):
        return subprocess.run([self.path, *map(str, words)], check=True, stdout=subprocess.PIPE).stdout

    def tensor(self, path, chain, dtype="u8", layout="nhwc", key=(0, 0, 0)):
        kind = {"u8": np.uint8, "f16": np.float16, "f32": np.float32}[dtype]
        return np.frombuffer(self("run", path, chain, dtype, layout, *key), kind)


def center_crop(image, size):
    """torchvision's, for Pillow images."""
    width, height = image.size
    if size > width or size > height:
        padded = Image.new("RGB", (max(size, width), max(size, height)))
        padded.paste(image, (max(0, size - width) // 2, max(0, size - height) // 2))
        image, (width, height) = padded, padded.size
    top, left = int(round((height - size) / 2.0)), int(round((width - size) / 2.0))
    return image.crop((left, top, left + size, top + size))


def resize_shorter(image, size):
    width, height = image.size
    longer = int(size * max(width, height) / min(width, height))
    return image.resize((size, longer) if width <= height else (longer, size), BILINEAR)


def compare_decode(tool, path, compare):
    reference = np.array(Image.open(path).convert("RGB"))
    compare.check("decode vs Pillow", path, read_ppm(tool("decode", path)), reference, 0)
    if path.endswith(".jpg") and Image.open(path).mode != "CMYK" and shutil.which("djpeg"):
        theirs = read_ppm(subprocess.run(["djpeg", "-dct", "int", "-ppm", path], check=True,
                                         stdout=subprocess.PIPE).stdout)
        compare.check("decode vs djpeg", path, read_ppm(tool("decode", path)), theirs, 0)


def compare_random_crop(tool, path, image, number, compare):
    chain = "random_resized_crop(64:80)"
    key = (SEED, number % 3, number)
    x, y, width, height = map(int, tool("box", *image.size, chain, *key).split())
    reference = image.crop((x, y, x + width, y + height)).resize((80, 64), BILINEAR)
    for flip in (0, 1):
        theirs = np.array(reference.transpose(Image.FLIP_LEFT_RIGHT) if flip else reference)
        ours = tool.tensor(path, f"{chain}, random_flip({flip})", key=key).reshape(64, 80, 3)
        compare.check("random_resized_crop", path, ours, theirs, 1)
    compare_normalized(tool, path, chain, key, np.array(reference), compare)


def compare_normalized(tool, path, chain, key, pixels, compare):
    mean = np.array([0.485, 0.456, 0.406], np.float32)
    std = np.array([0.229, 0.224, 0.225], np.float32)
    ours = tool.tensor(path, chain, key=key).reshape(pixels.shape)
    scaled = ours.astype(np.float32) / np.float32(255)
    normalized = ((scaled - mean) / std).transpose(2, 0, 1)
    for dtype, bits in (("f32", np.uint32), ("f16", np.uint16)):
        kind = np.float32 if dtype == "f32" else np.float16
        got = tool.tensor(path, chain + ", normalize", dtype, "nchw", key).reshape(normalized.shape)
        compare.check(f"normalize {dtype}", path, got.view(bits), normalized.astype(kind).view(bits), 0)
        got = tool.tensor(path, chain, dtype, "nhwc", key).reshape(scaled.shape)
        compare.check(f"to tensor {dtype}", path, got.view(bits), scaled.astype(kind).view(bits), 0)


def compare_fixed(tool, path, image, compare):
    ours = tool.tensor(path, "resize(72), center_crop(64)").reshape(64, 64, 3)
    compare.check("resize, center_crop", path, ours, np.array(center_crop(resize_shorter(image, 72), 64)), 1)
    ours = tool.tensor(path, "resize(45:130)").reshape(45, 130, 3)
    compare.check("resize", path, ours, np.array(image.resize((130, 45), BILINEAR)), 1)
    ours = tool.tensor(path, "center_crop(201)").reshape(201, 201, 3)
    compare.check("center_crop", path, ours, np.array(center_crop(image, 201)), 0)
    ours = tool.tensor(path, "center_crop(150), random_flip(1), resize(60:40)").reshape(60, 40, 3)
    theirs = center_crop(image, 150).transpose(Image.FLIP_LEFT_RIGHT).resize((40, 60), BILINEAR)
    compare.check("crop, flip, resize", path, ours, np.array(theirs), 1)


def main():
    if len(sys.argv) != 2:
        print(__doc__)
        return 2
    tool = Tool(sys.argv[1])
    rng = np.random.default_rng(SEED)
    compare = Comparison()
    if not shutil.which("djpeg"):
        print("without djpeg and cjpeg (libjpeg-turbo-progs): only Pillow is compared")
    with tempfile.TemporaryDirectory() as folder:
        for number in range(IMAGES):
            path = make_file(rng, folder, number)
            image = Image.open(path).convert("RGB")
            compare_decode(tool, path, compare)
            compare_random_crop(tool, path, image, number, compare)
            compare_fixed(tool, path, image, compare)
    for what, (count, worst) in sorted(compare.worst.items()):
        print(f"{what:20} {count:4} comparisons, largest difference {worst}")
    for failure in compare.failures[:20]:
        print("FAILED:", failure)
    return 1 if compare.failures else 0


if __name__ == "__main__":
    sys.exit(main())
