#!/usr/bin/python3
"""Two learners over gloo. The loader finds its rank by itself: no DistributedSampler.

    torchrun --nproc_per_node 2 train_ddp.py FOLDER [EPOCHS]        (Debian 12: torchrun --redirects 2 --tee 2 …)
"""
import sys

import foreload
import torch
import torch.distributed as dist
from torch.nn import functional
from torch.nn.parallel import DistributedDataParallel

from data import generated
from model import small_cnn

epochs = int(sys.argv[2]) if len(sys.argv) > 2 else 2
dist.init_process_group("gloo")
if dist.get_rank() == 0:
    generated(sys.argv[1])
dist.barrier()
loader = foreload.DataLoader(sys.argv[1], batch_size=8, shuffle=True, with_ids=True,
                             transform=[foreload.RandomResizedCrop(32), foreload.Normalize([0.5] * 3, [0.25] * 3)])

model = DistributedDataParallel(small_cnn())
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
for epoch in range(epochs):
    seen = []
    for images, labels, ids, positions in loader:
        loss = functional.cross_entropy(model(images), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        seen += ids.tolist()
    everyone = [None] * dist.get_world_size()
    dist.all_gather_object(everyone, (len(loader), seen))
    if dist.get_rank() == 0:
        batches = sorted({count for count, _ in everyone})
        ids = sorted(id for _, part in everyone for id in part)
        print(f"epoch {epoch} loss {loss.item():.6f} batches per rank {batches} samples {len(ids)} different {len(set(ids))}",
              flush=True)
dist.destroy_process_group()
