"""Continuous batching as TorchServe's examples do it: a cache by request id, which forgets whoever is not in the step."""

import json
import os
import time


def parsed(body):
    return body if isinstance(body, dict) else json.loads(body)


class Steps:
    def __init__(self):
        self.cache = {}
        self.steps = 0
        self.left = []

    def initialize(self, context):
        context.stopping_criteria = None
        self.batch_size = context.system_properties["batch_size"]

    def handle(self, data, context):
        ids = list(context.request_ids.values())
        if context.get_request_header(0, "describe") == "True":
            context.stopping_criteria = None
            return [{"alone": len(ids), "left": self.left, "steps": self.steps}]
        self.steps += 1
        for gone in [each for each in self.cache if each not in ids]:
            self.left.append(self.cache.pop(gone)["name"])
        for i, row in zip(ids, data):
            if i not in self.cache:
                self.cache[i] = {**parsed(row["body"]), "k": 0}
            elif row:
                raise ValueError("the input came twice")
        states = [self.cache[i] for i in ids]
        time.sleep(max(state.get("ms", 0) for state in states) / 1000)
        context.stopping_criteria = [self.stops(i) for i in ids]
        answers = []
        for i, state in zip(ids, states):
            state["k"] += 1
            if state["k"] == state.get("throw_at"):
                self.cache.clear()
                raise ValueError("a bad step")
            together = sorted(other["name"] for other in states)
            answers.append({"name": state["name"], "k": state["k"], "together": together, "x": "x" * state.get("size", 0)})
        return answers

    def stops(self, request_id):
        def stop(answer):
            state = self.cache[request_id]
            if state.get("whole"):
                self.cache.pop(request_id)
                return None
            done = os.path.exists(state["until"]) if "until" in state else state["k"] >= state["n"]
            if done:
                self.cache.pop(request_id)
            return done

        return stop
