/**
 * The whole configuration of a running server: config.properties, environment and flags, checked and frozen. Names follow
 * TorchServe's keys in camel case (spec 5.1); keys that TorchServe does not have are marked "ours".
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
  /** Ours: host of the two listeners of the Open Inference Protocol. Key open_inference_grpc_address, default 127.0.0.1. */
  readonly openInferenceGrpcAddress: string
  /** Ours: port with MLServer's streams; undefined: not opened. Key open_inference_grpc_port. */
  readonly openInferenceGrpcPort: number | undefined
  /** Ours: port with Triton's streams; undefined: not opened. Key triton_grpc_port. */
  readonly tritonGrpcPort: number | undefined
  /** Ours: whether whole answers of the protocol are compressed for clients that take gzip. Key open_inference_gzip, default true. */
  readonly openInferenceGzip: boolean
  /** Milliseconds that a gRPC connection may live, and that its calls then still get; undefined: for ever. */
  readonly grpcInferenceMaxConnectionAgeMs: number | undefined
  readonly grpcInferenceMaxConnectionAgeGraceMs: number | undefined
  readonly grpcManagementMaxConnectionAgeMs: number | undefined
  readonly grpcManagementMaxConnectionAgeGraceMs: number | undefined
  /** Ours: connections of each gRPC listener. Key grpc_max_connections, default 512. */
  readonly grpcMaxConnections: number
  /** Ours: those of one client address or IPv6 /64. Key grpc_max_connections_per_address, default 128. */
  readonly grpcMaxConnectionsPerAddress: number
  /** Ours: open calls of one connection. Key grpc_max_concurrent_streams, default 256. */
  readonly grpcMaxConcurrentStreams: number
  /** Ours: bytes of a call's metadata, counted as in RFC 9113, 6.5.2. Key grpc_max_metadata_size, default 16384. */
  readonly grpcMaxMetadataSize: number
  /** Ours: bytes of unfinished requests on one connection. Key grpc_max_connection_bytes, default 64 MiB. */
  readonly grpcMaxConnectionBytes: number
  /** Ours: the same on all connections of a listener. Key grpc_max_waiting_bytes, default 256 MiB. */
  readonly grpcMaxWaitingBytes: number
  /** Ours: size of a message over its compressed size. Key grpc_max_decompression_ratio, default 100. */
  readonly grpcMaxDecompressionRatio: number
  /** Ours: seconds for a whole request message. Key grpc_message_timeout, default 60. */
  readonly grpcMessageTimeout: number
  /** Ours: seconds without calls; 0: no limit. Key grpc_max_connection_idle, default 300. */
  readonly grpcMaxConnectionIdle: number
  /** Whether both gRPC listeners speak TLS, with certificateFile and privateKeyFile. */
  readonly enableGrpcSsl: boolean
  /** PEM files for https and gRPC, absolute. */
  readonly certificateFile: string | undefined
  readonly privateKeyFile: string | undefined
  /** PKCS12 file for https, absolute; wins over the PEM files, as in TorchServe. */
  readonly keystore: string | undefined
  readonly keystorePass: string
  readonly keystoreType: 'pkcs12' | 'jks'
  /** Whether the routes and the service of the Open Inference Protocol are there (spec 1.5, 3.5). */
  readonly openInferenceProtocol: boolean

  /** Absolute path. */
  readonly modelStore: string | undefined
  /** Absolute path; undefined: the model store. */
  readonly workflowStore: string | undefined
  /** What to load at start; `all`, or a list of archives with an optional name. */
  readonly loadModels: 'all' | readonly ModelToLoad[]
  /** The `models` key: per model name and version, JSON. */
  readonly models: Readonly<Record<string, Readonly<Record<string, VersionSettings>>>>
  /** 0: as many as CPUs at start, none at register. */
  readonly defaultWorkersPerModel: number
  /** GPUs to use at most; undefined: all that are found. */
  readonly numberOfGpu: number | undefined
  /** Number of the first worker of a plain model, default 9000. */
  readonly initialWorkerPort: number
  /** Number of the first worker that is a rank group, and its MASTER_PORT; default 29500. */
  readonly initialDistributionPort: number
  /** What was loaded when the configuration was a snapshot: takes the place of loadModels (spec 6.4). */
  readonly modelSnapshot: ModelSnapshot | undefined
  /** Ours: snapshots that are kept. Key max_snapshots, default 50. */
  readonly maxSnapshots: number
  /** Regular expressions; one must match the whole of a URL that a client registers, unless it is in the model store. */
  readonly allowedUrls: readonly RegExp[]
  /**
   * Ours: whether a registered URL may lead to a loopback or private address. Key allow_private_urls; unset: only when
   * allowed_urls is set, because then somebody decided it. Undefined counts as false.
   */
  readonly allowPrivateUrls: boolean | undefined
  /** Ours: TLS suites as OpenSSL lists them. Key tls_ciphers, default: AEAD with forward secrecy. */
  readonly tlsCiphers: string
  /** Ours: origins beside S3’s own that get a signature with s3_sse_kms. Key s3_signing_hosts, default none. */
  readonly s3SigningHosts: readonly string[]
  /** Ours: bytes of a downloaded archive. Key max_download_size, default 20 GiB. */
  readonly maxDownloadSize: number
  /** Ours: seconds that a download may take. Key download_timeout, default 3600. */
  readonly downloadTimeout: number
  /** Ours: files and folders of an archive. Key max_archive_files, default 10000. */
  readonly maxArchiveFiles: number
  /** Ours: bytes of all files of an archive. Key max_unpacked_size, default 20 GiB. */
  readonly maxUnpackedSize: number
  /** Ours: bytes that come out of an archive for each of its own. Key max_archive_ratio, default 100. */
  readonly maxArchiveRatio: number
  /** Ours: seconds that an archive may take to be unpacked. Key unpack_timeout, default 600. */
  readonly unpackTimeout: number
  /** Ours: bytes that unpacking leaves free on the disk. Key min_free_disk, default 256 MiB. */
  readonly minFreeDisk: number

  /** Requests per model version that may wait. Default 100. */
  readonly jobQueueSize: number
  /** Names of the headers that speak of sequences. Default ts_request_sequence_id, _start and _end. */
  readonly tsHeaderKeySequenceId: string
  readonly tsHeaderKeySequenceStart: string
  readonly tsHeaderKeySequenceEnd: string
  /** Bytes, default 6553500. */
  readonly maxRequestSize: number
  /** Bytes of one response (one item of a stream), default 6553500. */
  readonly maxResponseSize: number
  /** Seconds; stands for the time to the first response and for each gap. Default 120. */
  readonly defaultResponseTimeout: number
  /** Seconds from the start of a worker to its loaded handler. Default 120. */
  readonly defaultStartupTimeout: number
  /** Seconds. Default 120. */
  readonly unregisterModelTimeout: number
  /** Ours, seconds in the queue; 0 = no limit. Key default_queue_timeout, default 120. */
  readonly defaultQueueTimeout: number
  /** Ours, seconds; undefined = the response timeout. Key default_first_response_timeout. */
  readonly defaultFirstResponseTimeout: number | undefined
  /** Ours, seconds; undefined = the response timeout. Key default_gap_timeout. */
  readonly defaultGapTimeout: number | undefined
  /** Ours, seconds for the whole request; 0 = no limit. Key default_request_timeout, default 0. */
  readonly defaultRequestTimeout: number
  /** Ours, milliseconds that a cancelled handler may go on before its worker is killed. Key cancel_grace_ms, default 10000. */
  readonly cancelGraceMs: number
  /** Ours, bytes of one stream under way between handler and client's socket. Key stream_window_size, default 262144. */
  readonly streamWindowSize: number
  /** Ours, seconds of silence of an OpenAI stream before it gets a comment. Key openai_heartbeat_interval, default 15; 0: never. */
  readonly openaiHeartbeatInterval: number
  /** Ours, seconds that running requests get at shutdown. Key drain_timeout, default 30. */
  readonly drainTimeout: number

  /** What runs Python models: a command, or an absolute path. Default `python`. */
  readonly python: string
  /** Absolute folder with TorchServe's package `ts`; undefined: where the Python finds it. */
  readonly modelServerHome: string | undefined
  /** Whether the requirements.txt of a Python archive is installed for its model. */
  readonly installPyDepPerModel: boolean
  readonly ipexEnable: boolean
  readonly ipexGpuEnable: boolean
  /** Ours: milliseconds that a Python handler may go on for nobody; undefined: no limit. Key python_cancel_grace_ms. */
  readonly pythonCancelGraceMs: number | undefined

  readonly decodeInputRequest: boolean
  /** Told to handlers, which limit the pixels of an image or do not. */
  readonly limitMaxImagePixels: boolean
  readonly enableModelApi: boolean
  readonly disableTokenAuthorization: boolean
  /** Minutes, default 60. */
  readonly tokenExpirationMin: number
  /** Names of environment variables that workers do not get (regular expression, whole name). */
  readonly blacklistEnvVars: RegExp | undefined
  readonly defaultServiceHandler: string | undefined
  /** Request envelope of every model (spec 6.6); its name is checked where a worker loads. */
  readonly serviceEnvelope: string | undefined
  /** Where TorchServe's metrics go (spec 8.5). Default log: log files and, other than in TorchServe, the metrics page too. */
  readonly metricsMode: 'log' | 'prometheus' | 'legacy'
  /** Absolute path of metrics.yaml; undefined: the one of the package. */
  readonly metricsConfig: string | undefined
  readonly modelMetricsAutoDetect: boolean
  readonly disableSystemMetrics: boolean
  /** Seconds, default 60. */
  readonly metricTimeInterval: number
  /** Absolute folder of the log files; from LOG_LOCATION or --log-config, default ./logs */
  readonly logLocation: string
  /** Absolute folder of the metric log files; from METRICS_LOCATION or --log-config, default ./logs */
  readonly metricsLocation: string
  /** Ours, key log_files: which log files are written. Default all. */
  readonly logFiles: readonly LogFileName[]
  /** Ours, key log_level; `debug` when TorchServe's key debug is true. Default info. */
  readonly logLevel: 'debug' | 'info' | 'warn' | 'error'
  /** Ours, key log_format: lines as TorchServe writes them, or one JSON object per line. Default text. */
  readonly logFormat: 'text' | 'json'
  /** TorchServe's key; the same as log_level=debug. */
  readonly debug: boolean
  /** Absolute folder for unpacked models, sockets and the pid file (TEMP, else the system's). */
  readonly tempDir: string
  /** CORS headers, sent on every response when set. */
  readonly corsAllowedOrigin: string | undefined
  readonly corsAllowedMethods: string | undefined
  readonly corsAllowedHeaders: string | undefined

  /** Whether environment variables TS_<KEY> override file and flags. */
  readonly enableEnvvarsConfig: boolean
  /** Whether TS_ALLOWED_URLS is one of them. */
  readonly useEnvAllowedUrls: boolean
}

