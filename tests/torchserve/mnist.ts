import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { execa } from 'execa'
import { PYTHON_STAND_INS } from './places.ts'
import type { Workspace } from './workspace.ts'

/** Gives TorchServe's MNIST example weights where the checkout has none. */
export async function trainMnist(space: Workspace): Promise<void> {
  const example = join(space.checkout, 'examples', 'image_classifier', 'mnist')
  if (existsSync(join(example, 'mnist_cnn.pt'))) return
  const python = join(space.venvBin, 'python')
  await execa(python, [join(PYTHON_STAND_INS, 'train_mnist.py'), example], { stdin: 'ignore' })
}
