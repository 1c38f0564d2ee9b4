import { identityOf, keyNameOf, NOBODY, type Principal } from '../auth/principal.ts'
import type { ByteCount, RateLimiter, Visit } from '../auth/rate-limiter.ts'
import type { Sender } from '../jobs/job-request.ts'
import type { ModelOperations } from '../models/operations.ts'
import type { RequestSpan } from '../observe/traces/tracing.ts'
import type { WorkflowOperations } from '../workflows/operations.ts'
import { PermittedModels, PermittedWorkflows } from './permitted.ts'

/**
 * One request of a client, whatever its protocol: who sent it, and what the sender may use. The
 * protocols add how it is read and answered.
 */
export abstract class Call implements Sender, ByteCount {
  /** Who sent it, once it is authorized. */
  principal: Principal = NOBODY
  /** Undefined: tracing is off, or nobody wants to see this call. */
  span: RequestSpan | undefined
  readonly #operations: Operations
  /** What its sender may use; read when it is first needed. */
  #permitted: Operations | undefined
  /** What it uses of limits; undefined: there are none. */
  #visit: Visit | undefined

  /** @param operations everything that the server has */
  constructor(operations: Operations) {
    this.#operations = operations
  }

  /** The address of the client, without its port. */
  abstract get address(): string

  /** Bytes that it has received and sent, for limits on them. */
  abstract get bytes(): number

  get keyName(): string | undefined {
    return keyNameOf(this.principal)
  }

  get identity(): string | undefined {
    return identityOf(this.principal)
  }

  /** The models that its sender may use. */
  get models(): ModelOperations {
    return (this.#permitted ??= permitted(this.#operations, this.principal)).models
  }

  /** The workflows that its sender may use. */
  get workflows(): WorkflowOperations {
    return (this.#permitted ??= permitted(this.#operations, this.principal)).workflows
  }

  /** Headers for OpenAI's clients about what is left of a limit on requests; empty without one. */
  rateHeaders(): string[] {
    return this.#visit?.headers() ?? []
  }

  /** One more request within this call, as a message of a stream is. @throws ServeError RATE_LIMITED */
  countRequest(): void {
    this.#visit?.another()
  }

  /**
   * Sets who sent it, and counts it once against the limits of its sender.
   * @returns whether it counts from now on: `leave` is to be called when it ends
   * @throws ServeError RATE_LIMITED
   */
  protected identify(principal: Principal, limiter: RateLimiter | undefined): boolean {
    this.principal = principal
    this.#permitted = undefined
    if (this.#visit !== undefined) return false
    this.#visit = limiter?.visit(principal, this)
    return this.#visit !== undefined
  }

  /** It has ended, and uses nothing of limits any more. */
  protected leave(): void {
    this.#visit?.end()
  }
}

/** What API adapters can do with models and workflows. */
export interface Operations {
  readonly models: ModelOperations
  readonly workflows: WorkflowOperations
}

/** The same for one caller. */
function permitted(operations: Operations, principal: Principal): Operations {
  if (principal.seesAll) return operations
  return {
    models: new PermittedModels(operations.models, principal),
    workflows: new PermittedWorkflows(operations.workflows, principal),
  }
}
