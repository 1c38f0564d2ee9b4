import { isAbsolute } from 'node:path'
import { ServeError } from '../common/errors.ts'
import { isObject } from '../common/json.ts'
import { notInstalled } from '../common/texts.ts'
import type { LoadMessage } from '../protocol/messages.ts'
import { Batch } from './batch.ts'
import { HandlerContext } from './context.ts'
import { limitJson } from './input.ts'
import { closeModules } from './closed-modules.ts'
import { inEnvelope } from './envelope.ts'
import { describeThrown, looksOutOfMemory, messageOf } from './handler-error.ts'
import { type LoadedHandler, loadHandler } from './loader.ts'
import { type LoadedModel, modelFrom, type Rank } from './model.ts'
import { type Outlet, sendLog } from './outlet.ts'
import { Service } from './service.ts'

export interface RunningModel {
  readonly handler: LoadedHandler
  readonly service: Service
}

/**
 * Loads and initializes the handler.
 * @throws ServeError INVALID_MODEL, OUT_OF_MEMORY or WORKER_START_FAILED, with the cause's message and its
 * stack as detail
 */
export async function loadModel(load: LoadMessage, rank: Rank, outlet: Outlet): Promise<RunningModel> {
  limitJson(load.maxJsonElements)
  try {
    closeModules(load.closedModules ?? [])
    const loaded = await loadHandler(load.handlerPath, load.handlerEntry, sourceOf(load))
    if (loaded.unreached.length > 0)
      sendLog(outlet, 'warn', unreachedWarning(sourceOf(load), loaded.unreached))
    const handler = inEnvelope(loaded.handler, load.envelope)
    return await startService(handler, modelFrom(load, rank, outlet), outlet)
  } catch (thrown) {
    throw loadError(thrown)
  }
}

/** Initializes a handler. The context contains no requests. */
export async function startService(
  handler: LoadedHandler,
  model: LoadedModel,
  outlet: Outlet,
): Promise<RunningModel> {
  const service = new Service(handler, model, outlet)
  await handler.initialize?.(new HandlerContext(model, new Batch([], service)))
  model.metrics.sender.flush()
  return { handler, service }
}

function unreachedWarning(file: string, names: readonly string[]): string {
  return (
    `${file} exports ${names.join(', ')}, which nothing calls, because its handler is another export. ` +
    'Make it a method of that handler, or rename it.'
  )
}

function loadError(thrown: unknown): ServeError {
  if (thrown instanceof ServeError) return thrown
  const code = looksOutOfMemory(thrown) ? 'OUT_OF_MEMORY' : 'WORKER_START_FAILED'
  const absent = missingPackage(thrown)
  const told = absent === undefined ? (missingFile(thrown) ?? messageOf(thrown)) : notInstalled([absent])
  return new ServeError(code, told, {
    // Its message says which file imports the package, and its stack has nothing but Node's own lines.
    detail: absent === undefined ? describeThrown(thrown) : messageOf(thrown),
    cause: thrown,
    ...(absent !== undefined && { absent }),
  })
}

/** The file that the model names, as its author knows it. */
function sourceOf({ manifest, handlerPath }: LoadMessage): string {
  const { handler } = isObject(manifest['model']) ? manifest['model'] : {}
  return typeof handler === 'string' ? handler.replace(/:[^:/\\]*$/, '') : handlerPath
}

/** The name of the package, for an import or a require of one that is not installed. */
function missingPackage(thrown: unknown): string | undefined {
  const { code, message } = thrown as { code?: unknown; message?: unknown }
  if (code !== 'ERR_MODULE_NOT_FOUND' && code !== 'MODULE_NOT_FOUND') return undefined
  return /^Cannot find (?:package|module) '((?:@[\w.-]+\/)?[\w-][\w.-]*)/.exec(String(message))?.[1]
}

/** For a file that is opened by a relative path: where that begins. */
function missingFile(thrown: unknown): string | undefined {
  if (!(thrown instanceof Error)) return undefined
  const { code, path } = thrown as NodeJS.ErrnoException
  if (code !== 'ENOENT' || typeof path !== 'string' || isAbsolute(path)) return undefined
  return `${thrown.message}. Relative paths begin in the folder of the model (context.properties.modelDir), here ${process.cwd()}`
}
