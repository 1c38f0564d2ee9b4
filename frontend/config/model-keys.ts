import { key, optional, ours, oursOptional } from './key-spec.ts'
import { MODEL_SNAPSHOT } from './model-snapshot.ts'
import { CREDENTIAL_HEADERS } from '../../common/headers.ts'
import {
  BOOLEAN,
  ORIGIN_LIST,
  PATH,
  SECONDS,
  integer,
  patternList,
  wordList,
  COMMAND,
  INT_MAX,
  parsed,
  type ValueType,
} from './value-types.ts'
import { MODELS_JSON } from './version-settings.ts'
import { WORKER_WRAPPER } from './worker-wrapper.ts'
import { isName, splitList } from '../../common/names.ts'
import type { ModelToLoad } from './settings.ts'

/** `all`, or a comma list of `[name=]location[#sha256=DIGITS]`. */
const MODELS_TO_LOAD: ValueType<'all' | readonly ModelToLoad[]> = parsed(
  'all | list',
  'all, or a comma-separated list of [name=]location[#sha256=64 hexadecimal digits]',
  (text) => {
    if (text.toLowerCase() === 'all') return 'all'
    // TorchServe's docs/configuration.md: no models are loaded at the start.
    if (text.toLowerCase() === 'standalone') return []
    const models = splitList(text).map(modelToLoad)
    return models.every((model) => model !== undefined) ? models : undefined
  },
)

/** The pin of an item, as in the URLs of other package managers. */
const PIN = /#sha256=([^#]*)$/

function modelToLoad(text: string): ModelToLoad | undefined {
  const pin = PIN.exec(text)
  if (pin === null) return namedLocation(text)
  const sha256 = pin[1]!.toLowerCase()
  const model = namedLocation(text.slice(0, pin.index))
  return model !== undefined && /^[0-9a-f]{64}$/.test(sha256) ? { ...model, sha256 } : undefined
}

function namedLocation(item: string): ModelToLoad | undefined {
  const equals = item.indexOf('=')
  const name = item.slice(0, Math.max(equals, 0)).trim()
  // Also tells `name=location` from a URL with `=` in its query.
  if (!isName(name)) return equals === 0 ? undefined : { location: item }
  const location = item.slice(equals + 1).trim()
  return location === '' ? undefined : { name, location }
}

/** Keys for models: which to load, from where, with which defaults. */
export const MODEL_KEYS = {
  modelStore: optional(PATH, 'Folder of the model archives. Required here or as a flag.'),
  workflowStore: optional(PATH, 'Folder of the workflow archives. Unset: the model store.'),
  loadModels: key(
    MODELS_TO_LOAD,
    '',
    'Models to load at startup: `all`, or a list of `[name=]location[#sha256=DIGITS]`. Unset or `standalone`: none.',
  ),
  models: key(
    MODELS_JSON,
    '{}',
    'Settings by model and version: defaultVersion, minWorkers, maxWorkers, batchSize, maxBatchDelay (ms), responseTimeout (s), startupTimeout (s), sha256, workerWrapper.',
  ),
  workerWrapper: ours(
    WORKER_WRAPPER,
    '',
    'Command that runs each worker, such as a sandbox ([Worker wrapper](worker-wrapper.md)). Never taken from a snapshot.',
  ),
  handlerCredentials: ours(
    wordList(...CREDENTIAL_HEADERS),
    'none',
    'Credential headers of REST clients that handlers get.',
  ),
  defaultWorkersPerModel: key(
    integer(0, 10_000),
    '0',
    'Workers of a model that sets none. 0: one per CPU for models loaded at startup, none for registered models.',
  ),
  scaling: ours(
    BOOLEAN,
    'false',
    'Workers follow the load between minWorkers and maxWorkers ([Autoscaling](autoscaling.md)). model-config.yaml overrides it.',
  ),
  scaleToZeroAfter: ours(
    SECONDS,
    '300',
    'Time without a request until the last worker of a model with minWorkers 0 stops.',
  ),
  numberOfGpu: optional(integer(0, 10_000), 'Maximum number of GPUs. Unset: all [visible GPUs](#gpus).'),
  requireGpu: ours(
    BOOLEAN,
    'false',
    'A Python worker does not start if its GPU is unusable. false: it runs on the CPU, with a warning.',
  ),
  initialWorkerPort: key(
    integer(1, 65535),
    '9000',
    'Number of the first worker in describe and logs. No port is opened.',
  ),
  initialDistributionPort: key(integer(1, 65535), '29500', 'First MASTER_PORT of rank groups.'),
  modelSnapshot: optional(
    MODEL_SNAPSHOT,
    'Models of a [snapshot](snapshots.md). Replaces load_models, but not --models.',
  ),
  allowedUrls: key(
    patternList('i'),
    'http(s)?://.*',
    'Regular expressions for [URLs of models](#models-from-urls). The variable needs use_env_allowed_urls=true.',
  ),
  allowPrivateUrls: oursOptional(
    BOOLEAN,
    'Allows downloads from loopback and private addresses. Unset: only if allowed_urls is set. The variable always applies.',
    { envAlways: true },
  ),
  s3SigningHosts: ours(
    ORIGIN_LIST,
    '',
    'Further hosts that get requests signed for S3: `host[:port]` with TLS, `http://host[:port]` without.',
  ),
  downloadTimeout: ours(SECONDS, '3600', 'Maximum time of a download.'),
}

/**
 * Keys for archives (.mar, .tar.gz, .war): which are loaded, and the limits of one. Same limits as in
 * model-archiver/unpack-budget.ts.
 */
export const ARCHIVE_KEYS = {
  maxArchiveFiles: ours(integer(1, INT_MAX), '10000', 'Maximum number of files and folders in an archive.'),
  maxUnpackedSize: ours(
    integer(1, Number.MAX_SAFE_INTEGER),
    '21474836480',
    'Maximum size of a download, and of an unpacked archive, in bytes.',
  ),
  minFreeDisk: ours(
    integer(0, Number.MAX_SAFE_INTEGER),
    '268435456',
    'Bytes that stay free on the disk of TEMP. Archives that need them are refused.',
  ),
}

/** Keys for Python models. */
export const PYTHON_KEYS = {
  python: key(COMMAND, 'python', 'Python command for Python models. Unset: python, else python3.'),
  modelServerHome: optional(PATH, 'Folder of TorchServe’s package `ts`. Unset: the one that Python imports.'),
  installPyDepPerModel: key(
    BOOLEAN,
    'false',
    'Installs the requirements.txt of a Python archive with pip, for that model only.',
  ),
  ipexEnable: key(BOOLEAN, 'false', 'Python handlers use Intel’s extension for PyTorch.'),
  ipexGpuEnable: key(BOOLEAN, 'false', 'The same for Intel GPUs.'),
  pythonCancelGraceMs: oursOptional(
    integer(1, INT_MAX),
    'Milliseconds until the worker of a Python handler that does not end cancelled requests is restarted. Unset: the response timeout applies.',
  ),
}
