"""The API for authors of Python handlers: what a handler may import.

A handler is a function ``handle(data, context)`` or a class with ``initialize(context)`` and
``handle(data, context)``. ``handle`` may be ``async`` and may be a generator. docs/handlers/python.md has examples.
"""

from torchserve_ts.context import Context
from torchserve_ts.errors import PredictionException, RequestCancelled
from torchserve_ts.intermediate import (
    send_intermediate_predict_response,
    send_intermediate_predict_response_async,
)

__all__ = [
    "Context",
    "PredictionException",
    "RequestCancelled",
    "send_intermediate_predict_response",
    "send_intermediate_predict_response_async",
]
