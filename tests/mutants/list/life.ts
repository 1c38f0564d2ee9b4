import type { Mutant } from '../mutant.ts'

const REQUESTS = 'frontend/workers/requests.ts'
const PATIENCE = 'frontend/workers/patience.ts'
const WORKER = 'frontend/workers/worker.ts'
const RANK_GROUP = 'frontend/workers/rank-group.ts'
const LIVENESS = 'frontend/workers/liveness.ts'
const BACKOFF = 'frontend/workers/backoff.ts'
const IN_FLIGHT = 'frontend/workers/in-flight.ts'
const LIFECYCLE = 'frontend/models/lifecycle.ts'
const MANAGER = 'frontend/models/manager.ts'
const OPEN_INFERENCE_GRPC = 'frontend/dialects/open-inference/grpc.ts'

const testOf = (name: string): string[] => [`tests/workers/${name}.test.ts`]
const MANAGED = ['tests/models/manager.test.ts']
const SHUTDOWN = ['tests/e2e/shutdown.test.ts']
const TOKENS = ['tests/e2e/token-matrix.test.ts']

/** Who may do what. */
const TOKEN_MUTANTS: Mutant[] = [
  {
    name: 'V2 ModelStreamInfer asks for no token',
    file: OPEN_INFERENCE_GRPC,
    find: "token: (rpc) => (MANAGEMENT_RPCS.has(rpc) ? 'management' : 'inference')",
    replace:
      "token: (rpc) => (rpc === 'ModelStreamInfer' ? undefined : MANAGEMENT_RPCS.has(rpc) ? 'management' : 'inference')",
    tests: TOKENS,
    title: 'server on each route',
  },
  {
    name: 'a V2 rpc that loads models takes the inference token',
    file: OPEN_INFERENCE_GRPC,
    find: "token: (rpc) => (MANAGEMENT_RPCS.has(rpc) ? 'management' : 'inference')",
    replace: "token: () => 'inference'",
    tests: TOKENS,
    title: 'server on each route',
  },
  {
    name: 'a new route of the management API stands before the check of the token',
    file: 'frontend/dialects/torchserve/rest-site.ts',
    find: '.use(tokenRouter(state).routes())',
    replace:
      ".use(\n    tokenRouter(state)\n      .get('/new', (ctx) => {\n        ctx.body = 'x'\n      })\n      .routes(),\n  )",
    tests: TOKENS,
    title: 'server on each route',
  },
  {
    name: 'a new path of the inference API is answered without a token',
    file: 'frontend/dialects/torchserve/rest.ts',
    find: "if (segments[0] === 'ping') {",
    replace:
      "if (segments[1] === 'stats') {\n    sendJson(exchange.reply, 200, {})\n    return true\n  }\n  if (segments[0] === 'ping') {",
    tests: TOKENS,
    title: 'server on .*: no path',
  },
  {
    name: 'an expired key is good',
    file: 'frontend/auth/token-store.ts',
    find: 'this.#now() < key.expires',
    replace: 'this.#now() < Infinity',
    tests: ['tests/auth/token-store.test.ts'],
  },
  {
    name: 'a longer token with the key at its end is good',
    file: 'frontend/auth/token-store.ts',
    find: 'if (!BEARER.test(authorization) || !isBlank(authorization.charCodeAt(start - 1))) return false',
    replace: 'if (!BEARER.test(authorization)) return false',
    tests: ['tests/auth/token-store.test.ts'],
  },
  {
    name: 'a key that could not be written counts all the same',
    file: 'frontend/auth/token-store.ts',
    find: '    await this.#write(keys)\n    this.#keys = keys\n',
    replace: '    this.#keys = keys\n    await this.#write(keys)\n',
    tests: ['tests/auth/token-store.test.ts'],
  },
  {
    name: 'the key file of another server is removed',
    file: 'frontend/auth/token-store.ts',
    find: "if (readFileSync(this.keyFile, 'utf8') === this.#written) rmSync(this.keyFile)",
    replace: 'rmSync(this.keyFile)',
    tests: ['tests/auth/token-store.test.ts'],
  },
  {
    name: 'the key file can be read by everybody',
    file: 'frontend/auth/token-store.ts',
    find: 'mode: 0o600',
    replace: 'mode: 0o644',
    tests: ['tests/auth/token-store.test.ts'],
  },
]

