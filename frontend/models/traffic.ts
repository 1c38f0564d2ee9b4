import { headerValue } from '../../common/header-lines.ts'
import type { RolledBack, TrafficSettings, TrafficSnapshot } from '../config/traffic-settings.ts'
import type { Caller, RoutedRequest, VersionTraffic } from './operations.ts'
import { RollbackRule } from './rollback-rule.ts'
import { alwaysFor, nextByTurn, type Weighted } from './weighted-choice.ts'

/** What weights need from outside. */
export interface TrafficHost {
  /** Milliseconds of a clock that never goes back. */
  now(): number
  /** A version has lost its weight by itself. */
  rolledBack(version: string, rolledBack: RolledBack): void
}

/** One version with a weight, and what became of the requests that the weights sent to it. */
export class TrafficVersion implements Weighted {
  readonly version: string
  weight: number
  due = 0
  requests = 0
  errors = 0
  rolledBack: RolledBack | undefined
  readonly rule: RollbackRule | undefined
  readonly #traffic: Traffic

  constructor(version: string, weight: number, traffic: Traffic) {
    const { rollback } = traffic.settings
    this.version = version
    this.weight = weight
    this.rule = rollback && new RollbackRule(rollback)
    this.#traffic = traffic
  }

  /** From 0 to 1; 0 for all: the default version gets everything. */
  get share(): number {
    const total = this.#traffic.totalWeight
    return total === 0 ? 0 : this.weight / total
  }

  describe(): VersionTraffic {
    const { version: modelVersion, weight, share, requests, errors, rolledBack } = this
    return { modelVersion, weight, share, requests, errors, rolledBack }
  }
}

/** The weights between the versions of one model. A change of them is another object. */
export class Traffic {
  readonly settings: TrafficSettings
  readonly #modelName: string
  readonly #host: TrafficHost
  readonly #versions = new Map<string, TrafficVersion>()
  /** Others hold now, and what ends late decides nothing. */
  #isOver = false

  constructor(modelName: string, { rolledBack = {}, ...settings }: TrafficSnapshot, host: TrafficHost) {
    this.#modelName = modelName
    this.settings = settings
    this.#host = host
    for (const [version, weight] of Object.entries(settings.weights))
      this.#versions.set(version, new TrafficVersion(version, weight, this))
    for (const [version, found] of Object.entries(rolledBack)) {
      const known = this.#versions.get(version)
      if (known !== undefined) known.rolledBack = found
    }
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

  /**
   * Counts the end of a request that the weights sent to a version; the default version keeps its weight
   * whatever happens, because nothing else could take its requests.
   * @param isLate the request has ended without error before, but its response could not be sent
   * @returns whether the version has lost its weight now
   */
  ended(version: TrafficVersion, isError: boolean, isDefault: boolean, isLate = false): boolean {
    if (isError) version.errors += 1
    if (this.#isOver || version.rule === undefined) return false
    const now = this.#host.now()
    const reason = isLate ? version.rule.failedLate(now) : version.rule.ended(isError, now)
    if (reason === undefined || isDefault || version.weight === 0) return false
    version.rolledBack = { at: new Date().toISOString(), weight: version.weight, reason }
    this.#reweigh(version, 0)
    this.#host.rolledBack(version.version, version.rolledBack)
    return true
  }

  /** The version is gone. @returns the weight that it had */
  forget(version: string): number {
    const known = this.#versions.get(version)
    if (known === undefined) return 0
    const { weight } = known
    this.#reweigh(known, 0)
    this.#versions.delete(version)
    return weight
  }

  /** Others hold from now on. */
  close(): void {
    this.#isOver = true
  }

  /** What a snapshot keeps of it. */
  snapshot(): TrafficSnapshot {
    const rolledBack = this.versions.flatMap(({ version, rolledBack: found }) =>
      found === undefined ? [] : [[version, found] as const],
    )
    return {
      ...this.settings,
      weights: Object.fromEntries(this.versions.map(({ version, weight }) => [version, weight])),
      rolledBack: rolledBack.length === 0 ? undefined : Object.fromEntries(rolledBack),
    }
  }

  #reweigh(version: TrafficVersion, weight: number): void {
    version.weight = weight
    for (const each of this.#versions.values()) each.due = 0
  }

  #stickyValue(request: Pick<RoutedRequest, 'headers'>, caller: Caller | undefined): string | undefined {
    const { sticky } = this.settings
    if (sticky === undefined) return undefined
    if ('header' in sticky) return headerValue(request.headers, sticky.header) || undefined
    return caller && `${caller.kind} ${caller.name}`
  }
}
