"""The functions of a workflow."""


def shout(data, context):
    if data is None:
        return None
    return [bytes(row["body"]).decode().upper() + "!" for row in data]


def join(data, context):
    if data is None:
        return None
    return [b"+".join(bytes(row[name]) for name in sorted(row)) for row in data]


def fail(data, context):
    if data is None:
        return None
    raise ValueError("no")