/** How the server ends, and models go. */
const END_MUTANTS: Mutant[] = [
  {
    name: 'the drain at shutdown is removed',
    file: LIFECYCLE,
    find: '    await Promise.all(models.map((model) => model.drain(graceMs)))\n',
    replace: '',
    tests: MANAGED,
  },
  {
    name: 'the server drains for 3 s at most',
    file: 'frontend/server.ts',
    find: 'const end = performance.now() + drainTimeout * 1000',
    replace: 'const end = performance.now() + Math.min(drainTimeout, 3) * 1000',
    tests: SHUTDOWN,
  },
  {
    name: 'drain_timeout ends with cancel_grace_ms',
    file: 'frontend/server.ts',
    find: 'await this.#models.close(Math.max(0, end - performance.now()), cancelGraceMs)',
    replace: 'await this.#models.close(cancelGraceMs, cancelGraceMs)',
    tests: SHUTDOWN,
  },
  {
    name: 'models take new jobs while the server drains',
    file: 'frontend/server.ts',
    find: '    this.#models.beginDrain()\n    listeners',
    replace: '    listeners',
    tests: SHUTDOWN,
    // Models that are drained themselves refuse what is new anyway.
    title: 'nothing but a workflow goes on',
  },
  {
    name: 'REST listeners take new requests while the server drains',
    file: 'frontend/edge/http/exchange.ts',
    find: "    if (state.draining) throw new ServeError('SHUTTING_DOWN', 'The server is shutting down')\n",
    replace: '',
    tests: SHUTDOWN,
  },
  {
    name: 'a draining manager submits jobs',
    file: MANAGER,
    find: '    this.#lifecycle.checkOpen()\n    const { modelName, modelVersion } = job.request\n',
    replace: '    const { modelName, modelVersion } = job.request\n',
    tests: MANAGED,
  },
  {
    name: 'a draining manager scales',
    file: MANAGER,
    find: '    this.#lifecycle.checkOpen()\n    const { modelName, modelVersion, synchronous } = request\n',
    replace: '    const { modelName, modelVersion, synchronous } = request\n',
    tests: MANAGED,
  },
  {
    name: 'unregister gives running streams no time',
    file: MANAGER,
    find: 'await this.#lifecycle.dispose(model, this.#unregisterMs)',
    replace: 'await this.#lifecycle.dispose(model, 0)',
    tests: SHUTDOWN,
  },
  {
    name: 'unregister aborts running streams',
    file: LIFECYCLE,
    find: '    try {\n      await model.close(reason, graceMs)\n',
    replace: '    try {\n      await model.drain(0)\n      await model.close(reason, graceMs)\n',
    tests: MANAGED,
  },
  {
    name: 'what is left after the drain is not ended',
    file: 'frontend/jobs/open-jobs.ts',
    find: "    for (const job of [...this.#jobs()]) job.abort(reason, 'shutdown')\n",
    replace: '',
    tests: MANAGED,
  },
  {
    name: 'the drain does not notice that it is done',
    file: 'frontend/jobs/open-jobs.ts',
    find: '    if (this.#count === 0) for (const done of this.#whenEmpty) done()\n',
    replace: '',
    tests: MANAGED,
  },
  {
    name: 'an installation goes on while the server ends',
    file: LIFECYCLE,
    find: '    this.#draining = true\n    this.#stopping.abort()\n',
    replace: '    this.#draining = true\n',
    tests: MANAGED,
  },
  {
    name: 'a model that waits to take another’s place outlives the server',
    file: LIFECYCLE,
    find: '...this.#registry.all(), ...this.#replacing, ',
    replace: '...this.#registry.all(), ',
    tests: MANAGED,
  },
  {
    name: 'a model whose workers do not load stays registered',
    file: LIFECYCLE,
    find: "    this.#registry.discard(model)\n    await this.dispose(model, 0, 'could",
    replace: "    await this.dispose(model, 0, 'could",
    tests: MANAGED,
  },
  {
    name: 'a refused registration leaves what it unpacked',
    file: LIFECYCLE,
    find: '      await prepared.dispose()\n',
    replace: '',
    tests: MANAGED,
  },
  {
    name: 'a replaced model that still has requests outlives the server',
    file: LIFECYCLE,
    find: ', ...this.#ending])]',
    replace: '])]',
    tests: MANAGED,
  },
  {
    name: 'the old version goes before the new one is loaded',
    file: LIFECYCLE,
    find: '    this.#replacing.add(model)\n',
    replace: '    this.#replacing.add(model)\n    this.#registry.put(model)\n',
    tests: MANAGED,
  },
  {
    name: 'what was unpacked stays when workers had to be killed',
    file: 'frontend/models/model.ts',
    find: '      await this.prepared.dispose()\n',
    replace: '',
    tests: MANAGED,
  },
  {
    name: 'what waits at an unregistered model is forgotten',
    file: 'frontend/models/model.ts',
    find: '    this.queue.failAll(reason)\n    this.queue.close()\n',
    replace: '    this.queue.close()\n',
    tests: MANAGED,
  },
  {
    name: 'what waits at a model without workers is forgotten',
    file: 'frontend/models/model.ts',
    find: 'if (count === 0 && !this.wakes)\n',
    replace: 'if (count < 0)\n',
    tests: MANAGED,
  },
  {
    name: 'a client hears of a registration before the snapshot is written',
    file: MANAGER,
    find: '    await this.#lifecycle.started(model, started)\n    await this.#changed()\n    return done(',
    replace: '    await this.#lifecycle.started(model, started)\n    void this.#changed()\n    return done(',
    tests: MANAGED,
  },
  {
    name: 'health does not look at workers past their retries',
    file: MANAGER,
    find: 'return workers.healthy < Math.max(',
    replace: 'return workers.wanted < Math.max(',
    tests: MANAGED,
  },
  {
    name: 'a model is ready though its workers load',
    file: 'frontend/models/readiness.ts',
    find: 'return hasReadyWorker(model!) || model!.scaling',
    replace: 'return model!.workers.length > 0 || model!.scaling',
    tests: MANAGED,
  },
  {
    name: 'a server is ready though the model of its start loads',
    file: 'frontend/models/readiness.ts',
    find: 'return hasReadyWorker(model!) || (needsNone',
    replace: 'return model!.workers.length > 0 || (needsNone',
    tests: MANAGED,
  },
]

