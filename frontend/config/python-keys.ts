import { key, optional, type Details } from './key-spec.ts'
import { BOOLEAN, COMMAND, integer, PATH } from './value-types.ts'

const OURS: Details = { ours: true }

/** Keys for Python models. */
export const PYTHON_KEYS = {
  python: key(
    'python',
    COMMAND,
    'python',
    'Python that runs Python models: a command or a path. Unset: python, or python3 if there is no python.',
  ),
  modelServerHome: optional(
    'model_server_home',
    PATH,
    'Folder with TorchServe’s package `ts`. Unset: the one that the Python finds.',
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
    'Whether Python handlers use Intel’s extension for PyTorch.',
  ),
  ipexGpuEnable: key('ipex_gpu_enable', BOOLEAN, 'false', 'The same for Intel GPUs.'),
  pythonCancelGraceMs: optional(
    'python_cancel_grace_ms',
    integer(1, 2_147_483_647),
    'Milliseconds in which a Python handler must end cancelled requests; its worker is restarted after them. Unset: no limit as long as it responds within the response timeout.',
    OURS,
  ),
}
