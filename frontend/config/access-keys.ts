import { ours, oursOptional } from './key-spec.ts'
import { BOOLEAN, HOST_LIST, integer, decimal, INT_MAX, PATH, TEXT, parsed, word } from './value-types.ts'
import { splitList } from '../../common/names.ts'

const TEBIBYTE = 1_099_511_627_776

/** Keys for who may connect, and from where. */
export const ACCESS_KEYS = {
  allowInsecureExposure: ours(
    BOOLEAN,
    'false',
    'Allows tokens off or the model API on at addresses that other machines can reach ([Security](security.md#exposed-listeners)). The variable always applies.',
    { envAlways: true },
  ),
  allowedHosts: ours(
    HOST_LIST,
    '',
    'Host names under which clients can call a server without tokens; `*.example.com`: all subdomains, `*`: any ([Security](security.md#web-pages)).',
  ),
  checkInferenceOrigin: ours(
    BOOLEAN,
    'true',
    'Inference and metrics reject requests from web pages of other sites. Management always does.',
  ),
  enableConsole: ours(
    BOOLEAN,
    'true',
    'Serves the [console](console.md) at `/console` of the management address.',
  ),
  maxConnections: oursOptional(
    integer(1, INT_MAX),
    'Maximum number of inference connections, REST and gRPC. More get 503 or are reset. One client address (IPv6: one /64 network) gets at most half. Unset: from the limit of open files ([Security](security.md#connections)).',
  ),
  maxUnfinishedBytes: ours(
    integer(1_048_576, TEBIBYTE),
    '268435456',
    'Maximum bytes of all unfinished requests, REST and gRPC; unread responses may use four times as much. One client address gets at most half. More get 503 (Open Inference, OpenAI: 429) or RESOURCE_EXHAUSTED; clients that do not read are disconnected. At least four times max_request_size and max_response_size.',
  ),
  maxWaitingInputBytes: oursOptional(
    integer(1_048_576, TEBIBYTE),
    'Maximum bytes of requests in queues, on the way to workers, and kept for workflows. More get 503 (Open Inference, OpenAI: 429). Unset: 1/16 of the memory, at least 256 MiB.',
  ),
}

const PER_SECOND = decimal('requests', 0, 1_000_000)

/** Keys for what each client may use, and for what asks for a token besides the APIs (docs/security.md). */
export const LIMIT_KEYS = {
  keyRequestsPerSecond: ours(
    PER_SECOND,
    '0',
    'Maximum requests per second of each key. An entry of api_keys_file overrides it. 0: no limit.',
  ),
  keyConcurrentStreams: ours(integer(0, INT_MAX), '0', 'Maximum open requests of each key. 0: no limit.'),
  keyBytesPerSecond: ours(
    integer(0, INT_MAX),
    '0',
    'Maximum bytes per second of each key, requests and responses. 0: no limit.',
  ),
  metricsRequireToken: ours(
    BOOLEAN,
    'false',
    '/metrics requires a key with the scope `metrics`, or the management token.',
  ),
  grpcReflectionRequireToken: ours(BOOLEAN, 'false', 'gRPC reflection requires the token of its listener.'),
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
    'JSON or YAML file of [API keys and client certificates](authorization.md). Reloaded when it changes.',
  ),
  jwtIssuer: oursOptional(TEXT, 'Accepted issuer (`iss`) of JWTs. Needs `jwt_audience` and `jwt_jwks_url`.'),
  jwtAudience: ours(TEXTS, '', 'Accepted audiences (`aud`) of JWTs.'),
  jwtJwksUrl: oursOptional(JWKS_URL, 'URL of the issuer’s JSON Web Key Set: https or file.'),
  jwtScopeClaim: ours(
    TEXT,
    'scope',
    'Claim with the scopes, such as `torchserve:inference`: a list, or a text with blanks. Can be a path such as `realm_access.roles`.',
  ),
  jwtModelsClaim: ours(
    TEXT,
    'torchserve_models',
    'Claim with the allowed models; `*` matches any text. A JWT without it can use all models.',
  ),
  tlsClientCa: oursOptional(PATH, 'PEM file of the CA of client certificates, for all TLS listeners.'),
  tlsClientAuth: ours(
    word('request', 'require'),
    'request',
    'With `tls_client_ca`: `require` rejects clients without a certificate.',
  ),
}
