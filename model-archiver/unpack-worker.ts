/** The thread that unpacks archives: answers each UnpackTask with one UnpackAnswer. See unpack-thread.ts. */
import { parentPort } from 'node:worker_threads'
import { asArchiveError, unpackInto, type UnpackTask } from './unpack-into.ts'
import type { UnpackAnswer } from './unpack-thread.ts'

async function unpack(task: UnpackTask): Promise<UnpackAnswer> {
  try {
    return { identity: await unpackInto(task) }
  } catch (error) {
    return { error: asArchiveError(error).toWire() }
  }
}

parentPort!.on('message', (task: UnpackTask) => {
  void unpack(task).then((answer) => parentPort!.postMessage(answer))
})
