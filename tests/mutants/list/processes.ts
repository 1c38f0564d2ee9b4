import type { Mutant } from '../mutant.ts'

const GUEST = 'libexec/guest.pl'
const PROCESS = 'frontend/workers/worker-process.ts'
const SESSION = 'frontend/workers/python/session.ts'
const BACKLOG = 'frontend/workers/python/backlog.ts'
const READ_LINES = 'frontend/workers/read-lines.ts'
const LIMITS = 'frontend/jobs/request-limits.ts'
const OPEN_JOBS = 'frontend/jobs/open-jobs.ts'
const PID_FILE = 'frontend/cli/pid-file.ts'
const WRITE_PROJECT = 'frontend/cli/init/write-project.ts'
const SERVED_FOLDER = 'frontend/cli/dev/served-folder.ts'

const LAST_WORDS = ['tests/workers/last-words.test.ts']
const LEFT = ['tests/security/processes-of-handlers.test.ts']
const SENT = ['tests/workers/session.test.ts']
const UNREAD = ['tests/python/unread-streams.test.ts']
const KEPT = ['tests/workers/python/backlog.test.ts']
const DEV = ['tests/e2e/dev.test.ts']
const TOP = ['tests/cli/top.test.ts']
const DEV_FILES = ['tests/cli/dev-files.test.ts']

/** Processes that must end. */
const PROCESS_MUTANTS: Mutant[] = [
  {
    name: 'the launcher leaves what it adopted',
    file: GUEST,
    find: '    kill_adopted();\n    end_as',
    replace: '    end_as',
    tests: LEFT,
    title: 'sandbox=default.*handler ends its process',
  },
  {
    name: 'the launcher does not hear of the server’s death',
    file: GUEST,
    find: "    sys('prctl', SIGNAL_OF_PARENTS_DEATH, 12, 0, 0, 0);\n",
    replace: '',
    tests: LEFT,
    title: 'sandbox=default.*server is killed, though',
  },
  {
    name: 'the launcher gives its child no signal to kill it',
    file: GUEST,
    find: "(sub { kill 'KILL', $child }) x 2);",
    replace: '(sub { }) x 2);',
    tests: LEFT,
    title: 'sandbox=default.*worker that hangs',
  },
  {
    name: 'a worker outlives its launcher',
    file: GUEST,
    find: "sys('prctl', SIGNAL_OF_PARENTS_DEATH, 9, 0, 0, 0);\n",
    replace: '',
    tests: LEFT,
    title: 'sandbox=default.*server is killed, though',
  },
  {
    name: 'a failed start does not wait for what its workers printed',
    file: 'frontend/server.ts',
    find: '    await within(LAST_WORDS_MS, ended)\n',
    replace: '    void ended\n',
    tests: LAST_WORDS,
  },
  {
    name: 'a failed start waits for ever for workers that do not end',
    file: 'frontend/server.ts',
    find: 'within(LAST_WORDS_MS, ended)',
    replace: 'within(100 * LAST_WORDS_MS, ended)',
    tests: LAST_WORDS,
  },
  {
    name: 'a killed worker counts as gone at once',
    file: 'frontend/workers/worker.ts',
    find: '    this.#group?.kill()\n    await this.#last?.exited()\n',
    replace: '    this.#group?.kill()\n    await Promise.resolve()\n',
    tests: ['tests/workers/worker.test.ts'],
  },
  {
    name: 'the outputs of a process that has ended are let go unread',
    file: PROCESS,
    find: 'setTimeout(() => setImmediate(letGo), EXIT_LAG_MS)',
    replace: 'setTimeout(letGo, EXIT_LAG_MS)',
    tests: ['tests/workers/worker-process.test.ts'],
  },
  {
    name: 'without a launcher a worker’s children outlive it',
    file: PROCESS,
    find: '    killGroup(this.#leader)\n',
    replace: '',
    tests: ['tests/workers/worker-process.test.ts'],
  },
  {
    name: 'a worker whose children hold its output is never gone',
    file: PROCESS,
    find: '      stdout.destroy()\n      stderr.destroy()\n',
    replace: '',
    tests: ['tests/workers/worker-process.test.ts'],
  },
]

