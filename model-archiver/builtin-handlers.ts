import { join } from 'node:path'
import { packageRoot } from './package-root.ts'
import { ownValue } from '../common/own-keys.ts'

interface Builtin {
  /** Below dist. */
  readonly module: string
  /** What a model-config.yaml would say; the model's own keys win. */
  readonly config: Readonly<Record<string, unknown>>
}

const OPENAI: Builtin = {
  module: 'handlers/openai-provider/handler.js',
  config: { asyncCommunication: true },
}

/** As many requests at once as it has sequences by default. */
const LLAMA: Builtin = {
  module: 'handlers/gguf/handler.js',
  config: { asyncCommunication: true, maxConcurrency: 4 },
}

/** Handlers that come with the server: a model names one instead of a file of its own. The second names are those that Seldon's users write. */
const BUILTIN: Readonly<Record<string, Builtin>> = {
  'torchserve-ts/openai': OPENAI,
  'mlserver_llm_api.LLMRuntime': OPENAI,
  'torchserve-ts/llama': LLAMA,
  'mlserver_llm_local.runtime.Local': LLAMA,
}

/** The module of a handler that comes with the server; undefined: the name means a file of the model. */
export function builtinHandler(name: string | undefined): string | undefined {
  const builtin = find(name)
  return builtin && join(packageRoot(), 'dist', builtin.module)
}

/** What holds for a model with such a handler if it does not say otherwise. */
export function builtinConfig(name: string | undefined): Readonly<Record<string, unknown>> {
  return find(name)?.config ?? {}
}

function find(name: string | undefined): Builtin | undefined {
  return name === undefined ? undefined : ownValue(BUILTIN, name)
}
