import { key, optional, type Details } from './key-spec.ts'
import { MODEL_SNAPSHOT } from './model-snapshot.ts'
import { MODELS_TO_LOAD } from './models-to-load.ts'
import { CREDENTIAL_HEADERS } from '../../common/credential-headers.ts'
import {
  BOOLEAN,
  ORIGIN_LIST,
  PATH,
  SECONDS,
  SECONDS_OR_OFF,
  integer,
  patternList,
  wordList,
} from './value-types.ts'
import { MODELS_JSON } from './version-settings.ts'
import { WORKER_WRAPPER } from './worker-wrapper.ts'

const OURS: Details = { ours: true }
const INT_MAX = 2_147_483_647

/** Keys for models: which to load, from where, with which defaults. */
export const MODEL_KEYS = {
  modelStore: optional('model_store', PATH, 'Folder with the model archives. Mandatory here or as a flag.'),
  workflowStore: optional(
    'workflow_store',
    PATH,
    'Folder with the workflow archives. Unset: the model store.',
  ),
  loadModels: key(
    'load_models',
    MODELS_TO_LOAD,
    '',
    'Models to load at start: `all`, or a list of `[name=]location`, each with `#sha256=DIGITS` if the archive must have that SHA-256. Unset, or `standalone`: none.',
  ),
  models: key(
    'models',
    MODELS_JSON,
    '{}',
    'Settings by model and version: defaultVersion (at start; true: the default version), minWorkers, maxWorkers, batchSize, maxBatchDelay (ms), responseTimeout (s), startupTimeout (s), sha256 of the archive, workerWrapper.',
  ),
  workerWrapper: key(
    'worker_wrapper',
    WORKER_WRAPPER,
    '',
    'Command before the command of each worker, such as a sandbox ([Worker wrapper](worker-wrapper.md)). Unset: none. Not taken from a snapshot.',
    OURS,
  ),
  handlerCredentials: key(
    'handler_credentials',
    wordList(...CREDENTIAL_HEADERS),
    'none',
    'Headers with credentials that REST clients send and handlers get. By default no handler gets one.',
    OURS,
  ),
  defaultWorkersPerModel: key(
    'default_workers_per_model',
    integer(0, 10_000),
    '0',
    'Workers of a model without its own setting. 0: one per CPU (in a container: of its CPU limit) for models loaded at the start, none for registered models.',
  ),
  maxWorkersPerModel: key(
    'max_workers_per_model',
    integer(1, 10_000),
    '256',
    'Most worker processes of a model version; each rank of a rank group counts. Calls, model configurations, snapshots and workflows that ask for more are refused.',
    OURS,
  ),
  scaling: key(
    'scaling',
    BOOLEAN,
    'false',
    'Whether the workers of a model follow its load between minWorkers and maxWorkers (docs/autoscaling.md). A model-config.yaml may say otherwise.',
    OURS,
  ),
  scalingTargetQueueTime: key(
    'scaling_target_queue_time',
    integer(1, INT_MAX),
    '500',
    'Milliseconds that a request may wait for a slot until a model that scales gets more workers.',
    OURS,
  ),
  scaleUpInterval: key('scale_up_interval', SECONDS, '5', 'Time between two additions of workers.', OURS),
  scaleDownAfter: key(
    'scale_down_after',
    SECONDS,
    '60',
    'Time for which fewer workers must have been enough before some of them end.',
    OURS,
  ),
  scaleToZeroAfter: key(
    'scale_to_zero_after',
    SECONDS,
    '300',
    'Time without a request after which the last worker of a model that scales from minWorkers 0 ends.',
    OURS,
  ),
  modelDrainTimeout: key(
    'model_drain_timeout',
    SECONDS_OR_OFF,
    '600',
    'Limit on the time in which the open requests of a version can finish after /v2/repository has replaced or unloaded it; 0: none. The answer does not wait for them.',
    OURS,
  ),
  numberOfGpu: optional(
    'number_of_gpu',
    integer(0, 10_000),
    'Largest number of GPUs to use. Unset: all that the vendor’s tool finds and CUDA_VISIBLE_DEVICES (or that of AMD or Intel) contains.',
  ),
  requireGpu: key(
    'require_gpu',
    BOOLEAN,
    'false',
    'A Python worker whose GPU cannot be used does not start. false: it starts with a warning, and computes on the CPU.',
    OURS,
  ),
  initialWorkerPort: key(
    'initial_worker_port',
    integer(1, 65535),
    '9000',
    'Number of the first worker in describe and in logs; further workers get the next numbers. Sockets have random names.',
  ),
  initialDistributionPort: key(
    'initial_distribution_port',
    integer(1, 65535),
    '29500',
    'The same for rank groups, and their MASTER_PORT.',
  ),
  modelSnapshot: optional(
    'model_snapshot',
    MODEL_SNAPSHOT,
    'The models of a snapshot (docs/snapshots.md). If set, load_models is ignored, but not --models.',
  ),
  maxSnapshots: key(
    'max_snapshots',
    integer(1, 100_000),
    '50',
    'Number of snapshots to keep; the oldest are removed.',
    OURS,
  ),
  allowedUrls: key(
    'allowed_urls',
    patternList('i'),
    'http(s)?://.*',
    'Where clients may register models from, besides the model store: regular expressions that match the whole URL (a local path as file://), in any letter case. The variable has an effect only with use_env_allowed_urls=true.',
  ),
  allowPrivateUrls: optional(
    'allow_private_urls',
    BOOLEAN,
    'Whether models may be downloaded from loopback and private addresses. Unset: only if allowed_urls is set. The variable always has an effect.',
    { ours: true, envAlways: true },
  ),
  s3SigningHosts: key(
    's3_signing_hosts',
    ORIGIN_LIST,
    '',
    'Hosts besides those of S3 that get requests signed with the AWS keys (s3_sse_kms=true): `host[:port]` over TLS, `http://host[:port]` without it.',
    OURS,
  ),
  maxDownloadSize: key(
    'max_download_size',
    integer(1, Number.MAX_SAFE_INTEGER),
    '21474836480',
    'Largest archive that can be downloaded, in bytes.',
    OURS,
  ),
  downloadTimeout: key(
    'download_timeout',
    SECONDS,
    '3600',
    'Limit on the time of a download; a minute without a byte also ends it.',
    OURS,
  ),
}
