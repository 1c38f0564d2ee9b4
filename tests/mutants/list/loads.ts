import type { Mutant } from '../mutant.ts'

const LIFECYCLE = 'frontend/models/lifecycle.ts'
const REPOSITORY = 'frontend/models/repository.ts'
const LOAD_TURNS = 'frontend/models/load-turns.ts'
const DECLARED = 'frontend/dialects/open-inference/declared-inputs.ts'
const REST_ERRORS = 'frontend/dialects/open-inference/rest-errors.ts'
const GRPC_ERRORS = 'frontend/dialects/open-inference/grpc-errors.ts'
const DECLARED_TENSORS = 'frontend/models/declared-tensors.ts'

const MANAGED = ['tests/models/manager.test.ts']
const TURNS = ['tests/models/load-turns.test.ts']
const SOURCES = ['tests/models/source-files.test.ts']
const LOADED = ['tests/models/repository.test.ts']
const CHECKED = ['tests/dialects/open-inference/declared-inputs.test.ts']
const STATUSES = ['tests/dialects/open-inference/seldon-statuses.test.ts']

/** Models that are loaded again. */
const LOAD_MUTANTS: Mutant[] = [
  {
    name: 'a store that has models and a handler is one model',
    file: 'model-archiver/store.ts',
    find: 'models.size === 0 && describesModel',
    replace: 'describesModel',
    tests: ['tests/model-archiver/store.test.ts'],
  },
  {
    name: 'the index goes on telling of a load that failed after one that did not',
    file: REPOSITORY,
    find: '    this.#failures.delete(modelName)\n    try',
    replace: '    try',
    tests: LOADED,
  },
  {
    name: 'the index goes on telling of a load that failed after an unload',
    file: REPOSITORY,
    find: '    this.#failures.delete(modelName)\n    for',
    replace: '    for',
    tests: LOADED,
  },
  {
    name: 'a load that is called off goes on',
    file: LIFECYCLE,
    find: "    signal?.addEventListener('abort', callOff)\n",
    replace: '',
    tests: MANAGED,
  },
  {
    name: 'requests that wait for a first load that is called off are lost',
    file: LIFECYCLE,
    find: '      model.inherit(left)\n',
    replace: '',
    tests: MANAGED,
  },
  {
    name: 'requests that wait for a first load end when it is called off',
    file: LIFECYCLE,
    find: 'if (![...this.#calledOff.values()].includes(model)) await',
    replace: 'await',
    tests: MANAGED,
  },
  {
    name: 'of a chain of tracebacks the last one counts',
    file: 'frontend/workers/python/tracebacks.ts',
    find: 'line.startsWith(FALLBACK) || ',
    replace: '',
    tests: ['tests/workers/python/tracebacks.test.ts'],
  },
  {
    name: 'an old version has no time to end',
    file: LIFECYCLE,
    find: 'await model.drain(settings.modelDrainTimeout * 1000, reason)',
    replace: 'await model.drain(0, reason)',
    tests: MANAGED,
  },
  {
    name: 'the operator does not hear of an old version that did not end',
    file: LIFECYCLE,
    find: '      warn(`Model ${model.name}, version ${model.version}, was ${what}; ${notEnded',
    replace: '      void (`Model ${model.name}, version ${model.version}, was ${what}; ${notEnded',
    tests: MANAGED,
  },
  {
    name: 'a load joins one that waits before an unload',
    file: LOAD_TURNS,
    find: '    turn.waiting = undefined\n    return this.#add',
    replace: '    return this.#add',
    tests: TURNS,
  },
  {
    name: 'a load joins one that has begun',
    file: LOAD_TURNS,
    find: '      if (turn.waiting === run) turn.waiting = undefined\n',
    replace: '',
    tests: TURNS,
  },
  {
    name: 'a file that was changed and got its old time back counts as unchanged',
    file: 'common/file-stamp.ts',
    find: '[ino, size, mtimeNs, ctimeNs]',
    replace: '[ino, size, mtimeNs]',
    tests: SOURCES,
  },
  {
    name: 'a model whose workers have died is not loaded again',
    file: REPOSITORY,
    find: '(workers.wanted > 0 || wakes) && workers.failure === undefined',
    replace: 'workers.wanted > 0 || wakes',
    tests: LOADED,
  },
  {
    name: 'a model that an operator scaled to no workers is not loaded again',
    file: REPOSITORY,
    find: '(workers.wanted > 0 || wakes) && workers.failure === undefined',
    replace: 'workers.failure === undefined',
    tests: LOADED,
  },
  {
    name: 'a client’s model becomes the operator’s by a load',
    file: REPOSITORY,
    find: 'first !== undefined && isOperators(first)',
    replace: 'first !== undefined',
    tests: LOADED,
  },
  {
    name: 'a load forgets the hash that a model is bound to',
    file: REPOSITORY,
    find: 'const request = { url, modelName, handler, sha256, synchronous: true }',
    replace: 'const request = { url, modelName, handler, synchronous: true }',
    tests: LOADED,
  },
  {
    name: 'a version whose files are gone stays',
    file: REPOSITORY,
    find: '!versions.has(model.version) && this.#isGone(model)',
    replace: 'versions.has(model.version) && this.#isGone(model)',
    tests: LOADED,
  },
  {
    name: 'a version that still has its files goes with a load of others',
    file: REPOSITORY,
    find: '!versions.has(model.version) && this.#isGone(model)',
    replace: '!versions.has(model.version)',
    tests: LOADED,
  },
]

