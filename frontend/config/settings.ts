import type { ListenAddress } from './listen-address.ts'
import type { ModelSnapshot } from './model-snapshot.ts'
import type { VersionSettings } from './version-settings.ts'

/**
 * The whole configuration of a running server, from config.properties, environment and flags. Validated and
 * frozen. Names are TorchServe's keys in camel case (docs/configuration.md); keys that TorchServe does not
 * have are marked "ours".
 */
export interface Settings {
  /** Default http://127.0.0.1:8080 */
  readonly inferenceAddress: ListenAddress
  /** Default http://127.0.0.1:8081 */
  readonly managementAddress: ListenAddress
  /** Default http://127.0.0.1:8082 */
  readonly metricsAddress: ListenAddress
  readonly enableMetricsApi: boolean
  /** Host or IP (IPv6 without brackets), default 127.0.0.1 */
  readonly grpcInferenceAddress: string
  readonly grpcManagementAddress: string
  /** Default 7070; 0 takes any free port. */
  readonly grpcInferencePort: number
  /** Default 7071; 0 takes any free port. */
  readonly grpcManagementPort: number
  /** Ours: host of both Open Inference listeners. Key open_inference_grpc_address, default 127.0.0.1. */
  readonly openInferenceGrpcAddress: string
  /** Ours: port with MLServer's streams. Key open_inference_grpc_port; undefined: not opened. */
  readonly openInferenceGrpcPort: number | undefined
  /** Ours: port with Triton's streams. Key triton_grpc_port; undefined: not opened. */
  readonly tritonGrpcPort: number | undefined
  /**
   * Ours: whether complete answers are gzipped for clients that accept it. Key open_inference_gzip, default
   * true.
   */
  readonly openInferenceGzip: boolean
  /**
   * Ours: whether a start is allowed on addresses other than loopback without tokens or with the model API.
   * Key allow_insecure_exposure, default false.
   */
  readonly allowInsecureExposure: boolean
  /**
   * Ours: maximum connections of all inference listeners. Key max_connections; undefined: from the limit of
   * open files.
   */
  readonly maxConnections: number | undefined
  /** Ours: bytes of answers that may wait for clients. Key max_unread_bytes, default 256 MiB. */
  readonly maxUnreadBytes: number
  /** Ours: bytes of unfinished REST bodies. Key max_unfinished_bytes, default 256 MiB. */
  readonly maxUnfinishedBytes: number
  /**
   * Ours: bytes of requests that wait for workers. Key max_waiting_input_bytes; undefined: a sixteenth of the
   * memory, at least 256 MiB.
   */
  readonly maxWaitingInputBytes: number | undefined
  /** Ours: maxConnections per address or IPv6 /64. Key max_connections_per_address; undefined: half of it. */
  readonly maxConnectionsPerAddress: number | undefined
  /**
   * Ours: new connections per second of one address or IPv6 /64; 0: any number. Key
   * max_new_connections_per_address, default 2000.
   */
  readonly maxNewConnectionsPerAddress: number
  /** Ours: further names that Host and Origin may have. Key allowed_hosts, default none. */
  readonly allowedHosts: readonly string[]
  /** Ours: whether inference and metrics check Origin too. Key check_inference_origin, default true. */
  readonly checkInferenceOrigin: boolean
  /** Milliseconds of a gRPC connection's life, then of grace for its open calls; undefined: unlimited. */
  readonly grpcInferenceMaxConnectionAgeMs: number | undefined
  readonly grpcInferenceMaxConnectionAgeGraceMs: number | undefined
  readonly grpcManagementMaxConnectionAgeMs: number | undefined
  readonly grpcManagementMaxConnectionAgeGraceMs: number | undefined
  /** Ours: maximum connections of each gRPC listener. Key grpc_max_connections, default 512. */
  readonly grpcMaxConnections: number
  /** Ours: maximum per client address or IPv6 /64. Key grpc_max_connections_per_address, default 128. */
  readonly grpcMaxConnectionsPerAddress: number
  /** Ours: maximum open calls per connection. Key grpc_max_concurrent_streams, default 256. */
  readonly grpcMaxConcurrentStreams: number
  /** Ours: maximum metadata bytes, as in RFC 9113, 6.5.2. Key grpc_max_metadata_size, default 16384. */
  readonly grpcMaxMetadataSize: number
  /** Ours: bytes of incomplete requests per connection. Key grpc_max_connection_bytes, default 64 MiB. */
  readonly grpcMaxConnectionBytes: number
  /** Ours: the same for all connections of a listener. Key grpc_max_waiting_bytes, default 256 MiB. */
  readonly grpcMaxWaitingBytes: number
  /**
   * Ours: maximum decompression ratio of messages over 8 MiB. Key grpc_max_decompression_ratio, default
   * 100.
   */
  readonly grpcMaxDecompressionRatio: number
  /** Ours: seconds until a request message is complete. Key grpc_message_timeout, default 60. */
  readonly grpcMessageTimeout: number
  /** Ours: seconds without calls; 0: no limit. Key grpc_max_connection_idle, default 3600. */
  readonly grpcMaxConnectionIdle: number
  /** Ours: requests each second of each key; 0: no limit. Key key_requests_per_second, default 0. */
  readonly keyRequestsPerSecond: number
  /** Ours: open requests of each key; 0: no limit. Key key_concurrent_streams, default 0. */
  readonly keyConcurrentStreams: number
  /** Ours: bytes each second of each key; 0: no limit. Key key_bytes_per_second, default 0. */
  readonly keyBytesPerSecond: number
  /** Ours: the same for each client address or IPv6 /64. Key address_requests_per_second, default 0. */
  readonly addressRequestsPerSecond: number
  /** Ours: key address_concurrent_streams, default 0. */
  readonly addressConcurrentStreams: number
  /** Ours: key address_bytes_per_second, default 0. */
  readonly addressBytesPerSecond: number
  /** Ours: whether /metrics asks for a token. Key metrics_require_token, default false. */
  readonly metricsRequireToken: boolean
  /** Ours: whether gRPC reflection does. Key grpc_reflection_require_token, default false. */
  readonly grpcReflectionRequireToken: boolean
  /** Whether both gRPC listeners use TLS, with certificateFile and privateKeyFile. */
  readonly enableGrpcSsl: boolean
  /** PEM files for https and gRPC, absolute paths. */
  readonly certificateFile: string | undefined
  readonly privateKeyFile: string | undefined
  /** PKCS12 file for https, absolute path; overrides the PEM files, as in TorchServe. */
  readonly keystore: string | undefined
  readonly keystorePass: string
  readonly keystoreType: 'pkcs12' | 'jks'
  /** Whether the REST routes and the gRPC service of the Open Inference Protocol are served. */
  readonly openInferenceProtocol: boolean

