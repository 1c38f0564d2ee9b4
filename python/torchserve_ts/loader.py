"""Finds the handler of a model and calls it for the first time."""

from __future__ import annotations

import importlib
import inspect
import os
import sys
from types import ModuleType
from typing import Any, Callable


class Handler:
    """A loaded handler: its functions, and whether one of them needs an event loop."""

    def __init__(self, handle: Callable[..., Any], owner: Any = None) -> None:
        self.handle = handle
        self.initialize: Callable[..., Any] | None = getattr(owner, "initialize", None)
        self.describe: Callable[..., Any] | None = getattr(owner, "describe", None)
        self.on_sequence_end: Callable[..., Any] | None = getattr(owner, "on_sequence_end", None)
        self.shutdown: Callable[..., Any] | None = getattr(owner, "shutdown", None)
        self.is_function = owner is None
        each = (self.handle, self.initialize, self.describe, self.on_sequence_end, self.shutdown)
        self.is_async = any(is_async(function) for function in each)


def is_async(function: Any) -> bool:
    """Tell whether a call returns a coroutine or an async generator."""
    inner = inspect.unwrap(function)
    each = (inner, getattr(inner, "__call__", None))  # noqa: B004
    return any(inspect.iscoroutinefunction(one) or inspect.isasyncgenfunction(one) for one in each)


def add_model_folder(model_dir: str, handler: str, packages: str | None = None) -> None:
    """Let the handler import the model's files, and programs that it starts too.

    The worker has imported its own parts before, so a file of the model cannot take the place of one of them.
    """
    path = handler.split(":", 1)[0]
    folders = [os.path.dirname(path)] if os.path.isabs(path) else []
    folders += [each for each in os.environ.get("PYTHONPATH", "").split(os.pathsep) if each]
    folders.append(model_dir)
    inner = os.path.dirname(os.path.join(model_dir, path))
    if inner != model_dir and os.path.isdir(inner):
        folders.append(inner)
    if packages:
        folders.append(packages)
    sys.path[:] = folders + [each for each in sys.path if each not in folders]
    os.environ["PYTHONPATH"] = os.pathsep.join(folders)


def load_handler(handler: str) -> Handler:
    """Import the handler of the manifest: ``file.py``, ``file.py:function`` or ``module``.

    Raises what the module raises while it is imported, and ImportError when it has no handler.
    """
    path, _, name = handler.partition(":")
    module_name = os.path.basename(path)
    module_name = module_name[:-3] if module_name.endswith(".py") else module_name
    module = importlib.import_module(module_name)
    function = getattr(module, name or "handle", None)
    if isinstance(function, type):
        return _of_class(function)
    if callable(function):
        return Handler(function)
    classes = _own_classes(module)
    if len(classes) != 1:
        found = ", ".join(each.__name__ for each in classes) or "none"
        raise ImportError(
            f"{os.path.basename(path)} must have a function {name or 'handle'}(data, context) "
            f"or exactly one class with handle; its classes: {found}"
        )
    return _of_class(classes[0], name or "handle")


def _of_class(kind: type, name: str = "handle") -> Handler:
    owner = kind()
    handle = getattr(owner, name, None)
    if not callable(handle):
        raise ImportError(f"The class {kind.__name__} must have a method {name}(data, context)")
    return Handler(handle, owner)


def _own_classes(module: ModuleType) -> list[type]:
    """Return the classes that the module defines and that can be a handler."""
    own = [each for each in vars(module).values() if isinstance(each, type) and each.__module__ == module.__name__]
    with_handle = [each for each in own if callable(getattr(each, "handle", None))]
    return with_handle or own
