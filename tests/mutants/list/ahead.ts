import type { Mutant } from '../mutant.ts'

const QUEUE = 'frontend/jobs/job-queue.ts'
const REQUESTS = 'frontend/workers/requests.ts'
const AHEAD = 'frontend/workers/batches-ahead.ts'
const IN_FLIGHT = 'frontend/workers/in-flight.ts'
const PACE = 'frontend/workers/pace.ts'
const SERVICE = 'backend-worker/service.ts'
const SESSION = 'backend-worker/session.ts'
const BUSY_POLL = 'protocol/busy-poll.ts'
const BUSY_POLL_TESTS = ['tests/protocol/busy-poll.test.ts']
const QUEUE_TESTS = ['tests/jobs/job-queue.test.ts']
const REQUESTS_TESTS = ['tests/workers/requests.test.ts']
const INBOX_TESTS = ['tests/backend-worker/inbox.test.ts']

/** Batches that wait at busy workers, and the frontend that waits for short answers. */
export const MUTANTS: readonly Mutant[] = [
  {
    name: 'the frontend polls for answers of any length',
    file: BUSY_POLL,
    find: '    if (this.#expectedMs >= this.#maxMs) return\n',
    replace: '',
    tests: BUSY_POLL_TESTS,
  },
  {
    name: 'the frontend polls on when the answer is there',
    file: BUSY_POLL,
    find: '    this.#until = 0\n',
    replace: '',
    tests: BUSY_POLL_TESTS,
  },
  {
    name: 'the frontend polls twice after two messages',
    file: BUSY_POLL,
    find: '    if (this.#scheduled) return\n',
    replace: '',
    tests: BUSY_POLL_TESTS,
  },
  {
    name: 'what nobody asked for counts as an answer',
    file: BUSY_POLL,
    find: '    this.#sentAt = undefined\n',
    replace: '',
    tests: BUSY_POLL_TESTS,
  },
  {
    name: 'one long answer ends the polling',
    file: BUSY_POLL,
    find: 'Math.min(LONGEST_MS, now - this.#sentAt)',
    replace: 'now - this.#sentAt',
    tests: BUSY_POLL_TESTS,
  },
  {
    name: 'an answer counts from the last of its messages',
    file: BUSY_POLL,
    find: 'this.#sentAt ??= now',
    replace: 'this.#sentAt = now',
    tests: BUSY_POLL_TESTS,
  },
  {
    name: 'request ids share their random bytes',
    file: 'frontend/jobs/request-id.ts',
    find: '  used += RANDOM_BYTES\n',
    replace: '  used += 1\n',
    tests: ['tests/jobs/request-id.test.ts'],
  },
  {
    name: 'busy_poll_microseconds has no effect',
    file: 'protocol/channel.ts',
    find: '    busyPollMs,\n',
    replace: '',
    tests: ['tests/protocol/channel.test.ts'],
  },
  {
    name: 'batches that are not full wait at workers',
    file: QUEUE,
    find: '    if (this.#jobs.size < batchSize) return []\n',
    replace: '',
    tests: QUEUE_TESTS,
  },
  {
    name: 'requests at workers do not count as queued',
    file: QUEUE,
    find: 'return this.#jobs.size + this.#atWorkers.size',
    replace: 'return this.#jobs.size',
    tests: QUEUE_TESTS,
  },
  {
    name: 'requests at workers have no queue time limit',
    file: QUEUE,
    find: 'if (job.startedAt === undefined) job.waits()',
    replace: 'if (this.#jobs.has(job)) job.waits()',
    tests: QUEUE_TESTS,
  },
  {
    name: 'large inputs wait at workers',
    file: QUEUE,
    find: 'return bytes <= MAX_BYTES_AT_WORKER',
    replace: 'return bytes >= 0',
    tests: QUEUE_TESTS,
  },
  {
    name: 'what comes back from a worker goes to the end of the queue',
    file: QUEUE,
    find: 'this.#jobs.addFirst(job)',
    replace: 'this.#jobs.add(job)',
    tests: QUEUE_TESTS,
  },
  {
    name: 'what comes back from a worker is handed to none',
    file: QUEUE,
    find: '      job.heldBy(this)\n    }\n    this.hand()\n',
    replace: '      job.heldBy(this)\n    }\n',
    tests: QUEUE_TESTS,
  },
  {
    name: 'what waits at a worker outlives an emptied queue',
    file: QUEUE,
    find: "    for (const job of [...this.#atWorkers]) job.abort(error, 'shutdown')\n",
    replace: '',
    tests: QUEUE_TESTS,
  },
  {
    name: 'work waits behind a long batch',
    file: AHEAD,
    find: 'if (this.#pace.isSlow(performance.now())) this.withdrawAll()',
    replace: '',
    tests: ['tests/workers/requests.test.ts', 'tests/e2e/batches-ahead.test.ts'],
  },
  {
    name: 'one long batch is forgotten at once',
    file: PACE,
    find: 'took > this.#expected ? took :',
    replace: '',
    tests: REQUESTS_TESTS,
  },
  {
    name: 'a client that leaves is not taken out of the worker',
    file: IN_FLIGHT,
    find: '      this.#link.withdraw(this.run)\n',
    replace: '',
    tests: REQUESTS_TESTS,
  },
  {
    name: 'a client that leaves a batch that may have begun is not cancelled',
    file: REQUESTS,
    find: "    this.#group.send({ type: 'cancel', ids: [entry.id], reason })\n",
    replace:
      "    if (entry.run.owner === undefined) this.#group.send({ type: 'cancel', ids: [entry.id], reason })\n",
    tests: REQUESTS_TESTS,
  },
  {
    name: 'what waits at a worker dies with it',
    file: REQUESTS,
    find: '    giveBack(waiting)\n    const failed',
    replace: '    const failed',
    tests: REQUESTS_TESTS,
  },
  {
    name: 'an answer before the begin is accepted',
    file: IN_FLIGHT,
    find: '      this.#link.unexpected(this)\n      return false\n',
    replace: '',
    tests: REQUESTS_TESTS,
  },
  {
    name: 'a worker begins the next batch before its answer has left',
    file: SERVICE,
    find: 'const handover = this.outlet.handover()',
    replace: 'const handover = undefined as Promise<void> | undefined',
    tests: INBOX_TESTS,
  },
  {
    name: 'a cancel that came with a batch counts only after its begin',
    file: SERVICE,
    find: 'setImmediate(() => this.#callAll(calls))',
    replace: 'this.#callAll(calls)',
    tests: INBOX_TESTS,
  },
  {
    name: 'a worker that unloads runs what waits',
    file: SESSION,
    find: '    this.#giveBack(this.#loaded?.service.withdrawAll() ?? [])\n',
    replace: '',
    tests: INBOX_TESTS,
  },
  {
    name: 'a batch is given back in part',
    file: 'backend-worker/inbox.ts',
    find: 'return out.flatMap(({ requests }) => requests.map(({ id }) => id))',
    replace: 'return out.flatMap(({ requests }) => requests.slice(0, 1).map(({ id }) => id))',
    tests: INBOX_TESTS,
  },
]
