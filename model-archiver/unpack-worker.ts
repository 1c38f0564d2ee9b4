/**
 * The thread that unpacks one archive: takes an UnpackTask, answers with one UnpackAnswer. See
 * unpack-thread.ts.
 */
import { parentPort, workerData } from 'node:worker_threads'
import { asArchiveError, unpackInto, type UnpackTask } from './unpack-into.ts'
import type { UnpackAnswer } from './unpack-thread.ts'

let answer: UnpackAnswer
try {
  answer = { identity: await unpackInto(workerData as UnpackTask) }
} catch (error) {
  answer = { error: asArchiveError(error).toWire() }
}
parentPort!.postMessage(answer)
