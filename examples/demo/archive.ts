import { existsSync } from 'node:fs'
import { mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { execa } from 'execa'

const ROOT = fileURLToPath(new URL('../../', import.meta.url))
const MODEL = join(ROOT, 'model-store/tiny-llama')

/** A model store that git ignores; the archive of the bundled model is rebuilt in it. */
export const ARCHIVES = join(ROOT, '.archives')

/**
 * Packs handler, weights and configuration of the bundled model like a user. @returns the archive's file name
 */
export async function packTinyLlama(signal: AbortSignal): Promise<string> {
  const weights = join(MODEL, 'model.gguf')
  if (!existsSync(weights)) throw new Error(`The weights of the bundled model are missing: ${weights}`)
  await mkdir(ARCHIVES, { recursive: true })
  const flags = [
    ...['--model-name', 'tiny-llama', '--version', '1.0', '--runtime', 'node'],
    ...['--handler', join(MODEL, 'handler.ts'), '--serialized-file', weights],
    ...['--config-file', join(MODEL, 'model-config.yaml'), '--export-path', ARCHIVES, '--force'],
  ]
  const archiver = join(ROOT, 'dist/model-archiver/cli.js')
  const result = await execa(process.execPath, [archiver, ...flags], {
    all: true,
    reject: false,
    cancelSignal: signal,
  })
  if (result.failed) throw new Error(`The archiver failed:\n${result.all}`)
  return 'tiny-llama.mar'
}
