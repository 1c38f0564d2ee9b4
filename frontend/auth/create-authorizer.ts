import { fileURLToPath } from 'node:url'
import { ServeError } from '../../common/errors.ts'
import type { Settings } from '../config/settings.ts'
import { ClientCertificates } from './client-certificates.ts'
import type { IdentitySource } from './authorizer.ts'
import { fileKeySet, remoteKeySet, type KeySetOptions } from './jwks.ts'
import { JwtSource } from './jwt-source.ts'
import { type KeysChange, NamedKeys } from './named-keys.ts'
import { createTokenStore, type TokenStore } from './token-store.ts'

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
): Promise<TokenStore> {
  const now = Date.now
  const { apiKeysFile, tlsClientCa } = settings
  const sources: IdentitySource[] = []
  const closeAll = (): void => {
    for (const source of sources) source.close()
  }
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
    const store = await createTokenStore({
      enabled: !settings.disableTokenAuthorization,
      expirationMin: settings.tokenExpirationMin,
      sources,
      certificates,
      now,
      warn,
    })
    const close = (): void => {
      closeAll()
      store.close()
    }
    return withClose(store, close)
  } catch (error) {
    closeAll()
    throw error
  }
}

function withClose(store: TokenStore, close: () => void): TokenStore {
  return {
    keyFile: store.keyFile,
    check: (scope, authorization, client) => store.check(scope, authorization, client),
    prepare: store.prepare,
    rotate: (kind, authorization, client) => store.rotate(kind, authorization, client),
    close,
  }
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
