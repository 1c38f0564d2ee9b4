import * as z from 'zod'
import { ServeError } from '../common/errors.ts'
import { isName, nameProblem } from '../common/names.ts'
import { parseArchiveJson } from './manifest.ts'

const text = (missing: string) => z.string(missing).min(1, missing)

const workflowSchema = z.looseObject(
  {
    workflowName: z
      .string('Workflow name is not defined.')
      .min(1, { error: 'Workflow name is not defined.', abort: true })
      .refine(isName, { error: ({ input }) => nameProblem('Workflow name', String(input)) }),
    specFile: text('Workflow specFile is not defined.'),
    /** Absent: the workflow has no functions. */
    handler: z.string().nullish(),
  },
  'Missing Workflow entry in manifest file.',
)

const manifestSchema = z.looseObject({
  workflow: workflowSchema,
  archiverVersion: text('Workflow archive version is not defined.'),
  createdOn: text('Workflow archive createdOn is not defined.'),
})

/** Content of a workflow's manifest (TorchServe's workflow-archiver/README.md). */
export type WorkflowManifest = z.infer<typeof manifestSchema>

/** Path of the manifest in an archive. */
export const WORKFLOW_MANIFEST_PATH = 'WAR-INF/MANIFEST.json'

/**
 * Checks the text of a MANIFEST.json; undefined: the archive contains none.
 * @throws ServeError INVALID_WORKFLOW with TorchServe's message
 */
export function checkWorkflowManifest(content: string | undefined): WorkflowManifest {
  const result = manifestSchema.safeParse(parseJson(content ?? '{}'))
  if (result.success) return result.data
  throw new ServeError('INVALID_WORKFLOW', result.error.issues[0]!.message)
}

function parseJson(content: string): unknown {
  try {
    return parseArchiveJson(content)
  } catch (cause) {
    const reason = (cause as Error).message
    throw new ServeError('INVALID_WORKFLOW', `Manifest file is not valid JSON: ${reason}`, { cause })
  }
}
