import type { Settings } from './settings.ts'

/** What decides who may call. */
export type IdentitySettings = Pick<Settings, 'disableTokenAuthorization'> &
  Partial<Pick<Settings, 'apiKeysFile' | 'jwtIssuer' | 'tlsClientCa' | 'tlsClientAuth'>>

/**
 * Whether nobody gets past a listener without a token, a key or a certificate. False: anybody who reaches it
 * may do everything there.
 *
 * A certificate that TLS requires counts, as only holders can connect. One that it only requests counts no
 * more than the keys file that gives it rights.
 * @param isTls whether the listener speaks TLS
 */
export function asksForIdentity(settings: IdentitySettings, isTls: boolean): boolean {
  if (!settings.disableTokenAuthorization) return true
  if (settings.apiKeysFile !== undefined || settings.jwtIssuer !== undefined) return true
  return isTls && settings.tlsClientCa !== undefined && settings.tlsClientAuth === 'require'
}
