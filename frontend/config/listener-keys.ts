import { key, optional } from './key-spec.ts'
import {
  OPEN_INFERENCE,
  BOOLEAN,
  HOST,
  PATH,
  PORT,
  TEXT,
  integer,
  listenAddress,
  word,
} from './value-types.ts'

const OURS = { ours: true } as const
const INT_MAX = 2_147_483_647

/** Keys for listeners: addresses, ports, TLS. */
export const LISTENER_KEYS = {
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
  openInferenceGrpcAddress: key(
    'open_inference_grpc_address',
    HOST,
    '127.0.0.1',
    'Host or IP of the two gRPC listeners of the Open Inference Protocol.',
    OURS,
  ),
  openInferenceGrpcPort: optional(
    'open_inference_grpc_port',
    PORT,
    'Port of `inference.GRPCInferenceService` with the streams of MLServer and Seldon Core; 0 takes any free one. Unset: not opened.',
    OURS,
  ),
  tritonGrpcPort: optional(
    'triton_grpc_port',
    PORT,
    'Port of the same service with the streams of Triton. Unset: not opened.',
    OURS,
  ),
  openInferenceGzip: key(
    'open_inference_gzip',
    BOOLEAN,
    'true',
    'Whether whole answers of the Open Inference Protocol are compressed for clients that take gzip; streams never are.',
    OURS,
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
}
