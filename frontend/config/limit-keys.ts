import { key } from './key-spec.ts'
import { BOOLEAN, decimal, integer } from './value-types.ts'

const OURS = { ours: true } as const
const INT_MAX = 2_147_483_647
const PER_SECOND = decimal('requests', 0, 1_000_000)

/** Keys for what each client may use, and for what asks for a token besides the APIs (docs/security.md). */
export const LIMIT_KEYS = {
  keyRequestsPerSecond: key(
    'key_requests_per_second',
    PER_SECOND,
    '0',
    'Requests that each key may start in a second, unless its entry in api_keys_file says otherwise; 0: no limit.',
    OURS,
  ),
  keyConcurrentStreams: key(
    'key_concurrent_streams',
    integer(0, INT_MAX),
    '0',
    'Requests that each key may have open at one time; a stream is open until its last item. 0: no limit.',
    OURS,
  ),
  keyBytesPerSecond: key(
    'key_bytes_per_second',
    integer(0, INT_MAX),
    '0',
    'Bytes of requests and responses that each key may move in a second; 0: no limit.',
    OURS,
  ),
  addressRequestsPerSecond: key(
    'address_requests_per_second',
    PER_SECOND,
    '0',
    'The same as key_requests_per_second for each client address (IPv6: each /64 network), with a token or without. Behind a proxy, all clients have its address.',
    OURS,
  ),
  addressConcurrentStreams: key(
    'address_concurrent_streams',
    integer(0, INT_MAX),
    '0',
    'The same as key_concurrent_streams for each client address.',
    OURS,
  ),
  addressBytesPerSecond: key(
    'address_bytes_per_second',
    integer(0, INT_MAX),
    '0',
    'The same as key_bytes_per_second for each client address.',
    OURS,
  ),
  metricsRequireToken: key(
    'metrics_require_token',
    BOOLEAN,
    'false',
    'Whether /metrics asks for a key with the scope `metrics`, or for the management token.',
    OURS,
  ),
  grpcReflectionRequireToken: key(
    'grpc_reflection_require_token',
    BOOLEAN,
    'false',
    'Whether gRPC reflection asks for the token of its listener: inference or management. Health never does.',
    OURS,
  ),
}
