#!/usr/bin/python3
"""Training that may be killed at any moment: started again with the same checkpoint, it goes on to the bit.

    train_resume.py FOLDER CHECKPOINT [EPOCHS [THREADS]]
"""
import os
import sys

import foreload
import torch
from torch.nn import functional

from data import generated
from model import small_cnn

folder, checkpoint = generated(sys.argv[1]), sys.argv[2]
epochs = int(sys.argv[3]) if len(sys.argv) > 3 else 3
threads = int(sys.argv[4]) if len(sys.argv) > 4 else 0
torch.set_num_threads(1)
loader = foreload.DataLoader(folder, batch_size=16, shuffle=True, seed=7, num_workers=threads,
                             transform=[foreload.RandomResizedCrop(32), foreload.RandomHorizontalFlip(),
                                        foreload.Normalize([0.5] * 3, [0.25] * 3)])
model = small_cnn()
optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
first = 0
if os.path.exists(checkpoint):
    saved = torch.load(checkpoint)
    model.load_state_dict(saved["model"])
    optimizer.load_state_dict(saved["optimizer"])
    loader.load_state_dict(saved["loader"])
    first = saved["loader"]["epoch"]

for epoch in range(first, epochs):
    loader.set_epoch(epoch)
    for images, labels in loader:
        loss = functional.cross_entropy(model(images), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        state = loader.state_dict()
        # First the checkpoint, then the line: a kill in between loses a line, but no line is ever printed twice.
        torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict(), "loader": state}, checkpoint + ".new")
        os.replace(checkpoint + ".new", checkpoint)
        print(f"epoch {state['epoch']} position {state['position']} loss {loss.item().hex()}", flush=True)
