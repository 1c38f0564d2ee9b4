import { copyFile, mkdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { PYTHON_STAND_INS } from './places.ts'
import type { Answers } from './recordings.ts'
import type { Workspace } from './workspace.ts'
import { execa } from '../support/tools.ts'

const NETWORKS = join(PYTHON_STAND_INS, 'networks')

interface Entry {
  model_name: string
  model_file: string
  serialized_file_remote?: string
  handler: string
}

/**
 * The networks that TorchServe's tests package themselves, with weights of hundreds of megabytes. In the copy
 * of the checkout their architecture becomes the smallest that TorchServe's own handler accepts, with weights
 * made here that give the expected responses.
 */
export class Zoo {
  readonly #space: Workspace
  readonly #answers: ReadonlyMap<string, Answers>
  readonly #byWeights = new Map<string, Entry>()

  private constructor(space: Workspace, answers: ReadonlyMap<string, Answers>) {
    this.#space = space
    this.#answers = answers
  }

  static async create(space: Workspace, answers: ReadonlyMap<string, Answers>): Promise<Zoo> {
    const zoo = new Zoo(space, answers)
    const table = join(space.checkout, 'ts_scripts', 'mar_config.json')
    for (const entry of JSON.parse(await readFile(table, 'utf8')) as Entry[]) {
      if (entry.serialized_file_remote === undefined) continue
      zoo.#byWeights.set(entry.serialized_file_remote, entry)
      await copyFile(join(NETWORKS, `${kindOf(entry)}.py`), join(space.checkout, entry.model_file))
    }
    return zoo
  }

  /** @param file as PyTorch's hub names it @returns the path of its weights; undefined: no such network */
  async weights(file: string): Promise<string | undefined> {
    const entry = this.#byWeights.get(file)
    if (entry === undefined) return undefined
    const folder = join(this.#space.archives, 'weights')
    await mkdir(folder, { recursive: true })
    const path = join(folder, file)
    const names = join(this.#space.checkout, 'examples', 'image_classifier', 'index_to_name.json')
    const wanted = JSON.stringify(this.#predictions(entry.model_name))
    const args = [join(NETWORKS, 'make_weights.py'), kindOf(entry), path, names, wanted]
    await execa(join(this.#space.venvBin, 'python'), args, { stdin: 'ignore' })
    return path
  }

  #predictions(name: string): unknown {
    return Object.values(this.#answers.get(name) ?? {}).find(({ predict }) => predict)?.predict ?? {}
  }
}

function kindOf({ handler }: Entry): 'classifier' | 'detector' | 'segmenter' {
  if (handler === 'object_detector') return 'detector'
  return handler === 'image_segmenter' ? 'segmenter' : 'classifier'
}
