"""Texts of about the same length in each batch, padded to the longest of them."""
import itertools
import time

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

WORDS, WIDTH = 500, 64


class Texts(Dataset):
    def __init__(self, count=4096):
        generator = torch.Generator().manual_seed(0)
        lengths = torch.randint(200, 257, (count,), generator=generator).tolist()
        self.ids = [torch.randint(1, WORDS, (length,), generator=generator) for length in lengths]
        self.labels = torch.randint(0, 2, (count,), generator=generator)

    def __len__(self):
        return len(self.ids)

    def __getitem__(self, index):
        return self.ids[index], self.labels[index]


def collate(samples):
    longest = max(len(text) for text, _ in samples)
    ids = torch.zeros(len(samples), longest, dtype=torch.long)
    mask = torch.zeros(len(samples), longest, dtype=torch.long)
    for row, (text, _) in enumerate(samples):
        ids[row, : len(text)] = text
        mask[row, : len(text)] = 1
    return {"input_ids": ids, "attention_mask": mask, "labels": torch.stack([label for _, label in samples])}


class Classifier(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(WORDS, WIDTH)
        layer = nn.TransformerEncoderLayer(WIDTH, 4, 4 * WIDTH, dropout=0.0, batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        self.head = nn.Linear(WIDTH, 2)

    def forward(self, ids, mask):
        hidden = self.encoder(self.embedding(ids), src_key_padding_mask=mask == 0)
        weights = mask.unsqueeze(-1) / mask.sum(1).view(-1, 1, 1)
        return self.head((hidden * weights).sum(1))


def main():
    torch.manual_seed(0)
    loader = DataLoader(Texts(), batch_size=16, shuffle=True, collate_fn=collate, drop_last=True)
    model = Classifier()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    begin = time.monotonic()
    for epoch in itertools.takewhile(lambda _: time.monotonic() - begin < 14, itertools.count()):
        for batch in loader:
            logits = model(batch["input_ids"], batch["attention_mask"])
            loss = nn.functional.cross_entropy(logits, batch["labels"])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            if time.monotonic() - begin > 14:
                break
        print(epoch, loss.item())


if __name__ == "__main__":
    main()
