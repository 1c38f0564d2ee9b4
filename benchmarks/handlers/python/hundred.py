"""A stream of a hundred items of a hundred bytes; the last is the return value."""

from ts.handler_utils.utils import send_intermediate_predict_response

ITEMS = [str(number).ljust(99) + "\n" for number in range(1, 101)]


def handle(data, context):
    if data is None:
        return None
    for item in ITEMS[:-1]:
        send_intermediate_predict_response([item] * len(data), context.request_ids, "Intermediate", 200, context)
    return ITEMS[-1:] * len(data)
