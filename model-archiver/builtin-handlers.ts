import { builtModule } from './package-root.ts'
import { ownValue } from '../common/json.ts'

interface Builtin {
  /** Path below dist. */
  readonly module: string
  /** Defaults for model-config.yaml; the model's own keys override them. */
  readonly config: Readonly<Record<string, unknown>>
}

/** Seconds that the official OpenAI clients wait for an answer. */
const CLIENT_SECONDS = 600

const OPENAI: Builtin = {
  module: 'handlers/openai-provider/handler.js',
  config: { asyncCommunication: true },
}

/** The built-in handler of GGUF files. */
export const GGUF_HANDLER = 'torchserve-ts/llama'

/**
 * Concurrent requests: the handler's default number of sequences. One process, because it computes with all
 * cores, and each has the weights in its memory.
 */
const LLAMA: Builtin = {
  module: 'handlers/gguf/handler.js',
  config: { asyncCommunication: true, maxConcurrency: 4, minWorkers: 1 },
}

/**
 * Built-in handlers by name. A model names one instead of a file. The Python-style names are those of
 * Seldon's runtimes.
 */
const BUILTIN: Readonly<Record<string, Builtin>> = {
  'torchserve-ts/openai': OPENAI,
  'mlserver_llm_api.LLMRuntime': OPENAI,
  [GGUF_HANDLER]: LLAMA,
  'mlserver_llm_local.runtime.Local': LLAMA,
}

/** The modules of all of them, below dist: the build makes each. */
export const BUILTIN_MODULES: readonly string[] = [
  ...new Set(Object.values(BUILTIN).map(({ module }) => module)),
]

/** The module of a built-in handler; undefined: the name means a file of the model. */
export function builtinHandler(name: string | undefined): string | undefined {
  const builtin = find(name)
  return builtin && builtModule(builtin.module)
}

/** Defaults for models with this built-in handler. */
export function builtinConfig(name: string | undefined): Readonly<Record<string, unknown>> {
  return find(name)?.config ?? {}
}

/** Seconds of a model's time limits where the operator sets none; undefined: those of any model. */
export function builtinTimeLimit(name: string | undefined): number | undefined {
  return find(name) && CLIENT_SECONDS
}

/** The module behind a name under which handlers import a built-in one (`exports` of package.json). */
export function importedBuiltin(specifier: string): string | undefined {
  return specifier === 'torchserve-ts/gguf' ? builtModule(LLAMA.module) : undefined
}

function find(name: string | undefined): Builtin | undefined {
  return name === undefined ? undefined : ownValue(BUILTIN, name)
}
