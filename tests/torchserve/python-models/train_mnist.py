"""Trains the network of TorchServe's MNIST example on the ten pictures beside it until it knows them, since its own weights may be absent
from a checkout. Arguments: the folder of the example."""

import os
import sys

import torch
from PIL import Image
from torchvision import transforms

folder = sys.argv[1]
sys.path.insert(0, folder)
from mnist import Net  # noqa: E402

torch.manual_seed(0)
read = transforms.Compose([transforms.ToTensor(), transforms.Normalize((0.1307,), (0.3081,))])
pictures = torch.stack([read(Image.open(os.path.join(folder, "test_data", f"{n}.png")).convert("L")) for n in range(10)])
digits = torch.arange(10)
net = Net()
optimizer = torch.optim.Adam(net.parameters(), 1e-3)
net.train()
for _ in range(60):
    optimizer.zero_grad()
    torch.nn.functional.nll_loss(net(pictures), digits).backward()
    optimizer.step()
net.eval()
assert net(pictures).argmax(1).tolist() == list(range(10))
torch.save(net.state_dict(), os.path.join(folder, "mnist_cnn.pt"))
