import { join } from 'node:path'
import { torchPython, TORCHSERVE_PACKAGES } from '../support/python/environments.ts'
import { makeOnce } from '../support/python/make-once.ts'
import { installPackages, makeVenv, purelib } from '../support/python/venv.ts'
import { BUILD } from './places.ts'
import { PACKAGES, type Venv } from './venv.ts'

const FOLDER = join(BUILD, 'venv-models')
/** What handlers of TorchServe's tests and its own handlers import beside PyTorch. */
const OF_HANDLERS = ['pillow', 'matplotlib', 'tqdm']
/** Their lists of dependencies would bring another PyTorch or an older numpy. */
const ALONE = ['torchvision', 'captum']

/**
 * For the tests and for Python models: TorchServe's worker, its archivers and PyTorch (from npm run
 * test:python).
 */
export const MODELS_VENV: Venv = {
  bin: join(FOLDER, 'bin'),
  make: async () => {
    const torch = await torchPython()
    if (torch === undefined) throw new Error('Python models need a Python 3 with venv and pip.')
    const content = JSON.stringify([torch.python, PACKAGES, TORCHSERVE_PACKAGES, OF_HANDLERS, ALONE])
    await makeOnce(FOLDER, content, async () => {
      await makeVenv(torch.python, FOLDER, [await purelib(torch.python)])
      await installPackages(FOLDER, [...PACKAGES, ...OF_HANDLERS])
      // Their commands must be in this folder too.
      await installPackages(FOLDER, ['--ignore-installed', ...TORCHSERVE_PACKAGES])
      await installPackages(FOLDER, ['--no-deps', '--ignore-installed', ...ALONE])
    })
  },
}
