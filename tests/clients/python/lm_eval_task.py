"""lm-eval: a task of loglikelihoods and one of generated texts, with the tokenizer of the served GGUF."""

import json
import os
import tempfile
from pathlib import Path

import httpx
from checks import REST, check, done
from gguf import GGUFReader
from lm_eval import simple_evaluate
from lm_eval.tasks import TaskManager
from tokenizers import Tokenizer, decoders, models, pre_tokenizers
from transformers import PreTrainedTokenizerFast

GGUF = Path(__file__).parents[3] / "model-store" / "tiny-llama" / "model.gguf"
# The second of each is how the Bible goes on.
CHOICES = [
    ("In the beginning God created the", [" heaven and the earth", " zygote ox quartz fix"]),
    ("And the LORD spake unto", [" Moses, saying", " quartz, zigzag"]),
    ("And it came to", [" pass", " fish"]),
]
TASKS = {
    "choices": """
task: choices
dataset_path: json
dataset_kwargs: {data_files: {test: DATA}}
test_split: test
output_type: multiple_choice
doc_to_text: "{{text}}"
doc_to_target: 0
doc_to_choice: "{{choices}}"
target_delimiter: ""
metric_list: [{metric: acc, aggregation: mean, higher_is_better: true}]
""",
    "words": """
task: words
dataset_path: json
dataset_kwargs: {data_files: {test: DATA}}
test_split: test
output_type: generate_until
doc_to_text: "{{text}}"
doc_to_target: "{{choices[0]}}"
generation_kwargs: {until: ["."], max_gen_toks: 8}
metric_list: [{metric: exact_match, aggregation: mean, higher_is_better: true}]
""",
}


def tokenizer(folder):
    """Writes the tokenizer of the GGUF as a file of transformers."""
    fields = GGUFReader(GGUF).fields
    tokens, merges = (fields[f"tokenizer.ggml.{name}"].contents() for name in ("tokens", "merges"))
    model = models.BPE({token: id for id, token in enumerate(tokens)}, [tuple(pair.split(" ")) for pair in merges])
    made = Tokenizer(model)
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    made.decoder = decoders.ByteLevel()
    PreTrainedTokenizerFast(tokenizer_object=made, bos_token="<s>", eos_token="</s>").save_pretrained(folder)
    return made


with tempfile.TemporaryDirectory() as temporary:
    os.environ["HF_HOME"] = temporary
    folder = Path(temporary)
    encode = tokenizer(folder / "tokenizer").encode
    data = folder / "data.jsonl"
    data.write_text("".join(json.dumps({"text": text, "choices": choices}) + "\n" for text, choices in CHOICES))
    for name, text in TASKS.items():
        (folder / f"{name}.yaml").write_text(text.replace("DATA", json.dumps(str(data))))

    def evaluate(task, concurrent):
        arguments = {
            "model": "tiny-llama",
            "base_url": f"{REST}/v1/completions",
            "tokenizer": str(folder / "tokenizer"),
            "tokenizer_backend": "huggingface",
            "num_concurrent": concurrent,
            "max_length": 256,
            "max_retries": 1,
        }
        manager = TaskManager(include_path=str(folder), include_defaults=False)
        made = simple_evaluate("local-completions", model_args=arguments, tasks=[task], task_manager=manager, bootstrap_iters=0)
        return made["results"][task], made["samples"][task]

    @check
    def loglikelihoods():
        """lm-eval: choices by loglikelihood are right, and the numbers are the sums of the server's own logprobs"""
        results, samples = evaluate("choices", 1)
        assert results["acc,none"] == 1, results
        for sample in samples:
            text = sample["doc"]["text"]
            for choice, [[likelihood, _]] in zip(sample["doc"]["choices"], sample["resps"], strict=True):
                body = {"model": "tiny-llama", "prompt": text + choice, "max_tokens": 0, "echo": True, "logprobs": 0}
                numbers = httpx.post(f"{REST}/v1/completions", json=body).json()["choices"][0]["logprobs"]["token_logprobs"]
                expected = sum(numbers[len(encode(text).ids) :])
                assert likelihood < 0 and abs(float(likelihood) - expected) < 1e-2, (choice, likelihood, expected)

    @check
    def concurrent():
        """lm-eval: the same with four requests at once"""
        assert evaluate("choices", 4)[0]["acc,none"] == 1

    @check
    def texts():
        """lm-eval: texts until a stop sequence"""
        _, samples = evaluate("words", 1)
        answers = [sample["resps"][0][0] for sample in samples]
        assert len(answers) == len(CHOICES) and all(answers) and not any("." in answer for answer in answers), answers

    done()
