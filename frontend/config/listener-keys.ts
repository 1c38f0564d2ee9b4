import { key, optional, ours, oursOptional } from './key-spec.ts'
import {
  OPEN_INFERENCE,
  BOOLEAN,
  CIPHERS,
  HOST,
  PATH,
  PORT,
  TEXT,
  integer,
  listenAddress,
  word,
  INT_MAX,
} from './value-types.ts'

/** Keys for listeners: addresses, ports, TLS. */
export const LISTENER_KEYS = {
  inferenceAddress: key(
    listenAddress(80, 443),
    'http://127.0.0.1:8080',
    'Address of the inference REST API. Port 80 if the address has none.',
  ),
  managementAddress: key(
    listenAddress(8081, 8444),
    'http://127.0.0.1:8081',
    'Address of the management REST API. Set the inference address to serve both on one port.',
  ),
  metricsAddress: key(
    listenAddress(8082, 8445),
    'http://127.0.0.1:8082',
    'Address of the Prometheus metrics. Must differ from the other addresses.',
  ),
  enableMetricsApi: key(BOOLEAN, 'true', 'Opens the metrics listener.'),
  grpcInferenceAddress: key(HOST, '127.0.0.1', 'Host of the gRPC inference API.'),
  grpcManagementAddress: key(HOST, '127.0.0.1', 'Host of the gRPC management API.'),
  grpcInferencePort: key(PORT, '7070', 'Port of the gRPC inference API.'),
  grpcManagementPort: key(PORT, '7071', 'Port of the gRPC management API.'),
  openInferenceGrpcAddress: ours(HOST, '127.0.0.1', 'Host of the two Open Inference gRPC listeners.'),
  openInferenceGrpcPort: oursOptional(
    PORT,
    'Port of Open Inference gRPC with the streams of MLServer and Seldon. Unset: not opened.',
  ),
  tritonGrpcPort: oursOptional(
    PORT,
    'Port of Open Inference gRPC with the streams of Triton. Unset: not opened.',
  ),
  openInferenceGzip: ours(
    BOOLEAN,
    'true',
    'Compresses unary Open Inference responses for clients that accept gzip.',
  ),
  grpcInferenceMaxConnectionAgeMs: optional(
    integer(1, INT_MAX),
    'Milliseconds until a gRPC inference connection accepts no further calls. Unset: no limit.',
  ),
  grpcInferenceMaxConnectionAgeGraceMs: optional(
    integer(1, INT_MAX),
    'Milliseconds that open calls then have to end. Unset: no limit.',
  ),
  grpcManagementMaxConnectionAgeMs: optional(integer(1, INT_MAX), 'The same for gRPC management.'),
  grpcManagementMaxConnectionAgeGraceMs: optional(integer(1, INT_MAX), 'The same for gRPC management.'),
  grpcMaxConcurrentStreams: ours(
    integer(1, INT_MAX),
    '256',
    'Maximum number of open calls per gRPC connection.',
  ),
  enableGrpcSsl: key(
    BOOLEAN,
    'false',
    'Both gRPC APIs use TLS with certificate_file and private_key_file ([TLS](tls.md)).',
  ),
  certificateFile: optional(PATH, 'PEM certificate chain for https addresses and gRPC.'),
  privateKeyFile: optional(PATH, 'PEM private key (PKCS8 or PKCS1).'),
  tlsCiphers: ours(
    CIPHERS,
    'TLS_AES_256_GCM_SHA384:TLS_CHACHA20_POLY1305_SHA256:TLS_AES_128_GCM_SHA256:ECDHE+AESGCM:ECDHE+CHACHA20',
    'TLS cipher suites for https addresses and gRPC, in OpenSSL’s format.',
  ),
  keystore: optional(
    PATH,
    'PKCS12 file with key and certificates for https addresses. Used instead of the PEM files.',
  ),
  keystorePass: key(TEXT, 'changeit', 'Password of the keystore.'),
  keystoreType: key(
    word('pkcs12', 'jks'),
    'pkcs12',
    'Only PKCS12 is supported. The error for JKS shows how to convert the file.',
  ),
  openInferenceProtocol: key(
    OPEN_INFERENCE,
    'false',
    'Open Inference on gRPC port 7070, and [for handlers with `handle`](open-inference.md#rest): `true` or `oip`; any other text: off. The variable always applies.',
    { name: 'ts_open_inference_protocol', envAlways: true },
  ),
}
