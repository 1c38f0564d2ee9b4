import { key, optional, type Details } from './key-spec.ts'
import { BOOLEAN, HOST_LIST, integer } from './value-types.ts'

const OURS: Details = { ours: true }
const INT_MAX = 2_147_483_647
const TEBIBYTE = 1_099_511_627_776

/** Keys for who may connect, and from where. */
export const ACCESS_KEYS = {
  allowInsecureExposure: key(
    'allow_insecure_exposure',
    BOOLEAN,
    'false',
    'Whether the server starts with tokens off, or with the model API on, on addresses that other machines can reach (docs/security.md). The variable always has an effect.',
    { ...OURS, envAlways: true },
  ),
  allowedHosts: key(
    'allowed_hosts',
    HOST_LIST,
    '',
    'Names by which clients may call a server without tokens, beside IP addresses and local names; `*.example.com`: all below it, `*`: any (docs/security.md).',
    OURS,
  ),
  checkInferenceOrigin: key(
    'check_inference_origin',
    BOOLEAN,
    'true',
    'Whether the inference and metrics APIs refuse requests from web pages of other sites, as management always does.',
    OURS,
  ),
  enableConsole: key(
    'enable_console',
    BOOLEAN,
    'true',
    'Whether the management listener serves the page of the console at `/console` ([Console](console.md)).',
    OURS,
  ),
  maxConnections: optional(
    'max_connections',
    integer(1, INT_MAX),
    'Connections that all listeners for inference, REST and gRPC, have together; the next get 503 or are reset. Unset: from the limit of open files (docs/security.md).',
    OURS,
  ),
  maxUnreadBytes: key(
    'max_unread_bytes',
    integer(1_048_576, INT_MAX),
    '268435456',
    'Bytes of answers, REST and gRPC, that may wait for their clients to read them; a value below two times max_response_size counts as that. Beyond them, of the address that has most the connection that has most is closed.',
    OURS,
  ),
  maxUnfinishedBytes: key(
    'max_unfinished_bytes',
    integer(1_048_576, TEBIBYTE),
    '268435456',
    'Bytes of REST bodies that have not come to their end, for all connections together; a value below two times max_request_size counts as that. Beyond them, of the address that has most the request that has most is refused with 503 (Open Inference, OpenAI: 429). gRPC: grpc_max_waiting_bytes.',
    OURS,
  ),
  maxWaitingInputBytes: optional(
    'max_waiting_input_bytes',
    integer(1_048_576, TEBIBYTE),
    'Bytes of all requests together that wait in the queues of models, are on their way to workers, or are kept for nodes of workflows; further requests get 503 (Open Inference, OpenAI: 429). A request to a model always passes while nothing else waits. Unset: a sixteenth of the memory of the machine or cgroup, at least 256 MiB.',
    OURS,
  ),
  maxConnectionsPerAddress: optional(
    'max_connections_per_address',
    integer(1, INT_MAX),
    'The same for each client address (IPv6: each /64 network). Unset: half of max_connections.',
    OURS,
  ),
  maxNewConnectionsPerAddress: key(
    'max_new_connections_per_address',
    integer(0, INT_MAX),
    '2000',
    'New connections per second of one client address, to inference, management, and metrics each; the next wait. 0: any number (docs/security.md).',
    OURS,
  ),
}
