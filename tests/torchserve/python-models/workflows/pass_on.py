"""Functions around a network that only pass on what they get."""


def preprocessing(data, context):
    return None if data is None else [row.get("data", row.get("body")) for row in data]


def postprocessing(data, context):
    return None if data is None else [row.get("data", row.get("body")) for row in data]
