import { tmpdir } from 'node:os'
import { ACCESS_KEYS, LIMIT_KEYS, AUTH_KEYS } from './access-keys.ts'
import { key, type KeySpec, named, optional, ours, oursOptional } from './key-spec.ts'
import { LISTENER_KEYS } from './listener-keys.ts'
import { ARCHIVE_KEYS, MODEL_KEYS, PYTHON_KEYS } from './model-keys.ts'
import { LOG_FILES } from './settings.ts'
import {
  BOOLEAN,
  HEADER_NAME,
  HEADER_VALUE,
  MAX_TIMER_SECONDS,
  PATH,
  SECONDS,
  SECONDS_OR_OFF,
  TEXT,
  decimal,
  integer,
  pattern,
  word,
  wordList,
  INT_MAX,
} from './value-types.ts'

/**
 * All keys, one for each setting. The type of the settings, parsing, error messages and docs/configuration.md
 * come from this table.
 */
export const KEYS = named({
  ...LISTENER_KEYS,
  ...ACCESS_KEYS,
  ...LIMIT_KEYS,
  ...MODEL_KEYS,
  ...ARCHIVE_KEYS,
  ...AUTH_KEYS,
  ...PYTHON_KEYS,

  jobQueueSize: key(
    integer(1, INT_MAX),
    '100',
    'Maximum number of waiting requests per model version. More get 503 (Open Inference: 429).',
  ),
  tsHeaderKeySequenceId: key(HEADER_NAME, 'ts_request_sequence_id', 'Header with the id of a sequence.'),
  tsHeaderKeySequenceStart: key(
    HEADER_NAME,
    'ts_request_sequence_start',
    'Header that starts a sequence with an id from the server.',
  ),
  tsHeaderKeySequenceEnd: key(
    HEADER_NAME,
    'ts_request_sequence_end',
    'Header that ends sequences: `true` in a request, ids in a response.',
  ),
  maxRequestSize: key(integer(1, INT_MAX), '6553500', 'Maximum size of a request body, in bytes.'),
  maxRequestElements: ours(
    integer(100, INT_MAX),
    '250000',
    'Maximum number of elements in a parsed body. Object keys and gRPC fields count 5; arrays, objects and strings 1; four numbers 1. Raw tensors, JSON tensors and JSON numbers for handlers do not count.',
  ),
  maxResponseSize: key(
    integer(1, INT_MAX),
    '6553500',
    'Maximum size of a response body or stream item, in bytes.',
  ),
  defaultResponseTimeout: optional(
    SECONDS,
    'Maximum time to the first response, and between two stream items. Unset: 120; built-in language models: 600.',
  ),
  defaultStartupTimeout: key(SECONDS, '120', 'Maximum time for a worker to start and load its handler.'),
  unregisterModelTimeout: key(
    SECONDS,
    '120',
    'Maximum time for the requests of an unregistered version to finish and its workers to end. The call waits for both.',
  ),
  defaultQueueTimeout: oursOptional(
    SECONDS_OR_OFF,
    'Maximum time in the queue. 0: no limit. Unset: 120; built-in language models: 600.',
  ),
  defaultFirstResponseTimeout: oursOptional(
    SECONDS_OR_OFF,
    'Maximum time to the first response. 0: no limit. Unset: the response timeout.',
  ),
  defaultGapTimeout: oursOptional(
    SECONDS_OR_OFF,
    'Maximum time between two stream items. 0: no limit. Unset: the response timeout.',
  ),
  defaultRequestTimeout: ours(SECONDS_OR_OFF, '0', 'Maximum time of the whole request. 0: no limit.'),
  cancelGraceMs: ours(
    integer(1, INT_MAX),
    '10000',
    'Milliseconds that a cancelled handler has to end. Then its worker is killed.',
  ),
  streamWindowSize: ours(
    integer(1024, 1_073_741_824),
    '262144',
    'Maximum bytes of one stream in flight between handler and client.',
  ),
  openaiHeartbeatInterval: ours(
    SECONDS_OR_OFF,
    '15',
    'Seconds of silence until an OpenAI stream gets a keep-alive comment. 0: never.',
  ),
  drainTimeout: ours(
    SECONDS_OR_OFF,
    '30',
    'Maximum time for running requests to finish when the server stops.',
  ),

  decodeInputRequest: key(BOOLEAN, 'true', 'Decodes JSON and text bodies before the handler gets them.'),
  limitMaxImagePixels: key(
    BOOLEAN,
    'true',
    'Asks handlers to reject very large images (context.properties.limitMaxImagePixels).',
  ),
  enableModelApi: key(BOOLEAN, 'false', 'Allows clients to register and unregister models.'),
  disableTokenAuthorization: key(
    BOOLEAN,
    'false',
    'Turns off TorchServe’s three keys. Requests then need no token unless you configure [other keys](authorization.md).',
  ),
  tokenExpirationMin: key(
    decimal('minutes', 0.001, 1_000_000_000),
    '60',
    'Lifetime of the inference and management tokens. The variable is TS_TOKEN_EXPIRATION_TIME_MIN.',
    { env: 'TS_TOKEN_EXPIRATION_TIME_MIN' },
  ),
  blacklistEnvVars: optional(
    pattern(''),
    'Regular expression for names of environment variables that workers do not get. Must match the whole name.',
  ),
  defaultServiceHandler: optional(TEXT, 'Handler of archives whose manifest names none.'),
  serviceEnvelope: optional(
    TEXT,
    '[Request envelope](envelopes.md) of all models: `body`, `json`, `kserve` or `kservev2`. Unset: the manifest’s, or none.',
  ),
  metricsMode: key(
    word('log', 'prometheus', 'legacy'),
    'log',
    '[Where metrics go](metrics-and-logs.md#where-metrics-go).',
  ),
  metricsConfig: optional(
    PATH,
    'The [metrics.yaml](metrics-and-logs.md#metricsyaml). Unset: the one in the package, with TorchServe’s names.',
  ),
  modelMetricsAutoDetect: key(
    BOOLEAN,
    'false',
    'Handlers can report metrics that metrics_config does not declare.',
  ),
  disableSystemMetrics: key(BOOLEAN, 'false', 'Turns off the metrics of CPU, memory, disk and GPU.'),
  metricTimeInterval: key(
    integer(1, MAX_TIMER_SECONDS),
    '60',
    'Seconds between two measurements of CPU, memory, disk and GPU.',
  ),
  logLocation: key(PATH, 'logs', 'Folder of the log files.', {
    name: 'LOG_LOCATION',
    from: 'environment',
  }),
  metricsLocation: key(PATH, 'logs', 'Folder of ts_metrics.log and model_metrics.log.', {
    name: 'METRICS_LOCATION',
    from: 'environment',
  }),
  logFiles: ours(wordList(...LOG_FILES), LOG_FILES.join(','), 'Log files to write, or `none`.'),
  logConsole: ours(
    wordList(...LOG_FILES),
    LOG_FILES.filter((name) => name !== 'audit_log').join(','),
    'Logs to print on stdout, or `none`.',
  ),
  logKeepBytes: ours(
    integer(0, Number.MAX_SAFE_INTEGER),
    '1073741824',
    'Maximum size of the rotated files of one log, in bytes. The oldest are deleted first.',
  ),
  logLevel: ours(word('debug', 'info', 'warn', 'error'), 'info', 'Lowest level that is logged.'),
  logFormat: ours(
    word('text', 'json'),
    'text',
    'text: lines as in TorchServe; json: one JSON object per line.',
  ),
  debug: key(BOOLEAN, 'false', 'Same as log_level=debug.'),
  tempDir: key(PATH, tmpdir(), 'Folder for unpacked models, sockets and the pid file.', {
    name: 'TEMP',
    from: 'environment',
  }),
  corsAllowedOrigin: optional(
    HEADER_VALUE,
    'Origins that pages can call the server from, separated by commas: `*`, an origin, or `loopback` (all pages of this machine).',
  ),
  corsAllowedMethods: optional(
    HEADER_VALUE,
    'Header access-control-allow-methods of all responses. Unset: preflight responses allow the requested method.',
  ),
  corsAllowedHeaders: optional(
    HEADER_VALUE,
    'Header access-control-allow-headers of all responses. Unset: preflight responses allow the requested headers.',
  ),
  corsExposedHeaders: oursOptional(
    HEADER_VALUE,
    'Header access-control-expose-headers of all responses: headers that pages can read, such as `x-request-id`.',
  ),
  enableEnvvarsConfig: key(
    BOOLEAN,
    'false',
    'Environment variables override the file and the flags. The variable always applies. Default true with MLServer’s variables.',
    { envAlways: true },
  ),
  useEnvAllowedUrls: key(BOOLEAN, 'false', 'TS_ALLOWED_URLS applies (with enable_envvars_config=true).', {
    envAlways: true,
  }),
})

/** The same by the name that a file uses. */
export const KEYS_BY_NAME: ReadonlyMap<string, KeySpec<unknown>> = new Map(
  Object.values(KEYS).map((spec): [string, KeySpec<unknown>] => [spec.name, spec]),
)
