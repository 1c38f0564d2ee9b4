import { randomBytes } from 'node:crypto'
import { existsSync } from 'node:fs'
import { stat } from 'node:fs/promises'
import { basename, join, relative } from 'node:path'
import { ServeError } from '../common/errors.ts'
import { isObject } from '../common/json.ts'
import { nameProblem } from '../common/names.ts'
import { type ArchiveIdentity, untrusted } from './hashed-file.ts'
import { builtinConfig, builtinHandler, GGUF_HANDLER } from './builtin-handlers.ts'
import { compileHandler } from './bundle.ts'
import {
  findScript,
  isScript,
  parseHandlerEntry,
  conventionalHandler,
  fileBelow,
  modelFolder,
  NO_HANDLER,
  checkRuntime,
  type Runtime,
} from './handler-entry.ts'
import { MANIFEST_PATH, readManifest, readModelConfig } from './manifest.ts'
import type { Manifest } from './manifest-schema.ts'
import {
  implementationHandler,
  type ModelSettingsFile,
  readModelSettings,
  settingsName,
} from './model-settings.ts'
import { defaultModelName, checkWeights, GGUF, linkWeights } from './model-names.ts'
import { linkingModules, packageRoot } from './package-root.ts'
import { Reach } from './reach.ts'
import { unpackArchive, type UnpackOptions } from './unpack.ts'
import { createWorkspace, type Workspace } from './workspace.ts'

/** Options for preparing a model, which include those for unpacking. */
export interface PrepareOptions extends UnpackOptions {
  /** Folder for unpacked models; they go to `<tempDir>/models`. */
  readonly tempDir: string
  /** Name of a model without a manifest. Default: derived from the file name. */
  readonly defaultName?: string
  /** Overrides the manifest's handler (`handler` of a register request). */
  readonly handlerOverride?: string
  /** Handler for a model that names none (`default_service_handler`). */
  readonly defaultHandler?: string
  /** Overrides the manifest's runtime (`runtime` of a register request). */
  readonly runtimeOverride?: string
  /** Overrides keys of model-config.yaml; those below `handler` one by one. */
  readonly config?: Readonly<Record<string, unknown>>
  /** The torchserve-ts package that handlers import. Default: the running one. */
  readonly packageRoot?: string
}

/** A model that a worker can load. */
export interface PreparedModel {
  /** The archive's manifest, completed with defaults. */
  readonly manifest: Manifest
  readonly name: string
  readonly version: string
  readonly runtime: Runtime
  /** The archive that it was unpacked from; undefined: the user's own folder. */
  readonly archive: ArchiveIdentity | undefined
  /** Absolute path of the model's files: unpacked, or the user's own folder. */
  readonly modelDir: string
  /** Absolute paths of node_modules folders in which its workers find nothing, whether they exist or not. */
  readonly closedModules: readonly string[]
  /** Absolute path of a JavaScript module ready to import; undefined for other runtimes than node. */
  readonly handlerPath: string | undefined
  /** Absolute paths of the files that `handlerPath` was compiled from; empty: it was not compiled. */
  readonly sources: readonly string[]
  /**
   * Why there is no handler to load: the model names none, or names a script that it lacks. Its workers
   * cannot start, but it may be registered, as in TorchServe.
   */
  readonly handlerProblem: ServeError | undefined
  /** The export that is the handler; undefined: the worker finds it. */
  readonly handlerEntry: string | undefined
  /** The whole model-config.yaml; {} when there is none. */
  readonly modelConfig: Record<string, unknown>
  /** The temporary folder; `dispose` removes it. */
  readonly workDir: string
  /** Removes the unpacked files, never the user's own folder. */
  dispose(): Promise<void>
}

/**
 * Prepares an archive or a folder for loading: unpacks it, reads manifest and config, finds the handler and
 * compiles it if Node cannot import it directly.
 * @param location absolute path of an archive, of a folder, or of a .gguf file
 * @throws ServeError MODEL_NOT_FOUND, UNTRUSTED_ARCHIVE, INVALID_ARCHIVE, INVALID_MODEL, CONFIG,
 *   SHUTTING_DOWN; cleans up first
 */
