import type { Mutant } from '../mutant.ts'

const RULE = 'frontend/models/scaling-rule.ts'
const RULE_TESTS = ['tests/models/scaling-rule.test.ts']
const POOL = 'frontend/workers/pool.ts'
const E2E = ['tests/e2e/autoscaling.test.ts']

/** Workers that follow the load. */
export const MUTANTS: readonly Mutant[] = [
  {
    name: 'workers are added while one fails to start',
    file: RULE,
    find: 'if (failing || ready === 0',
    replace: 'if (ready === 0',
    tests: RULE_TESTS,
  },
  {
    name: 'workers are added while none serves',
    file: RULE,
    find: 'if (failing || ready === 0 ||',
    replace: 'if (failing ||',
    tests: RULE_TESTS,
  },
  {
    name: 'workers are added without a pause',
    file: RULE,
    find: 'now - this.#addedAt < scaleUpInterval',
    replace: 'now < this.#addedAt',
    tests: RULE_TESTS,
  },
  {
    name: 'workers are added while a slot is free',
    file: RULE,
    find: ' || busy < slots) return 0',
    replace: ') return 0',
    tests: RULE_TESTS,
  },
  {
    name: 'workers that start do not count for the queue',
    file: RULE,
    find: 'Math.ceil(waiting / jobsPerWorker) - starting',
    replace: 'Math.ceil(waiting / jobsPerWorker)',
    tests: RULE_TESTS,
  },
  {
    name: 'more than double the workers come at once',
    file: RULE,
    find: 'Math.min(wanted, forQueue)',
    replace: 'forQueue',
    tests: RULE_TESTS,
  },
  {
    name: 'workers that end do not count for maxWorkers',
    file: RULE,
    find: 'maxWorkers - leaving',
    replace: 'maxWorkers',
    tests: RULE_TESTS,
  },
  {
    name: 'one moment of low load ends workers',
    file: RULE,
    find: 'state.now - this.#lowSince >= this.#settings.scaleDownAfter',
    replace: 'state.now >= this.#lowSince',
    tests: RULE_TESTS,
  },
  {
    name: 'the highest load of the time is forgotten',
    file: RULE,
    find: 'this.#peak = Math.max(this.#peak, needed)',
    replace: 'this.#peak = needed',
    tests: RULE_TESTS,
  },
  {
    name: 'more than half of the workers end at once',
    file: RULE,
    find: 'Math.ceil(wanted / 2), ',
    replace: '',
    tests: RULE_TESTS,
  },
  {
    name: 'requests between two looks are not noticed',
    file: RULE,
    find: ' && ended === this.#ended',
    replace: '',
    tests: RULE_TESTS,
  },
  {
    name: 'a model that cannot be loaded goes to zero',
    file: RULE,
    find: ' && !state.failing) return 0',
    replace: ') return 0',
    tests: RULE_TESTS,
  },
  {
    name: 'a model at zero does not wake',
    file: RULE,
    find: 'state.waiting > 0 ? 1 : 0',
    replace: '0',
    tests: RULE_TESTS,
  },
  {
    name: 'a draining worker ends with its stream',
    file: POOL,
    find: "if (worker.state === 'ready' && (!worker.isIdle || queue.isBound(worker))) continue",
    replace: "if (worker.state === 'ready' && queue.isBound(worker)) continue",
    tests: E2E,
    title: 'keeps its stream',
  },
  {
    name: 'a new worker starts while one drains',
    file: POOL,
    find: 'this.#draining.splice(0, count - this.#workers.length)',
    replace: 'this.#draining.splice(0, 0)',
    tests: E2E,
    title: 'keeps its stream',
  },
  {
    name: 'a worker is ended with the state of its sequences',
    file: 'frontend/models/autoscaler.ts',
    find: ' && (queue.openSequences ?? 0) === 0',
    replace: '',
    tests: E2E,
    title: 'while a sequence is open',
  },
  {
    name: 'a worker counts as free of sequences',
    file: 'frontend/jobs/lanes.ts',
    find: 'return (this.#lanes.get(worker)?.sequences.size ?? 0) > 0',
    replace: 'return false',
    tests: ['tests/jobs/sequence-queue.test.ts'],
  },
  {
    name: 'every load after a wake is measured as one',
    file: 'frontend/models/autoscaler.ts',
    find: '    const since = this.#wokenAt\n    this.#wokenAt = undefined\n',
    replace: '    const since = this.#wokenAt\n',
    tests: ['tests/models/autoscaler.test.ts'],
  },
]
