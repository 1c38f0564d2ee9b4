import { tmpdir } from 'node:os'
import { ACCESS_KEYS, LIMIT_KEYS, AUTH_KEYS } from './access-keys.ts'
import { key, named, optional, ours, oursOptional } from './key-spec.ts'
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
    'Requests of one model version that can wait for a worker; further requests get 503, over V2 429.',
  ),
  tsHeaderKeySequenceId: key(
    HEADER_NAME,
    'ts_request_sequence_id',
    'Header that names the sequence of a request (sequenceBatching).',
  ),
  tsHeaderKeySequenceStart: key(
    HEADER_NAME,
    'ts_request_sequence_start',
    'Header of the first request of a sequence whose id the server chose.',
  ),
  tsHeaderKeySequenceEnd: key(
    HEADER_NAME,
    'ts_request_sequence_end',
    'Header that ends sequences: `true` on a request, ids on a response.',
  ),
  maxRequestSize: key(integer(1, INT_MAX), '6553500', 'Largest request body, in bytes.'),
  maxRequestElements: ours(
    integer(100, INT_MAX),
    '250000',
    'Most elements of a request body that is parsed: arrays, objects and strings of JSON, 5 for each key of an object and each field of a gRPC message, 1 for four numbers. Raw tensors, and the numbers of JSON tensors and of JSON for handlers, do not count.',
  ),
  maxResponseSize: key(
    integer(1, INT_MAX),
    '6553500',
    'Largest response body or item of a stream, in bytes.',
  ),
  defaultResponseTimeout: optional(
    SECONDS,
    'Limit on the time to the first response, and on each gap between two items of a stream. Unset: 120, for [built-in language models](openai.md) 600.',
  ),
  defaultStartupTimeout: key(
    SECONDS,
    '120',
    'Limit on the time from the start of a worker until its handler has loaded.',
  ),
  unregisterModelTimeout: key(
    SECONDS,
    '120',
    'Limit on the time in which the open requests of an unregistered version can finish, those in its queue too, and its workers must end. The answer waits for both.',
  ),
  defaultQueueTimeout: oursOptional(
    SECONDS_OR_OFF,
    'Limit on the time in the queue; 0: none. Unset: 120, for [built-in language models](openai.md) 600.',
  ),
  defaultFirstResponseTimeout: oursOptional(
    SECONDS_OR_OFF,
    'Limit on the time to the first response; 0: none. Unset: the response timeout.',
  ),
  defaultGapTimeout: oursOptional(
    SECONDS_OR_OFF,
    'Limit on each gap between two items of a stream; 0: none. Unset: the response timeout.',
  ),
  defaultRequestTimeout: ours(SECONDS_OR_OFF, '0', 'Limit on the whole request; 0: none.'),
  cancelGraceMs: ours(
    integer(1, INT_MAX),
    '10000',
    'Milliseconds in which a cancelled handler must end; its worker is killed after them.',
  ),
  streamWindowSize: ours(
    integer(1024, 1_073_741_824),
    '262144',
    'Bytes of one stream that may be in flight between handler and client.',
  ),
  openaiHeartbeatInterval: ours(
    SECONDS_OR_OFF,
    '15',
    'Seconds of silence in an OpenAI stream before a keep-alive comment; 0 disables it.',
  ),
  drainTimeout: ours(
    SECONDS_OR_OFF,
    '30',
    'Limit on the time in which running requests can finish when the server stops.',
  ),

  decodeInputRequest: key(
    BOOLEAN,
    'true',
    'Whether JSON and text bodies are decoded before the handler sees them.',
  ),
  limitMaxImagePixels: key(
    BOOLEAN,
    'true',
    'Whether handlers should reject very large images; handlers read it as context.properties.limitMaxImagePixels.',
  ),
  enableModelApi: key(
    BOOLEAN,
    'false',
    'Whether models can be registered and unregistered while the server runs.',
  ),
  disableTokenAuthorization: key(
    BOOLEAN,
    'false',
    'Switches TorchServe’s three keys off; requests need no token then, unless another identity is configured ([Authorization](authorization.md)).',
  ),
  tokenExpirationMin: key(
    decimal('minutes', 0.001, 1_000_000_000),
    '60',
    'Lifetime of the inference and management tokens.',
    { env: 'TS_TOKEN_EXPIRATION_TIME_MIN' },
  ),
  blacklistEnvVars: optional(
    pattern(''),
    'Names of environment variables that workers do not get: a regular expression that matches the whole name.',
  ),
  defaultServiceHandler: optional(TEXT, 'Handler of archives whose manifest does not name one.'),
  serviceEnvelope: optional(
    TEXT,
    'Request envelope of every model: `body`, `json`, `kserve` or `kservev2` (docs/envelopes.md). Unset: the one in the manifest, or none.',
  ),
  metricsMode: key(
    word('log', 'prometheus', 'legacy'),
    'log',
    'Where TorchServe’s metrics go: log: log files and /metrics; prometheus: /metrics; legacy: three counters to /metrics, the rest to log files.',
  ),
  metricsConfig: optional(
    PATH,
    'The metrics.yaml that declares the metrics. Unset: the one in the package, with TorchServe’s names.',
  ),
  modelMetricsAutoDetect: key(
    BOOLEAN,
    'false',
    'Whether handlers may report metrics that metrics_config does not declare.',
  ),
  disableSystemMetrics: key(
    BOOLEAN,
    'false',
    'Whether CPU, memory, disk and GPU are left out of the metrics.',
  ),
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
  logFiles: ours(
    wordList(...LOG_FILES),
    LOG_FILES.join(','),
    'Which log files are written; `none` for none.',
  ),
  logConsole: ours(
    wordList(...LOG_FILES),
    LOG_FILES.filter((name) => name !== 'audit_log').join(','),
    'Which logs go to stdout, whether or not they are in a file; `none` for none. The default is TorchServe’s.',
  ),
  logKeepBytes: ours(
    integer(0, Number.MAX_SAFE_INTEGER),
    '1073741824',
    'Bytes on disk that the rolled files of one log may have; the oldest are removed first.',
  ),
  logLevel: ours(word('debug', 'info', 'warn', 'error'), 'info', 'Lowest level that is logged.'),
  logFormat: ours(
    word('text', 'json'),
    'text',
    'Format of log lines: as in TorchServe, or one JSON object per line.',
  ),
  debug: key(BOOLEAN, 'false', 'The same as log_level=debug.'),
  tempDir: key(PATH, tmpdir(), 'Folder for unpacked models, sockets and the pid file.', {
    name: 'TEMP',
    from: 'environment',
  }),
  corsAllowedOrigin: optional(
    HEADER_VALUE,
    'Header access-control-allow-origin of every response: `*` or an origin. Of several, separated by commas, a response has the one that sent the request; `loopback` is every page of this machine.',
  ),
  corsAllowedMethods: optional(
    HEADER_VALUE,
    'Header access-control-allow-methods of every response. Unset: of preflight requests only, with the method that they ask for.',
  ),
  corsAllowedHeaders: optional(
    HEADER_VALUE,
    'Header access-control-allow-headers of every response. Unset: of preflight requests only, with the headers that they ask for.',
  ),
  corsExposedHeaders: oursOptional(
    HEADER_VALUE,
    'Header access-control-expose-headers of every response: the headers that pages may read, such as `x-request-id`.',
  ),
  enableEnvvarsConfig: key(
    BOOLEAN,
    'false',
    'Whether environment variables override the file and the flags. The variable always has an effect. True by default where MLServer’s variables configure the server.',
    { envAlways: true },
  ),
  useEnvAllowedUrls: key(
    BOOLEAN,
    'false',
    'Whether TS_ALLOWED_URLS has an effect (with enable_envvars_config=true).',
    { envAlways: true },
  ),
})
