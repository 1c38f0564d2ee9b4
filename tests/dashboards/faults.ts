import { rm, writeFile } from 'node:fs/promises'
import { connect, type Socket } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import type { RawRequest } from '../support/raw-http.ts'
import type { Subject } from './subject.ts'

/** What makes alerts fire. */
export interface Fault {
  /** Names without `TorchServeTs`. */
  readonly alerts: readonly string[]
  /** Goes on until `end`; resolves when it is under way. */
  begin(): Promise<void>
  end(): Promise<void>
}

export interface FaultsOptions {
  readonly subject: Subject
  /** Is killed and comes back. */
  readonly spare: Subject
  /** As models.ts has it. */
  readonly gate: string
  /** While it exists, the disk is full. */
  readonly fullDisk: string
}

const REPEAT_MS = 200
/** After more, a worker waits longer each time until it starts again. */
const KILLS = 4

export function faultsOf({ subject, spare, gate, fullDisk }: FaultsOptions): Fault[] {
  return [
    {
      alerts: ['ServerGone'],
      begin: async () => {
        await spare.server.stop('SIGKILL')
      },
      end: () => spare.restart(),
    },
    {
      alerts: ['ModelDown'],
      begin: async () => {
        await rm(`${gate}.works`)
        process.kill((await subject.server.worker('gated')).pid, 'SIGKILL')
      },
      end: () => writeFile(`${gate}.works`, ''),
    },
    repeated(['WorkersRestart'], () => subject.killWorker('victim'), KILLS),
    new FullQueue(subject),
    repeated(['RequestsFail'], () => subject.ask('m/1.0', 'fail 1.0')),
    repeated(['TokensRefused'], () => subject.guess()),
    new ManyConnections(subject),
    {
      alerts: ['DiskNearlyFull'],
      begin: () => writeFile(fullDisk, ''),
      end: () => rm(fullDisk),
    },
  ]
}

/** Does something again and again, one at a time. */
function repeated(alerts: readonly string[], act: () => Promise<unknown>, times = Infinity): Fault {
  let isOn = true
  let running = Promise.resolve()
  const run = async (): Promise<void> => {
    for (let k = 0; k < times && isOn; k += 1) {
      await act()
      await sleep(REPEAT_MS)
    }
  }
  return {
    alerts,
    begin: () => {
      running = run()
      // Told where the fault ends.
      running.catch(() => undefined)
      return Promise.resolve()
    },
    end: () => {
      isOn = false
      return running
    },
  }
}

/** A stream that does not end holds the only slot, others wait, and further ones are refused. */
class FullQueue implements Fault {
  readonly alerts = ['QueueGrows', 'FirstItemsLate']
  readonly #subject: Subject
  #holder: RawRequest | undefined
  readonly #waiting: RawRequest[] = []

  constructor(subject: Subject) {
    this.#subject = subject
  }

  async begin(): Promise<void> {
    this.#holder = this.#subject.open('narrow', { n: 2, gated: true, id: 'holder' })
    await this.#holder.gotChunks(1)
    for (let k = 0; k < 8; k += 1) this.#waiting.push(this.#subject.open('narrow', { n: 2, delay: 5 }))
    // Their first items come when they have waited: late.
    setTimeout(() => this.#holder?.destroy(), 16_000)
  }

  async end(): Promise<void> {
    this.#holder?.destroy()
    const answers = await Promise.all(this.#waiting.map(({ done }) => done))
    const statuses = answers.map(({ status }) => status).sort()
    const expected = [200, 200, 200, 200, 503, 503, 503, 503]
    if (String(statuses) !== String(expected)) throw new Error(`The queue answered ${statuses.join()}`)
  }
}

/** More connections than one address may have, from an address that nobody else uses. */
class ManyConnections implements Fault {
  readonly alerts = ['ConnectionsRefused']
  readonly #subject: Subject
  readonly #sockets: Socket[] = []

  constructor(subject: Subject) {
    this.#subject = subject
  }

  begin(): Promise<void> {
    const port = this.#subject.server.ports.inference
    for (let k = 0; k < 100; k += 1) {
      const socket = connect({ port, host: '127.0.0.1', localAddress: '127.0.0.2' })
      this.#sockets.push(socket.on('error', () => undefined).resume())
    }
    return Promise.resolve()
  }

  end(): Promise<void> {
    for (const socket of this.#sockets) socket.destroy()
    return Promise.resolve()
  }
}
