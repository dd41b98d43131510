"""Data for the examples: a small folder of pictures in classes, made by numpy and Pillow. Not part of any comparison."""
import os

import numpy as np
from PIL import Image


def generated(folder, images=240, classes=4, size=48):
    """FOLDER/<class>/<number>.png: noisy stripes, whose direction is the class. Written once."""
    if os.path.exists(os.path.join(folder, ".complete")):
        return folder
    rng = np.random.default_rng(0)
    y, x = np.mgrid[0:size, 0:size]
    for number in range(images):
        label = number % classes
        angle = np.pi * label / classes + rng.normal(0, 0.1)
        wave = np.sin((x * np.cos(angle) + y * np.sin(angle)) / rng.uniform(1.5, 3) + rng.uniform(0, 6))
        pixels = 128 + 60 * wave[..., None] * rng.uniform(0.5, 1, 3) + rng.normal(0, 20, (size, size, 3))
        path = os.path.join(folder, f"class{label}", f"{number:04}.png")
        os.makedirs(os.path.dirname(path), exist_ok=True)
        Image.fromarray(np.clip(pixels, 0, 255).astype(np.uint8)).save(path)
    open(os.path.join(folder, ".complete"), "w").close()
    return folder
