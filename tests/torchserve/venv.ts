import { existsSync } from 'node:fs'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { BUILD } from './places.ts'
import { execa } from '../support/tools.ts'

const FOLDER = join(BUILD, 'venv')
/** Written last, so that a broken installation is made again. */
const DONE = join(FOLDER, 'done')

/** What the tests import, as far as we run them; PyTorch is not among it. */
export const PACKAGES = [
  'pytest==8.4.2',
  'pytest-timeout==2.4.0',
  'requests==2.32.5',
  'orjson==3.11.3',
  'grpcio==1.75.1',
  'grpcio-tools==1.75.1',
  'googleapis-common-protos==1.70.0',
]

/** A Python environment of the harness, made in .build once. */
export interface Venv {
  /** Absolute folder of its commands. */
  readonly bin: string
  make(): Promise<void>
}

/** For the tests alone: the models are ours. */
export const TESTS_VENV: Venv = {
  bin: join(FOLDER, 'bin'),
  make: async () => {
    if (existsSync(DONE)) return
    await execa('python3', ['-m', 'venv', '--clear', FOLDER])
    await execa(join(FOLDER, 'bin', 'python'), ['-m', 'pip', 'install', '--quiet', ...PACKAGES])
    await writeFile(DONE, '')
  },
}
