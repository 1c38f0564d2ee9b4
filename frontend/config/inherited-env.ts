import { setOwn } from '../../common/own-keys.ts'

/** The server's environment as the processes that run a model's code get it: without what `blacklist_env_vars` names. */
export function inheritedEnv(blacklist: RegExp | undefined): Record<string, string> {
  const env: Record<string, string> = {}
  for (const [name, value] of Object.entries(process.env)) {
    if (value !== undefined && !blacklist?.test(name)) setOwn(env, name, value)
  }
  return env
}
