import { existsSync } from 'node:fs'
import { pathToFileURL } from 'node:url'
import { ServeError } from '../common/errors.ts'
import {
  LISTED_METHODS,
  type ListedMethod,
  NATIVE_METHODS,
  type NativeMethod,
} from '../common/handler-methods.ts'
import { ownValue } from '../common/json.ts'
import type { Context, Handler } from './handler.ts'
import { describeThrown } from './handler-error.ts'
import type { PredictRequest } from '../protocol/messages.ts'
import { openaiCalls } from './openai/calls.ts'
import { handleByOpenAI } from './openai/default-handle.ts'
import { isInferenceHandler, TensorAdapter } from './open-inference/handler.ts'
import type { InferenceHandler } from './open-inference/types.ts'

/** A handler of a module. */
export interface ModuleHandler {
  readonly handler: LoadedHandler
  /** Functions that the module exports beside it, named as methods of a handler, which nothing calls. */
  readonly unreached: readonly string[]
}

type Exports = Readonly<Record<string, unknown>>

/**
 * Imports a handler module (ES module or CommonJS) and creates its handler: the export `entry` if given, else
 * the default export, else the function `handle`, else the only class with a `handle`.
 * @param file its name in messages: what is imported may be compiled, and hidden
 * @throws ServeError INVALID_MODEL when there is no such handler; any error of the module or the constructor
 */
export async function loadHandler(path: string, entry?: string, file = path): Promise<ModuleHandler> {
  if (!existsSync(path)) throw invalid(`Handler not found: ${path}`)
  const exports = exportsOf(await importModule(path))
  const made = entry === undefined ? onlyHandler(file, exports) : namedHandler(file, exports, entry)
  // With an entry, `handle` may be another one.
  const methods = entry === undefined ? [...HOOKS, 'handle' as const] : HOOKS
  const unreached = methods.filter(
    (name) => typeof exports[name] === 'function' && exports[name] !== made[name],
  )
  return { handler: loadedHandler(made), unreached }
}

/**
 * Creates a handler from an export: an object with `handle`, a class, or a function. Undefined for anything
 * else.
 */
export function asHandler(exported: unknown): LoadedHandler | undefined {
  const made = madeFrom(exported, {})
  return made && loadedHandler(made)
}

function madeFrom(exported: unknown, exports: Exports): ExportedHandler | undefined {
  if (typeof exported !== 'function') return isHandler(exported) ? exported : undefined
  if (!isClass(exported)) return { ...hooksOf(exports), handle: exported as Handler['handle'] }
  const made = new (exported as new () => unknown)()
  return isHandler(made) ? made : undefined
}

async function importModule(path: string): Promise<Exports> {
  // Only from here on: the maps of what the worker itself has loaded would cost time and say nothing.
  process.setSourceMapsEnabled(true)
  try {
    return (await import(pathToFileURL(path).href)) as Exports
  } catch (thrown) {
    if (!(thrown instanceof SyntaxError)) throw thrown
    throw new ServeError('INVALID_MODEL', `The handler cannot be parsed: ${thrown.message}`, {
      detail: describeThrown(thrown),
      cause: thrown,
    })
  }
}

/** For CommonJS the default export is `module.exports`; a compiled ES module has its own default in it. */
function exportsOf(namespace: Exports): Exports {
  const inner = namespace['default']
  if (typeof inner !== 'object' || inner === null || isHandler(inner)) return namespace
  return { ...namespace, default: undefined, ...inner }
}

/** The export of that name, or the default export if the code calls it so: `export default class Words`. */
function namedHandler(file: string, exports: Exports, entry: string): ExportedHandler {
  const main = exports['default']
  const isMain = typeof main === 'function' && main.name === entry
  const handler = madeFrom(ownValue(exports, entry) ?? (isMain ? main : undefined), exports)
  if (handler !== undefined) return handler
  throw invalid(
    `The handler ${file} must export a class with handle, or a function, called "${entry}"; ${exported(exports)}`,
  )
}

