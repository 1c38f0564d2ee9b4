"""
Stands in for PyTorch in the default tests: the two names that TorchServe's worker itself uses (ts.protocol.otf_message_handler), and
torchrun (distributed/run.py).
What needs more of PyTorch is tested with the real one: npm run test:python.
"""


class Tensor:
    """No value is one, so the worker never saves one."""


def save(obj, file):
    raise NotImplementedError("this PyTorch is a stand-in of the tests")
