"""A handler that is a function: says what it got."""


def handle(data, context):
    if data is None:  # how TorchServe loads a function
        return None
    return [answer(row) for row in data]


def answer(row):
    value = row.get("body", row.get("data"))
    if isinstance(value, (bytes, bytearray)):
        return bytes(reversed(value))
    return {"type": type(value).__name__, "value": value, "fields": sorted(row)}