/** The requests of a worker. */
const REQUEST_MUTANTS: Mutant[] = [
  {
    name: 'items of other ranks reach the client',
    file: REQUESTS,
    find: 'rank === 0 ? this.#takeItem',
    replace: 'rank >= 0 ? this.#takeItem',
    tests: testOf('requests'),
  },
  {
    name: 'a cancelled request is killed though its neighbours run',
    file: PATIENCE,
    find: 'if (this.#harmsOthers()) this.#expectEnd(run, withinMs)\n      else',
    replace: '',
    tests: testOf('requests'),
  },
  {
    name: 'a hung second rank is not noticed',
    file: REQUESTS,
    find: '    else this.#patience.finishing(entry.run)\n',
    replace: '',
    tests: testOf('worker'),
  },
  {
    name: 'a slot is free when rank 0 has answered',
    file: REQUESTS,
    find: '    entry.unfinishedRanks -= 1\n',
    replace: '    entry.unfinishedRanks = 0\n',
    tests: testOf('requests'),
  },
  {
    name: 'a handler’s failure is not in the log',
    file: REQUESTS,
    find: '        if (!entry.job.ended) this.#options.onFailure(entry.job, error)\n',
    replace: '',
    tests: ['tests/e2e/failures.test.ts'],
    title: 'operator',
  },
  {
    name: 'the stop of a worker that failed does not wait for what is left of it',
    file: WORKER,
    find: 'if (group === undefined) await this.#last?.exited()\n',
    replace: '',
    tests: ['tests/workers/worker.test.ts'],
    title: 'has not gone yet',
  },
  {
    name: 'a handler’s failure is in the log without its request id',
    file: 'frontend/workers/reports.ts',
    find: '`${job.request.requestId} ${error.code}: ${told}`',
    replace: '`${error.code}: ${told}`',
    tests: testOf('worker'),
  },
  {
    name: 'the grace begins at the first cancel of a batch',
    file: REQUESTS,
    find: 'if (entry.run.wanted || entry.run.owner',
    replace: 'if (entry.run.owner',
    tests: testOf('requests'),
  },
  {
    name: 'the silence before a cancel does not count',
    file: REQUESTS,
    find: 'performance.now() - entry.job.lastSign)',
    replace: '0)',
    tests: testOf('requests'),
  },
  {
    name: 'signs of a cancelled request do not count',
    file: PATIENCE,
    find: 'run.discarded > seen || this.#harmsOthers()',
    replace: 'this.#harmsOthers()',
    tests: testOf('requests'),
  },
  {
    name: 'the timers of a dead worker’s requests go on',
    file: REQUESTS,
    find: '      entry.run.stopTimers()\n      entry.job.fail(error)\n',
    replace: '      entry.job.fail(error)\n',
    tests: testOf('requests'),
  },
  {
    name: 'a client that does not read gets more credit',
    file: IN_FLIGHT,
    find: '    if (!room) this.#blocked = true\n',
    replace: '',
    tests: testOf('in-flight'),
  },
  {
    name: 'credit goes back with every item',
    file: IN_FLIGHT,
    find: 'this.#blocked || this.#owed * 2 < this.#link.window',
    replace: 'this.#blocked',
    tests: testOf('in-flight'),
  },
  {
    name: 'credit is given twice',
    file: IN_FLIGHT,
    find: '    this.#owed = 0\n  }\n',
    replace: '  }\n',
    tests: testOf('in-flight'),
  },
]

