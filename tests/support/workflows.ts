import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { packWorkflow } from '../../model-archiver/pack-workflow.ts'
import { REPOSITORY, type Server } from './server.ts'
import { tempDir } from './temp.ts'

const FUNCTIONS = join(REPOSITORY, 'tests/support/handlers/workflow/functions.ts')

/** A workflow store whose archives are packed when they are asked for. */
export class WorkflowStore {
  readonly folder = join(tempDir(), 'workflows')

  constructor() {
    mkdirSync(this.folder)
  }

  /** Packs NAME.war; the handler has the functions of tests/support/handlers/workflow. */
  async pack(workflowName: string, spec: string, handler: string | undefined = FUNCTIONS): Promise<void> {
    const specFile = join(this.folder, `${workflowName}.yaml`)
    writeFileSync(specFile, spec)
    await packWorkflow({ workflowName, specFile, handler, exportPath: this.folder, force: true })
  }

  /** Packs and registers. */
  async register(server: Server, name: string, spec: string): Promise<void> {
    await this.pack(name, spec)
    const { status, json } = await server.manage('POST', `/workflows?url=${name}.war`)
    if (status !== 200) throw new Error(`Workflow ${name} was not registered: ${JSON.stringify(json)}`)
  }
}

/** A request with a JSON body. */
export function json(value: unknown): { headers: Record<string, string>; body: string } {
  return { headers: { 'content-type': 'application/json' }, body: JSON.stringify(value) }
}