function onlyHandler(file: string, exports: Exports): ExportedHandler {
  const handler = madeFrom(exports['default'], exports) ?? madeFrom(exports['handle'], exports)
  if (handler !== undefined) return handler
  const classes = Object.values(exports).filter((value) => typeof value === 'function' && hasHandle(value))
  if (classes.length === 1) return madeFrom(classes[0], exports)!
  const hooks = hooksOf(exports)
  if (classes.length === 0 && isHandler(hooks)) return hooks
  throw invalid(
    classes.length === 0
      ? `The handler ${file} must export a class with handle, or a function called handle; ${exported(exports)}`
      : `The handler ${file} exports ${classes.length} classes with handle; make one the default export`,
  )
}

/** What there is instead. */
function exported(exports: Exports): string {
  const names = Object.entries(exports).flatMap(([name, value]) =>
    value === undefined ? [] : [exportName(name, value)],
  )
  return names.length === 0 ? 'it exports nothing' : `it exports ${names.slice(0, 10).join(', ')}`
}

function exportName(name: string, value: unknown): string {
  if (name !== 'default') return name
  return typeof value === 'function' && value.name !== '' ? `default (${value.name})` : name
}

const HOOKS = [
  ...(['initialize', 'explain', 'describe', 'release', 'onSequenceEnd', 'shutdown'] as const),
  ...NATIVE_METHODS,
] as const

/** Further functions that a module with a function handler may export. */
function hooksOf(exports: Exports): Partial<ExportedHandler> {
  const found = HOOKS.map((name) => [name, exports[name]] as const)
  return Object.fromEntries(found.filter(([, hook]) => typeof hook === 'function'))
}

function isHandler(value: unknown): value is ExportedHandler {
  if (typeof value !== 'object' || value === null) return false
  return typeof (value as Exports)['handle'] === 'function' || hasNativeMethod(value)
}

function isClass(value: object): boolean {
  return /^class\b/.test(Function.prototype.toString.call(value)) || hasHandle(value)
}

function hasHandle(value: object): boolean {
  const prototype = (value as { prototype?: unknown }).prototype
  return isHandler(prototype)
}

function invalid(message: string): ServeError {
  return new ServeError('INVALID_MODEL', message)
}

/** How the worker calls a native method. */
export interface NativeCall {
  /** Each request has its own call; else the requests of a batch share one. */
  readonly alone: boolean
  /** Answers requests as `handle` does, with undecoded parts. */
  answer(requests: readonly PredictRequest[], context: Context): unknown
}

export type NativeCalls = ReadonlyMap<NativeMethod, NativeCall>

/** A handler that may have native methods instead of `handle`. */
export type ExportedHandler = Omit<Handler, 'handle'> & Partial<Pick<Handler, 'handle'>> & InferenceHandler

/** A handler as the worker calls it. */
export interface LoadedHandler extends Pick<
  Handler,
  'handle' | 'explain' | 'describe' | 'initialize' | 'release' | 'onSequenceEnd' | 'shutdown'
> {
  readonly native: NativeCalls
  /** The methods that the handler itself has. */
  readonly methods: readonly ListedMethod[]
}

/**
 * The calls of a handler. A handler without `handle` gets one that uses its native methods, so that
 * TorchServe's routes work too.
 */
export function loadedHandler(exported: ExportedHandler): LoadedHandler {
  const own = exported.handle !== undefined
  const tensors = isInferenceHandler(exported) ? new TensorAdapter(exported) : undefined
  const native = new Map([...(tensors?.calls() ?? []), ...openaiCalls(exported)])
  return {
    handle: own
      ? (requests, context) => exported.handle!(requests, context)
      : (tensors?.handle ?? handleByOpenAI(exported)),
    explain: exported.explain && ((requests, context) => exported.explain!(requests, context)),
    describe: exported.describe && ((context) => exported.describe!(context)),
    initialize: (context) => exported.initialize?.(context),
    release: exported.release && ((requestId, context) => exported.release!(requestId, context)),
    onSequenceEnd: exported.onSequenceEnd && ((id, context) => exported.onSequenceEnd!(id, context)),
    shutdown: () => exported.shutdown?.(),
    native,
    methods: LISTED_METHODS.filter((name) => exported[name] !== undefined),
  }
}

/** Whether a value has a native method, which makes an object a handler. */
function hasNativeMethod(value: object): boolean {
  return NATIVE_METHODS.some((name) => typeof (value as Record<string, unknown>)[name] === 'function')
}
