"""locust: 90 users at once, as an evaluation sends them, and each waits for its answer."""

# First, because it patches the modules that the others import.
from locust import HttpUser, task

import gevent
from checks import REST, check, done
from locust.env import Environment
from locust.stats import stats_history

USERS = 90
ASKED = {"model": "tiny-llama", "messages": [{"role": "user", "content": "In the beginning"}], "max_tokens": 4}


class Evaluation(HttpUser):
    """Asks once, whole or as a stream."""

    host = REST
    texts = []

    @task
    def ask(self):
        stream = len(self.texts) % 2 == 1
        self.texts.append(None)
        with self.client.post("/v1/chat/completions", json={**ASKED, "stream": stream}, catch_response=True, timeout=60) as answer:
            if answer.status_code != 200:
                answer.failure(answer.text)
            elif stream and not answer.text.rstrip().endswith("data: [DONE]"):
                answer.failure(f"a cut stream: {answer.text[-200:]}")
            elif not stream and not answer.json()["choices"][0]["message"]["content"]:
                answer.failure(f"no text: {answer.text[:200]}")
            else:
                answer.success()
        gevent.sleep(3600)


@check
def load():
    """locust: 90 requests at once, whole and streamed, wait for their turn and are answered"""
    environment = Environment(user_classes=[Evaluation])
    runner = environment.create_local_runner()
    history = gevent.spawn(stats_history, runner)
    try:
        runner.start(USERS, spawn_rate=USERS)
        with gevent.Timeout(25):
            while environment.stats.total.num_requests < USERS:
                gevent.sleep(0.05)
    finally:
        runner.quit()
        history.kill()
    errors = [error.to_dict() for error in environment.stats.errors.values()]
    assert environment.stats.total.num_failures == 0, errors
    assert environment.stats.total.num_requests == USERS


done()