/** The life of a worker. */
const WORKER_MUTANTS: Mutant[] = [
  {
    name: 'an idle worker that answers no ping lives on',
    file: WORKER,
    find: "        this.#kill('Killed: it did not answer pings')\n",
    replace: '',
    tests: testOf('worker'),
  },
  {
    name: 'no worker is pinged',
    file: WORKER,
    find: '    if (group.answersPings) this.#liveness.start()\n',
    replace: '',
    tests: testOf('worker'),
  },
  {
    name: 'any answer to a ping counts',
    file: LIVENESS,
    find: 'if (nonce === this.#nonce) this.#askedAt = undefined',
    replace: 'this.#askedAt = undefined',
    tests: testOf('liveness'),
  },
  {
    name: 'a busy worker is asked for a sign',
    file: LIVENESS,
    find: 'if (!this.#probe.idle()) {',
    replace: 'if (false as boolean) {',
    tests: testOf('liveness'),
  },
  {
    name: 'a worker is silent at once',
    file: LIVENESS,
    find: 'now - this.#askedAt > this.#limitMs',
    replace: 'now - this.#askedAt > 0',
    tests: testOf('liveness'),
  },
  {
    name: 'the scheduler hears of a death after its requests have failed',
    file: WORKER,
    find: '    this.#events.onLost(error)\n    const failed = this.#requests?.failAll(error) ?? []\n',
    replace: '    const failed = this.#requests?.failAll(error) ?? []\n    this.#events.onLost(error)\n',
    tests: testOf('worker'),
  },
  {
    name: 'requests that had ended are told as failed with their worker',
    file: REQUESTS,
    find: 'entries.filter(({ job }) => !job.ended).map',
    replace: 'entries.map',
    title: 'tells the ids',
    tests: testOf('worker'),
  },
  {
    name: 'what processes print is read as it comes',
    file: 'frontend/workers/read-lines.ts',
    find: 'new ReadPace(TURN_BYTES)',
    replace: 'new ReadPace(Infinity)',
    tests: testOf('read-lines'),
  },
  {
    name: 'long texts are escaped letter by letter',
    file: 'common/escape-controls.ts',
    find: 'const LONG = 1024',
    replace: 'const LONG = Infinity',
    title: 'a fraction of the time',
    tests: ['tests/common/escape-controls.test.ts'],
  },
  {
    name: 'a stopped worker starts again',
    file: WORKER,
    find: "    if (this.#state === 'stopping' || this.#state === 'stopped') return\n    const pause",
    replace: '    const pause',
    tests: testOf('worker'),
  },
  {
    name: 'a worker that failed to load is started beside what is left of it',
    file: WORKER,
    find: '    this.#setFailure(failure)\n    void group.exited().then(() => {\n      this.#restart()\n    })\n',
    replace: '    this.#setFailure(failure)\n    this.#restart()\n',
    tests: testOf('worker'),
  },
  {
    name: 'that we killed it is told as a lack of memory',
    file: WORKER,
    find: 'cause.outOfMemory && this.#killReason === undefined',
    replace: 'cause.outOfMemory',
    tests: testOf('worker'),
  },
  {
    name: 'a stopping worker offers slots',
    file: WORKER,
    find: "    if (this.#state !== 'ready' || this.#requests === undefined) return 0\n",
    replace: '    if (this.#requests === undefined) return 0\n',
    tests: testOf('worker'),
  },
  {
    name: 'a worker tries for ever',
    file: BACKOFF,
    find: 'this.#limitMs === 0 || now - this.#recoveringSince >= this.#limitMs',
    replace: 'this.#limitMs === 0',
    tests: testOf('backoff'),
  },
  {
    name: 'a worker that was ready for a moment has recovered',
    file: BACKOFF,
    find: 'const RECOVERED_MS = 10_000',
    replace: 'const RECOVERED_MS = 10',
    tests: testOf('backoff'),
  },
  {
    name: 'the pauses do not grow',
    file: BACKOFF,
    find: '    this.#attempts += 1\n',
    replace: '',
    tests: testOf('worker'),
  },
  {
    name: 'the other ranks live on when one has died',
    file: RANK_GROUP,
    find: '    this.#events.onDeath({ ...cause, reason: message })\n    this.kill()\n',
    replace: '    this.#events.onDeath({ ...cause, reason: message })\n',
    tests: testOf('rank-group'),
  },
  {
    name: 'a rank that does not leave is not killed',
    file: RANK_GROUP,
    find: "      killed = true\n      this.#signal('SIGKILL')\n",
    replace: '      killed = true\n',
    tests: testOf('rank-group'),
  },
  {
    name: 'the other ranks of pp leave before rank 0 has finished',
    file: RANK_GROUP,
    find: '    if (this.#options.requestsToRankZeroOnly) await first!.exited\n',
    replace: '',
    tests: testOf('rank-group'),
  },
  {
    name: 'a group is loaded when its first rank is',
    file: RANK_GROUP,
    find: '    await loaded\n  }\n',
    replace: '    await Promise.race([loaded, this.#ranks[0]!.ready])\n  }\n',
    tests: testOf('rank-group'),
  },
]

/** Tokens, the end of the server and of models, the requests and the life of workers. */
export const MUTANTS: readonly Mutant[] = [
  {
    name: 'nobody is told that new workers run old code',
    file: 'frontend/models/source-files.ts',
    find: 'if (await source.areUnchanged()) return []',
    replace: 'return []',
    title: 'workers that come after an edit',
    tests: ['tests/e2e/edited-folder.test.ts'],
  },
  ...TOKEN_MUTANTS,
  ...END_MUTANTS,
  ...REQUEST_MUTANTS,
  ...WORKER_MUTANTS,
  ...[
    ['a server at rest forgets the shape of ticks', 'frontend/server.ts', 'a server at rest'],
    ['a worker at rest forgets the shape of ticks', 'backend-worker/main.ts', 'so does a worker'],
  ].map(([name, file, title]) => ({
    ...{ name: name!, file: file!, title: title! },
    find: '  keepTicksFast()\n',
    replace: '',
    tests: ['tests/e2e/fast-ticks.test.ts'],
  })),
]
