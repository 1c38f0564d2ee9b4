import { askPython, lastLine, WORKER_PATH } from './own-python.ts'

/** The packages without which TorchServe's worker cannot start, by import name. */
const NEEDED = ['ts', 'torch', 'yaml', 'psutil'] as const
export type NeededModule = (typeof NEEDED)[number]

/** What an interpreter reports about itself. */
export interface Probe {
  /** Absolute path of the interpreter. */
  readonly python: string
  readonly version: string
  /** The folder with the package `ts`; null: there is none, or it is not TorchServe's. */
  readonly torchserve: string | null
  readonly torchserveVersion: string | null
  /** Null when PyTorch is missing or reports no version. */
  readonly torch: string | null
  /** The required packages that are missing. */
  readonly missing: readonly NeededModule[]
}

/** Why an interpreter could not be probed. */
export interface ProbeFailure {
  readonly failure: string
  /** Why it could not be started; absent: it was. */
  readonly cause?: Error | undefined
}

/** Finds modules without importing them, because importing PyTorch would take seconds. */
const SCRIPT = `${WORKER_PATH}
import importlib.util, json
from importlib import metadata

see_as_worker()
home = sys.argv[1]
if home:
    sys.path.insert(0, home)

def spec(name):
    try:
        found = importlib.util.find_spec(name)
        return found if found and found.origin else None # a folder that only has the name is none
    except Exception:
        return None

def version(name):
    try:
        return metadata.version(name)
    except Exception:
        return None

def worker_home():
    found = spec("ts")
    for folder in (found and found.submodule_search_locations) or []:
        if os.path.isfile(os.path.join(folder, "model_service_worker.py")):
            return os.path.dirname(os.path.abspath(folder))
    return None

def worker_version(folder):
    try:
        with open(os.path.join(folder, "ts", "version.txt")) as file:
            return file.read().strip()
    except Exception:
        return None

torchserve = worker_home()
missing = [name for name in ${JSON.stringify(NEEDED)} if spec(name) is None]
if torchserve is None and "ts" not in missing:
    missing.insert(0, "ts")
print("\\n" + json.dumps({
    "python": sys.executable,
    "version": ".".join(str(part) for part in sys.version_info[:3]),
    "torchserve": torchserve,
    "torchserveVersion": torchserve and worker_version(torchserve),
    "torch": version("torch") if spec("torch") else None,
    "missing": missing,
}))
`

/**
 * Asks an interpreter for its version and packages. It imports only the standard library. Never rejects.
 * @param python a command or an absolute path
 * @param home folder that is searched first for `ts`; '' for none
 * @param packages folder of packages that the workers get in addition; undefined: none
 */
export async function probe(
  python: string,
  home: string,
  packages: string | undefined,
): Promise<Probe | ProbeFailure> {
  const result = await askPython(python, SCRIPT, [home], packages)
  if (result.timedOut) return { failure: 'it did not answer in time' }
  if (result.problem !== undefined) {
    const isAbsent = result.failure?.code === 'ENOENT'
    const failure = lastLine(result.stderr) ?? (isAbsent ? 'the command was not found' : result.problem)
    return { failure, cause: result.failure }
  }
  return parse(result.stdout)
}

function parse(stdout: string): Probe | ProbeFailure {
  try {
    return JSON.parse(lastLine(stdout) ?? '') as Probe
  } catch {
    return { failure: 'it is not a Python interpreter' }
  }
}
