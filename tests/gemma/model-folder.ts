import { mkdir, symlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { execa } from '../support/tools.ts'

const ROOT = fileURLToPath(new URL('../../', import.meta.url))

const CONFIG = `minWorkers: 1
maxWorkers: 1
responseTimeout: 120
startupTimeout: 120
asyncCommunication: true
maxConcurrency: 8
handler:
  context_size: 640
  sequences: 8
  threads: 1
  # The file has none.
  chat_template: |-
    {% for message in messages %}<start_of_turn>{{ message['role'] }}
    {{ message['content'] | trim }}<end_of_turn>
    {% endfor %}<start_of_turn>model
`

/**
 * Creates the model `gemma` in a store: the unchanged handler of tiny-llama, a configuration, and a link to
 * the weights.
 */
export async function makeModelFolder(store: string, gguf: string): Promise<void> {
  await mkdir(store)
  const config = join(store, '..', 'model-config.yaml')
  await writeFile(config, CONFIG)
  const flags = [
    ...['--model-name', 'gemma', '--version', '1.0', '--runtime', 'node', '--archive-format', 'no-archive'],
    ...['--handler', join(ROOT, 'model-store/tiny-llama/handler.ts'), '--config-file', config],
    ...['--export-path', store],
  ]
  await execa(process.execPath, [join(ROOT, 'dist/model-archiver/cli.js'), ...flags])
  await symlink(gguf, join(store, 'gemma', 'gemma.gguf'))
}
