import { existsSync } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join, resolve, basename, dirname, extname } from 'node:path'
import { makeFolder } from '../common/files.ts'
import { nameProblem } from '../common/names.ts'
import { createdOn, ownVersion } from './package-root.ts'
import { ArchiveContents, mistake } from './contents.ts'
import { MANIFEST_PATH } from './manifest.ts'
import type { Manifest } from './manifest-schema.ts'
import { MODEL_NAME } from './model-names.ts'
import {
  RUNTIMES,
  type Runtime,
  findScript,
  formatHandlerEntry,
  isScript,
  parseHandlerEntry,
} from './handler-entry.ts'
import { ARCHIVE_ENDINGS, ARCHIVE_FORMATS, type ArchiveFormat, writeArchive } from './write-archive.ts'
import { bundleHandler, type BundleResult } from './bundle.ts'

/** Options of torch-model-archiver. Paths may be relative to the working directory. */
export interface ArchiveOptions {
  readonly modelName: string
  readonly version: string
  /** `file[.ext][:export]`, or the name of one of TorchServe's Python handlers. */
  readonly handler: string
  /** Weights. */
  readonly serializedFile?: string
  /** The model's architecture (Python), or any file of the model. */
  readonly modelFile?: string
  /** Files, patterns and folders; a folder's content goes into the root of the archive. */
  readonly extraFiles?: readonly string[]
  /** Default: node, or python for a Python handler. */
  readonly runtime?: Runtime
  /** Output folder, made if needed. Default: the working directory. */
  readonly exportPath?: string
  /** Default: `default`, a zip named NAME.mar. */
  readonly archiveFormat?: ArchiveFormat
  /** Whether to replace an existing archive. Default false. */
  readonly force?: boolean
  readonly requirementsFile?: string
  /** File with the model's settings, usually model-config.yaml. */
  readonly configFile?: string
  /** Packages to leave outside the bundle, besides the native ones, which are detected. */
  readonly external?: readonly string[]
}

export interface PackResult {
  /** Absolute path of the archive. */
  readonly path: string
  /** Packages that must be installed where the model is served. */
  readonly externals: readonly string[]
  readonly warnings: readonly string[]
}

/**
 * Packs a handler and a model's files into an archive.
 * @returns its absolute path
 * @throws ServeError INVALID_ARGUMENT for invalid options, INVALID_MODEL for a handler that cannot be bundled
 */
export async function createArchive(options: ArchiveOptions): Promise<string> {
  return (await packModel(options)).path
}

/** Like {@link createArchive}, and also returns what stayed outside the archive. */
export async function packModel(options: ArchiveOptions): Promise<PackResult> {
  checkOptions(options)
  const format = options.archiveFormat ?? 'default'
  const exportPath = resolve(options.exportPath ?? '.')
  const path = join(exportPath, options.modelName + ARCHIVE_ENDINGS[format])
  if (existsSync(path) && options.force !== true)
    throw mistake(`${path} already exists. Please specify --force/-f option to overwrite it.`)
  const buildDir = await mkdtemp(join(tmpdir(), 'torch-model-archiver-'))
  try {
    const contents = new ArchiveContents()
    const { manifest, externals, warnings } = await collect(options, contents, buildDir)
    contents.addContent(MANIFEST_PATH, Buffer.from(`${JSON.stringify(manifest, undefined, 2)}\n`))
    await makeFolder(exportPath)
    await writeArchive(contents.files, path, format)
    return { path, externals, warnings: [...contents.warnings, ...warnings] }
  } finally {
    await rm(buildDir, { recursive: true, force: true })
  }
}

function checkOptions(options: ArchiveOptions): void {
  const { modelName, version, runtime, archiveFormat } = options
  if (!MODEL_NAME.test(modelName))
    throw mistake(
      `Model name contains special characters. The allowed regular expression is ${MODEL_NAME.source}`,
    )
  if (version === '') throw mistake('The version of the model must not be empty.')
  const problem = nameProblem('Model name', modelName) ?? nameProblem('Model version', version)
  if (problem !== undefined) throw mistake(problem)
  if (runtime !== undefined && !RUNTIMES.includes(runtime))
    throw mistake(`Invalid RuntimeType value: ${runtime as string}`)
  if (archiveFormat !== undefined && !ARCHIVE_FORMATS.includes(archiveFormat))
    throw mistake(`Archive format ${archiveFormat as string} is not supported`)
}

