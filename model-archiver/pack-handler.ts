import { existsSync } from 'node:fs'
import { basename, dirname, extname, join, resolve } from 'node:path'
import { bundleHandler, type BundleResult } from './bundle.ts'
import { type ArchiveContents, mistake } from './contents.ts'
import { findScript, formatHandlerEntry, isScript, parseHandlerEntry } from './handler-entry.ts'
import type { Runtime } from './runtime.ts'

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
