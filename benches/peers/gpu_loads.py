"""Loads for recordings on a GPU: idle, steady, dips (an evaluation every 4 s), starved. `loads.py KIND SECONDS READY_FILE`."""
import sys
import time
import torch
import torch.nn as nn
what, seconds, ready = sys.argv[1], float(sys.argv[2]), sys.argv[3]
m = nn.Sequential(*[nn.Sequential(nn.Linear(4096, 4096), nn.ReLU()) for _ in range(6)]).cuda().bfloat16()
opt = torch.optim.AdamW(m.parameters(), fused=True); x = torch.randn(8192, 4096, device='cuda', dtype=torch.bfloat16)
def step():
    opt.zero_grad(set_to_none=True); m(x).float().pow(2).mean().backward(); opt.step()
for _ in range(20): step()
torch.cuda.synchronize(); open(ready, 'w').write('go'); end = time.time() + seconds; n = 0; last = time.time()
while time.time() < end:
    if what == 'idle': time.sleep(0.2); continue
    step(); n += 1
    if n % 20 == 0: torch.cuda.synchronize()
    if what == 'starved': torch.cuda.synchronize(); time.sleep(0.12)
    if what == 'dips' and time.time() - last > 4: torch.cuda.synchronize(); time.sleep(1.5); last = time.time()
torch.cuda.synchronize()
