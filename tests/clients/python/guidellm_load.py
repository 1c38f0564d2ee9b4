"""guidellm: measures 90 requests, as many at once as it may, and streams."""

import json
import os
import subprocess
import tempfile
from pathlib import Path

import checks
from checks import REST, check, done

GUIDELLM = Path(os.environ["ENVIRONMENT"]) / "bin" / "guidellm"
REQUESTS = 90
# Its processes need long to start.
checks.LIMIT_S = 120
TOKENS = 8


@check
def load():
    """guidellm: 90 streamed requests at once, none fails, and tokens are counted"""
    with tempfile.TemporaryDirectory() as temporary:
        prompts, report = Path(temporary, "prompts.jsonl"), Path(temporary, "report.json")
        lines = [json.dumps({"prompt": f"In the beginning {index}", "output_tokens_count": TOKENS}) for index in range(REQUESTS)]
        prompts.write_text("\n".join(lines))
        options = {
            "backend": f"kind=openai_http,target={REST},model=tiny-llama",
            "profile": f"kind=throughput,max_concurrency={REQUESTS}",
            "constraint": f"kind=max_requests,count={REQUESTS}",
            "data": f"kind=json_file,path={prompts}",
            "output": f"kind=json,path={report}",
        }
        command = [GUIDELLM, "run", "--disable-console", *(f"--{name}={value}" for name, value in options.items())]
        made = subprocess.run(command, env={**os.environ, "HF_HOME": temporary}, capture_output=True, text=True)
        assert made.returncode == 0, made.stderr[-1000:]
        (benchmark,) = json.loads(report.read_text())["benchmarks"]
        totals = benchmark["metrics"]["request_totals"]
        assert (totals["successful"], totals["total"]) == (REQUESTS, REQUESTS), totals
        answered = benchmark["requests"]["successful"]
        assert all(request["output"] and 0 < request["output_metrics"]["text_tokens"] <= TOKENS for request in answered), answered[0]


done()
