import { existsSync } from 'node:fs'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { execa } from 'execa'
import { BUILD } from './places.ts'

const FOLDER = join(BUILD, 'venv')
/** Written last, so that a broken installation is made again. */
const DONE = join(FOLDER, 'done')

/** What the tests import, as far as we run them; PyTorch is not among it. */
const PACKAGES = [
  'pytest==8.4.2',
  'pytest-timeout==2.4.0',
  'requests==2.32.5',
  'orjson==3.11.3',
  'grpcio==1.75.1',
  'grpcio-tools==1.75.1',
  'googleapis-common-protos==1.70.0',
]

export const VENV_BIN = join(FOLDER, 'bin')

/** Makes the Python environment of TorchServe's pytest files in .build once. */
export async function makeVenv(): Promise<void> {
  if (existsSync(DONE)) return
  await execa('python3', ['-m', 'venv', '--clear', FOLDER])
  await execa(join(VENV_BIN, 'python'), ['-m', 'pip', 'install', '--quiet', ...PACKAGES])
  await writeFile(DONE, '')
}
