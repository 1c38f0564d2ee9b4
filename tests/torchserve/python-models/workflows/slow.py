"""Takes longer than its node may."""

import time


def preprocessing(data, context):
    if data is None:
        return None
    time.sleep(5)
    return [row.get("body") for row in data]
