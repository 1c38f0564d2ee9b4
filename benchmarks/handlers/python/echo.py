"""Answers with the body that it got."""


def handle(data, context):
    if data is None:
        return None
    bodies = [row.get("body") or row.get("data") for row in data]
    return [bytes(body) if isinstance(body, bytearray) else body for body in bodies]
