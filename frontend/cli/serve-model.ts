import { existsSync, statSync } from 'node:fs'
import { basename, join, resolve } from 'node:path'
import { ServeError } from '../../common/errors.ts'
import { isName } from '../../common/names.ts'
import { builtinHandler, GGUF_HANDLER } from '../../model-archiver/builtin-handlers.ts'
import { hubEndpoint } from '../../model-archiver/hub.ts'
import { MANIFEST_PATH } from '../../model-archiver/manifest.ts'
import { missingPackages } from '../../model-archiver/packages.ts'
import { conventionalHandler } from '../../model-archiver/handler-entry.ts'
import { ARCHIVE_SUFFIX, defaultModelName, GGUF } from '../../model-archiver/model-names.ts'
import { MODEL_SETTINGS } from '../../model-archiver/model-settings.ts'
import { buildSettings } from '../config/build-settings.ts'
import { checkExposure } from '../config/exposure.ts'
import type { StartSettings } from '../config/load-settings.ts'
import type { RunningServer } from '../server-api.ts'
import { ownCache } from './compile-cache.ts'
import { fetchModel, type FetchedModel } from './fetch-model.ts'
import { installCommand } from './install-hint.ts'
import type { CliOptions } from './main.ts'
import { modelCurlLines, localEntries } from './local-serving.ts'
import { modelPlace, type ModelPlace } from './model-place.ts'
import type { Output } from './output.ts'
import { configOf, keysFile, longFlags, serveDefinition, type ServeFlags } from './serve-flags.ts'
import { serveOnConsole } from './serve.ts'
import { watchStopSignals } from './stop-signals.ts'
import { runCommand } from './run-command.ts'

/**
 * The command `torchserve-ts serve`: from a name to a served model, in this terminal.
 * @returns the exit status
 */
export function runServe(
  argv: readonly string[],
  output: Output,
  { loadServer }: CliOptions,
): Promise<number> {
  const program = serveDefinition(output)
  return runCommand(program, longFlags(argv), output, async () => {
    const flags = program.opts<ServeFlags>()
    const model = await prepare(program.args[0]!, flags, output)
    const loaded = await settingsFor(model, flags)
    output.err(`Loading ${basename(model.path)} ...`)
    return serveOnConsole(async () => {
      await checkExposure(loaded.settings).catch((thrown: unknown) => {
        const { message } = ServeError.from(thrown)
        throw new ServeError('CONFIG', `${message}. --api-key makes clients send a key`, { cause: thrown })
      })
      return {
        loaded,
        waits: true,
        keepsSnapshots: false,
        claims: 'process',
        portFlag: '--port',
        announce: (server) => readyLines(server, flags.apiKey?.[0]),
      }
    }, loadServer)
  })
}

interface Model {
  readonly path: string
  /** Undefined: the one in its archive, or of its folder. */
  readonly name: string | undefined
}

/** Ctrl-C ends it; what has arrived stays. */
async function prepare(text: string, flags: ServeFlags, output: Output): Promise<Model> {
  const stop = watchStopSignals((status) => process.exit(status))
  try {
    const place = placeOf(text, flags)
    await checkPackages(place)
    const found = await fetchModel(place, {
      cache: resolve(flags.cache ?? ownCache(process.env)),
      env: process.env,
      output,
      signal: stop.signal,
      ...(flags.sha256 !== undefined && { sha256: flags.sha256 }),
    })
    return { path: found.path, name: flags.name ?? nameFor(found) }
  } catch (error) {
    if (!stop.signal.aborted) throw error
    throw new ServeError('CANCELLED', 'Interrupted. Run the command again to download the model', {
      cause: error,
    })
  } finally {
    stop.unwatch()
  }
}

/** @throws ServeError CONFIG for a flag that does not fit the place */
function placeOf(text: string, { file, revision }: ServeFlags): ModelPlace {
  const place = modelPlace(text, hubEndpoint(process.env))
  if (place.kind === 'hub')
    return { ...place, ...(file !== undefined && { file }), ...(revision !== undefined && { revision }) }
  const flag = file === undefined ? '--revision' : '--file'
  if (file !== undefined || revision !== undefined)
    throw new ServeError('CONFIG', `${flag} is only for a model of Hugging Face: org/name`)
  return place
}

/** Before gigabytes arrive that nothing here can load. @throws ServeError CONFIG */
async function checkPackages(place: ModelPlace): Promise<void> {
  if (!isWeights(place)) return
  const missing = await missingPackages(builtinHandler(GGUF_HANDLER)!, true)
  if (missing.length > 0)
    throw new ServeError(
      'CONFIG',
      `GGUF models need ${missing.join(' and ')}, not installed here. Install with: ${installCommand(missing)}`,
    )
}

/** Whether the built-in handler of .gguf files serves it, as far as its name or its folder says. */
function isWeights(place: ModelPlace): boolean {
  if (place.kind === 'hub') return !ARCHIVE_SUFFIX.test(place.file ?? '')
  if (place.kind === 'url') return GGUF.test(place.url.replace(/[?#].*/, ''))
  return GGUF.test(place.path) || isWeightsFolder(place.path)
}

function isWeightsFolder(path: string): boolean {
  if (!statSync(path).isDirectory()) return false
  const says = [MANIFEST_PATH, MODEL_SETTINGS].some((file) => existsSync(join(path, file)))
  return !says && conventionalHandler(path) === GGUF_HANDLER
}

/** A manifest's own name wins when there is no --name. */
function nameFor({ path, name }: FetchedModel): string | undefined {
  if (!GGUF.test(path)) return undefined
  return name !== undefined && isName(name) ? name : defaultModelName(path)
}

async function settingsFor({ path, name }: Model, given: ServeFlags): Promise<StartSettings> {
  const { host, port, apiKey, verbose } = given
  const flags = localEntries(
    'torchserve-ts serve',
    { host, port },
    {
      // Large weights on a slow disk; the user sees that it loads, and can end it.
      default_startup_timeout: '600',
      // As long as the official OpenAI clients wait.
      default_response_timeout: '600',
      default_queue_timeout: '600',
      ...(apiKey !== undefined && { api_keys_file: await keysFile(apiKey) }),
      log_files: 'none',
      log_console: verbose === true ? 'access_log,ts_log,model_log' : 'ts_log,model_log',
      log_level: verbose === true ? 'info' : 'warn',
    },
  )
  const loaded = buildSettings({ file: [], flags, env: process.env })
  const model = { location: path, config: configOf(given), ...(name !== undefined && { name }) }
  return {
    ...loaded,
    settings: { ...loaded.settings, loadModels: [model] },
    modelSource: { snapshot: undefined, line: `The model is ${path}`, hint: '' },
  }
}

/** Width of an API's name. */
const API_COLUMNS = 16

/** What the terminal says once the model is loaded. */
async function readyLines(
  { listening, consoleUrl, status }: RunningServer,
  key: string | undefined,
): Promise<string[]> {
  const base = listening[0]!.address
  const { models } = await status()
  const told = await Promise.all(
    models.map(async ({ modelName, modelVersion, modelUrl, methods }) => {
      const what = `${modelName} (version ${modelVersion}, ${basename(modelUrl)})`
      const lines = await modelCurlLines(modelName, methods, base, key)
      const commands = lines.map(({ api, line }) => `${api}:`.padEnd(API_COLUMNS) + line)
      return ['', `${what} is ready on ${base}. Ctrl-C stops it.`, '', ...commands, '']
    }),
  )
  return [...told.flat(), ...(consoleUrl === undefined ? [] : [`The console is at ${consoleUrl}`, ''])]
}
