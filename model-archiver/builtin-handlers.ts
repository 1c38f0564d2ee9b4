import { join } from 'node:path'
import { packageRoot } from './package-root.ts'

/** Handlers that come with the server: a model names one instead of a file of its own. The second name is the one that Seldon's users write. */
const BUILTIN: Readonly<Record<string, string>> = {
  'torchserve-ts/openai': 'openai-runtime/handler.js',
  'mlserver_llm_api.LLMRuntime': 'openai-runtime/handler.js',
}

/** The module of a handler that comes with the server; undefined: the name means a file of the model. */
export function builtinHandler(name: string | undefined): string | undefined {
  if (name === undefined || !Object.hasOwn(BUILTIN, name)) return undefined
  return join(packageRoot(), 'dist', 'backend-worker', BUILTIN[name]!)
}
