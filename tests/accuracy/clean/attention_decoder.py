"""Translation with a recurrent decoder that attends to the encoder at each word: each word needs the previous one."""

import torch
import torch.nn.functional as F
from torch import nn

WIDTH, VOCABULARY, SOURCE, TARGET = 96, 800, 20, 16


class Decoder(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(VOCABULARY, WIDTH)
        self.cell = nn.LSTMCell(2 * WIDTH, WIDTH)
        self.query = nn.Linear(WIDTH, WIDTH, bias=False)
        self.head = nn.Linear(2 * WIDTH, VOCABULARY)

    def forward(self, words, memory, state):
        seen = []
        hidden, cell = state
        context = memory.mean(dim=1)
        for word in self.embedding(words).unbind(dim=1):
            hidden, cell = self.cell(torch.cat([word, context], dim=1), (hidden, cell))
            scores = torch.bmm(memory, self.query(hidden).unsqueeze(2))
            context = (scores.softmax(dim=1) * memory).sum(dim=1)
            seen.append(torch.cat([hidden, context], dim=1))
        return self.head(torch.stack(seen, dim=1))


def build():
    source, target = torch.randint(VOCABULARY, (2048, SOURCE)), torch.randint(VOCABULARY, (2048, TARGET + 1))
    embedding, encoder, decoder = nn.Embedding(VOCABULARY, WIDTH), nn.LSTM(WIDTH, WIDTH, batch_first=True), Decoder()
    parameters = [*embedding.parameters(), *encoder.parameters(), *decoder.parameters()]
    optimizer = torch.optim.Adam(parameters, lr=1e-3, fused=True)

    def step() -> None:
        chosen = torch.randint(len(source), (64,))
        sentence = target[chosen]
        memory, (hidden, cell) = encoder(embedding(source[chosen]))
        logits = decoder(sentence[:, :-1], memory, (hidden[0], cell[0]))
        optimizer.zero_grad()
        F.cross_entropy(logits.flatten(0, 1), sentence[:, 1:].flatten()).backward()
        nn.utils.clip_grad_norm_(parameters, 1.0)
        optimizer.step()

    return step
