#!/usr/bin/python3
"""Image classification with foreload. train_torch.py differs from it by the loader's lines only.

    train_foreload.py FOLDER [EPOCHS]
"""
import sys

import foreload
import torch
from torch.nn import functional

from data import generated
from model import small_cnn

folder = generated(sys.argv[1])
epochs = int(sys.argv[2]) if len(sys.argv) > 2 else 3
steps = [foreload.RandomResizedCrop(32), foreload.RandomHorizontalFlip(), foreload.ToTensor(),
         foreload.Normalize([0.5] * 3, [0.25] * 3)]
loader = foreload.DataLoader(folder, batch_size=16, shuffle=True, transform=steps)

model = small_cnn()
optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
for epoch in range(epochs):
    for images, labels in loader:
        loss = functional.cross_entropy(model(images), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(f"epoch {epoch} loss {loss.item():.6f}", flush=True)