/** What is kept, and what is said. */
const KEPT_MUTANTS: Mutant[] = [
  {
    name: 'items that follow a block that was taken are lost',
    file: BACKLOG,
    find: '    if (entry === this.#open) this.#open = undefined\n',
    replace: '',
    tests: KEPT,
  },
  {
    name: 'a backlog makes a block for each item that comes while it is read',
    file: BACKLOG,
    find: 'if (entry === this.#open) this.#open',
    replace: 'this.#open',
    tests: KEPT,
  },
  {
    name: 'a backlog costs more and more',
    file: BACKLOG,
    find: '    this.#cost -= cost\n',
    replace: '',
    tests: SENT,
  },
  {
    name: 'a request that has failed lets nothing of its backlog go',
    file: SESSION,
    find: '    request.backlog.clear()\n',
    replace: '',
    tests: SENT,
  },
  {
    name: 'the end of a stream drops what waits before it',
    file: SESSION,
    find: '    this.#release(request, () => false)\n',
    replace: '',
    tests: SENT,
  },
  {
    name: 'streams that share a worker have no limit together',
    file: SESSION,
    find: 'else if (this.#overdrafts.bytes > this.#options.maxUnsentBytesTogether)',
    replace: 'else if (this.#overdrafts.bytes > Infinity)',
    tests: SENT,
  },
  {
    name: 'a worker whose only stream nobody reads is listened to',
    file: SESSION,
    find: 'const held = this.#wanted > 0 && this.#overdrafts.size === this.#wanted',
    replace: 'const held = this.#wanted < 0',
    tests: UNREAD,
    title: 'REST: the handler waits',
  },
  {
    name: 'Python workers get no limit of unread streams together',
    file: 'frontend/workers/runtimes.ts',
    find: 'maxUnsentBytesTogether: Math.max(maxUnsentBytes, MAX_UNSENT_TOGETHER)',
    replace: 'maxUnsentBytesTogether: Math.max(Infinity, MAX_UNSENT_TOGETHER)',
    tests: UNREAD,
    title: 'have a limit together',
  },
  {
    name: 'a prompt without a newline is never told',
    file: READ_LINES,
    find: "    if (rest !== '') timer = setTimeout(flush, QUIET_MS).unref()\n",
    replace: '',
    tests: ['tests/workers/read-lines.test.ts'],
  },
  {
    name: 'a turn takes any number of short lines',
    file: READ_LINES,
    find: 'lines < TURN_LINES; lines',
    replace: 'lines < Infinity; lines',
    tests: ['tests/workers/read-lines.test.ts'],
  },
  {
    name: 'lines that wait for their turn are lost',
    file: READ_LINES,
    find: '    if (bytes < chunk.length) stream.unshift(chunk.subarray(bytes))\n',
    replace: '',
    tests: ['tests/workers/read-lines.test.ts'],
  },
  {
    name: 'a line may have any length',
    file: READ_LINES,
    find: 'while (rest.length > MAX_LINE) {',
    replace: 'while (rest.length > MAX_LINE * 1e6) {',
    tests: ['tests/workers/read-lines.test.ts'],
  },
  {
    name: 'a batch has no limit of bytes',
    file: LIMITS,
    find: 'if (this.#bytes > 0 && this.#bytes + bytes > FULL_BATCH_BYTES) return false',
    replace: 'if (this.#bytes > Infinity) return false',
    tests: ['tests/jobs/job-queue.test.ts'],
  },
  {
    name: 'a request at an old version hears that the server ends',
    file: OPEN_JOBS,
    find: "job.abort(reason, 'shutdown')",
    replace: "job.abort(SHUTTING_DOWN, 'shutdown')",
    tests: ['tests/models/manager.test.ts'],
  },
]

