import { setOwn } from '../../common/json.ts'
import type { Settings } from '../config/settings.ts'

/** Variables of the server with a secret of its own, such as TS_KEYSTORE_PASS. */
const OWN_SECRET = /^TS_(.*_)?(PASS|PASSWORD|SECRET)$/i

/**
 * The server's variables for processes that run a model's code, as in TorchServe: without those that
 * `blacklist_env_vars` matches, and without those that contain a password of the server.
 */
export function inheritedEnv({
  blacklistEnvVars,
  keystorePass,
}: Pick<Settings, 'blacklistEnvVars' | 'keystorePass'>): Record<string, string> {
  const env: Record<string, string> = {}
  for (const [name, value] of Object.entries(process.env)) {
    if (value === undefined || blacklistEnvVars?.test(name) === true) continue
    if (OWN_SECRET.test(name) || value === keystorePass) continue
    setOwn(env, name, value)
  }
  return env
}
