import { resolve } from 'node:path'
import { key, optional, type Details } from './key-spec.ts'
import { BOOLEAN, integer, parsed, splitList, word } from './value-types.ts'

const OURS: Details = { ours: true }

/** Names of variables; one that ends with `*` stands for all that begin so. */
const VARIABLES = parsed(
  'name list',
  'a comma-separated list of variables, such as NAME or PREFIX_*',
  (text) => {
    const names = splitList(text)
    return names.every((name) => /^[A-Za-z0-9_]{0,256}\*?$/.test(name)) ? names : undefined
  },
)

/** Paths, resolved against the working directory. */
const PATHS = parsed('path list', 'a comma-separated list of paths', (text) =>
  text.includes('\0') ? undefined : splitList(text).map((path) => resolve(path)),
)

/** Keys for what a model's code may do (docs/security.md). */
export const SANDBOX_KEYS = {
  sandbox: key(
    'sandbox',
    word('strict', 'default', 'off'),
    'default',
    'What workers are kept from ([Handlers are guests](security.md#handlers-are-guests)). `strict` starts no worker that the system cannot keep from all of it.',
    OURS,
  ),
  sandboxByModel: key(
    'sandbox_by_model',
    BOOLEAN,
    'false',
    'Whether model-config.yaml may also loosen the sandbox. By default it can only tighten it.',
    OURS,
  ),
  workerEnv: key(
    'worker_env',
    VARIABLES,
    '',
    'Environment variables that workers get besides the usual ones: names, or beginnings as `PREFIX_*`; `*` for all.',
    OURS,
  ),
  modelEnv: key(
    'model_env',
    VARIABLES,
    '',
    'The same, but only for models whose model-config.yaml asks for them.',
    OURS,
  ),
  sandboxRead: key(
    'sandbox_read',
    PATHS,
    '',
    'Files and folders that workers may read besides their model and the runtime.',
    OURS,
  ),
  sandboxWrite: key('sandbox_write', PATHS, '', 'The same for reading and writing.', OURS),
  workerNetwork: optional(
    'worker_network',
    BOOLEAN,
    'Whether workers may use the network. Unset: not with `sandbox=strict`.',
    OURS,
  ),
  workerMemory: optional(
    'worker_memory',
    integer(1, Number.MAX_SAFE_INTEGER),
    'Memory of its own that each process of a worker may have, in bytes. Unset: no limit.',
    OURS,
  ),
  workerProcesses: optional(
    'worker_processes',
    integer(1, 1_000_000),
    'Processes and threads of one worker. Unset: no limit.',
    OURS,
  ),
  workerOpenFiles: optional(
    'worker_open_files',
    integer(32, 10_000_000),
    'Files and connections that each process of a worker may have open. Unset: the server’s limit.',
    OURS,
  ),
}
