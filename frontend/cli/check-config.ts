import { NamedKeys } from '../auth/named-keys.ts'
import { type LoadedSettings, shownSettings } from '../config/build-settings.ts'
import { checkExposure } from '../config/exposure.ts'
import { checkStores, loadSettings } from '../config/load-settings.ts'
import type { Settings } from '../config/settings.ts'
import type { CliFlags } from './flags.ts'
import { describeFailure } from './describe-failure.ts'
import type { Output } from './output.ts'

/**
 * Reports what a start with these flags would do: each setting with its source, and whether the models to
 * load can be used. Starts and downloads nothing.
 * @returns the exit status: 1 when a start would fail or skip a model
 */
export async function checkConfig(flags: CliFlags, output: Output): Promise<number> {
  const problems: string[] = []
  const attempt = async (action: () => Promise<void>): Promise<void> => {
    await action().catch((error: unknown) => problems.push(describeFailure(error)))
  }
  await attempt(async () => {
    const loaded = await loadSettings(flags)
    for (const line of settingLines(loaded)) output.out(line)
    for (const warning of loaded.warnings) output.err(`Warning: ${warning}`)
    await attempt(() => checkStores(loaded))
    await attempt(() => checkExposure(loaded.settings))
    await attempt(() => checkKeys(loaded.settings, output))
    await attempt(async () => {
      const { checkModels } = await import('./check-models.ts')
      output.out(loaded.modelSource.line)
      problems.push(...(await checkModels(loaded, output)))
    })
  })
  for (const problem of problems) output.err(`torchserve-ts: ${problem}`)
  output.out(problems.length === 0 ? 'The configuration can be used.' : 'The configuration cannot be used.')
  return problems.length === 0 ? 0 : 1
}

/** @throws ServeError CONFIG when the keys file cannot be used */
async function checkKeys({ apiKeysFile: path }: Settings, output: Output): Promise<void> {
  if (path === undefined) return
  const warn = (warning: string): void => output.err(`Warning: ${warning}`)
  const keys = new NamedKeys({ path, now: Date.now, warn })
  try {
    await keys.open()
    output.out(keys.summary)
  } finally {
    keys.close()
  }
}

/** `key = value (source)` for every key. */
function settingLines(loaded: LoadedSettings): string[] {
  return shownSettings(loaded).map(({ name, value = 'unset', source }) => `${name} = ${value} (${source})`)
}
