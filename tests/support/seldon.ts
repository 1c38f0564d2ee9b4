import { setTimeout as wait } from 'node:timers/promises'
import { Metadata, status as Status } from '@grpc/grpc-js'
import { call as callOf, type GrpcError, inferenceV2Client, type Message } from './grpc-clients.ts'

/*
 * What Seldon Core 2 does between a client and the model server, from its public source:
 * scheduler/pkg/agent/rproxy_grpc.go and rproxy.go (the agent's proxies), modelserver_controlplane/oip/v2.go
 * (its calls), util/constants.go (limits) and envoy/xdscache/resource.go (Envoy's routes). The retries of a
 * call are those of go-grpc-middleware/retry (its default codes), those of a route Envoy's ("router filter").
 */

/** Attempts of each call of the agent: GRPCRetryMaxCount. */
const GRPC_ATTEMPTS = 5
/** Envoy's attempts of each HTTP request: the first one and five retries. */
const ENVOY_ATTEMPTS = 6
/** Milliseconds that a model may take to load and to unload: GRPCModelServerLoadTimeout, ...UnloadTimeout. */
const LOAD_DEADLINE_MS = 60 * 60_000
const UNLOAD_DEADLINE_MS = 2 * 60_000

const REPEATED: ReadonlySet<number> = new Set([Status.RESOURCE_EXHAUSTED, Status.UNAVAILABLE])
const LOADED: ReadonlySet<number> = new Set([Status.NOT_FOUND, Status.UNAVAILABLE])

/** Whether the agent's client sends the call again. */
export function agentRepeats(code: number): boolean {
  return REPEATED.has(code)
}

/** Whether the agent loads the model, and then sends the call again. */
export function agentLoads(code: number): boolean {
  return LOADED.has(code)
}

/** The same for a status of REST; the agent repeats nothing else there. */
export function agentLoadsAfter(status: number): boolean {
  return status === 404 || status === 400
}

/** Whether Envoy sends the request again: `5xx`, unless the response forbids it. */
export function envoyRepeats(status: number, isRateLimited: boolean): boolean {
  return status >= 500 && !isRateLimited
}

/** How one request ended, and what it cost. */
export interface Ended {
  /** The last status: of gRPC, or of HTTP. */
  status: number
  /** Times that the server got it. */
  attempts: number
  /** Times that the agent loaded the model for it. */
  loads: number
  text: string
}

/** Seldon's agent and Envoy before one server. */
export class Seldon {
  readonly #client: ReturnType<typeof inferenceV2Client>
  readonly #http: string
  readonly #backoffMs: number
  /** All calls of RepositoryModelLoad that requests caused. */
  reloads = 0

  /** @param backoffMs first pause before a repeated call; the agent's is 100 ms, and doubles */
  constructor(ports: { inference: number; openInference: number }, backoffMs = 100) {
    this.#client = inferenceV2Client(ports.openInference, 'mlserver')
    this.#http = `http://127.0.0.1:${ports.inference}`
    this.#backoffMs = backoffMs
  }

  close(): void {
    this.#client.close()
  }

  /** The scheduler wants the model: the agent tries once with each of its attempts. */
  async load(name: string): Promise<number> {
    return (await this.#attempt('RepositoryModelLoad', { model_name: name }, LOAD_DEADLINE_MS)).status
  }

  async unload(name: string): Promise<number> {
    return (await this.#attempt('RepositoryModelUnload', { model_name: name }, UNLOAD_DEADLINE_MS)).status
  }

  /** What its sub-service checker asks before it reports the server as there. */
  async isLive(): Promise<boolean> {
    const { live } = await this.#call('ServerLive', {})
    return live === true
  }

  async state(name: string): Promise<unknown> {
    const { models } = await this.#call('RepositoryIndex', {})
    return (models as Message[]).find((model) => model['name'] === name)?.['state']
  }

  /** A gRPC request: retries, then a load and retries again if the model seems to be gone. */
  async infer(model: string, text: string): Promise<Ended> {
    const request = { model_name: model, inputs: [textInput(Buffer.from(text))] }
    const first = await this.#attempt('ModelInfer', request)
    if (!agentLoads(first.status)) return { ...first, loads: 0 }
    await this.#reload(model)
    const second = await this.#attempt('ModelInfer', request)
    return { ...second, attempts: first.attempts + second.attempts, loads: 1 }
  }

  /** A REST request through Envoy. */
  async post(model: string, body: string): Promise<Ended> {
    const cost = { attempts: 0, loads: 0 }
    for (let attempt = 1; ; attempt += 1) {
      const response = await this.#proxied(model, body, cost)
      const { status, headers } = response
      const again = envoyRepeats(status, headers.has('x-envoy-ratelimited'))
      if (!again || attempt === ENVOY_ATTEMPTS) return { status, ...cost, text: await response.text() }
      await wait(this.#backoffMs)
    }
  }

  async #proxied(model: string, body: string, cost: { attempts: number; loads: number }): Promise<Response> {
    const send = (): Promise<Response> => {
      cost.attempts += 1
      return fetch(`${this.#http}/v2/models/${model}/infer`, { method: 'POST', body })
    }
    const response = await send()
    if (!agentLoadsAfter(response.status)) return response
    cost.loads += 1
    await this.#reload(model)
    return send()
  }

  async #reload(model: string): Promise<void> {
    this.reloads += 1
    await this.load(model)
  }

  #call(rpc: string, request: Message, deadlineMs?: number): Promise<Message> {
    const deadline = deadlineMs === undefined ? {} : { deadline: Date.now() + deadlineMs }
    return callOf<Message, Message>(this.#client, this.#client[rpc]!, request, new Metadata(), deadline)
  }

  async #attempt(rpc: string, request: Message, deadlineMs?: number): Promise<Omit<Ended, 'loads'>> {
    for (let attempts = 1; ; attempts += 1) {
      const ended = await this.#call(rpc, request, deadlineMs).then(
        (answer) => ({ status: 0, text: textOf(answer) }),
        (thrown: unknown) => {
          const { code, details } = thrown as GrpcError
          return { status: code, text: details }
        },
      )
      if (!agentRepeats(ended.status) || attempts === GRPC_ATTEMPTS) return { ...ended, attempts }
      await wait(this.#backoffMs * 2 ** (attempts - 1))
    }
  }
}

/** A body of the protocol with one text. */
export function bodyOf(text: string): string {
  return JSON.stringify({ inputs: [{ name: 'data', shape: [1], datatype: 'BYTES', data: [text] }] })
}

function textInput(text: Buffer): Message {
  return { name: 'data', shape: [1], datatype: 'BYTES', contents: { bytes_contents: [text] } }
}

function textOf(answer: Message): string {
  const [output] = (answer['outputs'] ?? []) as { contents: { bytes_contents: Buffer[] } | null }[]
  return Buffer.concat(output?.contents?.bytes_contents ?? []).toString()
}
