"""Every rank notes what it sees; rank 0 answers."""

import os
import time

from ts.handler_utils.utils import send_intermediate_predict_response

RANK = int(os.environ.get("LOCAL_RANK", 0))


def note(text):
    with open(os.path.join(os.environ["RANK_LOG"], f"rank-{RANK}.log"), "a", encoding="utf-8") as file:
        file.write(f"{text}\n")


class Ranks:
    def initialize(self, context):
        if os.environ.get("FAIL_RANK") == str(RANK):
            raise RuntimeError("this rank cannot load")
        note(f"loaded pid={os.getpid()} world={os.environ.get('WORLD_SIZE')}")

    def handle(self, data, context):
        note(f"request {context.get_request_id(0)}")
        body = data[0].get("body")
        if body == {"die": RANK}:
            os._exit(1)
        send_intermediate_predict_response([f"from rank {RANK}\n"], context.request_ids, "Intermediate", 200, context)
        time.sleep(body.get("sleep", 0) if isinstance(body, dict) else 0)
        return [f"end of rank {RANK} of {os.environ.get('WORLD_SIZE')}"]
