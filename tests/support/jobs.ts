import type { ServeError } from '../../common/errors.ts'
import { Job } from '../../frontend/jobs/job.ts'
import type { JobRequest } from '../../frontend/jobs/job-request.ts'
import type { ReplySink } from '../../frontend/jobs/reply-sink.ts'

/** Writes down what a job tells its client; the test says whether the client's connection has room. */
export class RecordingSink implements ReplySink {
  readonly calls: string[] = []
  room = true

  whole(head: { status: number }, body: Uint8Array): void {
    this.calls.push(`whole ${head.status} ${Buffer.from(body).toString()}`)
  }

  open(head: { status: number }): void {
    this.calls.push(`open ${head.status}`)
  }

  write(chunk: Uint8Array, from: number, to: number): boolean {
    this.calls.push(`write ${Buffer.from(chunk.subarray(from, to)).toString()}`)
    return this.room
  }

  close(): void {
    this.calls.push('close')
  }

  fail(error: ServeError): void {
    this.calls.push(`fail ${error.code} ${error.message}`)
  }
}

export interface TestJob {
  job: Job
  sink: RecordingSink
}

/** A job whose request has this id, and its client. */
export function testJob(requestId: string, request: Partial<JobRequest> = {}): TestJob {
  const sink = new RecordingSink()
  const parts = [{ name: 'data', data: Buffer.from(requestId) }]
  return {
    sink,
    job: new Job({ requestId, modelName: 'm', method: 'handle', headers: '', parts, ...request }, sink),
  }
}
