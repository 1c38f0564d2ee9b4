import { existsSync } from 'node:fs'
import { copyFile } from 'node:fs/promises'
import { join } from 'node:path'
import { PYTHON_STAND_INS } from './places.ts'
import type { Workspace } from './workspace.ts'
import { execa } from '../support/tools.ts'

/**
 * Gives TorchServe's MNIST example weights if the checkout has none; its stateful example uses the same
 * network.
 */
export async function trainMnist(space: Workspace): Promise<void> {
  const example = join(space.checkout, 'examples', 'image_classifier', 'mnist')
  const weights = join(example, 'mnist_cnn.pt')
  const stateful = join(space.checkout, 'examples', 'stateful', 'model_cnn.pt')
  if (!existsSync(weights)) {
    const python = join(space.venvBin, 'python')
    await execa(python, [join(PYTHON_STAND_INS, 'train_mnist.py'), example], { stdin: 'ignore' })
  }
  if (!existsSync(stateful)) await copyFile(weights, stateful)
}
