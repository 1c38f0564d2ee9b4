import { splitList } from '../../common/names.ts'
import { ours, oursOptional } from './key-spec.ts'
import { PATH, TEXT, parsed, word } from './value-types.ts'

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
