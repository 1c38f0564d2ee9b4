import { setTimeout as wait } from 'node:timers/promises'
import { Metadata } from '@grpc/grpc-js'
import { inferenceClient, readAll, type GrpcError, type PredictionsRequest } from '../grpc-clients.ts'
import { RawRequest, type RawRequestOptions, rawRequest } from '../raw-http.ts'

type Ports = Readonly<Record<'inference' | 'management' | 'metrics' | 'grpcInference', number>>

/** JSON that is the same in every run of a server. */
export type Seen = unknown

/** What is seen of a request that is not answered. */
export const NO_ANSWER = 'no answer'
const ANSWER_LIMIT_MS = 4_000
export const JSON_TYPE = { 'content-type': 'application/json' }

/** TorchServe or this server, as a client of {@link DIFFERENCES} sees it. */
export class Peer {
  readonly ports: Ports
  readonly #models = new Map<string, Promise<unknown>>()

  constructor(ports: Ports) {
    this.ports = ports
  }

  /** Registers an archive of the store once, with a worker. */
  model(name: string): Promise<unknown> {
    const known = this.#models.get(name)
    if (known !== undefined) return known
    const path = `/models?url=${name}.mar&initial_workers=1`
    const registered = rawRequest(this.ports.management, path).then(({ status, body }) => {
      if (status !== 200) throw new Error(`${name}: ${body}`)
    })
    this.#models.set(name, registered)
    return registered
  }

  /** Status line, the headers of these names, and body. */
  async rest(
    port: keyof Ports,
    path: string,
    options: RawRequestOptions = {},
    ...headers: string[]
  ): Promise<Seen> {
    const request = new RawRequest(this.ports[port], path, options)
    const late = setTimeout(() => request.destroy(), ANSWER_LIMIT_MS)
    const { status, reason, headers: all, body, complete, chunks } = await request.done
    clearTimeout(late)
    if (status === 0) return NO_ANSWER
    const named = headers.flatMap((name) => (all[name] === undefined ? [] : [`${name}: ${all[name]}`]))
    const sent = all['transfer-encoding'] === 'chunked' ? chunks.map(String) : parsed(body)
    return [`${status} ${reason}`.trimEnd(), ...named, sent, ...(complete ? [] : ['broken off'])]
  }

  get(port: keyof Ports, path: string, ...headers: string[]): Promise<Seen> {
    return this.rest(port, path, { method: 'GET' }, ...headers)
  }

  post(path: string): Promise<Seen> {
    return this.rest('management', path)
  }

  /** A prediction with a JSON body. */
  async wish(model: string, wish: unknown, ...headers: string[]): Promise<Seen> {
    await this.model(model)
    const options = { headers: JSON_TYPE, body: JSON.stringify(wish) }
    return this.rest('inference', `/predictions/${model}`, options, ...headers)
  }

  /** These fields of the first version that describe shows. */
  async describe(model: string, ...fields: string[]): Promise<Seen> {
    const { body } = await rawRequest(this.ports.management, `/models/${model}`, { method: 'GET' })
    const [described] = JSON.parse(body) as Record<string, unknown>[]
    return fields.map((field) => described![field] ?? null)
  }

  /** Messages, and how the call ended: its status, or that it does not end. */
  async grpc(
    rpc: 'Predictions' | 'StreamPredictions',
    model: string,
    wish: unknown,
    metadata: Record<string, string> = {},
  ): Promise<Seen> {
    const client = inferenceClient(this.ports.grpcInference)
    const message = { model_name: model, input: { data: Buffer.from(JSON.stringify(wish)) } }
    const sent = new Metadata()
    for (const [name, value] of Object.entries(metadata)) sent.set(name, value)
    const { messages, error } = await within(
      rpc === 'StreamPredictions'
        ? readAll(client.StreamPredictions(message, sent))
        : new Promise<Ended>((resolve) => {
            client.Predictions(message, sent, (failed: GrpcError | null, reply) =>
              resolve(failed === null ? { messages: [reply!] } : { messages: [], error: failed }),
            )
          }),
    )
    client.close()
    return [...messages.map(({ prediction }) => prediction.toString()), ...ending(error)]
  }

  /**
   * Replies of StreamPredictions2 to these messages.
   * @param ends whether the client closes its side at once; it leaves after the first reply else
   */
  async duplex(messages: PredictionsRequest[], ends = false): Promise<Seen> {
    const client = inferenceClient(this.ports.grpcInference)
    const stream = client.StreamPredictions2()
    const replies: Seen[] = []
    const read = new Promise<Ended>((resolve) => {
      stream.on('data', ({ prediction, sequence_id: id, status }) => {
        replies.push([prediction.toString(), id ?? null, status?.code ?? null])
        if (!ends) resolve({ messages: [] })
      })
      stream.on('error', (error) => resolve({ messages: [], error }))
      stream.on('end', () => resolve({ messages: [] }))
    })
    for (const message of messages) stream.write(message)
    if (ends) stream.end()
    const { error } = await within(read)
    client.close()
    return [...replies, ...ending(error)]
  }
}

interface Ended {
  messages: { prediction: Buffer }[]
  error?: Pick<GrpcError, 'code' | 'details'>
}

async function within(ended: Promise<Ended>): Promise<Ended> {
  const stop = new AbortController()
  const late = wait(ANSWER_LIMIT_MS, { messages: [], error: { code: -1, details: NO_ANSWER } }, stop).catch(
    () => ({ messages: [] }),
  )
  try {
    return await Promise.race([ended, late])
  } finally {
    stop.abort()
  }
}

function ending(error: Ended['error']): Seen[] {
  return error === undefined ? [] : error.code === -1 ? [NO_ANSWER] : [[error.code, error.details]]
}

function parsed(body: string): Seen {
  try {
    return JSON.parse(body) as Seen
  } catch {
    return body
  }
}
