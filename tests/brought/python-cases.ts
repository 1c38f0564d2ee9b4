import type { Case } from './run-cases.ts'

/** `answer(folder)` of a handler, whose folder is the model's. */
export const PYTHON_CASES: Readonly<Record<string, Case>> = {
  tmp: {
    source: `
import os, tempfile
def answer(folder):
    answers = []
    for place in (None, "/tmp"):
        with tempfile.TemporaryDirectory(dir=place) as own, open(os.path.join(own, "a"), "w+") as file:
            print("kept", file=file, flush=True)
            answers.append(open(file.name).read())
    return answers`,
    answer: ['kept\n', 'kept\n'],
  },
  sqlite: {
    source: `
import os, sqlite3
def answer(folder):
    for _ in range(2):
        with sqlite3.connect(os.path.join(folder, "rows.db")) as db:
            db.execute("PRAGMA journal_mode=WAL")
            db.execute("CREATE TABLE IF NOT EXISTS rows (n)")
            db.execute("INSERT INTO rows VALUES (7)")
    return [db.execute("SELECT sum(n) FROM rows").fetchone()[0], os.path.exists("rows.db")]`,
    answer: [14, true],
  },
  processes: {
    source: `
import multiprocessing
def square(n):
    return n * n
def put(queue, n):
    queue.put(n)
def answer(folder):
    answers = []
    for method in ("fork", "spawn", "forkserver"):
        context = multiprocessing.get_context(method)
        with context.Pool(2) as pool:
            answers.append(pool.map(square, [2, 3]))
        queue = context.Queue()
        child = context.Process(target=put, args=(queue, method))
        child.start()
        answers.append(queue.get())
        child.join()
        answers.append(child.exitcode)
    return answers`,
    answer: [[4, 9], 'fork', 0, [4, 9], 'spawn', 0, [4, 9], 'forkserver', 0],
  },
  git: {
    source: `
import subprocess
def answer(folder):
    subprocess.run(["git", "init", "--quiet", folder], check=True)
    command = ["git", "-C", folder, "rev-parse", "--is-inside-work-tree"]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout`,
    answer: 'true\n',
    needs: { command: 'git' },
  },
  ffmpeg: {
    source: `
import subprocess
def answer(folder):
    command = ["ffmpeg", "-v", "error", "-f", "lavfi", "-i", "sine", "-t", "0.1", "-f", "wav", "-"]
    return subprocess.run(command, check=True, capture_output=True).stdout[:4].decode()`,
    answer: 'RIFF',
    needs: { command: 'ffmpeg' },
  },
  compile: {
    source: `
import torch
@torch.compile
def twice(x):
    return torch.relu(x) * 2
def answer(folder):
    return twice(torch.tensor([-1.0, 2.0])).tolist()`,
    answer: [0, 4],
    needs: { command: 'g++', package: 'torch' },
  },
  profiler: {
    source: `
import json, os, torch
from torch.profiler import profile, ProfilerActivity
def answer(folder):
    with profile(activities=[ProfilerActivity.CPU]) as profiler:
        torch.ones(8, 8) @ torch.ones(8, 8)
    trace = os.path.join(folder, "trace.json")
    profiler.export_chrome_trace(trace)
    return any(event.get("name") == "aten::matmul" for event in json.load(open(trace))["traceEvents"])`,
    answer: true,
    needs: { package: 'torch' },
  },
  loader: {
    source: `
import torch
from torch.utils.data import DataLoader, Dataset
class Squares(Dataset):
    def __len__(self):
        return 4
    def __getitem__(self, n):
        return torch.tensor(n * n)
def answer(folder):
    return [
        sum(batch.sum().item() for batch in DataLoader(Squares(), num_workers=2, multiprocessing_context=method))
        for method in ("fork", "spawn")
    ]`,
    answer: [14, 14],
    needs: { package: 'torch' },
  },
  joblib: {
    source: `
import joblib, os
def square(n):
    return n * n
def answer(folder):
    cached = joblib.Memory(os.path.join(folder, "cache"), verbose=0).cache(square)
    found = joblib.Parallel(n_jobs=2)(joblib.delayed(square)(n) for n in range(4))
    return [found, cached(5), cached.check_call_in_cache(5)]`,
    answer: [[0, 1, 4, 9], 25, true],
    needs: { package: 'joblib' },
  },
  matplotlib: {
    source: `
import io
from matplotlib import pyplot
def answer(folder):
    figure, axes = pyplot.subplots()
    axes.plot([1, 2])
    axes.set_title("title")
    picture = io.BytesIO()
    figure.savefig(picture, format="png")
    pyplot.close(figure)
    return picture.getvalue()[1:4].decode()`,
    answer: 'PNG',
    needs: { package: 'matplotlib' },
  },
  numba: {
    source: `
import numba
def add(a, b):
    return a + b
def answer(folder):
    calls = [numba.njit(cache=True)(add) for _ in range(2)]
    return [call(2, 3) + sum(call.stats.cache_hits.values()) for call in calls]`,
    answer: [5, 6],
    needs: { package: 'numba' },
  },
  hub: {
    source: `
import huggingface_hub
def answer(folder):
    paths = [
        huggingface_hub.hf_hub_download("acme/tiny", "words.txt", local_files_only=is_written)
        for is_written in (False, True)
    ]
    cache = huggingface_hub.scan_cache_dir()
    return [[open(path).read() for path in paths], [repo.repo_id for repo in cache.repos]]`,
    answer: [['a word', 'a word'], ['acme/tiny']],
    needs: { package: 'huggingface_hub' },
  },
  transformers: {
    source: `
import os, torch
from transformers import AutoModel, BertConfig, BertModel
from transformers.utils import logging
def answer(folder):
    logging.disable_progress_bar()
    sizes = dict(hidden_size=8, num_hidden_layers=1, num_attention_heads=1, intermediate_size=8, vocab_size=8)
    model = BertModel(BertConfig(**sizes)).eval()
    model.save_pretrained(os.path.join(folder, "saved"))
    again = AutoModel.from_pretrained(os.path.join(folder, "saved")).eval()
    words = torch.tensor([[1, 2]])
    with torch.no_grad():
        return torch.allclose(model(words).pooler_output, again(words).pooler_output)`,
    answer: true,
    needs: { package: 'transformers' },
  },
  datasets: {
    source: `
import datasets, os
def double(row):
    return {"n": row["n"] * 2}
def answer(folder):
    datasets.disable_progress_bars()
    rows = os.path.join(folder, "rows.jsonl")
    with open(rows, "w") as file:
        file.write('{"n": 1}\\n{"n": 2}\\n')
    loaded = datasets.load_dataset("json", data_files=rows, split="train")
    return [loaded.map(double, num_proc=2)["n"][:], len(loaded.cache_files)]`,
    answer: [[2, 4], 1],
    needs: { package: 'datasets' },
  },
  onnx: {
    source: `
import numpy, onnxruntime, os
def answer(folder):
    session = onnxruntime.InferenceSession(os.path.join(folder, "double.onnx"))
    return session.run(None, {"x": numpy.array([1, 2], numpy.float32)})[0].tolist()`,
    answer: [2, 4],
    needs: { package: 'onnxruntime' },
  },
}

/** What the rig puts behind it; TorchServe's worker calls it once without data to load the model. */
export const PYTHON_HANDLE = `


def handle(data, context):
    if data is not None:
        return [{"answer": answer(context.system_properties["model_dir"])}]
`
