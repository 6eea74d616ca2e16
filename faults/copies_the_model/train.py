"""nn.DataParallel: the model is replicated, the batch scattered and the outputs gathered at every step."""
import time

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
torch.set_float32_matmul_precision("high")

if __name__ == "__main__":
    # Two replicas on one card where there is only one: the replicating, the threads and the gathering are the same.
    devices = list(range(torch.cuda.device_count())) if torch.cuda.device_count() > 1 else [0, 0]
    layers = [nn.Linear(256, 1024), nn.GELU(), *[m for _ in range(6) for m in (nn.Linear(1024, 1024), nn.GELU())], nn.Linear(1024, 1)]
    model = nn.DataParallel(nn.Sequential(*layers).cuda(), device_ids=devices)
    optimizer = torch.optim.AdamW(model.parameters(), fused=True)
    data = TensorDataset(torch.randn(65_536, 256), torch.randn(65_536, 1))
    loader = DataLoader(data, batch_size=1024, shuffle=True, num_workers=4, pin_memory=True, persistent_workers=True)
    begin = time.monotonic()
    while time.monotonic() - begin < 18:
        for x, y in loader:
            x, y = x.cuda(non_blocking=True), y.cuda(non_blocking=True)
            with torch.autocast("cuda", dtype=torch.bfloat16):
                loss = nn.functional.mse_loss(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    print("done")
