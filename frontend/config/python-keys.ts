import { key, optional, type Details } from './key-spec.ts'
import { BOOLEAN, COMMAND, PATH } from './value-types.ts'

const NOT_BY_ENV: Details = { env: undefined }

/** Keys of what Python models run on. */
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
}
