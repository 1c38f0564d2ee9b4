import type { Case } from './run-cases.ts'

/** `answer(folder)` of a handler, whose folder is the model's. */
export const TYPESCRIPT_CASES: Readonly<Record<string, Case>> = {
  tmp: {
    source: `
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
export const answer = () =>
  [tmpdir(), '/tmp'].map((place) => {
    const folder = mkdtempSync(join(place, 'brought-'))
    writeFileSync(join(folder, 'a'), 'kept')
    const text = readFileSync(join(folder, 'a'), 'utf8')
    rmSync(folder, { recursive: true })
    return text
  })`,
    answer: ['kept', 'kept'],
  },
  threads: {
    source: `
import { once } from 'node:events'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { Worker } from 'node:worker_threads'
const SQUARE = "const { parentPort, workerData } = require('node:worker_threads'); parentPort.postMessage(workerData ** 2)"
export const answer = async (folder: string) => {
  writeFileSync(join(folder, 'square.cjs'), SQUARE)
  const threads = [new Worker(SQUARE, { eval: true, workerData: 2 }), new Worker(join(folder, 'square.cjs'), { workerData: 3 })]
  return Promise.all(threads.map(async (thread) => (await once(thread, 'message'))[0] as number))
}`,
    answer: [4, 9],
  },
  forked: {
    source: `
import { fork } from 'node:child_process'
import { once } from 'node:events'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
export const answer = async (folder: string) => {
  writeFileSync(join(folder, 'child.cjs'), "process.once('message', (n) => process.send(n * n, () => process.exit(0)))")
  const child = fork(join(folder, 'child.cjs'))
  const exit = once(child, 'exit')
  child.send(4)
  const [square] = await once(child, 'message')
  return [square as number, (await exit)[0] as number]
}`,
    answer: [16, 0],
  },
  git: {
    source: `
import { execFileSync } from 'node:child_process'
export const answer = (folder: string) => {
  execFileSync('git', ['init', '--quiet', folder])
  return execFileSync('git', ['-C', folder, 'rev-parse', '--is-inside-work-tree'], { encoding: 'utf8' })
}`,
    answer: 'true\n',
    needs: { command: 'git' },
  },
  ffmpeg: {
    source: `
import { execFileSync } from 'node:child_process'
const ARGS = '-v error -f lavfi -i sine -t 0.1 -f wav -'.split(' ')
export const answer = () => execFileSync('ffmpeg', ARGS).subarray(0, 4).toString()`,
    answer: 'RIFF',
    needs: { command: 'ffmpeg' },
  },
  llama: {
    source: `
import { join } from 'node:path'
import { getLlama, LlamaCompletion, LlamaLogLevel } from 'node-llama-cpp'
export const answer = async (folder: string) => {
  const llama = await getLlama({ gpu: false, maxThreads: 1, logLevel: LlamaLogLevel.error })
  const model = await llama.loadModel({ modelPath: join(folder, 'model.gguf') })
  const context = await model.createContext({ contextSize: 256 })
  const completion = new LlamaCompletion({ contextSequence: context.getSequence() })
  const text = await completion.generateCompletion('In the beginning', { maxTokens: 8, temperature: 0 })
  await llama.dispose()
  return text.length > 0
}`,
    answer: true,
  },
  sharp: {
    source: `
import sharp from 'sharp'
const RED = { width: 8, height: 8, channels: 3, background: 'red' } as const
export const answer = async () => {
  const picture = await sharp({ create: RED }).resize(4, 2).png().toBuffer()
  const { width, height, format } = await sharp(picture).metadata()
  return [width, height, format]
}`,
    answer: [4, 2, 'png'],
    needs: { package: 'sharp' },
  },
  onnx: {
    source: `
import { join } from 'node:path'
import { InferenceSession, Tensor } from 'onnxruntime-node'
export const answer = async (folder: string) => {
  const session = await InferenceSession.create(join(folder, 'double.onnx'))
  const { y } = await session.run({ x: new Tensor('float32', [1, 2]) })
  return Array.from(y!.data as Float32Array)
}`,
    answer: [2, 4],
    needs: { package: 'onnxruntime-node' },
  },
}

/** What the rig puts behind it. */
export const TYPESCRIPT_HANDLE = `
interface Context { properties: { modelDir: string } }
export const handle = async (requests: unknown[], context: Context) =>
  Promise.all(requests.map(async () => ({ answer: await answer(context.properties.modelDir) })))
`
