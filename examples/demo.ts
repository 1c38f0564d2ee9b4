/**
 * `npm run demo`: packs the bundled model's handler, starts a server with the archive and streams one
 * completion token by token over chunked HTTP and over gRPC. Cleans up, also after Ctrl-C or a failure.
 */
import { ARCHIVES, packTinyLlama } from './demo/archive.ts'
import { streamOverHttp } from './demo/chunked-http.ts'
import { DemoServer } from './demo/server.ts'
import { streamOverGrpc } from './demo/stream-predictions.ts'
import type { Timing } from './demo/timing.ts'

const MODEL = 'tiny-llama'
const REQUEST = { prompt: 'In the beginning', max_tokens: 240, temperature: 0.7, top_p: 0.9, seed: 1 }

async function demo(signal: AbortSignal): Promise<void> {
  step('Packing the handler and the weights of tiny-llama ...')
  const archive = await packTinyLlama(signal)
  step(`Starting the server with .archives/${archive} ...`)
  const server = await DemoServer.start({ modelStore: ARCHIVES, models: [`${MODEL}=${archive}`], signal })
  try {
    step('Waiting for the model ...')
    await server.modelReady(MODEL, signal)
    await streams(server, signal)
  } finally {
    await server.stop()
  }
}

async function streams(server: DemoServer, signal: AbortSignal): Promise<void> {
  const overHttp = (body: object, onText: (text: string) => void): Promise<Timing> =>
    streamOverHttp({ port: server.inferencePort, path: `/predictions/${MODEL}`, body }, onText, signal)
  const overGrpc = (input: object, onText: (text: string) => void): Promise<Timing> =>
    streamOverGrpc(server.grpcPort, MODEL, input, onText, signal)

  step('Warming up: asking for one token over each protocol ...')
  await overHttp({ ...REQUEST, max_tokens: 1 }, () => undefined)
  await overGrpc({ ...REQUEST, max_tokens: 1 }, () => undefined)
  heading('chunked HTTP')
  const http = await overHttp(REQUEST, show)
  heading('StreamPredictions')
  const grpc = await overGrpc(REQUEST, show)
  step(`\n\n${http.line('chunked HTTP', 'chunks')}\n${grpc.line('StreamPredictions', 'messages')}`)
}

function step(text: string): void {
  process.stdout.write(`${text}\n`)
}

function heading(protocol: string): void {
  process.stdout.write(`\n--- ${protocol} ---\n${REQUEST.prompt}`)
}

function show(text: string): void {
  process.stdout.write(text)
}

const stopped = new AbortController()
for (const name of ['SIGINT', 'SIGTERM'] as const) {
  // Not `once`: execa's own listener exits the process when it is the only one.
  process.on(name, () => {
    stopped.abort(new Error(`Stopped by ${name}`))
  })
}
try {
  await demo(stopped.signal)
} catch (error) {
  process.stderr.write(`\ndemo: ${error instanceof Error ? error.message : String(error)}\n`)
  process.exitCode = stopped.signal.aborted ? 130 : 1
}
