"""Does what the request says: a JSON body with `op`, or anything else, which comes back as it was understood."""

import json
import os
import struct
import subprocess
import sys
import time

from ts.handler_utils.utils import send_intermediate_predict_response
from ts.utils.util import PredictionException


def handle(data, context):
    if data is None:
        return None
    ops = [op_of(row) for row in data]
    return [handle_one(i, row, op, context) for i, (row, op) in enumerate(zip(data, ops))]


def op_of(row):
    """Clients of gRPC send no content type: what looks like JSON is parsed."""
    body = row.get("body")
    if isinstance(body, bytearray) and body.startswith(b'{"op"'):
        body = row["body"] = json.loads(body)
    return body.get("op") if isinstance(body, dict) else None


def handle_one(i, row, op, context):
    body = row.get("body")
    if op is None:
        return {name: [type(value).__name__, show(value)] for name, value in row.items()}
    return OPS[op](i, body, context)


def show(value):
    return value.hex() if isinstance(value, (bytes, bytearray)) else value


def echo(i, body, context):
    return body


def batch(i, body, context):
    return {"size": len(context.request_ids), "n": body.get("n"), "pid": os.getpid()}


def headers(i, body, context):
    return {"id": context.get_request_id(i), **context.get_all_request_header(i)}


def properties(i, body, context):
    return {
        **context.system_properties,
        "manifest": context.manifest,
        "yaml": context.model_yaml_config,
        "cwd": os.getcwd(),
        "python": sys.executable,
        "pythonpath": os.environ["PYTHONPATH"],
        "argv": sys.argv,
        "env": {name: value for name, value in os.environ.items() if name.startswith(("TS_", "SECRET_", "OPEN_"))},
    }


def answer(i, body, context):
    if "status" in body:
        context.set_response_status(body["status"], body.get("reason", ""), i)
    if "type" in body:
        context.set_response_content_type(i, body["type"])
    for name, value in body.get("headers", {}).items():
        context.set_response_header(i, name, value)
    return bytes.fromhex(body["hex"]) if "hex" in body else body.get("text", "")


def stream(i, body, context):
    for k in range(body["n"]):
        item = f"{k}:" + "x" * body.get("size", 0)
        send_intermediate_predict_response([item] * len(context.request_ids), context.request_ids, "Intermediate", 200, context)
        time.sleep(body.get("ms", 0) / 1000)
        while "until" in body and not os.path.exists(body["until"]):
            time.sleep(0.005)
        if k == body.get("throw_at"):
            raise ValueError("in the middle")
        if k == body.get("exit_at"):
            sys.exit(7)
    return "last"


def throw(i, body, context):
    raise ValueError("no reason")


def reject(i, body, context):
    raise PredictionException(body["message"], body["code"])


def memory(i, body, context):
    raise MemoryError()


def cuda(i, body, context):
    raise RuntimeError("CUDA out of memory")


def unsupported(i, body, context):
    return object()


def big(i, body, context):
    if body.get("stream"):
        send_intermediate_predict_response(["first"], context.request_ids, "Intermediate", 200, context)
        send_intermediate_predict_response(["x" * body["n"]], context.request_ids, "Intermediate", 200, context)
    return "x" * body["n"]


def leave(i, body, context):
    sys.exit(body.get("code", 0))


def sleep(i, body, context):
    time.sleep(body["ms"] / 1000)
    return "awake"


def parent(i, body, context):
    """Starts a process that would go on for long."""
    return {"child": subprocess.Popen(["sleep", "600"]).pid}


def half(i, body, context):
    """Half of an answer, and the end of the process."""
    context.cl_socket.sendall(struct.pack("!ii", 200, 100) + b"Pred")
    os._exit(9)


def nonsense(i, body, context):
    """A length that cannot be."""
    context.cl_socket.sendall(struct.pack("!ii", 200, -5))
    time.sleep(60)


def metric(i, body, context):
    context.metrics.add_counter("Widgets", body["value"], i)
    context.metrics.add_time("Undeclared", 3, i)
    print("a line of the handler", flush=True)
    print("a line of trouble", file=sys.stderr, flush=True)
    return "measured"


OPS = {name: value for name, value in globals().items() if callable(value) and name not in ("handle", "handle_one", "op_of", "show")}
