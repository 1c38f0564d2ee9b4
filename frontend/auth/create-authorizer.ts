import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { ServeError } from '../../common/errors.ts'
import type { Settings } from '../config/settings.ts'
import { ClientCertificates, type KeysChange, NamedKeys } from './named-keys.ts'
import { FailureLimiter, Gatekeeper, type IdentitySource } from './gatekeeper.ts'
import { fileKeySet, JwtSource, type KeySetOptions, remoteKeySet } from './jwt-source.ts'
import { KEY_FILE_NAME, KeyFileTokens } from './token-store.ts'

export type AuthSettings = Pick<
  Settings,
  | 'disableTokenAuthorization'
  | 'tokenExpirationMin'
  | 'apiKeysFile'
  | 'jwtIssuer'
  | 'jwtAudience'
  | 'jwtJwksUrl'
  | 'jwtScopeClaim'
  | 'jwtModelsClaim'
  | 'tlsClientCa'
>

/**
 * Everything that the configuration accepts as an identity. Close it when the server ends.
 * @param keysChanged hears when the keys file was read again
 * @param inform hears at the start which keys file is in use
 * @throws ServeError CONFIG when a file cannot be used, or a key is missing
 */
export async function createAuthorizer(
  settings: AuthSettings,
  warn: (message: string) => void,
  keysChanged?: (change: KeysChange) => void,
  inform?: (message: string) => void,
): Promise<Gatekeeper> {
  const now = Date.now
  const { apiKeysFile, tlsClientCa } = settings
  const sources: IdentitySource[] = []
  try {
    let certificates: ClientCertificates | undefined
    if (apiKeysFile !== undefined) {
      const keys = new NamedKeys({ path: apiKeysFile, now, warn, changed: keysChanged })
      sources.push(keys)
      await keys.open()
      inform?.(keys.summary)
      if (tlsClientCa !== undefined) certificates = new ClientCertificates(keys)
    }
    const jwt = await jwtSource(settings, warn)
    if (jwt !== undefined) sources.push(jwt)
    return await createTokenStore({
      enabled: !settings.disableTokenAuthorization,
      expirationMin: settings.tokenExpirationMin,
      sources,
      certificates,
      now,
      warn,
    })
  } catch (error) {
    for (const source of sources) source.close()
    throw error
  }
}

interface TokenStoreOptions {
  /** False: TorchServe's three keys are off; without `sources` and `certificates` every check passes. */
  enabled: boolean
  /** Other kinds of callers. Default: none. */
  sources?: readonly IdentitySource[]
  /** Callers that are known by their certificates. Default: none. */
  certificates?: ClientCertificates | undefined
  /** Lifetime of the inference and management keys, in minutes. */
  expirationMin: number
  /** Folder of key_file.json. Default: the working directory. */
  folder?: string
  /** Returns milliseconds since the epoch. Default: Date.now. */
  now?: () => number
  /** Reports, in one line, a key file that others can read. Default: no report. */
  warn?: (message: string) => void
}

/**
 * The same with kinds of callers that are there already. Writes key_file.json.
 * @throws ServeError CONFIG when the file cannot be written
 */
export async function createTokenStore(options: TokenStoreOptions): Promise<Gatekeeper> {
  const { enabled, expirationMin, sources = [], certificates, folder = process.cwd() } = options
  const { now = Date.now, warn } = options
  const tokens = enabled
    ? new KeyFileTokens(join(folder, KEY_FILE_NAME), expirationMin, now, warn)
    : undefined
  await tokens?.writeFirst()
  return new Gatekeeper({ tokens, sources, certificates, limiter: new FailureLimiter(now) })
}

async function jwtSource(
  settings: AuthSettings,
  warn: (message: string) => void,
): Promise<JwtSource | undefined> {
  const { jwtIssuer: issuer, jwtAudience: audience, jwtJwksUrl } = settings
  if (issuer === undefined && audience.length === 0 && jwtJwksUrl === undefined) return undefined
  if (issuer === undefined || audience.length === 0 || jwtJwksUrl === undefined)
    throw new ServeError('CONFIG', 'jwt_issuer, jwt_audience and jwt_jwks_url belong together; set all three')
  // On demand: few servers check JWTs.
  const jose = await import('jose')
  const now = Date.now
  const options: KeySetOptions = { jose, now, warn }
  const url = new URL(jwtJwksUrl)
  return new JwtSource({
    jose,
    keys: url.protocol === 'file:' ? await keyFile(url, options) : remoteKeySet(url, options),
    issuer,
    audience,
    scopeClaim: settings.jwtScopeClaim,
    modelsClaim: settings.jwtModelsClaim,
    now,
  })
}

async function keyFile(url: URL, options: KeySetOptions): ReturnType<typeof fileKeySet> {
  try {
    return await fileKeySet(fileURLToPath(url), options)
  } catch (cause) {
    throw new ServeError('CONFIG', `jwt_jwks_url ${url.href} cannot be used: ${(cause as Error).message}`, {
      cause,
    })
  }
}
