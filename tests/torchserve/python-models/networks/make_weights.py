"""Writes weights of one of these networks. Arguments: the module's name, the file to write; for a classifier also the names of its classes
(index_to_name.json) and the probabilities that it shall give, as JSON."""

import json
import math
import sys

import torch

kind, out = sys.argv[1:3]
module = __import__(kind)
network = next(each for each in vars(module).values() if isinstance(each, type) and each.__module__ == kind)()
if kind == "classifier":
    with open(sys.argv[3]) as file:
        names = json.load(file)
    wanted = json.loads(sys.argv[4])
    rest = max(1e-12, (1 - sum(wanted.values())) / (len(names) - len(wanted)))
    with torch.no_grad():
        for index, (_, name) in names.items():
            network.logits[int(index)] = math.log(wanted.pop(name, rest))
torch.save(network.state_dict(), out)
