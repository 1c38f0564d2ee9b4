import type { Socket } from 'node:net'
import { type Channel, workerChannel } from '../protocol/channel.ts'
import { ServeError } from '../common/errors.ts'
import {
  type FromWorker,
  type LoadMessage,
  PROTOCOL_VERSION,
  type PredictMessage,
  type ToWorker,
} from '../protocol/messages.ts'
import { within } from '../common/timer.ts'
import { describeThrown } from './handler-error.ts'
import { type RunningModel, loadModel } from './load.ts'
import type { Rank } from './model.ts'

/** Milliseconds that running requests get to react to their abort, and the handler's `shutdown`, each. */
const LEAVE_GRACE_MS = 2500
/** Milliseconds for the frontend to take what was sent and to close its side. */
const CLOSE_GRACE_MS = 2000

export interface WorkerSessionEvents {
  /**
   * Called once, when the connection is gone and nothing runs any more. `trouble` is set unless it ended
   * normally.
   */
  onEnd(trouble?: string): void
}

/** The worker's side of its one connection: handles the frontend's messages. */
export class WorkerSession {
  readonly #channel: Channel<FromWorker>
  readonly #rank: Rank
  #loading = false
  #loaded: RunningModel | undefined
  #unloading = false
  #left: Promise<void> | undefined
  #trouble: string | undefined
  readonly #closed: Promise<void>

  constructor(socket: Socket, rank: Rank, maxFrameBytes: number, events: WorkerSessionEvents) {
    this.#rank = rank
    this.#closed = new Promise((resolve) => socket.once('close', () => resolve()))
    this.#channel = workerChannel(socket, maxFrameBytes, {
      onMessage: (message) => this.#receive(message),
      onClose: (error) => {
        const trouble = this.#trouble ?? (error && `The connection to the frontend broke: ${error.message}`)
        void this.#leave().then(() => events.onEnd(trouble))
      },
    })
    this.#channel.send({
      type: 'ready',
      protocolVersion: PROTOCOL_VERSION,
      pid: process.pid,
      rank: rank.rank,
      runtime: `node ${process.versions.node}`,
    })
  }

  /** Finishes running requests, accepts no new ones, then exits. Exits at once if no model is loaded. */
  async unload(): Promise<void> {
    this.#unloading = true
    this.#giveBack(this.#loaded?.service.withdrawAll() ?? [])
    await this.#loaded?.service.idle()
    await this.end()
  }

  /** The frontend is gone: cancels running requests and exits. */
  async end(): Promise<void> {
    await this.#leave()
    this.#channel.close()
    await within(CLOSE_GRACE_MS, this.#closed)
  }

  #receive(message: ToWorker): void {
    switch (message.type) {
      case 'load':
        void this.#load(message)
        return
      case 'predict':
        this.#predict(message)
        return
      case 'withdraw':
        this.#giveBack(this.#loaded?.service.withdraw(message.ids) ?? [])
        return
      case 'input':
        this.#loaded?.service.input(message)
        return
      case 'cancel':
        this.#loaded?.service.cancel(message.id, message.reason)
        return
      case 'credit':
        this.#loaded?.service.credit(message.id, message.bytes)
        return
      case 'sequenceEnd':
        this.#loaded?.service.endSequence(message.sequence)
        return
      case 'ping':
        this.#channel.send({ type: 'pong', nonce: message.nonce })
        return
      case 'unload':
        void this.unload()
        return
      default:
        message satisfies never
    }
  }

  async #load(message: LoadMessage): Promise<void> {
    if (this.#loading) {
      this.#channel.close(new ServeError('PROTOCOL', 'A worker accepts only one load message'))
      return
    }
    this.#loading = true
    try {
      this.#loaded = await loadModel(message, this.#rank, this.#channel)
      this.#channel.send({ type: 'loaded', methods: this.#loaded.service.methods })
    } catch (thrown) {
      const error = ServeError.from(thrown)
      this.#trouble = `The handler did not load: ${error.detail ?? error.message}`
      this.#channel.send({ type: 'loaded', error: error.toWire() })
      this.#channel.close()
    }
  }

  #predict(message: PredictMessage): void {
    const service = this.#loaded?.service
    if (message.after === true && this.#unloading) {
      this.#giveBack(message.requests.map(({ id }) => id))
      return
    }
    if (service === undefined || this.#unloading) {
      const error = new ServeError('SHUTTING_DOWN', 'The worker has no model').toWire()
      for (const { id } of message.requests) this.#channel.send({ type: 'failure', id, error })
      return
    }
    const known = message.requests.find(({ id }) => service.has(id))
    if (known !== undefined) throw new ServeError('PROTOCOL', `Request ${known.id} is already open`)
    service.predict(message)
  }

  #giveBack(ids: number[]): void {
    if (ids.length > 0) this.#channel.send({ type: 'withdrawn', ids })
  }

  /** Runs `shutdown` once; later callers get the same promise. */
  #leave(): Promise<void> {
    return (this.#left ??= this.#stop())
  }

  async #stop(): Promise<void> {
    this.#unloading = true
    const loaded = this.#loaded
    if (loaded === undefined) return
    this.#loaded = undefined
    loaded.service.withdrawAll()
    loaded.service.cancelAll('shutdown')
    await within(LEAVE_GRACE_MS, loaded.service.idle())
    loaded.service.endSequences()
    try {
      await within(LEAVE_GRACE_MS, loaded.handler.shutdown?.())
    } catch (thrown) {
      process.stderr.write(`The handler threw in shutdown: ${describeThrown(thrown)}\n`)
    }
    loaded.service.flushMetrics()
  }
}
