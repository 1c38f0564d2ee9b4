import {
  status as Status,
  type sendUnaryData,
  type ServerUnaryCall,
  type ServerWritableStream,
  type UntypedServiceImplementation,
} from '@grpc/grpc-js'
import { callOf } from './call.ts'
import { groupOf } from '../../../common/addresses.ts'

interface HealthCheckRequest {
  service?: string
}

type ServingStatus = 'SERVING' | 'NOT_SERVING' | 'SERVICE_UNKNOWN'
type Watcher = ServerWritableStream<HealthCheckRequest, { status: ServingStatus }>

interface Watch {
  /** What it was told last. */
  told: ServingStatus
  /** Of the client; IPv6: its network. */
  readonly address: string
}

/** How often the state is looked at while somebody watches it. */
const WATCH_INTERVAL_MS = 1_000
const MAX_WATCHERS = 100

/**
 * grpc.health.v1: asks for no token, because those who probe (Kubernetes, load balancers) cannot send one; it
 * tells nothing but whether the server can work.
 */
export class HealthService {
  readonly #services: ReadonlySet<string>
  readonly #isServing: () => Promise<boolean>
  /** The oldest first. */
  readonly #watchers = new Map<Watcher, Watch>()
  #timer: NodeJS.Timeout | undefined
  #closed = false

  /** `services`: the names that can be asked for, besides the empty one. */
  constructor(services: readonly string[], isServing: () => Promise<boolean>) {
    this.#services = new Set(['', ...services])
    this.#isServing = isServing
  }

  implementation(): UntypedServiceImplementation {
    return { Check: this.#check, Watch: this.#watch }
  }

  /** Tells the watchers that the server stops, and ends them: they would hold up its end. */
  close(): void {
    this.#closed = true
    for (const watcher of this.#watchers.keys()) {
      watcher.write({ status: 'NOT_SERVING' })
      watcher.end()
    }
  }

  readonly #check = (
    call: ServerUnaryCall<HealthCheckRequest, { status: ServingStatus }>,
    respond: sendUnaryData<{ status: ServingStatus }>,
  ): void => {
    void this.#state(call.request).then((state) => {
      if (state === 'SERVICE_UNKNOWN') respond({ code: Status.NOT_FOUND, details: 'unknown service' })
      else respond(null, { status: state })
    })
  }

  readonly #watch = (call: Watcher): void => {
    const address = groupOf(callOf(call).address)
    if (this.#closed || !this.#makesRoom(address)) {
      refuse(call)
      return
    }
    this.#watchers.set(call, { told: 'SERVICE_UNKNOWN', address })
    call.on('cancelled', () => this.#forget(call))
    void this.#tell(call, true)
    this.#timer ??= setInterval(() => {
      for (const watcher of this.#watchers.keys()) void this.#tell(watcher, false)
    }, WATCH_INTERVAL_MS)
  }

  /** When all places are taken, the address with the most of them gives one to an address with fewer. */
  #makesRoom(address: string): boolean {
    if (this.#watchers.size < MAX_WATCHERS) return true
    const counts = new Map<string, number>()
    for (const watch of this.#watchers.values())
      counts.set(watch.address, (counts.get(watch.address) ?? 0) + 1)
    const most = Math.max(...counts.values())
    if (most <= (counts.get(address) ?? 0) + 1) return false
    for (const [watcher, watch] of this.#watchers) {
      if (counts.get(watch.address) !== most) continue
      this.#forget(watcher)
      refuse(watcher)
      return true
    }
    return false
  }

  /** Changes only, except at first; a watcher that does not read is not written to. */
  async #tell(watcher: Watcher, first: boolean): Promise<void> {
    const state = await this.#state(watcher.request)
    const watch = this.#watchers.get(watcher)
    if (this.#closed || watch === undefined || (!first && watch.told === state) || watcher.writableNeedDrain)
      return
    watch.told = state
    watcher.write({ status: state })
  }

  /** Also called after a normal end, see docs of `cancelled` in grpc-js. */
  #forget(watcher: Watcher): void {
    this.#watchers.delete(watcher)
    if (this.#watchers.size > 0) return
    clearInterval(this.#timer)
    this.#timer = undefined
  }

  async #state({ service = '' }: HealthCheckRequest): Promise<ServingStatus> {
    if (!this.#services.has(service)) return 'SERVICE_UNKNOWN'
    const serving = !this.#closed && (await this.#isServing().catch(() => false))
    return serving ? 'SERVING' : 'NOT_SERVING'
  }
}

function refuse(watcher: Watcher): void {
  watcher.emit('error', { code: Status.UNAVAILABLE, details: 'too many watchers, or the server stops' })
}
