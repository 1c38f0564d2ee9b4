import { ours, oursOptional } from './key-spec.ts'
import { PATH, SECONDS_OR_OFF, TEXT, parsed, splitList, word } from './value-types.ts'

/** Where a key set is. Plain http only from this machine: who can change the set can be anybody. */
const JWKS_URL = parsed('URL', 'an https or file URL, or an http URL of localhost', (text) => {
  if (!URL.canParse(text)) return undefined
  const { protocol, hostname, username, href } = new URL(text)
  const isLocal = ['localhost', '127.0.0.1', '[::1]'].includes(hostname)
  if (username !== '') return undefined
  return ['https:', 'file:'].includes(protocol) || (protocol === 'http:' && isLocal) ? href : undefined
})

const ALGORITHMS = ['RS256', 'RS384', 'RS512', 'PS256', 'PS384', 'PS512', 'ES256', 'ES384', 'ES512', 'EdDSA']

/** `none` and algorithms with a shared secret are none of them. */
const ALGORITHM_LIST = parsed<readonly string[]>(
  'list',
  `a comma-separated list of ${ALGORITHMS.join(', ')}`,
  (text) => {
    const list = splitList(text)
    return list.length > 0 && list.every((each) => ALGORITHMS.includes(each)) ? list : undefined
  },
)

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
  jwtAlgorithms: ours(
    ALGORITHM_LIST,
    'RS256,PS256,ES256,EdDSA',
    'Signature algorithms that are accepted. Those with a shared secret are not supported.',
  ),
  jwtClockSkew: ours(SECONDS_OR_OFF, '30', 'How far the clock of the issuer may be off.'),
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
