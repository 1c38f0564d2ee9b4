"""Answers with the body that it got."""


def handle(data, context):
    if data is None:
        return None
    return [bytes(row.get("body") or row.get("data")) for row in data]
