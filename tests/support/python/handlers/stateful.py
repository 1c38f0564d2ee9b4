"""A sum for each sequence, known to this process alone."""

import os


class Stateful:
    def __init__(self):
        self.sums = {}

    def initialize(self, context):
        self.context = context

    def handle(self, data, context):
        answers = []
        for i, row in enumerate(data):
            sequence = context.get_sequence_id(i)
            if context.get_request_header(i, context.header_key_sequence_start) == "true":
                self.sums[sequence] = 0
            self.sums[sequence] = self.sums.get(sequence, 0) + int(row["body"])
            context.set_response_header(i, context.header_key_sequence_id, sequence)
            answers.append({"sequence": sequence, "sum": self.sums[sequence], "pid": os.getpid(), "batch": len(data)})
        return answers
