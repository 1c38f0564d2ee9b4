import { call, inferenceClient, readAll, type GrpcError } from '../grpc-clients.ts'
import { RawRequest, type RawResponse } from '../raw-http.ts'
import type { Server } from '../server.ts'

const JSON_TYPE = { 'content-type': 'application/json' }

/** Milliseconds that workers may take to load, or to come back; with the real PyTorch each takes seconds. */
export const PYTHON_MS = 150_000

/** Waits until the workers of these models are loaded. */
export async function allReady(server: Server, models: readonly string[]): Promise<void> {
  await Promise.all(models.map((model) => server.ready(model, PYTHON_MS)))
}

/** Begins a prediction with a JSON body. */
export function begin(
  server: Server,
  model: string,
  body: unknown,
  headers: Record<string, string> = {},
): RawRequest {
  return new RawRequest(server.ports.inference, `/predictions/${model}`, {
    headers: { ...JSON_TYPE, ...headers },
    body: JSON.stringify(body),
  })
}

/** The whole answer to one. */
export function predict(
  server: Server,
  model: string,
  body: unknown,
  headers?: Record<string, string>,
): Promise<RawResponse> {
  return begin(server, model, body, headers).done
}

/** The parsed answer; fails unless it is 200. */
export async function answerOf<T = Record<string, unknown>>(
  server: Server,
  model: string,
  body: unknown,
  headers?: Record<string, string>,
): Promise<T> {
  const response = await predict(server, model, body, headers)
  if (response.status !== 200) throw new Error(`${response.status}: ${response.body}`)
  return JSON.parse(response.body) as T
}

/** The error that REST answered: status, and the message of TorchServe's JSON. */
export function errorOf({ status, body }: RawResponse): [number, string] {
  return [status, (JSON.parse(body) as { message: string }).message]
}

/** The same over gRPC, whose clients send no content type: the handler has to parse its bytes. */
export class GrpcPredictor {
  readonly #client: ReturnType<typeof inferenceClient>

  constructor(server: Server) {
    this.#client = inferenceClient(server.ports.grpcInference)
  }

  async unary(model: string, body: unknown): Promise<string> {
    const { prediction } = await call(this.#client, this.#client.Predictions, input(model, body))
    return prediction.toString()
  }

  async unaryError(model: string, body: unknown): Promise<[number, string]> {
    try {
      await this.unary(model, body)
    } catch (thrown) {
      const { code, details } = thrown as GrpcError
      return [code, details.split('\n')[0]!]
    }
    throw new Error('The call was answered')
  }

  async stream(model: string, body: unknown): Promise<{ items: string[]; code: number | undefined }> {
    const { messages, error } = await readAll(this.#client.StreamPredictions(input(model, body)))
    return { items: messages.map(({ prediction }) => prediction.toString()), code: error?.code }
  }

  begin(model: string, body: unknown) {
    return this.#client.StreamPredictions(input(model, body))
  }

  close(): void {
    this.#client.close()
  }
}

function input(model: string, body: unknown) {
  return { model_name: model, input: { body: Buffer.from(JSON.stringify(body)) } }
}
