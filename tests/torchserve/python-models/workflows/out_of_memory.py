"""Wants more memory than there is when it loads."""


def preprocessing(data, context):
    raise MemoryError()
