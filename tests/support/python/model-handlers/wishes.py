"""Answers as its JSON input wishes: how long it takes, how it fails, what it shows."""

import json
import time

from ts.handler_utils.utils import send_intermediate_predict_response
from ts.utils.util import PredictionException


def handle(data, context):
    if data is None:
        return None
    return [answer(row, context, index) for index, row in enumerate(data)]


def answer(row, context, index):
    headers = {name: value for name, value in context.get_all_request_header(index).items() if isinstance(value, str)}
    if headers.get("describe") == "True":
        return {"headers": sorted(headers)}
    wish = row.get("body", row.get("data"))
    if isinstance(wish, (bytes, bytearray)) and bytes(wish).startswith(b"{"):
        wish = json.loads(bytes(wish))
    if not isinstance(wish, dict):
        return {name: shown(value) for name, value in row.items()}
    time.sleep(wish.get("sleep", 0))
    if wish.get("stream"):
        send_intermediate_predict_response(["first "], context.request_ids, "", 200, context)
    if "reject" in wish:
        raise PredictionException("rejected", wish["reject"])
    if wish.get("raise"):
        raise ValueError("as wished")
    if "status" in wish:
        context.set_response_status(code=wish["status"], phrase=wish.get("phrase", ""), idx=index)
        context.set_response_header(index, "x-wish", "granted")
    if "header" in wish:
        return headers.get(wish["header"], "none")
    return "x" * wish.get("bytes", 4)


def shown(value):
    return bytes(value).decode("latin1") if isinstance(value, (bytes, bytearray)) else value
