import { headerValue } from '../../common/headers.ts'
import { readSequence } from '../jobs/sequence-headers.ts'
import type { Model } from './model.ts'
import type { TrafficSettings } from '../config/traffic-settings.ts'
import type { Caller, RoutedRequest, VersionTraffic } from './operations.ts'
import { createHash } from 'node:crypto'

/** One version with a weight, and what became of the requests that the weights sent to it. */
export class TrafficVersion implements Weighted {
  readonly version: string
  weight: number
  due = 0
  requests = 0
  readonly #traffic: Traffic

  constructor(version: string, weight: number, traffic: Traffic) {
    this.version = version
    this.weight = weight
    this.#traffic = traffic
  }

  /** From 0 to 1; 0 for all: the default version gets everything. */
  get share(): number {
    const total = this.#traffic.totalWeight
    return total === 0 ? 0 : this.weight / total
  }

  describe(): VersionTraffic {
    const { version: modelVersion, weight, share, requests } = this
    return { modelVersion, weight, share, requests }
  }
}

/** The weights between the versions of one model. A change of them is another object. */
export class Traffic {
  readonly settings: TrafficSettings
  readonly #modelName: string
  readonly #versions = new Map<string, TrafficVersion>()

  constructor(modelName: string, settings: TrafficSettings) {
    this.#modelName = modelName
    this.settings = settings
    for (const [version, weight] of Object.entries(settings.weights))
      this.#versions.set(version, new TrafficVersion(version, weight, this))
  }

  get versions(): TrafficVersion[] {
    return [...this.#versions.values()]
  }

  get totalWeight(): number {
    let total = 0
    for (const { weight } of this.#versions.values()) total += weight
    return total
  }

  of(version: string): TrafficVersion | undefined {
    return this.#versions.get(version)
  }

  /**
   * The version for a request that names none.
   * @param canServe versions that cannot get nothing while another one with a weight can
   * @returns undefined when none has a weight above 0
   */
  choose(
    request: Pick<RoutedRequest, 'headers'>,
    caller: Caller | undefined,
    canServe: (version: string) => boolean,
  ): TrafficVersion | undefined {
    const all = this.versions
    const able = all.filter(({ version, weight }) => weight > 0 && canServe(version))
    const items = able.length === 0 ? all : able
    const value = this.#stickyValue(request, caller)
    return value === undefined ? nextByTurn(items) : alwaysFor(value, items, this.#modelName)
  }

  /** The version is gone. @returns the weight that it had */
  forget(version: string): number {
    const known = this.#versions.get(version)
    if (known === undefined) return 0
    const { weight } = known
    this.#versions.delete(version)
    for (const each of this.#versions.values()) each.due = 0
    return weight
  }

  /** What a snapshot keeps of it. */
  snapshot(): TrafficSettings {
    return {
      ...this.settings,
      weights: Object.fromEntries(this.versions.map(({ version, weight }) => [version, weight])),
    }
  }

  #stickyValue(request: Pick<RoutedRequest, 'headers'>, caller: Caller | undefined): string | undefined {
    const { sticky } = this.settings
    if (sticky === undefined) return undefined
    if ('header' in sticky) return headerValue(request.headers, sticky.header) || undefined
    return caller && `${caller.kind} ${caller.name}`
  }
}

/** The versions of one name. */
export interface Versions {
  default: string
  readonly byVersion: Map<string, Model>
  /** Undefined: the default version gets all requests that name none. */
  traffic: Traffic | undefined
}

/**
 * Whether more than the default version may get requests that name none: there are weights, or one of several
 * versions keeps sequences.
 */
export function needsChoice({ traffic, byVersion }: Versions): boolean {
  if (traffic !== undefined) return true
  if (byVersion.size > 1) for (const model of byVersion.values()) if (keepsSequences(model)) return true
  return false
}

/**
 * The version for a request that names none. A sequence stays where it is open, whatever happens to the
 * weights; the rest goes where it was sent before, or by weight.
 */
export function chooseVersion(versions: Versions, request: RoutedRequest, caller: Caller | undefined): Model {
  const { byVersion, traffic, default: standard } = versions
  const sent = request.routedTo === undefined ? undefined : byVersion.get(request.routedTo)
  const known = holderOfSequence(versions, request) ?? sent
  if (known !== undefined) return known
  const chosen = traffic?.choose(request, caller, (version) => canServe(byVersion.get(version)))
  return byVersion.get(chosen?.version ?? standard)!
}

function holderOfSequence({ byVersion }: Versions, { headers }: RoutedRequest): Model | undefined {
  let id: string | undefined
  for (const model of byVersion.values()) {
    if (!keepsSequences(model)) continue
    id ??= readSequence(headers, model.sequenceHeaders).id
    if (id === undefined) return undefined
    if (model.queue.hasSequence?.(id) === true) return model
  }
  return undefined
}

/** Loaded once, and not scaled to no workers. Workers that fail change nothing: these are its errors. */
function canServe(model: Model | undefined): boolean {
  return model?.methods !== undefined && (model.workers.wanted > 0 || model.wakes)
}

function keepsSequences({ queue }: Model): boolean {
  return queue.hasSequence !== undefined
}

/** One of those between which weights choose. */
export interface Weighted {
  readonly version: string
  /** A whole number; 0: never chosen. */
  readonly weight: number
  /** How far it is behind its share: whole numbers, so that nothing drifts. Changed by `nextByTurn`. */
  due: number
}

/**
 * The next by turn (smooth weighted round robin). Every stretch of requests has each share to within about
 * one request, at 1 % as at 50 %. A random draw would need thousands of requests to come as close, would send
 * bursts to a canary with few workers, and tests could not count on it.
 * @returns undefined when none has a weight above 0
 */
export function nextByTurn<Item extends Weighted>(items: readonly Item[]): Item | undefined {
  let total = 0
  let next: Item | undefined
  for (const item of items) {
    if (item.weight === 0) continue
    total += item.weight
    item.due += item.weight
    if (next === undefined || item.due > next.due) next = item
  }
  if (next !== undefined) next.due -= total
  return next
}

/**
 * The same for the same value (weighted rendezvous hashing): each version draws a number from the hash of the
 * value and its own name, and the best draw wins. A new weight moves only values to or from that version.
 * @param salt keeps the values of different models apart
 * @returns undefined when none has a weight above 0
 */
export function alwaysFor<Item extends Weighted>(
  value: string,
  items: readonly Item[],
  salt: string,
): Item | undefined {
  let best: Item | undefined
  let most = -Infinity
  for (const item of items) {
    if (item.weight === 0) continue
    const score = item.weight / -Math.log(fraction(value, item.version, salt))
    if (score > most) {
      best = item
      most = score
    }
  }
  return best
}

/** Above 0 and below 1, from 48 bits of a hash: the value itself is kept nowhere. */
function fraction(value: string, version: string, salt: string): number {
  const hash = createHash('sha256')
    .update(JSON.stringify([salt, version, value]))
    .digest()
  return (hash.readUIntBE(0, 6) + 0.5) / 2 ** 48
}
