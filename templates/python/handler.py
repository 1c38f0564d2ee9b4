"""Answers each text in capital letters."""


def handle(data, context):
    """Answers a batch. TorchServe calls it once with None when it loads the model.

    Returns one item for each request.
    """
    if data is None:
        return None
    return [shout(request.get("body") or request.get("data")) for request in data]


def shout(text):
    if isinstance(text, (bytes, bytearray)):
        text = text.decode()
    return str(text).upper()
