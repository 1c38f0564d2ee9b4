import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { SeenAnswer } from './exchanges.ts'

/** What TorchServe 0.12.0 answered to each exchange; tests/torch/recording.test.ts makes and checks it. */
const RECORDING = join(import.meta.dirname, 'torchserve-answers.json')

export type Recording = Readonly<Record<string, SeenAnswer>>

export function readRecording(): Recording {
  return JSON.parse(readFileSync(RECORDING, 'utf8')) as Recording
}

export function writeRecording(recording: Recording): void {
  writeFileSync(RECORDING, `${JSON.stringify(recording, null, 2)}\n`)
}
