import { ServeError } from '../../common/errors.ts'
import type { Job } from '../../frontend/jobs/job.ts'
import type { RegisterWorkflowRequest, WorkflowOperations } from '../../frontend/workflows/operations.ts'

/** Workflows that a test plays by hand; there is one, called `story`. */
export class FakeWorkflows implements WorkflowOperations {
  readonly calls: [string, unknown][] = []
  onJob: (job: Job) => void = () => undefined

  has(name: string): boolean {
    return name === 'story'
  }

  submit(job: Job): void {
    this.#check(job.request.modelName)
    this.onJob(job)
  }

  register(request: RegisterWorkflowRequest): Promise<string> {
    this.calls.push(['register', request])
    return Promise.resolve('registered')
  }

  async unregister(name: string): Promise<string> {
    this.#check(name)
    return `Workflow "${name}" unregistered`
  }

  list(limit?: number, nextPageToken?: number) {
    this.calls.push(['list', [limit, nextPageToken]])
    return { workflows: [{ workflowName: 'story', workflowUrl: 'story.war' }] }
  }

  describe(name: string) {
    this.#check(name)
    const numbers = { minWorkers: 1, maxWorkers: 1, batchSize: 1, maxBatchDelay: 50 }
    return [
      {
        workflowName: name,
        workflowUrl: 'story.war',
        ...numbers,
        workflowDag: '{a=[b]}',
        archiveSha256: '0'.repeat(64),
        archivePinned: false,
      },
    ]
  }

  #check(name: string): void {
    if (!this.has(name)) throw new ServeError('WORKFLOW_NOT_FOUND', `Workflow not found: ${name}`)
  }
}
