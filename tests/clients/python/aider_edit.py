"""aider: edits a file of a git repository with the model's answer, and commits it."""

import os
import subprocess
import tempfile
from pathlib import Path

import checks
from checks import REST, check, done

# It starts slowly.
checks.LIMIT_S = 120
AIDER = Path(os.environ["ENVIRONMENT"]) / "bin" / "aider"
# As JSON, which is YAML too. The model `chat` repeats the last message: that must be the request alone.
MODELS = '[{"name": "openai/chat", "edit_format": "whole", "reminder": "none", "weak_model_name": "openai/chat"}]'
FLAGS = ["--yes-always", "--no-check-update", "--analytics-disable", "--no-show-model-warnings", "--no-show-release-notes"]
FLAGS += ["--no-pretty", "--no-auto-lint", "--no-gitignore", "--map-tokens", "0"]


def edits(*flags):
    with tempfile.TemporaryDirectory() as temporary:
        # Prices of models, which it would fetch.
        prices = Path(temporary, ".aider", "caches", "model_prices_and_context_window.json")
        prices.parent.mkdir(parents=True)
        prices.write_text("{}")
        models = Path(temporary, "models.yml")
        models.write_text(MODELS)
        repository = Path(temporary, "repository")
        repository.mkdir()
        environment = {**os.environ, "HOME": temporary, "OPENAI_API_KEY": "none", "OPENAI_API_BASE": f"{REST}/v1"}

        def run(*command):
            made = subprocess.run(command, cwd=repository, env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True)
            assert made.returncode == 0, made.stdout[-1000:] + made.stderr[-1000:]
            return made.stdout

        def git(*arguments):
            return run("git", "-c", "user.name=a", "-c", "user.email=a@b.c", *arguments)

        file = repository / "hello.txt"
        file.write_text("hello\n")
        git("init", "--quiet")
        git("add", ".")
        git("commit", "--quiet", "--message", "hello")
        message = "hello.txt\n```\ngoodbye\n```"
        said = run(AIDER, "--model", "openai/chat", "--model-settings-file", models, "--message", message, *FLAGS, *flags, "hello.txt")
        assert file.read_text() == "goodbye\n", said[-2000:]
        assert git("rev-list", "--count", "HEAD").strip() == "2" and git("status", "--porcelain", "-uno") == "", said[-2000:]


@check
def streamed():
    """aider: an edit from a stream is applied and committed"""
    edits("--stream")


@check
def whole():
    """aider: an edit from a whole answer is applied and committed"""
    edits("--no-stream")


done()
