#!/usr/bin/python3
"""A loop without torch: the mean colour of a dataset.

    numpy_only.py FOLDER
"""
import sys

import foreload
import numpy as np

from data import generated

total = np.zeros(3)
with foreload.DataLoader(generated(sys.argv[1]), batch_size=32, output="numpy", dtype="u8", layout="nhwc",
                         transform=[foreload.Resize(32), foreload.CenterCrop(32)]) as loader:
    for images, labels in loader:
        total += images.reshape(-1, 3).sum(axis=0, dtype=np.float64)
    loader.epoch_summary()
    print("mean colour", np.round(total / len(loader.dataset) / 32 / 32, 2))
assert "torch" not in sys.modules
