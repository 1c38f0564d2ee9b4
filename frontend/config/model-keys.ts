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
export const MODELS_TO_LOAD: ValueType<'all' | readonly ModelToLoad[]> = parsed(
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
  modelStore: optional(PATH, 'Folder with the model archives. Mandatory here or as a flag.'),
  workflowStore: optional(PATH, 'Folder with the workflow archives. Unset: the model store.'),
  loadModels: key(
    MODELS_TO_LOAD,
    '',
    'Models to load at start: `all`, or a list of `[name=]location`, each with `#sha256=DIGITS` if the archive must have that SHA-256. Unset, or `standalone`: none.',
  ),
  models: key(
    MODELS_JSON,
    '{}',
    'Settings by model and version: defaultVersion (at start; true: the default version), minWorkers, maxWorkers, batchSize, maxBatchDelay (ms), responseTimeout (s), startupTimeout (s), sha256 of the archive, workerWrapper.',
  ),
  workerWrapper: ours(
    WORKER_WRAPPER,
    '',
    'Command before the command of each worker, such as a sandbox ([Worker wrapper](worker-wrapper.md)). Unset: none. Not taken from a snapshot.',
  ),
  handlerCredentials: ours(
    wordList(...CREDENTIAL_HEADERS),
    'none',
    'Headers with credentials that REST clients send and handlers get. By default no handler gets one.',
  ),
  defaultWorkersPerModel: key(
    integer(0, 10_000),
    '0',
    'Workers of a model without its own setting. 0: one per CPU (in a container: of its CPU limit) for models loaded at the start, none for registered models.',
  ),
  scaling: ours(
    BOOLEAN,
    'false',
    'Whether the workers of a model follow its load between minWorkers and maxWorkers (docs/autoscaling.md). A model-config.yaml may say otherwise.',
  ),
  scaleToZeroAfter: ours(
    SECONDS,
    '300',
    'Time without a request after which the last worker of a model that scales from minWorkers 0 ends.',
  ),
  numberOfGpu: optional(
    integer(0, 10_000),
    'Largest number of GPUs to use. Unset: all that the vendor’s tool finds and CUDA_VISIBLE_DEVICES (or that of AMD or Intel) contains.',
  ),
  requireGpu: ours(
    BOOLEAN,
    'false',
    'A Python worker whose GPU cannot be used does not start. false: it starts with a warning, and computes on the CPU.',
  ),
  initialWorkerPort: key(
    integer(1, 65535),
    '9000',
    'Number of the first worker in describe and in logs; further workers get the next numbers. Sockets have random names.',
  ),
  initialDistributionPort: key(
    integer(1, 65535),
    '29500',
    'The same for rank groups, and their MASTER_PORT.',
  ),
  modelSnapshot: optional(
    MODEL_SNAPSHOT,
    'The models of a snapshot (docs/snapshots.md). If set, load_models is ignored, but not --models.',
  ),
  allowedUrls: key(
    patternList('i'),
    'http(s)?://.*',
    'Where clients may register models from, besides the model store: regular expressions that match the whole URL (a local path as file://), in any letter case. The variable has an effect only with use_env_allowed_urls=true.',
  ),
  allowPrivateUrls: oursOptional(
    BOOLEAN,
    'Whether models may be downloaded from loopback and private addresses. Unset: only if allowed_urls is set. The variable always has an effect.',
    { envAlways: true },
  ),
  s3SigningHosts: ours(
    ORIGIN_LIST,
    '',
    'Hosts besides those of S3 that get requests signed with the AWS keys (s3_sse_kms=true): `host[:port]` over TLS, `http://host[:port]` without it.',
  ),
  downloadTimeout: ours(
    SECONDS,
    '3600',
    'Limit on the time of a download; a minute without a byte also ends it.',
  ),
}

/**
 * Keys for archives (.mar, .tar.gz, .war): which are loaded, and the limits of one. Same limits as in
 * model-archiver/unpack-budget.ts.
 */
export const ARCHIVE_KEYS = {
  maxArchiveFiles: ours(integer(1, INT_MAX), '10000', 'Most files and folders of an archive.'),
  maxUnpackedSize: ours(
    integer(1, Number.MAX_SAFE_INTEGER),
    '21474836480',
    'Largest archive that is downloaded, and largest sum of the files of an archive, in bytes.',
  ),
  minFreeDisk: ours(
    integer(0, Number.MAX_SAFE_INTEGER),
    '268435456',
    'Bytes that stay free on the disk of TEMP: an archive that would leave fewer is refused.',
  ),
}

/** Keys for Python models. */
export const PYTHON_KEYS = {
  python: key(
    COMMAND,
    'python',
    'Python that runs Python models: a command or a path. Unset: python, or python3 if there is no python.',
  ),
  modelServerHome: optional(
    PATH,
    'Folder with TorchServe’s package `ts`. Unset: the one that the Python finds.',
  ),
  installPyDepPerModel: key(
    BOOLEAN,
    'false',
    'Whether the requirements.txt of a Python archive is installed, with pip, for that model alone.',
  ),
  ipexEnable: key(BOOLEAN, 'false', 'Whether Python handlers use Intel’s extension for PyTorch.'),
  ipexGpuEnable: key(BOOLEAN, 'false', 'The same for Intel GPUs.'),
  pythonCancelGraceMs: oursOptional(
    integer(1, INT_MAX),
    'Milliseconds in which a Python handler must end cancelled requests; its worker is restarted after them. Unset: no limit as long as it responds within the response timeout.',
  ),
}
