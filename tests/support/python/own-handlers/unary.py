"""What a handler sees of requests, and what it sets for responses. The body says what to do."""

import os
import signal
import subprocess
import sys

import torchserve_ts
from torchserve_ts import PredictionException


class Handler:
    def initialize(self, context):
        context.logger.info("initialized")
        self.batches = 0

    def handle(self, data, context):
        self.batches += 1
        return [self.answer(each, index, context) for index, each in enumerate(data)]

    def answer(self, parts, index, context):
        wanted = parts.get("body")
        if isinstance(wanted, dict):
            if wanted.get("fail") == "teapot":
                return PredictionException("no coffee", 418)
            if wanted.get("fail") == "raise":
                raise KeyError("unknown")
            if wanted.get("fail") == "exit":
                sys.exit(3)
            if wanted.get("fail") == "unencodable":
                return object()
            if "child" in wanted:
                return self.child(wanted["child"])
        context.set_response_status(202, "Taken", index)
        context.set_response_header(index, "x-own", "1")
        context.set_response_content_type(index, "application/x-own")
        context.metrics.add_counter("OwnCounter", 2, dimensions={"Kind": "test"})
        print("printed by the handler")
        return {
            "types": {name: type(value).__name__ for name, value in parts.items()},
            "header": context.get_request_header(index, "X-Mine"),
            "id": context.get_request_id(index) == context.request_ids[index],
            "worker": torchserve_ts.__file__.split(os.sep)[-3],
            "version": list(sys.version_info[:2]),
            "model": context.model_name,
            "config": context.model_yaml_config.get("own"),
        }

    def child(self, kind):
        if kind == "signals":
            read, write = os.pipe()
            if os.fork() == 0:
                handlers = [signal.getsignal(each) for each in (signal.SIGTERM, signal.SIGINT)]
                os.write(write, str(handlers == [signal.SIG_DFL, signal.default_int_handler]).encode())
                os._exit(0)
            os.wait()
            return os.read(read, 10).decode()
        if kind == "fork":
            pid = os.fork()
            if pid == 0:
                try:
                    print("a child prints", flush=True)
                    subprocess.run(["sleep", "600"])
                finally:
                    os._exit(0)
            return str(pid)
        return str(subprocess.Popen(["sleep", "600"]).pid)
