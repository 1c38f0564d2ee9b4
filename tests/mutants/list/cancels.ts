import type { Mutant } from '../mutant.ts'

/** Clients that leave, handlers that have to stop. */
export const MUTANTS: readonly Mutant[] = [
  {
    name: 'room at the client is told to the first job of a request alone',
    file: 'frontend/dialects/openai/job-group.ts',
    find: 'for (const job of this.#jobs) job.drained()',
    replace: 'this.#jobs[0]?.drained()',
    tests: ['tests/dialects/openai/job-group.test.ts'],
  },
  {
    name: 'an open request shows an address in its mapped form',
    file: 'frontend/watch/open-request.ts',
    find: 'unmapped(sender.address)',
    replace: 'sender.address',
    tests: ['tests/watch/open-request.test.ts'],
  },
  {
    name: 'every third cancel late by 400 ms',
    file: 'frontend/workers/requests.ts',
    find: "    this.#group.send({ type: 'cancel', ids: [entry.id], reason })\n",
    replace:
      "    const send = () => this.#group.send({ type: 'cancel', ids: [entry.id], reason }); if (entry.id % 3 === 0) setTimeout(send, 400); else send()\n",
    tests: ['tests/e2e/cancellation.test.ts'],
    title: 'an HTTP client cuts|a unary client leaves|a gRPC call is cancelled',
  },
  {
    name: 'every third cancel heard late by 400 ms',
    file: 'backend-worker/session.ts',
    find: 'this.#loaded?.service.cancel(message.ids, message.reason)',
    replace:
      'setTimeout(() => this.#loaded?.service.cancel(message.ids, message.reason), message.ids[0]! % 3 === 0 ? 400 : 0)',
    tests: ['tests/e2e/cut-connections.test.ts'],
    title: 'in a silence after its first item: TorchServe StreamPredictions, ',
  },
  {
    name: 'a workflow cancels late',
    file: 'frontend/workflows/execution.ts',
    find: 'for (const run of this.#running) run.cancel(reason)',
    replace: 'setTimeout(() => this.#running.forEach((run) => run.cancel(reason)), 400)',
    tests: ['tests/e2e/workflows.test.ts'],
    title: 'a client that leaves',
  },
  {
    name: 'a cancelled stream goes on sending what waits',
    file: 'backend-worker/response-stream.ts',
    find: '    this.#waiting = undefined\n    this.#controller?.abort(reason)',
    replace: '    this.#controller?.abort(reason)',
    tests: ['tests/backend-worker/response-stream.test.ts'],
  },
  {
    name: 'a sender that waits for room is not woken by a cancel',
    file: 'backend-worker/response-stream.ts',
    find: '    this.inputs?.fail(reason)\n    this.#wakeUp()\n',
    replace: '    this.inputs?.fail(reason)\n',
    tests: ['tests/backend-worker/response-stream.test.ts'],
  },
  {
    name: 'a signal that is asked for after the cancel has not aborted',
    file: 'backend-worker/response-stream.ts',
    find: 'if (this.#gone !== undefined) this.#controller.abort(this.#gone)',
    replace: '',
    tests: ['tests/backend-worker/response-stream.test.ts'],
  },
  {
    name: 'a client that closes its half is not noticed',
    file: 'frontend/edge/http/connection.ts',
    find: ".on('end', leave)",
    replace: '',
    // A client that reads is also noticed by Node's own end of the connection.
    tests: ['tests/edge/http/client-leaves.test.ts'],
    title: 'half-closes while it does not read',
  },
  {
    name: 'a job is cancelled without telling its holder',
    file: 'frontend/jobs/job.ts',
    find: '    this.#holder.abandon(this, reason)\n  }\n\n  /** The job cannot continue',
    replace: '  }\n\n  /** The job cannot continue',
    tests: ['tests/jobs/job.test.ts'],
  },
  {
    name: 'the other jobs of a StreamPredictions2 call go on when its client leaves',
    file: 'frontend/dialects/torchserve/grpc-stream.ts',
    find: 'for (const reply of this.#open) reply.job!.cancel(reason)',
    replace: 'for (const reply of [...this.#open].slice(0, 1)) reply.job!.cancel(reason)',
    tests: ['tests/dialects/torchserve/grpc-sequence-call.test.ts'],
  },
  {
    name: 'a ModelStreamInfer call goes on when its client leaves',
    file: 'frontend/dialects/open-inference/grpc-stream.ts',
    find: 'this.#user?.cancel(reason)',
    replace: '',
    tests: ['tests/e2e/cut-connections.test.ts'],
    title: 'in a silence after its first item: V2 ModelStreamInfer',
  },
  {
    name: 'the first job of a request runs on though the second was refused',
    file: 'frontend/dialects/openai/job-group.ts',
    find: "      this.cancel('failed')\n",
    replace: '',
    tests: ['tests/dialects/openai/rest.test.ts'],
    title: 'second job is refused',
  },
]