  /** Absolute path. */
  readonly modelStore: string | undefined
  /** Absolute path; undefined: the model store. */
  readonly workflowStore: string | undefined
  /** Models to load at start: `all`, or a list of archives with optional names. */
  readonly loadModels: 'all' | readonly ModelToLoad[]
  /** The `models` key: settings by model name and version. */
  readonly models: Readonly<Record<string, Readonly<Record<string, VersionSettings>>>>
  /** 0: as many as CPUs for models loaded at start, none for registered ones. */
  readonly defaultWorkersPerModel: number
  /** Maximum number of GPUs to use; undefined: all that are found. */
  readonly numberOfGpu: number | undefined
  /** Whether a worker whose GPU cannot be used does not start; default false: it computes on the CPU. */
  readonly requireGpu: boolean
  /** Number of the first worker that is a single process, default 9000. */
  readonly initialWorkerPort: number
  /** Number of the first worker that is a rank group, also its MASTER_PORT; default 29500. */
  readonly initialDistributionPort: number
  /** Models of the snapshot that the server starts from; replaces loadModels. */
  readonly modelSnapshot: ModelSnapshot | undefined
  /**
   * Ours: most worker processes of a model version, ranks included. Key max_workers_per_model, default 256.
   */
  readonly maxWorkersPerModel: number
  /** Ours: number of snapshots to keep. Key max_snapshots, default 50. */
  readonly maxSnapshots: number
  /**
   * Regular expressions; one must match the whole of a URL that a client registers, unless it is in the model
   * store.
   */
  readonly allowedUrls: readonly RegExp[]
  /**
   * Ours: whether models may be downloaded from loopback and private addresses. Key allow_private_urls.
   * Unset: true if allowed_urls is set, false otherwise.
   */
  readonly allowPrivateUrls: boolean | undefined
  /** Ours: TLS suites as OpenSSL lists them. Key tls_ciphers, default: AEAD with forward secrecy. */
  readonly tlsCiphers: string
  /** Ours: origins besides S3's that get a signature with s3_sse_kms. Key s3_signing_hosts, default none. */
  readonly s3SigningHosts: readonly string[]
  /** Ours: maximum bytes of a downloaded archive. Key max_download_size, default 20 GiB. */
  readonly maxDownloadSize: number
  /** Ours: time limit of a download in seconds. Key download_timeout, default 3600. */
  readonly downloadTimeout: number
  /** Ours: maximum number of files and folders in an archive. Key max_archive_files, default 10000. */
  readonly maxArchiveFiles: number
  /** Ours: maximum unpacked size of an archive in bytes. Key max_unpacked_size, default 20 GiB. */
  readonly maxUnpackedSize: number
  /** Ours: maximum ratio of unpacked to archived size. Key max_archive_ratio, default 100. */
  readonly maxArchiveRatio: number
  /** Ours: time limit for unpacking an archive, in seconds. Key unpack_timeout, default 600. */
  readonly unpackTimeout: number
  /** Ours: bytes of disk that unpacking must leave free. Key min_free_disk, default 256 MiB. */
  readonly minFreeDisk: number