interface Collected extends Omit<PackResult, 'path'> {
  manifest: Manifest
}

async function collect(
  options: ArchiveOptions,
  contents: ArchiveContents,
  buildDir: string,
): Promise<Collected> {
  const { serializedFile, modelFile, requirementsFile, configFile, extraFiles, external } = options
  const add = async (path: string | undefined, flag: string): Promise<string | undefined> =>
    path === undefined ? undefined : contents.addFile(path, flag)
  const files = {
    serializedFile: await add(serializedFile, '--serialized-file'),
    modelFile: await add(modelFile, '--model-file'),
    requirementsFile: await add(requirementsFile, '--requirements-file'),
    configFile: await add(configFile, '--config-file'),
    extraFiles:
      extraFiles === undefined ? undefined : await contents.addExtraFiles(extraFiles, '--extra-files'),
  }
  const runtime = options.runtime ?? handlerRuntime(options.handler)
  // Last, because bundling is slow and other errors should appear first.
  const { handler, ...bundle } = await packHandler(options.handler, runtime, contents, buildDir, external)
  const model = { modelName: options.modelName, modelVersion: options.version, handler, ...files }
  return { manifest: { createdOn: createdOn(), runtime, model, archiverVersion: ownVersion() }, ...bundle }
}

/** TorchServe's own handlers: the manifest names them, and no file is packed. */
const STOCK_HANDLERS = [
  'base_handler',
  'text_classifier',
  'image_classifier',
  'object_detector',
  'image_segmenter',
  'dali_image_classifier',
  'vllm_handler',
  'trt_llm_handler',
]

export interface PackedHandler extends BundleResult {
  /** For the manifest: `file.ext[:export]`. */
  readonly handler: string
}

/** The runtime for a handler, by its name. */
export function handlerRuntime(handler: string): Runtime {
  const { file } = parseHandlerEntry(handler)
  return file.endsWith('.py') || STOCK_HANDLERS.includes(file) ? 'python' : 'node'
}

/** Adds the handler to the archive: bundled for node, unchanged for other runtimes. */
export async function packHandler(
  handler: string,
  runtime: Runtime,
  contents: ArchiveContents,
  buildDir: string,
  external: readonly string[] | undefined,
): Promise<PackedHandler> {
  if (runtime === 'node') return packScript(handler, contents, buildDir, external)
  const entry = parseHandlerEntry(handler)
  if (STOCK_HANDLERS.includes(entry.file)) return { handler, externals: [], warnings: [] }
  await contents.addFile(withEnding(entry.file, runtime), '--handler')
  return { handler: basename(handler), externals: [], warnings: [] }
}

/** Adds the extension to a name without one: a Python module, or a C++ library. */
function withEnding(file: string, runtime: Runtime): string {
  const library = process.platform === 'darwin' ? '.dylib' : '.so'
  const ending = runtime === 'LSP' ? library : '.py'
  const whole = file.endsWith(ending) || (runtime === 'LSP' && existsSync(file))
  return whole ? file : file + ending
}

async function packScript(
  handler: string,
  contents: ArchiveContents,
  buildDir: string,
  external: readonly string[] | undefined,
): Promise<PackedHandler> {
  const entry = parseHandlerEntry(handler)
  const path = resolve(entry.file)
  if (existsSync(path) && extname(path) !== '' && !isScript(path))
    throw mistake(
      `--handler: ${entry.file} must be JavaScript or TypeScript; use --runtime python for Python.`,
    )
  const script = findScript(dirname(path), basename(path))
  if (script === undefined) throw mistake(`--handler: file not found: ${entry.file}`)
  const name = `${basename(script, extname(script))}.mjs`
  const outFile = join(buildDir, name)
  const bundle = await bundleHandler({ entry: script, outFile, external })
  await contents.addFile(outFile, '--handler', name)
  return { handler: formatHandlerEntry({ ...entry, file: name }), ...bundle }
}
