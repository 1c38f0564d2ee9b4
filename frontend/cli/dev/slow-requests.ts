import { readFileSync } from 'node:fs'
import type { RunningServer, ServedModel } from '../../server-api.ts'
import type { Output } from '../output.ts'

/** Milliseconds without a response after which a request is told of. */
const SILENT_MS = 5000
/** How often the open requests are looked at. */
const LOOK_MS = 1000
/** A process that uses more of the time than this computes, also on a busy machine; else it waits. */
const COMPUTES = 0.05

interface Seen {
  readonly items: number
  /** performance.now() of the first look that saw this many items. */
  readonly since: number
  /** Processor time of its model's workers then. */
  readonly used: number | undefined
  told: boolean
}

/** Tells the author of a handler, once for each request, that the handler has sent nothing for long. */
export class SlowRequests {
  readonly #server: RunningServer
  readonly #output: Output
  readonly #timer: NodeJS.Timeout
  #seen = new Map<string, Seen>()

  constructor(server: RunningServer, output: Output) {
    this.#server = server
    this.#output = output
    this.#timer = setInterval(() => {
      // A model may go while it is looked at; the next look sees what is left.
      this.#look().catch(() => undefined)
    }, LOOK_MS)
  }

  close(): void {
    clearInterval(this.#timer)
  }

  async #look(): Promise<void> {
    const waiting = this.#server.requests().filter(({ waitsFor }) => waitsFor === 'handler')
    const { models } = waiting.length === 0 ? { models: [] } : await this.#server.status()
    const now = performance.now()
    const seen = new Map<string, Seen>()
    for (const { id, items, modelName } of waiting) {
      const model = models.find((each) => each.modelName === modelName)
      if (model === undefined) continue
      const known = this.#seen.get(id)
      const used = usedBy(model)
      const same = known?.items === items ? known : { items, since: now, used, told: false }
      seen.set(id, same)
      if (same.told || now - same.since < SILENT_MS) continue
      same.told = true
      this.#tell(id, items, model, shareOf(same, used, now))
    }
    this.#seen = seen
  }

  #tell(id: string, items: number, model: ServedModel, share: number | undefined): void {
    const what = items === 0 ? 'no response' : 'no further response'
    const doing = share === undefined ? '' : share > COMPUTES ? COMPUTING : WAITING
    this.#output.err(
      `${model.modelName}: request ${id} has received ${what} for ${SILENT_MS / 1000} s${doing}`,
    )
  }
}

const COMPUTING = '; its worker computes (a loop without an end?)'
const WAITING = '; its worker waits (an await of what does not come?)'

function usedBy({ workers }: ServedModel): number | undefined {
  const busy = workers.filter(({ inFlight }) => inFlight > 0)
  const times = busy.flatMap(({ pid }) => processorMs(pid) ?? [])
  return times.length === 0 ? undefined : Math.max(...times)
}

function shareOf({ used, since }: Seen, now: number | undefined, at: number): number | undefined {
  return used === undefined || now === undefined ? undefined : (now - used) / (at - since)
}

/** Fields of `/proc/PID/stat` after the name, which may contain anything (man 5 proc). */
const USER_TICKS = 11
const SYSTEM_TICKS = 12
/** Linux reports 100 ticks a second to programs on every machine. */
const MS_PER_TICK = 10

/** Milliseconds of processor time of a process; undefined: unknown, as on other systems than Linux. */
function processorMs(pid: number): number | undefined {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'latin1')
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
    const ms = (Number(fields[USER_TICKS]) + Number(fields[SYSTEM_TICKS])) * MS_PER_TICK
    return Number.isFinite(ms) ? ms : undefined
  } catch {
    return undefined
  }
}
