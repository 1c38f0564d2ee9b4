"""Errors of handlers, and how they reach clients and the log."""

from __future__ import annotations

import errno
import os
import sys
import traceback
from types import FrameType, TracebackType
from typing import Any

_MAX_MESSAGE = 4096
_MAX_DETAIL = 16_384
_OWN_FOLDER = os.path.dirname(os.path.abspath(__file__))


class PredictionException(Exception):
    """Raise it, or return it as an item, to fail a request with your own status and message.

    The client sees both. ``error_code`` is an HTTP status from 400 to 599; any other value becomes 500. Any other
    exception answers 503 ``Prediction failed``, and only the log has its message.
    """

    def __init__(self, message: str, error_code: int = 500) -> None:
        super().__init__(message)
        self.message = message
        self.error_code = error_code

    def __str__(self) -> str:
        return f"message: {self.message}"


class RequestCancelled(Exception):
    """Every request of the batch is cancelled. ``reason`` is ``client left``, ``deadline``, ``timeout``, ..."""

    def __init__(self, reason: str) -> None:
        super().__init__(f"The request was cancelled: {reason}")
        self.reason = reason


class InvalidOutput(Exception):
    """The handler returned what cannot be sent. ``message`` is for clients, the exception's text for its author."""

    def __init__(self, message: str, detail: str) -> None:
        super().__init__(detail)
        self.message = message


class ResponseTooLarge(Exception):
    """A response is larger than max_response_size."""


def request_error(error: BaseException) -> dict[str, Any]:
    """Return the ``error`` map of a FAILURE frame."""
    if isinstance(error, RequestCancelled):
        return {"code": "CANCELLED", "message": error.reason}
    if isinstance(error, ResponseTooLarge):
        return {"code": "RESPONSE_TOO_LARGE", "message": str(error)}
    if isinstance(error, InvalidOutput):
        return {"code": "INVALID_OUTPUT", "message": error.message, "detail": _cut(str(error))}
    detail = describe(error)
    if type(error).__name__ == "PredictionException":
        code = getattr(error, "error_code", 500)
        status = code if isinstance(code, int) and 400 <= code < 600 else 500
        message = _text(getattr(error, "message", error))[:_MAX_MESSAGE]
        return {"code": "HANDLER_REJECTED", "message": message, "status": status, "detail": detail}
    if is_out_of_memory(error):
        return {"code": "OUT_OF_MEMORY", "message": "Out of resources", "detail": detail}
    said = _text(error)[:_MAX_MESSAGE] or type(error).__name__
    return {"code": "HANDLER_FAILED", "message": "Prediction failed", "detail": detail, "said": said}


def load_error(error: BaseException) -> dict[str, Any]:
    """Return the ``error`` map of a LOADED frame: the exception, its place, and often what mends it."""
    code = "OUT_OF_MEMORY" if is_out_of_memory(error) else "WORKER_START_FAILED"
    hint = _hint(error)
    message = summary(error) + (f". {hint}" if hint else "")
    return {"code": code, "message": message[:_MAX_MESSAGE], "detail": describe(error)}


def is_out_of_memory(error: BaseException) -> bool:
    """Tell whether memory ran out, on the machine or on its GPU."""
    if isinstance(error, MemoryError) or type(error).__name__ == "OutOfMemoryError":
        return True
    return isinstance(error, RuntimeError) and "CUDA" in _text(error)


def summary(error: BaseException) -> str:
    """Return one line: ``ValueError: no weights (handler.py, line 4)``."""
    words = traceback.format_exception_only(type(error), error)[-1].strip()
    place = _place(error)
    return words + (f" ({place})" if place else "")


def describe(error: BaseException) -> str:
    """Return the summary and then the traceback, without the frames of this package."""
    own = _without_own_frames(error.__traceback__)
    lines = "".join(traceback.format_exception(type(error), error, own)).rstrip()
    return _cut(f"{summary(error)}\n{lines}")


def _cut(text: str) -> str:
    return text[:_MAX_DETAIL]


def _text(value: object) -> str:
    try:
        return str(value)
    except Exception:
        return f"{type(value).__name__} (its text cannot be made)"


def _place(error: BaseException) -> str:
    if isinstance(error, SyntaxError) and error.filename:
        return f"{os.path.basename(error.filename)}, line {error.lineno}"
    found = ""
    at = error.__traceback__
    while at is not None:
        path = at.tb_frame.f_code.co_filename
        if not _is_library(path) and not _is_own(at.tb_frame):
            found = f"{os.path.basename(path)}, line {at.tb_lineno}"
        at = at.tb_next
    return found


def _is_library(path: str) -> bool:
    folders = ("site-packages", "dist-packages", f"{os.sep}lib{os.sep}python")
    return path.startswith("<") or any(each in path for each in folders)


def _is_own(frame: FrameType) -> bool:
    return os.path.dirname(os.path.abspath(frame.f_code.co_filename)) == _OWN_FOLDER


def _without_own_frames(at: TracebackType | None) -> TracebackType | None:
    while at is not None and (_is_own(at.tb_frame) or at.tb_frame.f_code.co_filename.startswith("<frozen")):
        at = at.tb_next
    return at


def _hint(error: BaseException) -> str:
    if isinstance(error, ModuleNotFoundError) and error.name:
        name = error.name.split(".")[0]
        python = sys.executable or "python"
        if name == "ts":
            return (
                "It is TorchServe's package. Import from torchserve_ts instead, "
                f"or install it with: {python} -m pip install torchserve"
            )
        return f"Install it with: {python} -m pip install {name}. --extra-files packs a file of your own"
    if isinstance(error, OSError) and error.errno == errno.ENOENT:
        return (
            'Relative paths begin in the folder of the model (context.system_properties["model_dir"]); '
            "--extra-files packs a file"
        )
    return ""
