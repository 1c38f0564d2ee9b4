import { ours, oursOptional } from './key-spec.ts'
import { BOOLEAN, HOST_LIST, integer, decimal, INT_MAX, PATH, TEXT, parsed, word } from './value-types.ts'
import { splitList } from '../../common/names.ts'

const TEBIBYTE = 1_099_511_627_776

/** Keys for who may connect, and from where. */
export const ACCESS_KEYS = {
  allowInsecureExposure: ours(
    BOOLEAN,
    'false',
    'Whether the server starts with tokens off, or with the model API on, on addresses that other machines can reach (docs/security.md). The variable always has an effect.',
    { envAlways: true },
  ),
  allowedHosts: ours(
    HOST_LIST,
    '',
    'Names by which clients may call a server without tokens, beside IP addresses and local names; `*.example.com`: all below it, `*`: any (docs/security.md).',
  ),
  checkInferenceOrigin: ours(
    BOOLEAN,
    'true',
    'Whether the inference and metrics APIs refuse requests from web pages of other sites, as management always does.',
  ),
  enableConsole: ours(
    BOOLEAN,
    'true',
    'Whether the management listener serves the page of the console at `/console` ([Console](console.md)).',
  ),
  maxConnections: oursOptional(
    integer(1, INT_MAX),
    'Connections that all listeners for inference, REST and gRPC, have together; the next get 503 or are reset. One client address (IPv6: one /64 network) has at most half of them. Unset: from the limit of open files (docs/floods.md).',
  ),
  maxUnfinishedBytes: ours(
    integer(1_048_576, TEBIBYTE),
    '268435456',
    'Bytes of requests that have not come to their end, REST and gRPC together; four times as many may wait as answers that clients have not read. One client address has at most half. Beyond them, a REST request gets 503 (Open Inference, OpenAI: 429), a gRPC call RESOURCE_EXHAUSTED, and a connection that does not read is closed. Values below four times max_request_size or max_response_size count as that.',
  ),
  maxWaitingInputBytes: oursOptional(
    integer(1_048_576, TEBIBYTE),
    'Bytes of all requests together that wait in the queues of models, are on their way to workers, or are kept for nodes of workflows; further requests get 503 (Open Inference, OpenAI: 429). A request to a model always passes while nothing else waits. Unset: a sixteenth of the memory of the machine or cgroup, at least 256 MiB.',
  ),
}

const PER_SECOND = decimal('requests', 0, 1_000_000)

/** Keys for what each client may use, and for what asks for a token besides the APIs (docs/security.md). */
export const LIMIT_KEYS = {
  keyRequestsPerSecond: ours(
    PER_SECOND,
    '0',
    'Requests that each key may start in a second, unless its entry in api_keys_file says otherwise; 0: no limit.',
  ),
  keyConcurrentStreams: ours(
    integer(0, INT_MAX),
    '0',
    'Requests that each key may have open at one time; a stream is open until its last item. 0: no limit.',
  ),
  keyBytesPerSecond: ours(
    integer(0, INT_MAX),
    '0',
    'Bytes of requests and responses that each key may move in a second; 0: no limit.',
  ),
  metricsRequireToken: ours(
    BOOLEAN,
    'false',
    'Whether /metrics asks for a key with the scope `metrics`, or for the management token.',
  ),
  grpcReflectionRequireToken: ours(
    BOOLEAN,
    'false',
    'Whether gRPC reflection asks for the token of its listener: inference or management. Health never does.',
  ),
}

/** Where a key set is. Plain http only from this machine: who can change the set can be anybody. */
const JWKS_URL = parsed('URL', 'an https or file URL, or an http URL of localhost', (text) => {
  if (!URL.canParse(text)) return undefined
  const { protocol, hostname, username, href } = new URL(text)
  const isLocal = ['localhost', '127.0.0.1', '[::1]'].includes(hostname)
  if (username !== '') return undefined
  return ['https:', 'file:'].includes(protocol) || (protocol === 'http:' && isLocal) ? href : undefined
})

const TEXTS = parsed<readonly string[]>('list', 'a comma-separated list', splitList)

/** Keys for callers with rights of their own (docs/authorization.md). */
export const AUTH_KEYS = {
  apiKeysFile: oursOptional(
    PATH,
    'JSON or YAML file with named API keys and client certificates ([Authorization](authorization.md)); read again when it changes.',
  ),
  jwtIssuer: oursOptional(
    TEXT,
    'The issuer (`iss`) of the JWTs that are accepted. Needs `jwt_audience` and `jwt_jwks_url`.',
  ),
  jwtAudience: ours(TEXTS, '', 'Audiences (`aud`), one of which a JWT must have.'),
  jwtJwksUrl: oursOptional(
    JWKS_URL,
    'Where the public keys of the issuer are (a JSON Web Key Set): an https or file URL.',
  ),
  jwtScopeClaim: ours(
    TEXT,
    'scope',
    'Claim with the scopes, such as `torchserve:inference`: a text with blanks or a list. A path such as `realm_access.roles` is possible.',
  ),
  jwtModelsClaim: ours(
    TEXT,
    'torchserve_models',
    'Claim with the models, `*` for any text. A JWT without it may use all.',
  ),
  tlsClientCa: oursOptional(PATH, 'PEM file with the CA of client certificates, for all TLS listeners.'),
  tlsClientAuth: ours(
    word('request', 'require'),
    'request',
    'With `tls_client_ca`: whether a client may come without a certificate (`request`) or not.',
  ),
}
