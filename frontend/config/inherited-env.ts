import { setOwn } from '../../common/own-keys.ts'

/** The environment of processes that run a model's code: the server's, without `blacklist_env_vars`. */
export function inheritedEnv(blacklist: RegExp | undefined): Record<string, string> {
  const env: Record<string, string> = {}
  for (const [name, value] of Object.entries(process.env)) {
    if (value !== undefined && !blacklist?.test(name)) setOwn(env, name, value)
  }
  return env
}
