import type { Mutant } from '../mutant.ts'

const JOB_QUEUE = 'frontend/jobs/job-queue.ts'
const JOB_LIST = 'frontend/jobs/job-list.ts'
const JOB = 'frontend/jobs/job.ts'
const OPEN_JOBS = 'frontend/jobs/open-jobs.ts'
const SEQUENCE_QUEUE = 'frontend/jobs/sequence-queue.ts'
const LOAD_TURNS = 'frontend/models/load-turns.ts'
const SNAPSHOTS = 'frontend/config/snapshot-store.ts'
const ROLLBACK = 'frontend/models/rollback-rule.ts'

const QUEUED = ['tests/jobs/job-queue.test.ts']
const SEQUENCES = ['tests/jobs/sequence-queue.test.ts']

/** Places of waiting jobs, timers of queues, turns of loads, the count of errors, snapshots, and inputs. */
export const MUTANTS: readonly Mutant[] = [
  {
    name: 'jobs that come back from a worker are in the wrong order',
    file: JOB_QUEUE,
    find: 'jobs.toReversed()',
    replace: 'jobs',
    tests: QUEUED,
  },
  {
    name: 'only the first batch that does not fill is announced',
    file: JOB_QUEUE,
    find: '      this.#timer = undefined\n      this.hand()',
    replace: '      this.hand()',
    tests: QUEUED,
  },
  {
    name: 'a closed queue hands out a batch',
    file: JOB_QUEUE,
    find: 'clearTimeout(this.#timer)',
    replace: '',
    tests: QUEUED,
  },
  {
    name: 'an input of exactly the limit does not wait at a worker',
    file: JOB_QUEUE,
    find: 'return bytes <= MAX_BYTES_AT_WORKER',
    replace: 'return bytes < MAX_BYTES_AT_WORKER',
    tests: QUEUED,
  },
  {
    name: 'a job could start before those that wait',
    file: JOB_QUEUE,
    find: 'return this.#options.batchSize === 1 && this.#jobs.size === 0 &&',
    replace: 'return this.#options.batchSize === 1 &&',
    tests: QUEUED,
  },
  {
    name: 'the last of the jobs that came back is lost',
    file: JOB_LIST,
    find: 'if (this.#first === undefined) this.#last = job\n    else this.#first.listBefore = job',
    replace: 'if (this.#first !== undefined) this.#first.listBefore = job',
    tests: QUEUED,
  },
  {
    name: 'a deadline that has passed counts as a client that left',
    file: JOB,
    find: "reason === 'deadline' || reason === 'timeout' ? 'timed_out'",
    replace: "reason === 'timeout' ? 'timed_out'",
    tests: ['tests/jobs/job.test.ts'],
  },
  {
    name: 'a drain leaves its timer',
    file: OPEN_JOBS,
    find: '          clearTimeout(timer)\n',
    replace: '',
    tests: ['tests/jobs/open-jobs.test.ts'],
  },
  {
    name: 'a sequence without a job is handed to a worker',
    file: SEQUENCE_QUEUE,
    find: '    if (sequence.waiting.size === 0) this.#lanes.disarm(sequence)\n',
    replace: '',
    tests: SEQUENCES,
  },
  {
    name: 'a describe that waits takes a place from the sequences',
    file: SEQUENCE_QUEUE,
    find: ' + this.#describes.pending',
    replace: '',
    tests: SEQUENCES,
  },
  {
    name: 'a load does not wait for the one before it',
    file: LOAD_TURNS,
    find: 'if (turn.last === ended) this.#turns.delete(name)',
    replace: 'this.#turns.delete(name)',
    tests: ['tests/models/load-turns.test.ts'],
  },
  {
    name: 'more requests failed than there were',
    file: ROLLBACK,
    find: 'Math.min(requests, sum(this.#errors))',
    replace: 'sum(this.#errors)',
    tests: ['tests/models/rollback-rule.test.ts'],
  },
  {
    name: 'no snapshot follows one that could not be written',
    file: SNAPSHOTS,
    find: 'this.#queue = written.catch(() => undefined)',
    replace: 'this.#queue = written',
    tests: ['tests/config/snapshots.test.ts'],
  },
  {
    name: 'whoever knows the id of a sequence continues it',
    file: SEQUENCE_QUEUE,
    find: 'sequence !== undefined && sequence.owner !== owner',
    replace: 'sequence !== undefined && sequence.owner === undefined && owner !== undefined',
    tests: [...SEQUENCES, 'tests/security/sequences-of-others.test.ts'],
  },
  {
    name: 'the loss of a sequence is told to another, and forgotten',
    file: 'frontend/jobs/lost-sequences.ts',
    find: 'JSON.stringify([id, owner])',
    replace: 'JSON.stringify([id, owner === undefined])',
    tests: ['tests/jobs/lost-sequences.test.ts'],
  },
  {
    name: 'an id of a sequence has any length',
    file: 'frontend/jobs/sequence-headers.ts',
    find: 'id.length > MAX_ID_LENGTH',
    replace: 'id.length > 1e6',
    tests: SEQUENCES,
  },
  {
    name: 'a snapshot of the same millisecond is not the newest',
    file: SNAPSHOTS,
    find: 'timeStamp(this.#last) <= newest',
    replace: 'timeStamp(this.#last) < newest',
    tests: ['tests/config/snapshots.test.ts'],
  },
  {
    name: 'a change of load_models is told twice',
    file: 'frontend/config/last-snapshot.ts',
    find: 'name !== KEYS.loadModels.name && ',
    replace: '',
    tests: ['tests/config/model-source.test.ts'],
  },
  {
    name: 'a further input shares the memory of its message',
    file: 'backend-worker/input-queue.ts',
    find: 'Uint8Array.from(data)',
    replace: 'data',
    tests: ['tests/backend-worker/input-queue.test.ts'],
  },
  {
    name: 'a sequence whose worker ended begins anew without a word',
    file: SEQUENCE_QUEUE,
    find: 'this.#lost.add(sequence)',
    replace: 'this.#lost.forget(sequence)',
    tests: ['tests/jobs/lost-sequences.test.ts'],
  },
  {
    name: 'a sequence whose request failed with its worker is told again',
    file: SEQUENCE_QUEUE,
    find: "if (job.outcome === 'failed') this.#lost.forget(sequence)\n",
    replace: '\n',
    tests: ['tests/jobs/lost-sequences.test.ts'],
  },
  {
    name: 'a call that scales ends the newest worker, whatever it keeps',
    file: 'frontend/workers/pool.ts',
    find: 'gone.push(...this.#workers.splice(this.#leastNeeded(), 1))',
    replace: 'gone.push(...this.#workers.splice(-1, 1))',
    tests: ['tests/e2e/sequences-and-scaling.test.ts'],
    title: 'need not be',
  },
]
