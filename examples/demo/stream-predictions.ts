import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { credentials, loadPackageDefinition, type ClientReadableStream } from '@grpc/grpc-js'
import { loadSync } from '@grpc/proto-loader'
import { Timing } from './timing.ts'

interface PredictionsRequest {
  modelName: string
  input: Record<string, Buffer>
}

interface PredictionResponse {
  prediction: Buffer
}

/** The part of the generated client that is used here. */
interface InferenceClient {
  streamPredictions(request: PredictionsRequest): ClientReadableStream<PredictionResponse>
  waitForReady(deadline: Date, callback: (error?: Error) => void): void
  close(): void
}

const CONNECT_MS = 10_000
const PROTO_DIR = fileURLToPath(new URL('../../proto', import.meta.url))

/**
 * Calls StreamPredictions with a JSON input and counts its messages; the empty one at the end of a stream
 * does not count as text. Time starts with the call on the open connection.
 */
export async function streamOverGrpc(
  port: number,
  modelName: string,
  input: unknown,
  onText: (text: string) => void,
  signal: AbortSignal,
): Promise<Timing> {
  signal.throwIfAborted()
  const client = await connect(port)
  const timing = new Timing()
  const call = client.streamPredictions({ modelName, input: { data: Buffer.from(JSON.stringify(input)) } })
  const cancel = (): void => {
    call.cancel()
  }
  signal.addEventListener('abort', cancel)
  try {
    for await (const { prediction } of call as AsyncIterable<PredictionResponse>) {
      if (prediction.byteLength === 0) continue
      timing.part()
      onText(prediction.toString())
    }
    timing.end()
    return timing
  } finally {
    signal.removeEventListener('abort', cancel)
    client.close()
  }
}

async function connect(port: number): Promise<InferenceClient> {
  const definition = loadSync('inference.proto', { includeDirs: [PROTO_DIR], defaults: true })
  const loaded = loadPackageDefinition(definition) as unknown as {
    org: {
      pytorch: {
        serve: {
          grpc: { inference: { InferenceAPIsService: new (address: string, c: unknown) => InferenceClient } }
        }
      }
    }
  }
  const Service = loaded.org.pytorch.serve.grpc.inference.InferenceAPIsService
  const client = new Service(`127.0.0.1:${port}`, credentials.createInsecure())
  const deadline = new Date(Date.now() + CONNECT_MS)
  await promisify(client.waitForReady.bind(client))(deadline)
  return client
}