/** What Seldon Core's agent and proxies hear. */
const ANSWER_MUTANTS: Mutant[] = [
  {
    name: 'a fixed dimension may have another size',
    file: DECLARED,
    find: 'if (shape[i]! >= 0 && shape[i] !== sent.shape[i]) return false',
    replace: 'if (shape[i]! > 1e9 && shape[i] !== sent.shape[i]) return false',
    tests: CHECKED,
  },
  {
    name: 'an input may be there twice',
    file: DECLARED,
    find: 'names !== undefined && names.size < inputs.length',
    replace: 'names !== undefined && names.size > inputs.length',
    tests: CHECKED,
  },
  {
    name: 'an input that a model needs may be missing beside others',
    file: DECLARED,
    find: 'names?.has(name) ?? inputs[0]?.name === name',
    replace: 'names !== undefined || inputs[0]?.name === name',
    tests: CHECKED,
  },
  {
    name: 'inputs of a model that wants none checked are checked',
    file: DECLARED,
    find: "config['validateInputs'] === false ? [] : ",
    replace: '',
    tests: CHECKED,
  },
  {
    name: 'nobody is told when a full queue may have room',
    file: 'frontend/jobs/queue-full.ts',
    find: ', { retryAfterMs: RETRY_AFTER_MS }',
    replace: '',
    tests: [
      'tests/dialects/open-inference/seldon-statuses.test.ts',
      'tests/dialects/torchserve/grpc-errors.test.ts',
      'tests/jobs/job-queue.test.ts',
    ],
  },
  {
    name: 'lists of unequal lengths are flattened',
    file: DECLARED,
    find: 'if (other !== undefined) return { level,',
    replace: 'if (other === lists) return { level,',
    tests: CHECKED,
  },
  {
    name: 'proxies repeat over REST what a worker has begun',
    file: REST_ERRORS,
    find: 'status === 503 : !begun && REPEATABLE.has(code)',
    replace: 'status === 503 : REPEATABLE.has(code)',
    tests: STATUSES,
  },
  {
    name: 'the agent repeats over gRPC what a worker has begun',
    file: GRPC_ERRORS,
    find: 'begun && REPEATED.has(own) ? Status.INTERNAL : own',
    replace: 'own',
    tests: STATUSES,
  },
  {
    name: 'a handler’s 404 makes the agent load its model',
    file: REST_ERRORS,
    find: 'RELOADS.has(status) ? UNPROCESSABLE : status',
    replace: 'status',
    tests: STATUSES,
  },
  {
    name: 'nobody is told of a datatype that is none',
    file: DECLARED_TENSORS,
    find: '    if (!isDatatype(datatype))\n',
    replace: "    if (datatype === '')\n",
    tests: ['tests/models/model-settings.test.ts'],
  },
]

export const MUTANTS: readonly Mutant[] = [...LOAD_MUTANTS, ...ANSWER_MUTANTS]