/** The log files by their names without `.log` (spec 8.6). */
export const LOG_FILES = ['access_log', 'ts_log', 'model_log', 'ts_metrics', 'model_metrics'] as const
export type LogFileName = (typeof LOG_FILES)[number]

/** Where a REST listener listens. IPv6 hosts stand without brackets; port 0 takes any free port. */
export type ListenAddress =
  | { readonly kind: 'tcp'; readonly tls: boolean; readonly host: string; readonly port: number }
  | { readonly kind: 'unix'; readonly path: string }

export interface ModelToLoad {
  /** Name to register under; absent: from the archive. */
  readonly name?: string
  /** Archive, folder or URL as the user wrote it. */
  readonly location: string
}

/** The `model_snapshot` key (spec 6.4): what a server had loaded, by model and version. */
export interface ModelSnapshot {
  /** File name of the snapshot. */
  readonly name: string
  readonly modelCount: number
  /** Milliseconds since the epoch. */
  readonly created: number
  readonly models: Readonly<Record<string, Readonly<Record<string, VersionSnapshot>>>>
}

export interface VersionSnapshot extends VersionSettings {
  readonly defaultVersion: boolean
  /** File or folder in the model store. */
  readonly marName: string
  readonly minWorkers: number
  readonly maxWorkers: number
  /** Absent: as the archive says. */
  readonly runtimeType?: string
  readonly parallelLevel?: number
  /** Ours: what was registered, where it is not just `marName`: a URL, or a path outside the store. */
  readonly modelUrl?: string
  /** Ours: handler of the register call. */
  readonly handler?: string
}

/** What the `models` key may say about one version. */
export interface VersionSettings {
  readonly minWorkers?: number
  readonly maxWorkers?: number
  readonly batchSize?: number
  /** Milliseconds. */
  readonly maxBatchDelay?: number
  /** Seconds. */
  readonly responseTimeout?: number
  /** Seconds. */
  readonly startupTimeout?: number
}
