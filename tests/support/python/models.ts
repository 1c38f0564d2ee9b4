import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { PythonArchive } from './archive.ts'

const HANDLERS = join(import.meta.dirname, 'model-handlers')

/** Python models of the tests; they need nothing of PyTorch. */
export const PYTHON_MODELS: readonly PythonArchive[] = [
  { name: 'plain', handler: source('plain') },
  {
    name: 'answers',
    handler: source('answers'),
    config: 'minWorkers: 1\nmaxWorkers: 1\nhandler:\n  greeting: hello\n',
  },
  { name: 'stream', handler: source('stream'), format: 'tgz' },
  { name: 'batches', handler: source('plain'), config: workers('batchSize: 4\nmaxBatchDelay: 600000') },
  {
    name: 'sums',
    handler: source('sums'),
    config: workers(
      'batchSize: 2\nmaxBatchDelay: 10\nsequenceBatching: true\nsequenceMaxIdleMSec: 20000\n' +
        'maxNumSequence: 4\nmaxSequenceJobQueueSize: 10',
    ),
  },
  {
    name: 'steps',
    handler: source('steps'),
    config: workers('batchSize: 4\nmaxBatchDelay: 50\ncontinuousBatching: true'),
  },
  { name: 'slowly', handler: source('slowly'), config: workers('asyncCommunication: true\nbatchSize: 1') },
]

/** Source of one of the handlers. */
export function source(name: string): string {
  return readFileSync(join(HANDLERS, `${name}.py`), 'utf8')
}

function workers(more: string): string {
  return `minWorkers: 1\nmaxWorkers: 1\n${more}\n`
}