/** Commands. */
const COMMAND_MUTANTS: Mutant[] = [
  {
    name: 'a pid file may be a link',
    file: PID_FILE,
    find: 'constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK',
    replace: 'constants.O_RDONLY | constants.O_NONBLOCK',
    tests: ['tests/cli/pid-file.test.ts'],
  },
  {
    name: 'a server that ends writes into the pid file of another',
    file: PID_FILE,
    find: '  if (readRecord(path)?.pid !== record.pid) return\n',
    replace: '',
    tests: ['tests/cli/pid-file.test.ts'],
  },
  {
    name: 'init writes half a project beside a file of the same name',
    file: WRITE_PROJECT,
    find: 'if (existing.length > 0)',
    replace: 'if (existing.length > 100)',
    tests: ['tests/e2e/project.test.ts'],
    title: 'init overwrites nothing',
  },
  {
    name: 'a save waits for the load that it makes out of date',
    file: SERVED_FOLDER,
    find: '    this.#calledOff.abort()\n    this.#calledOff = new AbortController()\n',
    replace: '    this.#calledOff = new AbortController()\n',
    tests: DEV,
    title: 'during a load',
  },
  {
    name: 'a save that mends a new file is not loaded',
    file: SERVED_FOLDER,
    find: '      this.#sources = undefined\n      this.#tellFailure',
    replace: '      this.#tellFailure',
    tests: DEV,
    title: 'mends a new file',
  },
  {
    name: 'each look loads a handler that has files outside its folder',
    file: SERVED_FOLDER,
    find: '    for (const path of this.#outside) await addStamp(stamps, path)\n',
    replace: '',
    tests: DEV,
    title: 'a new folder is served',
  },
  {
    name: 'a model whose folder is gone serves on',
    file: SERVED_FOLDER,
    find: '    await this.#host.models.retire(this.#model)\n',
    replace: '',
    tests: DEV,
    title: 'a new folder is served',
  },
  {
    name: 'a stop in a folder knows no other servers',
    file: 'frontend/cli/stop.ts',
    find: 'return here.length > 0 ? here : servers',
    replace: 'return servers',
    tests: ['tests/cli/servers.test.ts'],
    title: 'a stop in a folder ends its own',
  },
  {
    name: 'a server that stops does not say so',
    file: 'frontend/cli/server-entry.ts',
    find: '    for (const path of this.#paths) rewritePidFile(path, this.#record)\n',
    replace: '',
    tests: ['tests/cli/servers.test.ts'],
    title: 'a start during a stop',
  },
  {
    name: 'the status of a server names every open request',
    file: 'frontend/server.ts',
    find: '.slice(0, MAX_TOLD_REQUESTS)',
    replace: '',
    tests: TOP,
    title: 'names the oldest 200',
  },
  {
    name: 'top shows requests beyond the lines of the terminal',
    file: 'frontend/cli/top-page.ts',
    find: 'Math.floor(room / (servers.length - index))',
    replace: 'Infinity',
    tests: TOP,
    title: 'seven requests take what is left',
  },
  {
    name: 'top asks without a pause',
    file: 'frontend/cli/top.ts',
    find: 'seconds >= 0.1',
    replace: 'seconds >= 0',
    tests: TOP,
    title: 'an interval of',
  },
  {
    name: 'top sees q only after its interval',
    file: 'frontend/cli/top-screen.ts',
    find: '    this.#wake()\n',
    replace: '',
    tests: TOP,
    title: 'q does not wait',
  },
  {
    name: 'SIGTERM leaves the terminal to top',
    file: 'frontend/cli/top-screen.ts',
    find: "    process.on('SIGTERM', this.#end)\n",
    replace: '',
    tests: TOP,
    title: 'SIGTERM comes',
  },
  {
    name: 'top waits for the next look though nobody reads',
    file: 'frontend/cli/top-screen.ts',
    find: 'if (this.isOver) return\n    await new',
    replace: 'await new',
    tests: TOP,
    title: 'nobody has read the first',
  },
  {
    name: 'lines of top go beyond the columns',
    file: 'frontend/cli/top-screen.ts',
    find: 'line.slice(0, columns)',
    replace: 'line',
    tests: TOP,
    title: 'where its columns do',
  },
  {
    name: 'the queue of top has only its free places',
    file: 'frontend/cli/top-page.ts',
    find: '${pendingRequests + remainingCapacity}',
    replace: '${remainingCapacity}',
    tests: TOP,
    title: 'how full the queues are',
  },
  {
    name: 'top shows kilobytes as megabytes',
    file: 'frontend/cli/top-page.ts',
    find: 'memoryUsage / 1e6',
    replace: 'memoryUsage / 1e3',
    tests: TOP,
    title: 'what memory workers have',
  },
  {
    name: 'top does not show which models cannot serve',
    file: 'frontend/cli/top-page.ts',
    find: "failure === undefined ? '' : 'cannot serve'",
    replace: "failure === undefined ? '' : ''",
    tests: TOP,
    title: 'which models cannot serve',
  },
  {
    name: 'a look at a folder looks at every file of it',
    file: 'frontend/cli/dev/file-stamps.ts',
    find: '.slice(0, Math.min(left, limits.filesInFolder))',
    replace: '',
    tests: DEV_FILES,
    title: 'a look costs',
  },
  {
    name: 'what a handler imports from outputs of builds is not watched',
    file: SERVED_FOLDER,
    find: 'sources.filter((path) => !this.#read.has(path))',
    replace: "sources.filter((path) => relative(this.#folder, path).startsWith('..'))",
    tests: DEV_FILES,
    title: 'beside a folder',
  },
  {
    name: 'a save of a test loads the model',
    file: SERVED_FOLDER,
    find: 'return this.#sources === undefined || !isScript(path) || this.#sources.has(path)',
    replace: "return this.#sources === undefined || path !== ''",
    tests: DEV,
    title: 'of a test',
  },
]

export const MUTANTS: readonly Mutant[] = [...PROCESS_MUTANTS, ...KEPT_MUTANTS, ...COMMAND_MUTANTS]
