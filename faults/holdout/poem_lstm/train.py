# 古诗生成：字级 LSTM
import random
import time

import torch
import torch.nn as nn
import torch.optim as optim

device = torch.device('cuda' if torch.cuda.is_available() else 'cpu')

VOCAB_SIZE = 800
EMBED_DIM = 64
HIDDEN = 96
SEQ_LEN = 12
BATCH_SIZE = 4
POEMS = 6000
EPOCHS = 4


def build_corpus():
    random.seed(2)
    follow = {w: [random.randrange(VOCAB_SIZE) for _ in range(3)] for w in range(VOCAB_SIZE)}
    corpus = []
    for _ in range(POEMS):
        word = random.randrange(VOCAB_SIZE)
        line = [word]
        for _ in range(SEQ_LEN):
            word = random.choice(follow[word])
            line.append(word)
        corpus.append(line)
    return torch.tensor(corpus)


class PoemModel(nn.Module):
    def __init__(self):
        super(PoemModel, self).__init__()
        self.embedding = nn.Embedding(VOCAB_SIZE, EMBED_DIM)
        self.lstm = nn.LSTM(EMBED_DIM, HIDDEN, num_layers=1, batch_first=True)
        self.fc = nn.Linear(HIDDEN, VOCAB_SIZE)

    def forward(self, x):
        out, _ = self.lstm(self.embedding(x))
        return self.fc(out)


def train():
    torch.manual_seed(2)
    corpus = build_corpus().to(device)
    model = PoemModel().to(device)
    criterion = nn.CrossEntropyLoss()
    optimizer = optim.Adam(model.parameters(), lr=0.002, fused=True)
    for epoch in range(EPOCHS):
        start = time.time()
        total = torch.zeros((), device=device)
        order = torch.randperm(POEMS, device=device)
        for batch in order.split(BATCH_SIZE):
            data = corpus[batch]
            output = model(data[:, :-1])
            loss = criterion(output.reshape(-1, VOCAB_SIZE), data[:, 1:].reshape(-1))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.detach() * len(batch)
        print('epoch: %d, loss: %.4f, time: %.1fs' % (epoch + 1, total.item() / POEMS, time.time() - start), flush=True)


if __name__ == '__main__':
    train()
