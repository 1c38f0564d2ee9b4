import type { Job } from '../jobs/job.ts'
import { readSequence } from '../jobs/sequence-headers.ts'
import type { Model } from './model.ts'
import type { Caller, RoutedRequest } from './operations.ts'
import type { Traffic } from './traffic.ts'

/** The versions of one name. */
export interface Versions {
  default: string
  readonly byVersion: Map<string, Model>
  /** Undefined: the default version gets all requests that name none. */
  traffic: Traffic | undefined
}

/** Takes the requests of a name that name no version, where more than the default version may get them. */
export class VersionRouter {
  readonly #versions: Versions

  constructor(versions: Versions) {
    this.#versions = versions
  }

  /** Whether a name needs one: most do not, and their requests go straight to the default version. */
  static isNeededFor({ traffic, byVersion }: Versions): boolean {
    return traffic !== undefined || (byVersion.size > 1 && [...byVersion.values()].some(keepsSequences))
  }

  /**
   * The version for a request. A sequence stays where it is open, whatever happens to the weights; the rest
   * goes where it was sent before, or by weight.
   */
  choose(request: RoutedRequest, caller: Caller | undefined): Model {
    const { byVersion, traffic, default: standard } = this.#versions
    const sent = request.routedTo === undefined ? undefined : byVersion.get(request.routedTo)
    const known = this.#holderOfSequence(request) ?? sent
    if (known !== undefined) return known
    const chosen = traffic?.choose(request, caller, (version) => canServe(byVersion.get(version)))
    return byVersion.get(chosen?.version ?? standard)!
  }

  /** @throws ServeError of Model.submit */
  submit(job: Job, caller: Caller | undefined): void {
    const model = this.choose(job.request, caller)
    const { traffic } = this.#versions
    if (traffic !== undefined) job.routed(model.version)
    const counted = traffic?.of(model.version)
    if (counted !== undefined) {
      counted.requests += 1
      model.metrics.routed()
    }
    model.submit(job)
  }

  #holderOfSequence(request: RoutedRequest): Model | undefined {
    let id: string | undefined
    for (const model of this.#versions.byVersion.values()) {
      if (!keepsSequences(model)) continue
      id ??= readSequence(request.headers, model.sequenceHeaders).id
      if (id === undefined) return undefined
      if (model.queue.hasSequence?.(id) === true) return model
    }
    return undefined
  }
}

/** Loaded once, and not scaled to no workers. Workers that fail change nothing: these are its errors. */
function canServe(model: Model | undefined): boolean {
  return model?.methods !== undefined && (model.workers.wanted > 0 || model.wakes)
}

function keepsSequences({ queue }: Model): boolean {
  return queue.hasSequence !== undefined
}
