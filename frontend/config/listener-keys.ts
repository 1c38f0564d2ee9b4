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
    'Inference REST API. The default port is 80.',
  ),
  managementAddress: key(
    listenAddress(8081, 8444),
    'http://127.0.0.1:8081',
    'Management REST API. Use the inference address to serve both on one port.',
  ),
  metricsAddress: key(
    listenAddress(8082, 8445),
    'http://127.0.0.1:8082',
    'Prometheus metrics. Cannot share a listener with the other APIs.',
  ),
  enableMetricsApi: key(BOOLEAN, 'true', 'Whether the metrics listener is opened.'),
  grpcInferenceAddress: key(HOST, '127.0.0.1', 'Host or IP of the gRPC inference API.'),
  grpcManagementAddress: key(HOST, '127.0.0.1', 'Host or IP of the gRPC management API.'),
  grpcInferencePort: key(PORT, '7070', 'Port of the gRPC inference API; 0: any free port.'),
  grpcManagementPort: key(PORT, '7071', 'Port of the gRPC management API; 0: any free port.'),
  openInferenceGrpcAddress: ours(
    HOST,
    '127.0.0.1',
    'Host or IP of the two gRPC listeners of the Open Inference Protocol.',
  ),
  openInferenceGrpcPort: oursOptional(
    PORT,
    'Port of `inference.GRPCInferenceService` with the streams of MLServer and Seldon Core; 0: any free port. Unset: not opened.',
  ),
  tritonGrpcPort: oursOptional(
    PORT,
    'Port of the same service with the streams of Triton. Unset: not opened.',
  ),
  openInferenceGzip: ours(
    BOOLEAN,
    'true',
    'Whether unary responses of the Open Inference Protocol are compressed for clients that accept gzip; streams never are.',
  ),
  grpcInferenceMaxConnectionAgeMs: optional(
    integer(1, INT_MAX),
    'Milliseconds after which a connection to the gRPC inference API accepts no further calls. Unset: no limit.',
  ),
  grpcInferenceMaxConnectionAgeGraceMs: optional(
    integer(1, INT_MAX),
    'Milliseconds in which the calls of such a connection must end. Unset: no limit.',
  ),
  grpcManagementMaxConnectionAgeMs: optional(integer(1, INT_MAX), 'The same for the gRPC management API.'),
  grpcManagementMaxConnectionAgeGraceMs: optional(
    integer(1, INT_MAX),
    'The same for the gRPC management API.',
  ),
  grpcMaxConcurrentStreams: ours(
    integer(1, INT_MAX),
    '256',
    'Calls that may be open at one time on a gRPC connection.',
  ),
  enableGrpcSsl: key(
    BOOLEAN,
    'false',
    'Whether both gRPC APIs use TLS, with certificate_file and private_key_file (docs/tls.md).',
  ),
  certificateFile: optional(PATH, 'PEM file with the certificate chain, for https addresses and gRPC.'),
  privateKeyFile: optional(PATH, 'PEM file with its private key (PKCS8 or PKCS1).'),
  tlsCiphers: ours(
    CIPHERS,
    'TLS_AES_256_GCM_SHA384:TLS_CHACHA20_POLY1305_SHA256:TLS_AES_128_GCM_SHA256:ECDHE+AESGCM:ECDHE+CHACHA20',
    'TLS suites for https addresses and gRPC, as OpenSSL lists them. The default has only AEAD suites with forward secrecy.',
  ),
  keystore: optional(
    PATH,
    'PKCS12 file with key and certificates, for https addresses; takes precedence over the PEM files.',
  ),
  keystorePass: key(TEXT, 'changeit', 'Password of the keystore.'),
  keystoreType: key(
    word('pkcs12', 'jks'),
    'pkcs12',
    'Only PKCS12 is supported; the error for a JKS keystore contains the command that converts it.',
  ),
  openInferenceProtocol: key(
    OPEN_INFERENCE,
    'false',
    'Whether the Open Inference Protocol is served: `true` or `oip`; any other text is off. The variable always has an effect.',
    { name: 'ts_open_inference_protocol', envAlways: true },
  ),
}
