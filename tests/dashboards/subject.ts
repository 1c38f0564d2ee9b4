import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { rawRequest, RawRequest, type RawResponse } from '../support/raw-http.ts'
import { launchServer, type PlacedOptions, type Server, started } from '../support/server-process.ts'

/** A server under test with tokens on, whose metrics keep their port over a new start. */
export class Subject {
  readonly #options: PlacedOptions
  #server: Server | undefined
  #key = ''

  private constructor(options: PlacedOptions) {
    this.#options = options
  }

  static async start(options: PlacedOptions): Promise<Subject> {
    const subject = new Subject(options)
    await subject.restart()
    return subject
  }

  get server(): Server {
    return this.#server!
  }

  /** Starts it, the first time or again. */
  async restart(): Promise<void> {
    const server = (this.#server = launchServer(this.#options))
    await started(server)
    const text = readFileSync(join(server.folder, 'key_file.json'), 'utf8')
    const keys = JSON.parse(text) as Record<'inference' | 'management', { key: string }>
    server.headers = { authorization: `Bearer ${keys.management.key}` }
    this.#key = `Bearer ${keys.inference.key}`
  }

  /** A request for inference with a token that is accepted. */
  ask(model: string, body: object | string): Promise<RawResponse> {
    return this.open(model, body).done
  }

  /** The same, while it runs. */
  open(model: string, body: object | string): RawRequest {
    const text = typeof body === 'string' ? body : JSON.stringify(body)
    const headers = { authorization: this.#key, 'content-type': 'application/json' }
    return new RawRequest(this.server.ports.inference, `/predictions/${model}`, { headers, body: text })
  }

  /** A request with a token of nobody. */
  guess(): Promise<RawResponse> {
    const headers = { authorization: 'Bearer wrong' }
    return rawRequest(this.server.ports.inference, '/ping', { method: 'GET', headers })
  }

  /** Sets the weights between a model's versions. */
  async weigh(model: string, plan: object): Promise<void> {
    const { ports, headers } = this.server
    const body = JSON.stringify(plan)
    const path = `/models/${model}/traffic`
    const answer = await rawRequest(ports.management, path, { method: 'PUT', headers, body })
    if (answer.status !== 200) throw new Error(answer.body)
  }

  /** Ends the processes of a model's first worker, and waits until it serves again. */
  async killWorker(model: string): Promise<void> {
    const { pid } = await this.server.worker(model)
    process.kill(pid, 'SIGKILL')
    await this.server.until(
      () => this.server.worker(model),
      (worker) => worker.pid !== pid && worker.status === 'READY',
    )
  }
}
