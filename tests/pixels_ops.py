#!/usr/bin/python3
"""Augmentations against torchvision on Pillow images, with the random parameters injected.

usage: pixels_ops.py PREP_TOOL

prep_tool says what it drew for a key; torchvision.transforms.functional does the same to the same picture. Each op
has a bound: the largest difference of a pixel, and the mean over all pixels. Exit code 77 means skipped: torchvision,
Pillow or NumPy is not there.
"""
import math
import os
import sys
import tempfile

try:
    import numpy as np
    from PIL import Image
    import torch
    import torchvision
    import torchvision.transforms.functional as F
    from pixels import Tool, picture
except ImportError as missing:
    print(f"skipped: {missing}; install python3-torchvision, python3-pil and python3-numpy")
    sys.exit(77)

SEED = 20250301
PICTURES = 12
BILINEAR = F.InterpolationMode.BILINEAR
NEAREST = F.InterpolationMode.NEAREST


def apply_line(image, words, mode, fill):
    """One line of `prep_tool plan` with torchvision."""
    name, values = words[0], [float(word) for word in words[1:]]
    if name in ("brightness", "contrast", "saturation", "sharpness"):
        return getattr(F, f"adjust_{name}")(image, values[0])
    if name == "hue":
        return F.adjust_hue(image, values[0])
    if name == "gray":
        return F.rgb_to_grayscale(image, 3)
    if name == "posterize":
        return F.posterize(image, int(values[0]))
    if name == "solarize":
        return F.solarize(image, values[0])
    if name in ("autocontrast", "equalize"):
        return getattr(F, name)(image)
    if name == "blur":
        return F.gaussian_blur(image, [int(values[0]), int(values[1])], [values[2], values[2]])
    if name == "rotate":
        return F.rotate(image, values[0], interpolation=mode, fill=fill)
    if name == "affine":
        return F.affine(image, values[0], [int(values[1]), int(values[2])], values[3], values[4:6], interpolation=mode,
                        fill=fill)
    if name == "shear":
        return F.affine(image, 0.0, [0, 0], 1.0, [math.degrees(math.atan(value)) for value in values],
                        interpolation=mode, fill=fill, center=[0, 0])
    raise ValueError(f"prep_tool drew something unknown: {words}")


class Differences:
    def __init__(self):
        self.found = {}
        self.failures = []

    def add(self, what, ours, theirs):
        if ours.shape != theirs.shape:
            self.failures.append(f"{what}: shape {ours.shape}, expected {theirs.shape}")
            return
        difference = np.abs(ours.astype(np.float64) - theirs.astype(np.float64))
        self.found.setdefault(what, []).append((difference.max(initial=0), difference.mean() if difference.size else 0))

    def judge(self, bounds):
        for what, pairs in sorted(self.found.items()):
            largest, mean = max(p[0] for p in pairs), sum(p[1] for p in pairs) / len(pairs)
            most, most_mean = bounds[what]
            verdict = "" if largest <= most and mean <= most_mean else "   FAILED"
            print(f"{what:26} {len(pairs):4} comparisons, largest {largest:g} (bound {most:g}), "
                  f"mean {mean:.5f} (bound {most_mean:g}){verdict}")
            if verdict:
                self.failures.append(what)


# name: (chain, largest difference, mean difference). Nearest neighbours may differ in single places, where the last bit
# of a sine decides between two pixels; the mean bounds how many.
CHAINS = {
    "brightness": ("color_jitter(brightness=0.9)", 0, 0),
    "contrast": ("color_jitter(contrast=0.9)", 0, 0),
    "saturation": ("color_jitter(saturation=0:3)", 0, 0),
    "hue": ("color_jitter(hue=0.5)", 0, 0),
    "color_jitter": ("color_jitter(0.4, 0.4, 0.4, 0.1)", 0, 0),
    "grayscale": ("grayscale", 0, 0),
    "gaussian_blur": ("gaussian_blur(23)", 1, 0.001),
    "gaussian_blur small": ("gaussian_blur(3:7, sigma=0.01:0.5)", 1, 0.001),
    "rotation": ("random_rotation(180)", 255, 0.01),
    "rotation bilinear": ("random_rotation(45, interpolation=bilinear, fill=10:200:30)", 1, 0.001),
    "affine": ("random_affine(90, translate=0.2:0.3, scale=0.5:2, shear=-20:20:-10:10, fill=77)", 255, 0.01),
    "affine bilinear": ("random_affine(30, translate=0.1:0.1, scale=0.8:1.2, shear=10, interpolation=bilinear)", 1,
                        0.001),
    "trivial_augment_wide": ("trivial_augment_wide", 255, 0.01),
    "rand_augment": ("rand_augment(3, 20, interpolation=bilinear)", 255, 0.01),
}


def parameters(chain):
    mode = BILINEAR if "bilinear" in chain else NEAREST
    fill = [10, 200, 30] if "fill=10:200:30" in chain else [77] * 3 if "fill=77" in chain else [0] * 3
    return mode, fill


