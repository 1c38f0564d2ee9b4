import unittest

from handler import handle


class HandlerTest(unittest.TestCase):
    def test_answers_each_request_of_a_batch(self):
        batch = [{"body": b"one"}, {"data": "two"}]
        self.assertEqual(handle(batch, None), ["ONE", "TWO"])


if __name__ == "__main__":
    unittest.main()