export async function prepareModel(location: string, options: PrepareOptions): Promise<PreparedModel> {
  const stats = await stat(location).catch(() => undefined)
  if (stats === undefined) throw new ServeError('MODEL_NOT_FOUND', `Model not found at: ${location}`)
  const folder = stats.isDirectory() ? await modelFolder(location) : undefined
  const root = options.packageRoot ?? packageRoot()
  const reach = folder === undefined ? undefined : Reach.ofFolder(folder)
  const modules = reach?.modules ?? linkingModules(root)
  const workspace = await createWorkspace(options.tempDir, root, modules)
  try {
    return await prepareIn(workspace, location, folder, reach, options)
  } catch (error) {
    await workspace.dispose()
    throw error
  }
}

/** @param folder the user's own folder; undefined: `location` is an archive or a .gguf file */
async function prepareIn(
  workspace: Workspace,
  location: string,
  folder: string | undefined,
  ownReach: Reach | undefined,
  options: PrepareOptions,
): Promise<PreparedModel> {
  const unpacked = join(workspace.place, `model-${defaultModelName(location)}`)
  const isWeights = folder === undefined && GGUF.test(location)
  const isArchive = folder === undefined && !isWeights
  if (!isArchive) refusePinned(location, options)
  const archive = isArchive ? await unpackArchive(location, unpacked, options) : undefined
  if (isWeights) await linkWeights(location, unpacked)
  const modelDir = folder ?? unpacked
  const reach = ownReach ?? Reach.ofArchive(modelDir)
  const settings = await readModelSettings(modelDir, process.env, location)
  const found = await readManifest(modelDir)
  const manifest = fillManifest(found, settings, modelDir, location, options)
  const { modelName, modelVersion, handler, configFile } = manifest.model
  if (folder !== undefined && found === undefined && settings === undefined && handler === undefined)
    throw new ServeError('INVALID_MODEL', `The folder ${basename(location)} is not a model: ${NO_HANDLER}`)
  if (modelName !== options.defaultName) checkName('Model name', modelName)
  checkName('Model version', modelVersion)
  const node = manifest.runtime === 'node'
  if (node && handler === undefined) throw noHandler(manifest, found, modelDir, location)
  const script = node ? handlerScript(handler!, modelDir) : undefined
  // Loads the YAML parser while esbuild, a separate process, compiles.
  const [importable, modelConfig] = await bothEnded(
    script === undefined ? Promise.resolve(undefined) : compiled(script, modelDir, unpacked, reach),
    readModelConfig(modelDir, configFile),
  )
  if (handler === GGUF_HANDLER && settings === undefined)
    await checkWeights(modelDir, namedWeights(manifest, modelConfig))
  const config = {
    ...builtinConfig(handler),
    ...settings?.config,
    // MLServer never checks requests against the metadata of a model-settings.json.
    ...(settings !== undefined && { validateInputs: isObject(modelConfig['openInference']) }),
    ...modelConfig,
    ...options.config,
    ...(isObject(options.config?.['handler']) && {
      handler: {
        ...(isObject(modelConfig['handler']) && modelConfig['handler']),
        ...options.config['handler'],
      },
    }),
  }
  return {
    manifest,
    name: modelName,
    version: modelVersion,
    runtime: manifest.runtime,
    archive,
    modelDir,
    closedModules: workspace.closedModules(reach.closedModules),
    handlerPath: importable?.path,
    sources: importable?.sources ?? [],
    handlerProblem:
      handler === undefined && !hasModuleOfItsName(modelDir)
        ? noHandler(manifest, found, modelDir, location)
        : node && script === undefined
          ? missingHandler(manifest, modelDir)
          : undefined,
    handlerEntry: handler === undefined ? undefined : parseHandlerEntry(handler).export,
    modelConfig: config,
    workDir: workspace.root,
    dispose: workspace.dispose,
  }
}

/** The file of weights that the model names, as its built-in handler reads it. */
function namedWeights({ model }: Manifest, { handler }: Record<string, unknown>): string | undefined {
  const named = model.serializedFile ?? (isObject(handler) ? handler['model_path'] : undefined)
  return typeof named === 'string' && named !== '' ? named : undefined
}

