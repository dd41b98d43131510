#!/usr/bin/python3
"""Image classification with torch's own loader. train_foreload.py differs from it by the loader's lines only.

    train_torch.py FOLDER [EPOCHS]
"""
import sys

import torch
import torchvision
from torch.nn import functional
from torchvision import transforms

from data import generated
from model import small_cnn

folder = generated(sys.argv[1])
epochs = int(sys.argv[2]) if len(sys.argv) > 2 else 3
steps = [transforms.RandomResizedCrop(32), transforms.RandomHorizontalFlip(), transforms.ToTensor(),
         transforms.Normalize([0.5] * 3, [0.25] * 3)]
dataset = torchvision.datasets.ImageFolder(folder, transforms.Compose(steps))
loader = torch.utils.data.DataLoader(dataset, batch_size=16, shuffle=True, num_workers=2)

model = small_cnn()
optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
for epoch in range(epochs):
    for images, labels in loader:
        loss = functional.cross_entropy(model(images), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(f"epoch {epoch} loss {loss.item():.6f}", flush=True)
