import { readFile, stat } from 'node:fs/promises'
import { basename, join } from 'node:path'
import { z } from 'zod'
import { ServeError } from '../protocol/errors.ts'

/** Where the manifest stands in an archive. */
export const MANIFEST_PATH = 'MAR-INF/MANIFEST.json'

/** `node` is ours; the others mean TorchServe's Python (or C++) worker. */
export const RUNTIMES = ['node', 'python', 'python3', 'LSP'] as const
export type Runtime = (typeof RUNTIMES)[number]

/** @throws ServeError INVALID_ARGUMENT with TorchServe's message */
export function checkRuntime(text: string): Runtime {
  const runtime = RUNTIMES.find((known) => known === text)
  if (runtime === undefined) throw new ServeError('INVALID_ARGUMENT', `Invalid RuntimeType value: ${text}`)
  return runtime
}

const MAX_MANIFEST_BYTES = 1024 * 1024

const modelSchema = z.looseObject(
  {
    modelName: z.string('Model name is not defined.').min(1, 'Model name is not defined.'),
    modelVersion: z
      .union([z.string().min(1), z.number()], 'Model version is not defined.')
      .transform((version) => String(version)),
    /** `file[.ext][:export]`, or the name of one of TorchServe's own Python handlers. */
    handler: z.string().optional(),
    serializedFile: z.string().optional(),
    modelFile: z.string().optional(),
    requirementsFile: z.string().optional(),
    /** The model's settings, usually model-config.yaml. */
    configFile: z.string().optional(),
    extraFiles: z.union([z.string(), z.array(z.string())]).optional(),
    extensions: z.record(z.string(), z.unknown()).optional(),
    envelope: z.string().optional(),
    sourceVocab: z.string().optional(),
  },
  'Missing Model entry in manifest file.',
)

const manifestSchema = z.looseObject({
  model: modelSchema,
  runtime: z.enum(RUNTIMES, 'Runtime is not defined or invalid.'),
  createdOn: z.string().optional(),
  archiverVersion: z.string().optional(),
})

/** What a model archive says about itself (spec 6.1). Keys that are not known are kept. */
export type Manifest = z.infer<typeof manifestSchema>

/** What must be there; their messages are TorchServe's (spec 1.3) and stand alone. */
const REQUIRED = ['model', 'model.modelName', 'model.modelVersion', 'runtime']

/**
 * Checks a parsed MANIFEST.json.
 * @throws ServeError INVALID_MODEL with TorchServe's message
 */
export function checkManifest(value: unknown): Manifest {
  const result = manifestSchema.safeParse(value)
  if (result.success) return result.data
  const { path, message } = result.error.issues[0]!
  const field = path.join('.')
  if (REQUIRED.includes(field)) throw invalid(message)
  throw invalid(`Manifest file is invalid: ${field === '' ? 'it is no object' : `${field}: ${message}`}.`)
}

/**
 * The manifest of an unpacked archive or of a folder; undefined when it has none.
 * @throws ServeError INVALID_MODEL
 */
export async function readManifest(modelDir: string): Promise<Manifest | undefined> {
  const text = await readSmallFile(join(modelDir, MANIFEST_PATH), MAX_MANIFEST_BYTES)
  if (text === undefined) return undefined
  return checkManifest(parseJson(text))
}

/** The whole text of a file; undefined when there is no such file. A file over the limit is refused unread. */
export async function readSmallFile(path: string, maxBytes: number): Promise<string | undefined> {
  const stats = await stat(path).catch(() => undefined)
  if (stats === undefined) return undefined
  if (!stats.isFile()) throw invalid(`${basename(path)} is not a file.`)
  if (stats.size > maxBytes) throw invalid(`${basename(path)} is larger than ${maxBytes} bytes.`)
  return readFile(path, 'utf8')
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch (error) {
    throw invalid(`Manifest file is not valid JSON: ${(error as Error).message}`)
  }
}

function invalid(message: string): ServeError {
  return new ServeError('INVALID_MODEL', message)
}