/** A folder and a lone .gguf file have no hash. @throws ServeError UNTRUSTED_ARCHIVE */
function refusePinned(location: string, { sha256 }: PrepareOptions): void {
  if (sha256 === undefined) return
  throw untrusted(
    `${basename(location)} must be an archive, because it has a pin. Pack it with the archiver.`,
  )
}

/** A folder's name, or what a settings file says, may be anything. @throws ServeError INVALID_MODEL */
function checkName(what: string, text: string): void {
  const problem = nameProblem(what, text)
  if (problem !== undefined) throw new ServeError('INVALID_MODEL', problem)
}

function fillManifest(
  found: Manifest | undefined,
  settings: ModelSettingsFile | undefined,
  modelDir: string,
  location: string,
  options: PrepareOptions,
): Manifest {
  const handler =
    options.handlerOverride ??
    found?.model.handler ??
    (settings?.implementation && implementationHandler(modelDir, settings.implementation)) ??
    options.defaultHandler ??
    conventionalHandler(modelDir)
  const runtime =
    options.runtimeOverride === undefined ? found?.runtime : checkRuntime(options.runtimeOverride)
  const unnamed = {
    modelName:
      options.defaultName ?? (settings ? settingsName(location, settings) : defaultModelName(location)),
    modelVersion: settings?.version ?? '1.0',
  }
  return {
    ...found,
    runtime: runtime ?? guessRuntime(modelDir, handler),
    model: { ...(found?.model ?? unnamed), handler },
  }
}

function guessRuntime(modelDir: string, handler: string | undefined): Runtime {
  if (builtinHandler(handler) !== undefined) return 'node'
  if (handler === undefined) return 'python'
  const { file } = parseHandlerEntry(handler)
  return isScript(file) || findScript(modelDir, file) !== undefined ? 'node' : 'python'
}

function handlerScript(handler: string, modelDir: string): string | undefined {
  return builtinHandler(handler) ?? findScript(modelDir, parseHandlerEntry(handler).file)
}

/** Python imports it where no handler is named. */
function hasModuleOfItsName(modelDir: string): boolean {
  return existsSync(join(modelDir, `${basename(modelDir)}.py`))
}

function noHandler(
  { model }: Manifest,
  found: Manifest | undefined,
  modelDir: string,
  location: string,
): ServeError {
  const deeper = fileBelow(modelDir, MANIFEST_PATH)
  const elsewhere = deeper === undefined ? '' : `; it has ${deeper}, but its files must not be in a folder`
  const why = found === undefined ? `: ${basename(location)} has no ${MANIFEST_PATH}${elsewhere}` : ''
  return new ServeError('INVALID_MODEL', `Model ${model.modelName} has no handler${why}.`)
}

function missingHandler({ model }: Manifest, modelDir: string): ServeError {
  const { file } = parseHandlerEntry(model.handler!)
  const deeper = fileBelow(modelDir, basename(file))
  const elsewhere = deeper === undefined ? '' : `: it has ${deeper}`
  const message = `Handler ${model.handler} is missing in model ${model.modelName}${elsewhere}.`
  return new ServeError('INVALID_MODEL', message)
}

/** @param buildDir folder for a compiled handler, from which Node finds the model's packages */
async function compiled(
  script: string,
  modelDir: string,
  buildDir: string,
  reach: Reach,
): Promise<{ path: string; sources: readonly string[] }> {
  if (relative(modelDir, script).startsWith('..')) return { path: script, sources: [] } // built-in
  // Node imports these two extensions directly, whatever a package.json nearby says.
  if (buildDir === modelDir && /\.[mc]js$/.test(script)) return { path: script, sources: [] }
  const outFile = join(buildDir, `.handler-${randomBytes(4).toString('hex')}.mjs`)
  return { path: outFile, sources: await compileHandler(script, outFile, reach) }
}

/**
 * Like Promise.all, but a failure waits for the other promise, which may still write to the folder to remove.
 */
async function bothEnded<A, B>(first: Promise<A>, second: Promise<B>): Promise<[A, B]> {
  await Promise.allSettled([first, second])
  return Promise.all([first, second])
}
