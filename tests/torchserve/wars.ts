import { copyFile, mkdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { Packing } from './packing.ts'

interface War {
  readonly workflowName: string
  /** The graph, or its file in a checkout. */
  readonly spec: string
  /** In models/workflows and python-models/workflows. */
  readonly functions: string
}

const DOG_BREED = 'examples/Workflows/dog_breed_classification/workflow_dog_breed_classification.yaml'

/** A network between two functions. */
function around(archive: string, settings = ''): string {
  return `models:
  min-workers: 1
  max-workers: 1
${settings}  network:
    url: ${archive}
dag:
  preprocessing: [network]
  network: [postprocessing]
`
}

const ALONE = `models:
  min-workers: 1
dag:
  preprocessing: []
`

/**
 * The workflow archives that TorchServe's tests name. The public ones are not reachable, so their graphs are
 * ours.
 */
const WARS: Readonly<Record<string, War>> = {
  densenet_wf: { workflowName: 'densenet', spec: around('densenet161.mar'), functions: 'pass-on' },
  'timeout-retry-test': {
    workflowName: 'densenet',
    spec: ALONE.replace('1', '1\n  timeout-ms: 100\n  retry-attempts: 2'),
    functions: 'slow',
  },
  dog_breed_wf: { workflowName: 'dog_breed_wf', spec: DOG_BREED, functions: 'dog-breed' },
  custom_python_dep: { workflowName: 'custom_python_dep', spec: ALONE, functions: 'missing-package' },
  'loading-memory-error': {
    workflowName: 'loading-memory-error',
    spec: ALONE,
    functions: 'out-of-memory',
  },
  smtest: { workflowName: 'smtest', spec: around('mnist.mar'), functions: 'pass-on' },
}

export function isWar(name: string): boolean {
  return Object.hasOwn(WARS, name)
}

/** Packs NAME.war. @returns its path */
export async function packWar(
  name: string,
  checkout: string,
  folder: string,
  packing: Packing,
): Promise<string> {
  const { workflowName, spec, functions } = WARS[name]!
  const own = join(folder, name)
  await mkdir(own, { recursive: true })
  const specFile = join(own, 'workflow.yaml')
  await writeFile(specFile, spec.endsWith('.yaml') ? await readFile(join(checkout, spec)) : spec)
  const path = await packing.war(workflowName, specFile, functions, own)
  const war = join(folder, `${name}.war`)
  await copyFile(path, war)
  return war
}
