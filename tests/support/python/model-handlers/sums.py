"""Stateful: each sequence has a sum, which its requests add to."""


class Sums:
    def initialize(self, context):
        self.sums = {}

    def handle(self, data, context):
        return [self.add(row, context, index) for index, row in enumerate(data)]

    def add(self, row, context, index):
        value = row.get("body", row.get("data"))
        sequence = context.get_sequence_id(index)
        total = self.sums.get(sequence, 0) + int(value if isinstance(value, (int, str)) else bytes(value))
        self.sums[sequence] = total
        return str(total)
