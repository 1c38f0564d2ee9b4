"""pytest plugin: test files that import PyTorch, or a handler made of it, at their top can be read although it is not installed.
The modules have every name and no use: whatever touches one fails and says so. What the tests do over the network needs none."""

import importlib.abc
import importlib.machinery
import os
import sys
import types

ABSENT = tuple(name for name in os.environ.get("CONFORMANCE_ABSENT", "").split(",") if name)


class AbsentName:
    def __init__(self, name):
        self._name = name

    def __getattr__(self, name):
        raise ImportError(f"{self._name} is not installed for the conformance tests")

    def __call__(self, *args, **kwargs):
        raise ImportError(f"{self._name} is not installed for the conformance tests")


class AbsentModule(types.ModuleType):
    __path__ = []

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return AbsentName(f"{self.__name__}.{name}")


class AbsentFinder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    def find_spec(self, name, path=None, target=None):
        if any(name == root or name.startswith(root + ".") for root in ABSENT):
            return importlib.machinery.ModuleSpec(name, self, is_package=True)
        return None

    def create_module(self, spec):
        return AbsentModule(spec.name)

    def exec_module(self, module):
        pass


sys.meta_path.insert(0, AbsentFinder())
