import { key, optional, type Details } from './key-spec.ts'
import { BOOLEAN, COMMAND, integer, PATH } from './value-types.ts'

const NOT_BY_ENV: Details = { env: undefined }
const OURS: Details = { ours: true }

/** Keys for Python models. */
export const PYTHON_KEYS = {
  python: key(
    'python',
    COMMAND,
    'python',
    'Python that runs Python models: a command or a path. Unset: python, or python3 where there is none.',
    NOT_BY_ENV,
  ),
  modelServerHome: optional(
    'model_server_home',
    PATH,
    'Folder with TorchServe’s package `ts`. Unset: where the Python finds it.',
  ),
  installPyDepPerModel: key(
    'install_py_dep_per_model',
    BOOLEAN,
    'false',
    'Whether the requirements.txt of a Python archive is installed, with pip, for that model alone.',
  ),
  ipexEnable: key(
    'ipex_enable',
    BOOLEAN,
    'false',
    'Told to Python workers: whether handlers use Intel’s extension for PyTorch.',
  ),
  ipexGpuEnable: key('ipex_gpu_enable', BOOLEAN, 'false', 'The same for Intel GPUs.'),
  pythonCancelGraceMs: optional(
    'python_cancel_grace_ms',
    integer(1, 2_147_483_647),
    'Milliseconds that a Python handler may go on with requests that nobody waits for before its worker is started again. Unset: as long as it answers within the response timeout.',
    OURS,
  ),
}
