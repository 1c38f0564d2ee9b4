import { withheldEnv } from '../../config/inherited-env.ts'
import type { SandboxSettings } from '../../models/sandbox-settings.ts'
import type { SandboxSupport } from './support.ts'

/** What the kernel and the runtimes say when the sandbox refuses something, but others say it too. */
const DENIED = /\b(?:EACCES|EPERM)\b|permission denied|operation not permitted/i
/** Without network, names of hosts cannot be looked up. */
const OFFLINE = /\bEAI_AGAIN\b|temporary failure in name resolution/i
const VARIABLE = /^[A-Z][A-Z0-9_]{2,255}$/
/** Characters of a failure's text that are searched. */
const MAX_SEARCHED = 20_000
/** Milliseconds after a hint in which failed requests of the same worker get none. */
const PAUSE_MS = 60_000
/** Milliseconds between the failure of a request and the output that explains it, in either order. */
const PAIR_MS = 5000

const FILES = 'sandbox_read and sandbox_write (files)'
const OTHER_KEYS = [
  'worker_network (network)',
  'worker_env and model_env (environment variables, of which it gets only the usual ones)',
  'sandbox_by_model (what model-config.yaml asks for)',
]

/** Tells the operator when the sandbox of a worker may be why its handler failed. One for each worker. */
export class SandboxHints {
  readonly #sandbox: SandboxSettings
  readonly #confined: boolean
  readonly #withheld: RegExp | undefined
  readonly #now: () => number
  #hintedAt = -Infinity
  #failedAt = -Infinity
  #seen = { hint: '', at: -Infinity }

  /**
   * @param withheld names of the server's variables that the worker does not get
   * @param now milliseconds of a clock that never goes back
   */
  constructor(
    sandbox: SandboxSettings,
    support: SandboxSupport,
    withheld: readonly string[],
    now: () => number = () => performance.now(),
  ) {
    this.#sandbox = sandbox
    this.#confined = sandbox.mode !== 'off' && support.perl !== undefined && support.landlock > 0
    const names = sandbox.mode === 'off' ? [] : withheld.filter((name) => VARIABLE.test(name))
    this.#withheld = names.length === 0 ? undefined : new RegExp(`\\b(?:${names.join('|')})\\b`)
    this.#now = now
  }

  /** The handler did not load. @returns a line for the log, if the text says what the sandbox could cause */
  forLoad(text: string): string | undefined {
    const hint = this.#explain(text)
    return hint === undefined ? undefined : this.#give(hint)
  }

  /** A request failed. At most one hint in a minute. */
  forRequest(text: string): string | undefined {
    if (this.#rests()) return undefined
    const hint = this.#explain(text)
    if (hint !== undefined) return this.#give(hint)
    this.#failedAt = this.#now()
    return this.#failedAt - this.#seen.at <= PAIR_MS ? this.#give(this.#seen.hint) : undefined
  }

  /** The worker printed a line: Python workers tell only there what a handler raised. */
  forOutput(line: string): string | undefined {
    if (this.#rests()) return undefined
    const hint = this.#explain(line)
    if (hint === undefined) return undefined
    this.#seen = { hint, at: this.#now() }
    return this.#seen.at - this.#failedAt <= PAIR_MS ? this.#give(hint) : undefined
  }

  #rests(): boolean {
    return this.#now() - this.#hintedAt < PAUSE_MS
  }

  #give(hint: string): string {
    this.#hintedAt = this.#now()
    this.#failedAt = this.#seen.at = -Infinity
    return hint
  }

  #explain(whole: string): string | undefined {
    const text = whole.length > MAX_SEARCHED ? whole.slice(0, MAX_SEARCHED) : whole
    const variable = this.#withheld?.exec(text)?.[0]
    const { mode, network } = this.#sandbox
    const denied = this.#confined && (DENIED.test(text) || (!network && OFFLINE.test(text)))
    if (!denied && variable === undefined) return undefined
    const without = network ? '' : ' without network'
    const lacks = variable === undefined ? '' : `: it does not get the server’s variable ${variable}`
    const path = denied ? deniedPath(text) : undefined
    const files = path === undefined ? FILES : `sandbox_read=${path} (to write: sandbox_write=${path})`
    const keys = [files, ...OTHER_KEYS].join(', ')
    return `Hint: this worker runs in sandbox=${mode}${without}, which may be the cause${lacks}. These keys let it through: ${keys}. See docs/security.md#my-handler-gets-eacces`
  }
}

/** The path in a message of Node.js (`open '/data/x'`) or Python (`Permission denied: '/data/x'`). */
function deniedPath(text: string): string | undefined {
  return DENIED_PATH.exec(text)?.[1]
}

const DENIED_PATH =
  /(?:EACCES|EPERM|Permission denied|Operation not permitted)[^'\n]{0,100}'(\/[^'\n]{1,1000})'/

/** The hints for a worker of this server. */
export function sandboxHints(
  sandbox: SandboxSettings,
  support: SandboxSupport,
  blacklist: RegExp | undefined,
): SandboxHints {
  return new SandboxHints(sandbox, support, withheldEnv(blacklist, sandbox.env))
}