  /** Maximum number of waiting requests per model version. Default 100. */
  readonly jobQueueSize: number
  /** Names of the sequence headers. Default ts_request_sequence_id, _start and _end. */
  readonly tsHeaderKeySequenceId: string
  readonly tsHeaderKeySequenceStart: string
  readonly tsHeaderKeySequenceEnd: string
  /** Maximum size of a request body in bytes, default 6553500. */
  readonly maxRequestSize: number
  /**
   * Ours: what a request may have of the elements that cost more than their bytes. Key max_request_elements,
   * default 250000.
   */
  readonly maxRequestElements: number
  /** Maximum size of a response, or of one item of a stream, in bytes; default 6553500. */
  readonly maxResponseSize: number
  /** Seconds until the first response and between two responses. Default 120. */
  readonly defaultResponseTimeout: number
  /** Seconds from the start of a worker until its handler is loaded. Default 120. */
  readonly defaultStartupTimeout: number
  /** Seconds until the requests and workers of an unregistered version have ended. Default 120. */
  readonly unregisterModelTimeout: number
  /**
   * Ours: seconds in which the open requests of a version can finish after /v2/repository has replaced or
   * unloaded it; 0: none. Key model_drain_timeout, default 600.
   */
  readonly modelDrainTimeout: number
  /** Ours: whether workers follow the load where a model does not say. Key scaling, default false. */
  readonly scaling: boolean
  /**
   * Ours: milliseconds a request may wait until workers are added. Key scaling_target_queue_time, default
   * 500.
   */
  readonly scalingTargetQueueTime: number
  /** Ours: seconds between two additions of workers. Key scale_up_interval, default 5. */
  readonly scaleUpInterval: number
  /** Ours: seconds for which fewer workers must have been enough. Key scale_down_after, default 60. */
  readonly scaleDownAfter: number
  /** Ours: seconds without a request until the last worker ends. Key scale_to_zero_after, default 300. */
  readonly scaleToZeroAfter: number
  /** Ours: seconds a request may wait in the queue; 0: no limit. Key default_queue_timeout, default 120. */
  readonly defaultQueueTimeout: number
  /** Ours: seconds; undefined: the response timeout. Key default_first_response_timeout. */
  readonly defaultFirstResponseTimeout: number | undefined
  /** Ours: seconds; undefined: the response timeout. Key default_gap_timeout. */
  readonly defaultGapTimeout: number | undefined
  /** Ours: seconds for the whole request; 0: no limit. Key default_request_timeout, default 0. */
  readonly defaultRequestTimeout: number
  /** Ours: milliseconds until a cancelled handler's worker is killed. Key cancel_grace_ms, default 10000. */
  readonly cancelGraceMs: number
  /** Ours: maximum bytes of a stream in flight to the client. Key stream_window_size, default 262144. */
  readonly streamWindowSize: number
  /**
   * Ours: seconds of silence before a keep-alive comment; 0: never. Key openai_heartbeat_interval, default
   * 15.
   */
  readonly openaiHeartbeatInterval: number
  /** Ours: seconds that running requests get at shutdown. Key drain_timeout, default 30. */
  readonly drainTimeout: number

  /** Python for Python models: a command or an absolute path. Default `python`. */
  readonly python: string
  /** Absolute path of the folder that contains TorchServe's package `ts`; undefined: found by Python. */
  readonly modelServerHome: string | undefined
  /** Whether a Python archive's requirements.txt is installed for its model. */
  readonly installPyDepPerModel: boolean
  readonly ipexEnable: boolean
  readonly ipexGpuEnable: boolean
  /**
   * Ours: milliseconds until a cancelled Python handler's worker is killed. Key python_cancel_grace_ms;
   * undefined: no limit.
   */
  readonly pythonCancelGraceMs: number | undefined

  /** Ours: the words of the command before each worker's; none: no command. Key worker_wrapper. */
  readonly workerWrapper: readonly string[]
  /** Ours: headers with credentials that handlers get, in lower case. Key handler_credentials. */
  readonly handlerCredentials: readonly string[]

