"""The streaming echo of TorchServe's tests: three times `hello`, and `hello world ` at last."""

from ts.handler_utils.utils import send_intermediate_predict_response


def handle(data, context):
    if data is None:
        return None
    for _ in range(3):
        send_intermediate_predict_response(
            ["hello" for _ in data], context.request_ids, "Intermediate Prediction success", 200, context
        )
    return ["hello world " for _ in data]
