import * as z from 'zod'
import { ServeError } from '../common/errors.ts'
import { isName, nameProblem } from '../common/names.ts'
import { RUNTIMES } from './handler-entry.ts'

const modelSchema = z.looseObject(
  {
    modelName: z
      .string('Model name is not defined.')
      .min(1, { error: 'Model name is not defined.', abort: true })
      .refine(isName, { error: ({ input }) => nameProblem('Model name', String(input)) }),
    modelVersion: z
      .string('Model version is not defined.')
      .min(1, { error: 'Model version is not defined.', abort: true })
      .refine(isName, { error: ({ input }) => nameProblem('Model version', String(input)) }),
    /** `file[.ext][:export]`, or the name of one of TorchServe's Python handlers. */
    handler: z.string().optional(),
    serializedFile: z.string().optional(),
    modelFile: z.string().optional(),
    requirementsFile: z.string().optional(),
    /** File with the model's settings, usually model-config.yaml. */
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

/** Content of MAR-INF/MANIFEST.json (TorchServe's model-archiver/README.md). Keeps unknown keys. */
export type Manifest = z.infer<typeof manifestSchema>

/** Required fields; their messages are TorchServe's and appear alone. */
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
  throw invalid(
    `Manifest file is invalid: ${field === '' ? 'it must be an object' : `${field}: ${message}`}.`,
  )
}

function invalid(message: string): ServeError {
  return new ServeError('INVALID_MODEL', message, { publicCause: 'its manifest is not valid' })
}
