"""Writes the weights of tiny_model.py: as a state dict, and with the network as TorchScript."""

import torch
from tiny_model import Tiny

model = Tiny()
with torch.no_grad():
    model.layer.weight.copy_(torch.tensor([[2.0, 3.0]]))
    model.layer.bias.copy_(torch.tensor([1.0]))
torch.save(model.state_dict(), "tiny.pt")
torch.jit.script(model).save("tiny_script.pt")