def compare_strokes(tool, path, image, number, differences):
    width, height = image.size
    fixed = f"center_crop({height}:{width})"
    for name, (chain, _, _) in CHAINS.items():
        for repeat in range(4):
            key = (SEED, number, repeat)
            reference = image
            for line in tool("plan", width, height, chain, *key).decode().splitlines():
                reference = apply_line(reference, line.split(), *parameters(chain))
            ours = tool.tensor(path, f"{chain}, {fixed}", key=key).reshape(height, width, 3)
            differences.add(name, ours, np.array(reference))


def compare_geometry(tool, path, image, number, differences):
    width, height = image.size
    whole = f"center_crop({height}:{width})"
    flipped = tool.tensor(path, f"random_vertical_flip(1), {whole}").reshape(height, width, 3)
    differences.add("random_vertical_flip", flipped, np.array(F.vflip(image)))
    resized = tool.tensor(path, "random_vertical_flip(1), resize(40:50)").reshape(40, 50, 3)
    differences.add("flip, resize", resized, np.array(F.resize(F.vflip(image), [40, 50])))
    for mode in ("constant", "edge", "reflect", "symmetric"):
        fill = (9, 8, 7) if number % 2 else 0
        text = "9:8:7" if number % 2 else "0"
        ours = tool.tensor(path, f"pad(3:5:7:2, fill={text}, padding_mode={mode}), "
                                 f"center_crop({height + 7}:{width + 10})").reshape(height + 7, width + 10, 3)
        differences.add(f"pad {mode}", ours, np.array(F.pad(image, [3, 5, 7, 2], fill, mode)))
    chain = "random_crop(32, padding=4)"
    key = (SEED, number, 1)
    x, y, *_ = map(int, tool("box", width, height, chain, *key).split())
    ours = tool.tensor(path, chain, key=key).reshape(32, 32, 3)
    theirs = F.crop(F.pad(image, 4), y + 4, x + 4, 32, 32)
    differences.add("random_crop", ours, np.array(theirs))


def compare_erasing(tool, path, image, number, differences):
    width, height = image.size
    whole = f"center_crop({height}:{width})"
    mean, std = [0.485, 0.456, 0.406], [0.229, 0.224, 0.225]
    key = (SEED, number, 2)
    lines = tool("plan", width, height, f"{whole}, normalize, random_erasing(1)", *key).decode().split()
    x, y, w, h = map(int, lines[1:5]) if lines else (0, 0, 0, 0)
    plain = F.to_tensor(image)
    after = F.erase(F.normalize(plain, mean, std), y, x, h, w, torch.tensor([0.5, -1.0, 2.0])[:, None, None])
    ours = tool.tensor(path, f"{whole}, normalize, random_erasing(1, value=0.5:-1:2)", "f32", "nchw", key)
    differences.add("random_erasing", ours.reshape(3, height, width), after.numpy())
    key = (SEED, number, 3)
    lines = tool("plan", width, height, f"{whole}, random_erasing(1)", *key).decode().split()
    x, y, w, h = map(int, lines[1:5]) if lines else (0, 0, 0, 0)
    before = F.normalize(F.erase(plain, y, x, h, w, torch.tensor([0.25])[:, None, None]), mean, std)
    ours = tool.tensor(path, f"{whole}, random_erasing(1, value=0.25), normalize", "f32", "nhwc", key)
    differences.add("random_erasing before", ours.reshape(height, width, 3), before.numpy().transpose(1, 2, 0))


GEOMETRY_BOUNDS = {
    "random_vertical_flip": (0, 0),
    "flip, resize": (1, 0.01),
    "pad constant": (0, 0),
    "pad edge": (0, 0),
    "pad reflect": (0, 0),
    "pad symmetric": (0, 0),
    "random_crop": (0, 0),
    "random_erasing": (1e-6, 1e-6),
    "random_erasing before": (1e-6, 1e-6),
}


def main():
    if len(sys.argv) != 2:
        print(__doc__)
        return 2
    tool = Tool(sys.argv[1])
    rng = np.random.default_rng(SEED)
    differences = Differences()
    print(f"seed {SEED}, torchvision {torchvision.__version__}, {PICTURES} pictures")
    with tempfile.TemporaryDirectory() as folder:
        for number in range(PICTURES):
            width, height = (int(v) for v in rng.integers(40, 230, 2))
            image = picture(rng, width, height)
            path = os.path.join(folder, f"{number}.png")
            image.save(path)
            compare_strokes(tool, path, image, number, differences)
            compare_geometry(tool, path, image, number, differences)
            compare_erasing(tool, path, image, number, differences)
    differences.judge({**{name: bound[1:] for name, bound in CHAINS.items()}, **GEOMETRY_BOUNDS})
    for failure in differences.failures:
        print("FAILED:", failure)
    return 1 if differences.failures else 0


if __name__ == "__main__":
    sys.exit(main())
