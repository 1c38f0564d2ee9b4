"""Trains the bundled model from nothing and writes it as GGUF.

    apt-get install bible-kjv bible-kjv-text
    pip install -r requirements.txt
    python3 train.py --minutes 40 --threads 1 --out model.gguf

The text (text.py) is the King James Bible. Its last 5 % is held out: neither the tokenizer nor the model is trained
on it, it is only measured, and no measurement changes the training. The schedule goes by time, not by steps: after
`--minutes` the learning rate has reached zero whatever the machine's speed. A checkpoint is kept beside the output;
`--resume` goes on from it in the time that is left.
"""

import argparse
import math
import random
import time
from collections.abc import Iterator
from pathlib import Path

import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from torch import Tensor

from export import TYPES, write_gguf
from model import Params, Shape, initial_params, parameter_count, token_losses
from optimizer import Optimizer
from text import read_text, split

BATCH = 12
DROPOUT = 0.05
MUON_RATE = 0.02
ADAM_RATE = 0.004
WEIGHT_DECAY = 0.1
WARM_UP_STEPS = 40
SECONDS_BETWEEN_REPORTS = 120
MEASURED_WINDOWS = 64


def train_tokenizer(text: str, vocab_size: int) -> Tokenizer:
    """A byte-level BPE, the kind that llama.cpp calls gpt2."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=vocab_size,
        special_tokens=["<s>", "</s>"],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator(text.splitlines(keepends=True), trainer)
    return tokenizer


def batches(tokens: Tensor, length: int) -> Iterator[Tensor]:
    """Without end: each pass cuts the tokens at other places and shuffles the windows of length + 1."""
    while True:
        start = random.randrange(length)
        starts = torch.arange(start, len(tokens) - length, length)
        starts = starts[torch.randperm(len(starts))]
        for chosen in starts.split(BATCH):
            yield tokens[chosen[:, None] + torch.arange(length + 1)]


def schedule(step: int, done: float) -> float:
    """The factor for the learning rates: a short warm-up, then a cosine over the share of the time that is done."""
    return min(1.0, (step + 1) / WARM_UP_STEPS) * 0.5 * (1 + math.cos(math.pi * min(1.0, done)))


class HeldOut:
    """Bits per character on windows spread over the held-out text, each token with half a context or more."""

    def __init__(self, text: str, tokenizer: Tokenizer, shape: Shape) -> None:
        tokens = torch.tensor(tokenizer.encode(text).ids)
        length = shape.context_length
        starts = torch.linspace(0, len(tokens) - length - 1, MEASURED_WINDOWS).long()
        self.windows = tokens[starts[:, None] + torch.arange(length + 1)]
        self.scored = slice(length // 2, None)
        # The text is ASCII: in the byte alphabet one character of a token is one character of the text.
        sizes = torch.tensor([len(tokenizer.id_to_token(number)) for number in range(shape.vocab_size)])
        self.characters = sizes[self.windows[:, 1:][:, self.scored]].sum().item()
        self.shape = shape

    @torch.no_grad()
    def bits_per_character(self, params: Params) -> float:
        nats = sum(token_losses(params, part, self.shape)[:, self.scored].sum() for part in self.windows.split(BATCH))
        return float(nats) / math.log(2) / self.characters


def save(path: Path, params: Params, optimizer: Optimizer, step: int, seconds: float) -> None:
    beside = path.with_suffix(".part")
    torch.save({"params": params, "optimizer": optimizer.state(), "step": step, "seconds": seconds}, beside)
    beside.replace(path)


def train(params: Params, shape: Shape, tokens: Tensor, held_out: HeldOut, minutes: float, checkpoint: Path,
          resume: bool) -> None:
    optimizer = Optimizer(params, MUON_RATE, ADAM_RATE, WEIGHT_DECAY)
    step, before = 0, 0.0
    if resume:
        kept = torch.load(checkpoint)
        optimizer.restore(kept["optimizer"])
        step, before = kept["step"], kept["seconds"]
        for name, value in kept["params"].items():
            params[name].data.copy_(value.data)
        # Draw other windows than before the stop.
        random.seed(step)
        torch.manual_seed(step)
    started = time.monotonic()
    reported, losses = 0.0, []
    for batch in batches(tokens, shape.context_length):
        seconds = before + time.monotonic() - started
        if seconds >= minutes * 60:
            break
        loss = token_losses(params, batch, shape, DROPOUT).mean()
        loss.backward()
        optimizer.step(schedule(step, seconds / (minutes * 60)))
        step += 1
        losses.append(loss.item())
        if seconds - reported >= SECONDS_BETWEEN_REPORTS:
            report(seconds, step, len(tokens), losses, held_out.bits_per_character(params), shape)
            save(checkpoint, params, optimizer, step, seconds)
            reported, losses = seconds, []
    report(seconds, step, len(tokens), losses, held_out.bits_per_character(params), shape)
    save(checkpoint, params, optimizer, step, seconds)


def report(seconds: float, step: int, text_tokens: int, losses: list[float], bits: float, shape: Shape) -> None:
    seen = step * BATCH * shape.context_length
    mean = sum(losses) / max(1, len(losses))
    print(f"{seconds:6.0f} s  step {step:5d}  {seen / 1e6:5.2f} M tokens, {seen / text_tokens:4.1f} passes  "
          f"training loss {mean:.3f} nats per token  held-out about {bits:.3f} bits per character", flush=True)


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Train the bundled model and write it as GGUF.")
    parser.add_argument("--minutes", type=float, default=40, help="time for training (default 40)")
    parser.add_argument("--threads", type=int, default=1, help="CPU threads (default 1)")
    parser.add_argument("--out", type=Path, default=Path("model.gguf"), help="the GGUF to write")
    parser.add_argument("--type", choices=list(TYPES), default="Q8_0", help="type of the matrices (default Q8_0)")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--resume", action="store_true", help="go on from the checkpoint beside --out")
    return parser.parse_args()


def main() -> None:
    arguments = parse_arguments()
    torch.set_num_threads(arguments.threads)
    torch.manual_seed(arguments.seed)
    random.seed(arguments.seed)
    shape = Shape()
    training_text, held_out_text = split(read_text())
    tokenizer = train_tokenizer(training_text, shape.vocab_size)
    tokens = torch.tensor(tokenizer.encode(training_text).ids)
    params = initial_params(shape)
    print(f"{parameter_count(params)} parameters, {len(training_text)} characters, {len(tokens)} tokens", flush=True)
    held_out = HeldOut(held_out_text, tokenizer, shape)
    checkpoint = arguments.out.with_suffix(".checkpoint")
    train(params, shape, tokens, held_out, arguments.minutes, checkpoint, arguments.resume)
    write_gguf(str(arguments.out), params, shape, tokenizer, arguments.type)
    print(f"wrote {arguments.out}, {arguments.out.stat().st_size} bytes")


if __name__ == "__main__":
    main()
