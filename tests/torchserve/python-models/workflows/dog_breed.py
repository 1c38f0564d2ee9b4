"""First node of TorchServe's dog breed workflow: the picture in base64."""

import base64


def pre_processing(data, context):
    if data is None:
        return None
    return [base64.b64encode(row.get("data") or row.get("body")).decode() for row in data]
