import { tmpdir } from 'node:os'
import { key, optional, type Details, type KeySpec } from './key-spec.ts'
import { MODEL_SNAPSHOT } from './model-snapshot.ts'
import { MODELS_TO_LOAD } from './models-to-load.ts'
import { LOG_FILES, type Settings } from './settings.ts'
import {
  BOOLEAN,
  HEADER_NAME,
  HEADER_VALUE,
  HOST,
  MAX_TIMER_SECONDS,
  OPEN_INFERENCE,
  PATH,
  PORT,
  SECONDS,
  SECONDS_OR_OFF,
  TEXT,
  decimal,
  integer,
  listenAddress,
  pattern,
  patternList,
  word,
  wordList,
} from './value-types.ts'
import { MODELS_JSON } from './version-settings.ts'

const OURS: Details = { ours: true }
const NOT_BY_ENV: Details = { env: undefined }
const INT_MAX = 2_147_483_647

/**
 * The one table of keys: parsing, messages and docs/configuration.md all come from it. Every setting has exactly one key
 * (the type sees to it).
 */
export const KEYS: { readonly [K in keyof Settings]: KeySpec<Settings[K]> } = {
  inferenceAddress: key(
    'inference_address',
    listenAddress(80, 443),
    'http://127.0.0.1:8080',
    'Inference REST API; without a port 80.',
  ),
  managementAddress: key(
    'management_address',
    listenAddress(8081, 8444),
    'http://127.0.0.1:8081',
    'Management REST API; the inference address again serves both on one port.',
  ),
  metricsAddress: key(
    'metrics_address',
    listenAddress(8082, 8445),
    'http://127.0.0.1:8082',
    'Prometheus metrics; always a listener of its own.',
  ),
  enableMetricsApi: key('enable_metrics_api', BOOLEAN, 'true', 'Whether the metrics listener is opened.'),
  grpcInferenceAddress: key(
    'grpc_inference_address',
    HOST,
    '127.0.0.1',
    'Host or IP of the gRPC inference API.',
  ),
  grpcManagementAddress: key(
    'grpc_management_address',
    HOST,
    '127.0.0.1',
    'Host or IP of the gRPC management API.',
  ),
  grpcInferencePort: key(
    'grpc_inference_port',
    PORT,
    '7070',
    'Port of the gRPC inference API; 0 takes any free one.',
  ),
  grpcManagementPort: key(
    'grpc_management_port',
    PORT,
    '7071',
    'Port of the gRPC management API; 0 takes any free one.',
  ),
  grpcInferenceMaxConnectionAgeMs: optional(
    'grpc_inference_max_connection_age_ms',
    integer(1, INT_MAX),
    'Milliseconds after which a connection to the gRPC inference API takes no more calls. Unset: never.',
  ),
  grpcInferenceMaxConnectionAgeGraceMs: optional(
    'grpc_inference_max_connection_age_grace_ms',
    integer(1, INT_MAX),
    'Milliseconds that calls of such a connection then get to end. Unset: as long as they take.',
  ),
  grpcManagementMaxConnectionAgeMs: optional(
    'grpc_management_max_connection_age_ms',
    integer(1, INT_MAX),
    'The same for the gRPC management API.',
  ),
  grpcManagementMaxConnectionAgeGraceMs: optional(
    'grpc_management_max_connection_age_grace_ms',
    integer(1, INT_MAX),
    'The same for the gRPC management API.',
  ),
  enableGrpcSsl: key(
    'enable_grpc_ssl',
    BOOLEAN,
    'false',
    'Whether both gRPC APIs speak TLS, with certificate_file and private_key_file (docs/tls.md).',
  ),
  certificateFile: optional(
    'certificate_file',
    PATH,
    'PEM file with the certificate chain, for https addresses and gRPC.',
  ),
  privateKeyFile: optional('private_key_file', PATH, 'PEM file with its private key (PKCS8 or PKCS1).'),
  keystore: optional(
    'keystore',
    PATH,
    'PKCS12 file with key and certificates, for https addresses; counts before the PEM files.',
  ),
  keystorePass: key('keystore_pass', TEXT, 'changeit', 'Password of the keystore.'),
  keystoreType: key(
    'keystore_type',
    word('pkcs12', 'jks'),
    'pkcs12',
    'Only PKCS12 can be read; the error for a JKS keystore says how to convert it.',
  ),
  openInferenceProtocol: key(
    'ts_open_inference_protocol',
    OPEN_INFERENCE,
    'false',
    'Whether the Open Inference Protocol is served: `true` or `oip`, any other text is off. The variable always counts.',
    { env: 'TS_OPEN_INFERENCE_PROTOCOL', envAlways: true },
  ),

  modelStore: optional('model_store', PATH, 'Folder with the model archives. Mandatory here or as a flag.'),
  loadModels: key(
    'load_models',
    MODELS_TO_LOAD,
    '',
    'Models to load at start: `all`, or a list of `[name=]location`. Unset: none.',
  ),
  models: key(
    'models',
    MODELS_JSON,
    '{}',
    'Settings by model and version: minWorkers, maxWorkers, batchSize, maxBatchDelay (ms), responseTimeout (s), startupTimeout (s).',
    NOT_BY_ENV,
  ),
  defaultWorkersPerModel: key(
    'default_workers_per_model',
    integer(0, 10_000),
    '0',
    'Workers of a model that says nothing itself. 0: as many as CPUs for models loaded at start, none for registered ones.',
  ),
  numberOfGpu: optional(
    'number_of_gpu',
    integer(0, 10_000),
    'GPUs to use at most. Unset: all that nvidia-smi finds and CUDA_VISIBLE_DEVICES lets through.',
  ),
  initialWorkerPort: key(
    'initial_worker_port',
    integer(1, 65535),
    '9000',
    'Number of the first worker, in describe and in logs; the next ones count on. Sockets have random names.',
  ),
  initialDistributionPort: key(
    'initial_distribution_port',
    integer(1, 65535),
    '29500',
    'The same for workers that are rank groups; the group’s MASTER_PORT too.',
  ),
  modelSnapshot: optional(
    'model_snapshot',
    MODEL_SNAPSHOT,
    'What a snapshot holds of the models, see docs/snapshots.md; load_models is ignored then.',
    NOT_BY_ENV,
  ),
  maxSnapshots: key(
    'max_snapshots',
    integer(1, 100_000),
    '50',
    'Snapshots that are kept; the oldest go.',
    OURS,
  ),
  allowedUrls: key(
    'allowed_urls',
    patternList('i'),
    'file://.*|http(s)?://.*',
    'Where models may be loaded from: regular expressions that match the whole URL, in any letter case. The variable counts only with use_env_allowed_urls=true.',
  ),
  allowPrivateUrls: optional(
    'allow_private_urls',
    BOOLEAN,
    'Whether models may be downloaded from loopback and private addresses. Unset: only where allowed_urls is set.',
    OURS,
  ),
  maxDownloadSize: key(
    'max_download_size',
    integer(1, Number.MAX_SAFE_INTEGER),
    '21474836480',
    'Largest archive that is downloaded, in bytes.',
    OURS,
  ),
  downloadTimeout: key(
    'download_timeout',
    SECONDS,
    '3600',
    'Limit on the time of a download; it also ends after a minute without a byte.',
    OURS,
  ),

  jobQueueSize: key(
    'job_queue_size',
    integer(1, INT_MAX),
    '100',
    'Requests of one model version that may wait for a worker.',
  ),
  tsHeaderKeySequenceId: key(
    'ts_header_key_sequence_id',
    HEADER_NAME,
    'ts_request_sequence_id',
    'Header that names the sequence of a request (sequenceBatching).',
    { env: 'TS_HEADER_KEY_SEQUENCE_ID' },
  ),
  tsHeaderKeySequenceStart: key(
    'ts_header_key_sequence_start',
    HEADER_NAME,
    'ts_request_sequence_start',
    'Header that marks the first request of a sequence whose id the server chose.',
    { env: 'TS_HEADER_KEY_SEQUENCE_START' },
  ),
  tsHeaderKeySequenceEnd: key(
    'ts_header_key_sequence_end',
    HEADER_NAME,
    'ts_request_sequence_end',
    'Header that ends sequences: `true` on a request, ids on an answer.',
    { env: 'TS_HEADER_KEY_SEQUENCE_END' },
  ),
  maxRequestSize: key('max_request_size', integer(1, INT_MAX), '6553500', 'Largest request body, in bytes.'),
  maxResponseSize: key(
    'max_response_size',
    integer(1, INT_MAX),
    '6553500',
    'Largest response body, or item of a stream, in bytes.',
  ),
  defaultResponseTimeout: key(
    'default_response_timeout',
    SECONDS,
    '120',
    'Limit on the time to the first response and on each gap between two.',
  ),
  defaultStartupTimeout: key(
    'default_startup_timeout',
    SECONDS,
    '120',
    'Limit on the time from the start of a worker to its loaded handler.',
  ),
  unregisterModelTimeout: key(
    'unregister_model_timeout',
    SECONDS,
    '120',
    'Limit on the time that the workers of an unregistered model take to end.',
  ),
  defaultQueueTimeout: key(
    'default_queue_timeout',
    SECONDS_OR_OFF,
    '120',
    'Limit on the wait for a worker; 0: none.',
    OURS,
  ),
  defaultFirstResponseTimeout: optional(
    'default_first_response_timeout',
    SECONDS_OR_OFF,
    'Limit on the time to the first response; 0: none. Unset: the response timeout.',
    OURS,
  ),
  defaultGapTimeout: optional(
    'default_gap_timeout',
    SECONDS_OR_OFF,
    'Limit on each gap between two responses of a stream; 0: none. Unset: the response timeout.',
    OURS,
  ),
  defaultRequestTimeout: key(
    'default_request_timeout',
    SECONDS_OR_OFF,
    '0',
    'Limit on the whole request; 0: none.',
    OURS,
  ),
  cancelGraceMs: key(
    'cancel_grace_ms',
    integer(1, INT_MAX),
    '10000',
    'Milliseconds that a cancelled handler may go on before its worker is killed.',
    OURS,
  ),
  streamWindowSize: key(
    'stream_window_size',
    integer(1024, 1_073_741_824),
    '262144',
    'Bytes of one stream that may be under way between handler and client.',
    OURS,
  ),
  drainTimeout: key(
    'drain_timeout',
    SECONDS_OR_OFF,
    '30',
    'Time that running requests get when the server stops.',
    OURS,
  ),

  decodeInputRequest: key(
    'decode_input_request',
    BOOLEAN,
    'true',
    'Whether JSON and text bodies are decoded before the handler sees them.',
  ),
  limitMaxImagePixels: key(
    'limit_max_image_pixels',
    BOOLEAN,
    'true',
    'Told to handlers as context.properties.limitMaxImagePixels: whether they should refuse enormous images.',
  ),
  enableModelApi: key(
    'enable_model_api',
    BOOLEAN,
    'false',
    'Whether models can be registered and unregistered while the server runs.',
  ),
  disableTokenAuthorization: key(
    'disable_token_authorization',
    BOOLEAN,
    'false',
    'Whether requests are served without a token.',
  ),
  tokenExpirationMin: key(
    'token_expiration_min',
    decimal('minutes', 0.001, 1_000_000_000),
    '60',
    'Life of the inference and management tokens.',
    { env: 'TS_TOKEN_EXPIRATION_TIME_MIN' },
  ),
  blacklistEnvVars: optional(
    'blacklist_env_vars',
    pattern(''),
    'Names of environment variables that workers do not get: a regular expression that matches the whole name.',
  ),
  defaultServiceHandler: optional(
    'default_service_handler',
    TEXT,
    'Handler of archives whose manifest names none.',
  ),
  metricsMode: key(
    'metrics_mode',
    word('log', 'prometheus', 'legacy'),
    'log',
    'Where TorchServe’s metrics go: log: log files and /metrics; prometheus: /metrics; legacy: three counters to /metrics, the rest to log files.',
  ),
  metricsConfig: optional(
    'metrics_config',
    PATH,
    'The metrics.yaml that declares the metrics. Unset: the one in the package, with TorchServe’s names.',
  ),
  modelMetricsAutoDetect: key(
    'model_metrics_auto_detect',
    BOOLEAN,
    'false',
    'Whether handlers may report metrics that metrics_config does not declare.',
  ),
  disableSystemMetrics: key(
    'disable_system_metrics',
    BOOLEAN,
    'false',
    'Whether CPU, memory, disk and GPU are left out of the metrics.',
  ),
  metricTimeInterval: key(
    'metric_time_interval',
    integer(1, MAX_TIMER_SECONDS),
    '60',
    'Seconds between two looks at CPU, memory, disk and GPU.',
    NOT_BY_ENV,
  ),
  logLocation: key('LOG_LOCATION', PATH, 'logs', 'Folder of the log files.', {
    env: 'LOG_LOCATION',
    from: 'environment',
  }),
  metricsLocation: key('METRICS_LOCATION', PATH, 'logs', 'Folder of ts_metrics.log and model_metrics.log.', {
    env: 'METRICS_LOCATION',
    from: 'environment',
  }),
  logFiles: key(
    'log_files',
    wordList(...LOG_FILES),
    LOG_FILES.join(','),
    'Which log files are written; `none` for none.',
    OURS,
  ),
  logLevel: key(
    'log_level',
    word('debug', 'info', 'warn', 'error'),
    'info',
    'What the log holds: this level and the graver ones.',
    OURS,
  ),
  logFormat: key(
    'log_format',
    word('text', 'json'),
    'text',
    'Log lines as TorchServe writes them, or one JSON object per line.',
    OURS,
  ),
  debug: key('debug', BOOLEAN, 'false', 'The same as log_level=debug.'),
  tempDir: key('TEMP', PATH, tmpdir(), 'Folder for unpacked models, sockets and the pid file.', {
    env: 'TEMP',
    from: 'environment',
  }),
  corsAllowedOrigin: optional(
    'cors_allowed_origin',
    HEADER_VALUE,
    'Header access-control-allow-origin of every answer.',
  ),
  corsAllowedMethods: optional(
    'cors_allowed_methods',
    HEADER_VALUE,
    'Header access-control-allow-methods of every answer.',
  ),
  corsAllowedHeaders: optional(
    'cors_allowed_headers',
    HEADER_VALUE,
    'Header access-control-allow-headers of every answer.',
  ),
  enableEnvvarsConfig: key(
    'enable_envvars_config',
    BOOLEAN,
    'false',
    'Whether environment variables override file and flags.',
    NOT_BY_ENV,
  ),
  useEnvAllowedUrls: key(
    'use_env_allowed_urls',
    BOOLEAN,
    'false',
    'Whether TS_ALLOWED_URLS counts (with enable_envvars_config=true).',
    NOT_BY_ENV,
  ),
}
