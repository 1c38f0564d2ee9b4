import type { Mutant } from '../mutant.ts'

const CHOICE = 'frontend/models/weighted-choice.ts'
const CHOICE_TESTS = ['tests/models/weighted-choice.test.ts']
const RULE = 'frontend/models/rollback-rule.ts'
const RULE_TESTS = ['tests/models/rollback-rule.test.ts']
const TRAFFIC = 'frontend/models/traffic.ts'
const ROUTER = 'frontend/models/version-router.ts'
const TRAFFIC_TESTS = ['tests/models/traffic.test.ts']
const E2E = ['tests/e2e/canary.test.ts']
const RULES_E2E = ['tests/e2e/canary-rules.test.ts']

/** Weights between versions. */
export const MUTANTS: readonly Mutant[] = [
  {
    name: 'turns of weights that no longer hold go on',
    file: TRAFFIC,
    find: 'for (const each of this.#versions.values()) each.due = 0',
    replace: 'void version',
    title: 'the others share its requests from then on',
    tests: TRAFFIC_TESTS,
  },
  {
    name: 'a roll-back is forgotten with a restart',
    file: TRAFFIC,
    find: 'if (known !== undefined) known.rolledBack = found',
    replace: 'void [known, found]',
    title: 'kept over a restart',
    tests: TRAFFIC_TESTS,
  },
  {
    name: 'a turn of the weights is not paid for',
    file: CHOICE,
    find: 'if (next !== undefined) next.due -= total',
    replace: 'if (next !== undefined) next.due -= next.weight',
    tests: CHOICE_TESTS,
  },
  {
    name: 'sticky values share the versions equally',
    file: CHOICE,
    find: 'item.weight / -Math.log',
    replace: '1 / -Math.log',
    tests: CHOICE_TESTS,
  },
  {
    name: 'sticky values share the versions of all models alike',
    file: CHOICE,
    find: 'JSON.stringify([salt, version, value])',
    replace: 'JSON.stringify([version, value])',
    tests: CHOICE_TESTS,
  },
  {
    name: 'few requests decide about a roll-back',
    file: RULE,
    find: 'if (requests < minRequests || errors',
    replace: 'if (errors',
    tests: RULE_TESTS,
  },
  {
    name: 'as many errors as allowed roll a version back',
    file: RULE,
    find: 'errors * 100 <= maxErrorPercent',
    replace: 'errors * 100 < maxErrorPercent',
    tests: RULE_TESTS,
  },
  {
    name: 'errors never leave the window of the roll-back',
    file: RULE,
    find: '      this.#errors[(part - back) % PARTS] = 0\n',
    replace: '',
    tests: RULE_TESTS,
  },
  {
    name: 'the default version is rolled back',
    file: TRAFFIC,
    find: 'reason === undefined || isDefault ||',
    replace: 'reason === undefined ||',
    title: 'the default version keeps',
    tests: RULES_E2E,
  },
  {
    name: 'requests under other weights roll a version back',
    file: TRAFFIC,
    find: 'if (this.#isOver || ',
    replace: 'if (',
    tests: TRAFFIC_TESTS,
  },
  {
    name: 'clients that leave count for the roll-back',
    file: ROUTER,
    find: "if (done.fault || done.outcome === 'finished' || done.outcome === 'failed') ended",
    replace: 'ended',
    tests: TRAFFIC_TESTS,
  },
  {
    name: 'answers that cannot be sent do not count for the roll-back',
    file: ROUTER,
    find: '    job.onUnsendable = () => ended(true, true)\n',
    replace: '',
    title: 'for which the API has no form',
    tests: RULES_E2E,
  },
  {
    name: 'sequences follow the weights',
    file: ROUTER,
    find: 'this.#holderOfSequence(request) ?? sent',
    replace: 'sent',
    title: 'sequences stay',
    tests: RULES_E2E,
  },
  {
    name: 'a version that no worker has loaded gets its share',
    file: TRAFFIC,
    find: 'weight > 0 && canServe(version)',
    replace: 'weight > 0',
    tests: TRAFFIC_TESTS,
  },
  {
    name: 'a version that was scaled to no workers gets its share',
    file: ROUTER,
    find: '(model.workers.wanted > 0 || model.wakes)',
    replace: 'model.version !== undefined',
    title: 'scaled to no workers',
    tests: TRAFFIC_TESTS,
  },
  {
    name: 'the answer of a call that sets weights tells those of a later one',
    file: 'frontend/models/traffic-control.ts',
    find: '    const described = this.describe(modelName)\n    await this.#options.onChange?.()\n    return described',
    replace: '    await this.#options.onChange?.()\n    return this.describe(modelName)',
    title: 'whatever another call sets meanwhile',
    tests: TRAFFIC_TESTS,
  },
  {
    name: 'a version with a weight is unregistered',
    file: 'frontend/models/registry.ts',
    find: '(model.traffic?.weight ?? 0) > 0',
    replace: '(model.traffic?.weight ?? 0) < 0',
    title: 'unregistered only when',
    tests: E2E,
  },
  {
    name: 'a request takes two turns of the weights',
    file: 'frontend/dialects/open-inference/infer-job.ts',
    find: '    routedTo,\n    method',
    replace: '    method',
    title: 'one turn for each',
    tests: E2E,
  },
  {
    name: 'a gRPC request takes two turns of the weights',
    file: 'frontend/dialects/open-inference/grpc.ts',
    find: 'call.metadata, routedTo)',
    replace: 'call.metadata)',
    title: 'takes one turn',
    tests: E2E,
  },
  {
    name: 'messages of one call go to different versions',
    file: 'frontend/dialects/open-inference/grpc-stream-mlserver.ts',
    find: 'metadata, first?.target.routedTo)',
    replace: 'metadata)',
    title: 'all messages of a call',
    tests: E2E,
  },
  {
    name: 'what a version refuses at once does not count for the roll-back',
    file: ROUTER,
    find: 'if (isFault(ServeError.from(thrown))) ended(true)',
    replace: '',
    tests: TRAFFIC_TESTS,
    title: 'refuses at once',
  },
]
