"""Streams stamped items when told to, as tests/support/handlers/paced does in TypeScript."""

import json
import os
import time

from ts.handler_utils.utils import send_intermediate_predict_response


def handle(data, context):
    if data is None:
        return None
    plan = data[0].get("body", data[0].get("data"))
    plan = plan if isinstance(plan, dict) else json.loads(bytes(plan))
    items = []
    for k in range(1, plan["n"] + 1):
        time.sleep(0 if k == 1 else plan["gap"] / 1000)
        if plan.get("fail") == k - 1:
            raise ValueError("on purpose")
        if plan.get("exit") == k - 1:
            os._exit(0)
        item = f"<{plan['id']}#{k}>".ljust(plan["pad"], "x") + "\n"
        if plan.get("stream") is False:
            items.append(item)
        else:
            send_intermediate_predict_response([item], context.request_ids, "Intermediate", 200, context)
    return ["".join(items)]