  readonly decodeInputRequest: boolean
  /** Passed to handlers, which decide whether to limit the pixels of an image. */
  readonly limitMaxImagePixels: boolean
  readonly enableModelApi: boolean
  /** Ours: whether the management listener serves the page of the console. Key enable_console. */
  readonly enableConsole: boolean
  readonly disableTokenAuthorization: boolean
  /** Minutes, default 60. */
  readonly tokenExpirationMin: number
  /** Ours: named API keys and client certificates. Key api_keys_file; undefined: none. */
  readonly apiKeysFile: string | undefined
  /** Ours: issuer of JWTs. Key jwt_issuer; undefined: no JWT is accepted. */
  readonly jwtIssuer: string | undefined
  /** Ours: audiences, one of which a JWT must have. Key jwt_audience. */
  readonly jwtAudience: readonly string[]
  /** Ours: https, file or local http URL of the issuer's key set. Key jwt_jwks_url. */
  readonly jwtJwksUrl: string | undefined
  /** Ours: key jwt_algorithms, default RS256, PS256, ES256, EdDSA. */
  readonly jwtAlgorithms: readonly string[]
  /** Ours: seconds, key jwt_clock_skew, default 30. */
  readonly jwtClockSkew: number
  /** Ours: name or path of the claim with the scopes. Key jwt_scope_claim, default `scope`. */
  readonly jwtScopeClaim: string
  /** Ours: the same with the models. Key jwt_models_claim, default `torchserve_models`. */
  readonly jwtModelsClaim: string
  /** Ours: PEM file with the CA of client certificates. Key tls_client_ca; undefined: none are asked for. */
  readonly tlsClientCa: string | undefined
  /** Ours: whether clients need a certificate. Key tls_client_auth, default request. */
  readonly tlsClientAuth: 'request' | 'require'
  /** Regular expression; workers do not get the environment variables whose whole name it matches. */
  readonly blacklistEnvVars: RegExp | undefined
  readonly defaultServiceHandler: string | undefined
  /** Request envelope of every model (docs/envelopes.md). Checked when a worker loads the model. */
  readonly serviceEnvelope: string | undefined
  /**
   * Destination of TorchServe's metrics (docs/metrics-and-logs.md). Default log: log files and, unlike in
   * TorchServe, the metrics page too.
   */
  readonly metricsMode: 'log' | 'prometheus' | 'legacy'
  /** Absolute path of metrics.yaml; undefined: the package's own. */
  readonly metricsConfig: string | undefined
  readonly modelMetricsAutoDetect: boolean
  readonly disableSystemMetrics: boolean
  /** Seconds between two samples of system metrics, default 60. */
  readonly metricTimeInterval: number
  /** Absolute path of the log files' folder. From LOG_LOCATION or --log-config, default ./logs. */
  readonly logLocation: string
  /** Absolute path of the metric logs' folder. From METRICS_LOCATION or --log-config, default ./logs. */
  readonly metricsLocation: string
  /** Ours: log files to write. Key log_files, default all. */
  readonly logFiles: readonly LogFileName[]
  /** Ours: logs that also go to stdout. Key log_console, default TorchServe's: all but audit_log. */
  readonly logConsole: readonly LogFileName[]
  /** Ours: bytes that the rolled files of one log may have. Key log_keep_bytes, default 1 GiB. */
  readonly logKeepBytes: number
  /** Ours: key log_level; `debug` if TorchServe's key debug is true. Default info. */
  readonly logLevel: 'debug' | 'info' | 'warn' | 'error'
  /** Ours: TorchServe's log lines, or one JSON object per line. Key log_format, default text. */
  readonly logFormat: 'text' | 'json'
  /** TorchServe's key; same as log_level=debug. */
  readonly debug: boolean
  /**
   * Absolute path of the folder for unpacked models, sockets and the pid file. From TEMP, else the system's.
   */
  readonly tempDir: string
  /** CORS headers, see edge/http/cors.ts. */
  readonly corsAllowedOrigin: string | undefined
  readonly corsAllowedMethods: string | undefined
  readonly corsAllowedHeaders: string | undefined
  readonly corsExposedHeaders: string | undefined

  /** Whether TS_<KEY> environment variables override file and flags. */
  readonly enableEnvvarsConfig: boolean
  /** Whether TS_ALLOWED_URLS counts too. */
  readonly useEnvAllowedUrls: boolean
}

/** Log files, by name without `.log` (docs/metrics-and-logs.md). */
export const LOG_FILES = [
  'access_log',
  'ts_log',
  'model_log',
  'ts_metrics',
  'model_metrics',
  'audit_log',
] as const
export type LogFileName = (typeof LOG_FILES)[number]

export interface ModelToLoad {
  /** Name to register the model under; absent: the archive's. */
  readonly name?: string
  /** Archive, folder or URL as the user wrote it, without a pin. */
  readonly location: string
  /** Ours: SHA-256 that the archive must have, in lowercase hex. */
  readonly sha256?: string
}
